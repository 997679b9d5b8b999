// What a simulated machine says of its coordinator: faults that would lose what nobody has ask it.

import { expect, it } from "vitest";
import { CoordinatorParty } from "../../../src/sim/fault/coordinator-party.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import type { Condition } from "../../../src/sim/fault/link.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const lost: Condition = {
  lossShare: 1,
  duplicateShare: 0,
  reorderShare: 0,
  lateShare: 0,
  lateMs: 0,
  heldUntilMs: 0,
};

it("a leader counts as having the journal, also one that was deposed and has not heard of it", async () => {
  const habitat = new Habitat(new SeededRandom("test"));
  const truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const parties = ["c1", "c2"].map(
    (id) =>
      new CoordinatorParty({ id, leaderTimeoutMs: 1_000, everyEvents: 1_000, retention }, habitat, truth),
  );
  const run = (ms: number, isEnough = () => false) =>
    habitat.engine.run(habitat.engine.nowMs + ms, () => {
      truth.readOn();
      return isEnough();
    });
  for (const party of parties) party.start();
  await run(10_000, () => parties.some(({ isLeading }) => isLeading));
  await run(500);
  const deposed = parties.find(({ isLeading }) => isLeading);
  expect(deposed?.knownIdx).toBe(Number.POSITIVE_INFINITY);
  expect(parties.find((party) => party !== deposed)?.knownIdx).toBe(truth.state.idx);
  const link = habitat.linkOf(`${deposed?.id}/journal`);
  for (const direction of ["up", "down"] as const) link.set(direction, lost);
  await run(20_000, () => truth.state.term === 2);
  expect(deposed?.isLeading).toBe(true);
  expect(deposed?.knownIdx).toBe(Number.POSITIVE_INFINITY);
  expect(habitat.findings).toEqual([]);
});
