// The recent times of a leader's turns and appends.

import { describe, expect, it } from "vitest";
import { healthOf } from "../../src/audit/health.ts";
import { Timings } from "../../src/coordinator/leader/timings.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, startTestSwarm, stopped } from "../support/swarm.ts";

const aBatch = (appendMs: number) => ({ events: 1, bytes: 100, appendMs });

it("a journal that answers late is found by the rules of health, and a quick journal is not", async () => {
  const clock = new ManualClock();
  const store = new MemoryJournalStore({ clock });
  const held = new HeldJournal(store);
  const swarm = await startTestSwarm({ clock, store, journal: held.journal, random: noJitter });
  const rulesFound = async () => healthOf(await swarm.client.status()).findings.map(({ rule }) => rule);
  await swarm.submit("quick");
  expect(await rulesFound()).not.toContain("journal-slow");
  for (let n = 0; n < 4 * limits.healthAppendsMin; n += 1) {
    held.hold();
    const submitted = swarm.submit(`late-${n}`);
    await clock.advance(limits.healthAppendMs + 50);
    held.release();
    await submitted;
  }
  expect(await rulesFound()).toContain("journal-slow");
  await stopped(swarm, clock);
});

describe("recent times", () => {
  const clock = new ManualClock();
  const timings = new Timings({ clock, metrics: undefined });

  it("are undefined before the first", () => {
    expect([timings.turns, timings.appends]).toEqual([undefined, undefined]);
  });

  it("are summed up by rank", () => {
    for (let ms = 100; ms >= 1; ms -= 1) timings.stored(aBatch(ms));
    timings.decided(3);
    expect(timings.appends).toEqual({ count: 100, p50: 50, p99: 99, max: 100 });
    expect(timings.turns).toEqual({ count: 1, p50: 3, p99: 3, max: 3 });
  });

  it("forget what is older than the window", async () => {
    await clock.advance(limits.timingsWindowMs / 2);
    timings.stored(aBatch(7));
    await clock.advance(limits.timingsWindowMs / 2 + 1);
    expect(timings.appends).toEqual({ count: 1, p50: 7, p99: 7, max: 7 });
    expect(timings.turns).toBeUndefined();
  });

  it("keep the newest, up to a bound", () => {
    for (let n = 0; n < limits.timingsMax; n += 1) timings.stored(aBatch(1_000));
    for (let n = 0; n < limits.timingsMax; n += 1) timings.stored(aBatch(2));
    expect(timings.appends).toEqual({ count: limits.timingsMax, p50: 2, p99: 2, max: 2 });
  });
});
