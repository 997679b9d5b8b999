// The check of whole journals on the journals that simulated swarms leave behind: nothing is called changed that a
// coordinator wrote, and what the store lost is named as missing.

import { describe, expect, it } from "vitest";
import { verifyJournal } from "../../../src/audit/verifying/verify.ts";
import type { FaultKind } from "../../../src/sim/fault/fault.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { losses, StoreReader, worldAfter } from "./store-reader.ts";

const forMs = 60_000;
const seeds = 3;

async function verifiedAfter(seed: number, without: readonly FaultKind[]) {
  const { habitat, truth } = await worldAfter(seed, { forMs, without });
  const found = await verifyJournal({ journal: new StoreReader(habitat), clock: new ManualClock() });
  return { found: found ?? expect.fail("a swarm has run"), tail: truth.tail };
}

describe("journals of simulated swarms", () => {
  it("are whole if the store loses nothing", async () => {
    let compared = 0;
    for (let seed = 0; seed < seeds; seed += 1) {
      const { found, tail } = await verifiedAfter(seed, losses);
      expect(found.fault, `seed ${seed}`).toBeUndefined();
      expect(found.gaps).toEqual([]);
      expect(found.tail).toEqual(tail);
      compared += found.basesCompared;
    }
    expect(compared).toBeGreaterThan(0);
  }, 600_000);

  it("are never called changed if the store loses records", async () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const { found } = await verifiedAfter(seed, []);
      kinds.add(found.fault?.kind ?? "none");
    }
    for (const kind of kinds) expect(["none", "missing", "unreadable", "beginning"]).toContain(kind);
  }, 600_000);
});
