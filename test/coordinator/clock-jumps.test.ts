// Wall clocks that jump, on the leader, on a standby, and at the moment of taking the lead. Journal time goes on
// steadily, no agent loses a lease, every timer is on time, and the log has an alarm.

import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, startTestSwarm, stopped, type TestSwarm, type WireAgent } from "../support/swarm.ts";

const hourMs = 3_600_000;
const jumps = [
  ["an hour ahead", hourMs],
  ["an hour back", -hourMs],
  ["a day ahead", 24 * hourMs],
  ["a day back", -24 * hourMs],
] as const;

/** The clock of a second machine: time passes equally, the wall clocks differ. */
class OtherWall implements Clock {
  offMs = 0;
  readonly #clock: Clock;
  readonly after: Clock["after"];
  readonly soon: Clock["soon"];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.after = clock.after.bind(clock);
    this.soon = clock.soon.bind(clock);
  }

  now(): number {
    return this.#clock.now() + this.offMs;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }
}

let clock: ManualClock;
let walls: Record<"c1" | "c2", OtherWall>;
let swarm: TestSwarm;
let agent: WireAgent;
let alarms: number[];
let firstJournal: MemoryJournal;
let secondJournal: MemoryJournal;

beforeEach(async () => {
  clock = new ManualClock();
  walls = { c1: new OtherWall(clock), c2: new OtherWall(clock) };
  alarms = [];
  const logger = pino(
    { level: "warn" },
    {
      write: (line) => {
        const { skewMs } = JSON.parse(line);
        if (skewMs !== undefined) alarms.push(skewMs);
      },
    },
  );
  const store = new MemoryJournalStore();
  firstJournal = new MemoryJournal(store);
  swarm = await startTestSwarm({ clock: walls.c1, random: noJitter, store, logger, journal: firstJournal });
  secondJournal = new MemoryJournal(store);
  await swarm.startAnother("c2", secondJournal, { clock: walls.c2 });
  agent = await swarm.agent("a1");
});
afterEach(async () => {
  await stopped(swarm, clock);
});

const journalTime = () => swarm.watched.settled().state.at;
const stateOf = async (id: string) => (await swarm.client.task(id)).state;

/** Seconds pass with heartbeats. */
async function live(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
    agent.transport.publish(
      `waggle.v1.test.agent._.a1.heartbeat`,
      Buffer.from(
        JSON.stringify({
          incarnation: "a1-1",
          status: "busy",
          inFlight: 1,
          held: [{ project: "default", task: "runs", attempt: 1 }],
          seen: 1,
        }),
      ),
    );
    await clock.settle();
  }
}

/** One task runs, one has a deadline in a minute, one is delayed by half a minute. */
async function submitThree(): Promise<void> {
  const now = clock.now();
  await swarm.client.submit([
    { id: "runs", kind: "count", timeoutMs: 50 * 60_000 },
    { id: "hurries", kind: "nobody-does", deadline: now + 60_000 },
    { id: "waits", kind: "nobody-does", notBefore: now + 30_000 },
  ]);
  expect(await agent.assignment()).toMatchObject({ task: "runs" });
  await live(2);
  expect([await stateOf("runs"), await stateOf("hurries"), await stateOf("waits")]).toEqual([
    "running",
    "queued",
    "delayed",
  ]);
}

/** Timers are on time within a hundredth, the rate at which journal time approaches the wall clock. */
async function expectAllAsItShould(passedSeconds: number): Promise<void> {
  await live(29 - passedSeconds);
  expect([await stateOf("waits"), await stateOf("hurries")]).toEqual(["delayed", "queued"]);
  await live(2);
  expect([await stateOf("waits"), await stateOf("hurries")]).toEqual(["queued", "queued"]);
  await live(27);
  expect(await stateOf("hurries")).toBe("queued");
  await live(4);
  expect([await stateOf("hurries"), await stateOf("runs")]).toEqual(["expired", "running"]);
  expect(await swarm.client.task("runs")).toMatchObject({ attempts: 1 });
}

describe.each(jumps)("a wall clock that jumps %s", (_, offMs) => {
  it("on the leader moves nothing but by a hundredth, and is said once", async () => {
    await submitThree();
    const before = journalTime();
    const startedMs = clock.monotonicMs();
    walls.c1.offMs = offMs;
    await expectAllAsItShould(2);
    const passedMs = clock.monotonicMs() - startedMs;
    expect(Math.abs(journalTime() - before - passedMs)).toBeLessThan(0.011 * passedMs + 2_000);
    expect(alarms).toEqual([expect.closeTo(offMs, -4)]);
  });

  it("on a standby moves nothing, also when it takes over", async () => {
    await submitThree();
    walls.c2.offMs = offMs;
    await live(3);
    expect(alarms).toEqual([]);
    const before = journalTime();
    const startedMs = clock.monotonicMs();
    firstJournal.setOffline(true);
    await live(9);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
    const passedMs = clock.monotonicMs() - startedMs;
    expect(Math.abs(journalTime() - before - passedMs)).toBeLessThan(2_000);
    expect(alarms).toEqual([expect.closeTo(offMs, -4)]);
    await expectAllAsItShould(14);
  });

  it("on a leader that is deposed, and leads again, moves nothing", async () => {
    await submitThree();
    walls.c1.offMs = offMs;
    const before = journalTime();
    const startedMs = clock.monotonicMs();
    firstJournal.setOffline(true);
    await live(8);
    firstJournal.setOffline(false);
    await live(2);
    expect(await swarm.client.status()).toMatchObject({ leader: "c2" });
    secondJournal.setOffline(true);
    await live(8);
    expect(await swarm.client.status()).toMatchObject({ leader: "c1" });
    const passedMs = clock.monotonicMs() - startedMs;
    expect(Math.abs(journalTime() - before - passedMs)).toBeLessThan(2_000);
    await expectAllAsItShould(20);
  });
});

it("a coordinator without a followed leader takes its wall clock for the time without a leader, but never goes back", async () => {
  await submitThree();
  await stopped(swarm, clock);
  const before = journalTime();
  const back = new OtherWall(clock);
  back.offMs = -hourMs;
  const third = await swarm.startAnother("c3", undefined, { clock: back });
  await third.whenLeading();
  await clock.settle();
  expect(journalTime() - before).toBeLessThan(2_000);
  expect(alarms).toEqual([expect.closeTo(-hourMs, -5)]);
  await stopped(third, clock);
  const ahead = new OtherWall(clock);
  ahead.offMs = hourMs;
  const fourth = await swarm.startAnother("c4", undefined, { clock: ahead });
  await fourth.whenLeading();
  await clock.settle();
  expect(journalTime()).toBeCloseTo(ahead.now(), -4);
});
