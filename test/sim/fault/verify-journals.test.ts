// The check of whole journals on the journals that simulated swarms leave behind: nothing is called changed that a
// coordinator wrote, and what the store lost is named as missing.

import { describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../../src/errors.ts";
import type { JournalReader, SegmentReader } from "../../../src/journal/journal.ts";
import { noSegmentError, unreadableError } from "../../../src/journal/journal-errors.ts";
import { decodeRecord } from "../../../src/journal/records.ts";
import { verifyJournal } from "../../../src/journal/verify.ts";
import type { Habitat } from "../../../src/sim/fault/habitat.ts";
import { planOf } from "../../../src/sim/fault/run-seed.ts";
import { World } from "../../../src/sim/fault/world.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const forMs = 60_000;
const seeds = 3;

/** The store itself, whatever its server answers. */
class StoreReader implements JournalReader {
  readonly #habitat: Habitat;

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  async list() {
    return [...this.#habitat.segmentNumbers()].sort((one, other) => one - other);
  }

  async close() {
    return;
  }

  segment(number: number): SegmentReader {
    const habitat = this.#habitat;
    const stream = () => habitat.segmentStream(number);
    const sealedAt = () => stream()?.firstOf(habitat.subjects.segmentSealed(number));
    const last = () => Math.min(stream()?.lastSeq ?? 0, (sealedAt() ?? Number.POSITIVE_INFINITY) - 1);
    const read = (position: number) => {
      const bytes = position > last() ? undefined : stream()?.at(position);
      if (stream()?.isDamaged(position)) throw unreadableError(number, position);
      return bytes === undefined ? undefined : { position, bytes };
    };
    return {
      number,
      end: async () =>
        stream() === undefined
          ? undefined
          : { position: last(), bytes: 0, isSealed: sealedAt() !== undefined, missing: 0 },
      read: async (position) => read(position),
      opened: async () => {
        for (let position = last(); position > 0; position -= 1) {
          const record = stream()?.isDamaged(position) ? undefined : read(position);
          if (record !== undefined && decodeRecord(record.bytes)?.kind === "opened") return record;
        }
        return undefined;
      },
      async *replay(from, { until = last() } = {}) {
        if (stream() === undefined) throw noSegmentError(number);
        for (let position = from; position <= until; position += 1) {
          const record = read(position);
          if (record === undefined) throw new JournalDamagedError(`record ${position} is missing`);
          yield record;
        }
      },
    };
  }
}

async function verifiedAfter(seed: number, without: Parameters<typeof planOf>[0]["without"]) {
  const { workload, schedule } = planOf({ seed, forMs, without });
  const world = new World({
    seed,
    workload,
    schedule,
    without,
    untilMs: forMs,
    profile: undefined,
    log: undefined,
  });
  await world.run(undefined);
  const clock = new ManualClock();
  const found = await verifyJournal({ journal: new StoreReader(world.habitat), clock });
  return { found: found ?? expect.fail("a swarm has run"), tail: world.truth.tail };
}

const losses = ["tail-cut", "segment-lost", "gap", "bit-flip"] as const;

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
  }, 300_000);

  it("are never called changed if the store loses records", async () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const { found } = await verifiedAfter(seed, []);
      kinds.add(found.fault?.kind ?? "none");
    }
    for (const kind of kinds) expect(["none", "missing", "unreadable", "beginning"]).toContain(kind);
  }, 300_000);
});
