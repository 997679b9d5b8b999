// Hand-over: the next leader, requests before and behind the hand-over, refusals, and the old leader as a warm
// standby.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, roleOf, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";
import { endedTask, liveTask } from "../support/task-refs.ts";

const timeoutMs = limits.leaderTimeoutMs;
let clock: ManualClock;
let store: MemoryJournalStore;
let first: HeldJournal;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  first = new HeldJournal(store);
  swarm = await startTestSwarm({ clock, store, journal: first.journal, random: noJitter });
});
afterEach(async () => {
  first.release();
  await stopped(swarm, clock);
});

const transfer = (more: object = {}) => swarm.client.ask(subjects.operator("transfer"), { of: 1, ...more });

/** Standbys, heard by the leader. */
async function standbys(...ids: string[]): Promise<Coordinator[]> {
  const all: Coordinator[] = [];
  for (const id of ids) all.push(await swarm.startAnother(id));
  await clock.settle();
  return all;
}

describe("a leader's status", () => {
  it("names the standbys, for as long as they are heard", async () => {
    expect(await swarm.client.status()).toMatchObject({ leader: "c1", standbys: [] });
    const [second] = await standbys("c2", "c3");
    expect(await swarm.client.status()).toMatchObject({ standbys: ["c2", "c3"] });
    await second?.stop();
    await clock.settle();
    expect(await swarm.client.status()).toMatchObject({ standbys: ["c3"] });
    swarm.hub.cut(swarm.transportById.get("c3") ?? expect.fail("c3 has a connection"));
    await clock.advance(timeoutMs + 1);
    expect(await swarm.client.status()).toMatchObject({ standbys: [] });
  });
});

describe("a leader that hands over", () => {
  it("to any that stands by is followed at once, and stands by itself", async () => {
    const [second] = await standbys("c2");
    expect(await transfer()).toMatchObject({ ok: true, term: 1 });
    await clock.settle();
    expect(second && roleOf(second)).toBe("leading");
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    expect(clock.monotonicMs()).toBe(0);
    expect(await swarm.submit("t1")).toMatchObject({ term: 2, answers: [{ ok: true }] });
  });

  it("to a named standby leaves the lead to the standby, and no third coordinator takes the lead", async () => {
    const [second, third] = await standbys("c2", "c3");
    await transfer({ to: "c3" });
    await clock.advance(3 * timeoutMs);
    expect([second, third].map((each) => each && roleOf(each))).toEqual(["standing-by", "leading"]);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    expect(swarm.watched.settled().state).toMatchObject({ term: 2, leader: "c3" });
  });

  it("to a standby that has just ended is refused, and the leader leads on", async () => {
    const [second] = await standbys("c2");
    await second?.stop();
    expect(await transfer()).toMatchObject({ ok: false, code: "WAGGLE_NO_STANDBY" });
    expect(await swarm.submit("t1")).toMatchObject({ term: 1, answers: [{ ok: true }] });
  });

  it("finishes earlier requests first, and loses nothing", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t0");
    const assignment = await agent.assignment();
    await standbys("c2");
    first.hold();
    const accepted = swarm.submit("t1");
    await clock.settle();
    const handed = transfer();
    await clock.settle();
    first.release();
    expect(await accepted).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(await handed).toMatchObject({ ok: true, term: 1 });
    await clock.settle();
    expect((await agent.complete(assignment)).answers).toEqual([{ ok: true, status: "ok" }]);
    expect(endedTask(swarm.watched.settled().state, "t0")).toBeDefined();
    expect(liveTask(swarm.watched.replay.state, "t1")).toBeDefined();
  });

  it("continues from the earlier state after a takeback, and replay agrees", async () => {
    const [second] = await standbys("c2");
    await swarm.submit("t1");
    await transfer();
    await clock.settle();
    await swarm.submit("t2");
    await clock.advance(limits.pulseMs);
    expect(await transfer({ of: 2, to: "c1" })).toMatchObject({ ok: true, term: 2 });
    await clock.settle();
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(second && roleOf(second)).toBe("standing-by");
    expect(await swarm.submit("t1")).toMatchObject({ term: 3, answers: [{ ok: true, duplicate: true }] });
    expect(await swarm.client.status()).toMatchObject({ tasks: { queued: 2 }, leader: "c1" });
  });

  it("leads again after T of silence when the next leader is gone", async () => {
    const away = new MemoryJournal(store);
    await swarm.startAnother("c2", away);
    away.setOffline(true);
    await transfer({ to: "c2" });
    await clock.advance(timeoutMs - limits.pulseMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    await clock.advance(2 * limits.pulseMs + limits.campaignAskShare * timeoutMs);
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(swarm.watched.settled().state).toMatchObject({ term: 2, leader: "c1" });
  });
});

describe("a hand-over is refused", () => {
  it("without a standby, or without one heard for T", async () => {
    const refusal = { ok: false, code: "WAGGLE_NO_STANDBY", message: expect.stringContaining("waggle up") };
    expect(await transfer()).toMatchObject(refusal);
    await standbys("c2");
    swarm.hub.cut(swarm.transportById.get("c2") ?? expect.fail("c2 has a connection"));
    await clock.advance(timeoutMs + limits.pulseMs);
    expect(await transfer()).toMatchObject(refusal);
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(await swarm.submit("t1")).toMatchObject({ term: 1 });
  });

  it("when the named coordinator does not stand by, naming the standbys", async () => {
    await standbys("c2", "c3");
    expect(await transfer({ to: "c9" })).toMatchObject({
      ok: false,
      code: "WAGGLE_NO_STANDBY",
      field: "to",
      message: expect.stringContaining("c2, c3"),
    });
  });

  it("when it does not parse", async () => {
    for (const wrong of [{ of: undefined }, { to: "" }, { to: 7 }])
      expect(await transfer(wrong)).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE" });
  });
});

describe("a hand-over that was done", () => {
  it("is not done twice: a later term goes on, and so does a leader that is asked for itself", async () => {
    await standbys("c2");
    expect(await transfer({ to: "c1" })).toMatchObject({ ok: true, term: 1 });
    expect(roleOf(swarm.coordinator)).toBe("leading");
    await transfer();
    await clock.settle();
    expect(await transfer()).toMatchObject({ ok: true, term: 2 });
    await clock.settle();
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
  });

  it("is not answered when the leader was deposed meanwhile: nothing definite is known", async () => {
    await standbys("c2");
    first.journal.setOffline(true);
    const unanswered = expect(transfer()).rejects.toThrow(/timeout/);
    await clock.advance(2 * timeoutMs);
    await unanswered;
    first.journal.setOffline(false);
    await clock.advance(limits.appendRetryMs);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
  });
});
