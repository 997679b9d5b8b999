// When the acknowledgement of an append counts, by the leader lease (src/coordinator/leader/leader-lease.ts).

import { beforeEach, expect, it } from "vitest";
import { LeaderLease } from "../../src/coordinator/leader/leader-lease.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { ManualClock } from "../support/manual-clock.ts";

const timing = timingOf(1_000);
let clock: ManualClock;

beforeEach(() => {
  clock = new ManualClock();
});

function leaseFrom(provenMonotonicMs: number, sharable = true): LeaderLease {
  return new LeaderLease({ journal: { sharable }, clock, timing }, provenMonotonicMs);
}

it("counts an acknowledgement within 0.8·T of the send", async () => {
  const lease = leaseFrom(clock.monotonicMs());
  await clock.advance(700);
  const sentMonotonicMs = clock.monotonicMs();
  await clock.advance(799);
  expect(lease.isLate(sentMonotonicMs)).toBe(false);
  await clock.advance(1);
  expect(lease.isLate(sentMonotonicMs)).toBe(true);
});

it("counts no acknowledgement of an append that follows 0.8·T without an earlier one", async () => {
  const lease = leaseFrom(clock.monotonicMs());
  await clock.advance(800);
  expect(lease.isLate(clock.monotonicMs())).toBe(true);
});

it("counts every acknowledgement of a journal with one coordinator", async () => {
  const lease = leaseFrom(clock.monotonicMs(), false);
  await clock.advance(5_000);
  expect(lease.isLate(0)).toBe(false);
});
