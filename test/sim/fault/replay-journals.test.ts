// The journals of simulated swarms, decided once more: the inputs in the journal give every decision, over changes of
// leaders, bases, lost messages and restarts.

import { expect, it } from "vitest";
import { replayDecisions } from "../../../src/audit/decision-replay.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { losses, StoreReader, worldAfter } from "./store-reader.ts";

const forMs = 60_000;
const seeds = 6;

it("repeats every decision of every simulated swarm exactly", async () => {
  let assignments = 0;
  let inputs = 0;
  let fromBase = 0;
  for (let seed = 0; seed < seeds; seed += 1) {
    const { habitat, truth } = await worldAfter(seed, { forMs, without: losses });
    const found = await replayDecisions({ journal: new StoreReader(habitat), clock: new ManualClock() });
    expect(found?.difference, `seed ${seed}`).toBeUndefined();
    expect(found).toMatchObject({ lastIdx: truth.tail.idx, withheld: 0 });
    fromBase += found?.basesTaken ?? 0;
    assignments += found?.assignments ?? 0;
    inputs += found?.inputs ?? 0;
  }
  expect(assignments).toBeGreaterThan(100);
  expect(inputs).toBeGreaterThan(assignments);
  expect(fromBase).toBeGreaterThan(0);
}, 600_000);
