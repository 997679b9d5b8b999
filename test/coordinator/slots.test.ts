// Slots over the wire, message by message: requests, answers and pushes of an agent in any language. Agent and journal
// agree again after lost messages, changes of leader and deaths.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { recordCount } from "../support/stored.ts";
import {
  noJitter,
  startTestSwarm,
  stopped,
  subjects,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";

let clock: ManualClock;
let store: MemoryJournalStore;
let first: HeldJournal;
let swarm: TestSwarm;
let a1: WireAgent;
let a2: WireAgent;
let a3: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  first = new HeldJournal(store);
  swarm = await startTestSwarm({ clock, store, journal: first.journal, random: noJitter });
  await setResource("gpu", 1);
  a1 = await swarm.agent("a1", { kinds: [] });
  a2 = await swarm.agent("a2", { kinds: [] });
  a3 = await swarm.agent("a3", { kinds: [] });
});
afterEach(async () => {
  first.journal.setOffline(false);
  first.release();
  await stopped(swarm, clock);
});

const setResource = (resource: string, slots: number, more: object = {}) =>
  swarm.client.ask(subjects.operator("resource"), { resource, slots, ...more });

function acquire(agent: WireAgent, handle: string, more: object = {}) {
  const { incarnation } = agent.joinMessage;
  return agent.ask(subjects.agent("_", agent.id, "acquire"), {
    incarnation,
    handle,
    resources: ["gpu"],
    ...more,
  });
}

function release(agent: WireAgent, handle: string) {
  return agent.ask(subjects.agent("_", agent.id, "release"), {
    incarnation: agent.joinMessage.incarnation,
    handle,
  });
}

const touch = (agent: WireAgent, handle: string) =>
  agent.ask(subjects.agent("_", agent.id, "touch"), { incarnation: agent.joinMessage.incarnation, handle });

const heartbeat = (agent: WireAgent, held: string[], waiting: string[] = []) =>
  agent.heartbeat([], 0, { slots: { held, waiting } });

const granted = { ok: true, state: "granted" };
const waiting = { ok: true, state: "waiting" };
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the status holds
const gpu = async (): Promise<any> =>
  (await swarm.client.status()).resources.find((row: { resource: string }) => row.resource === "gpu");

it("two resources with an α of their own grant the same requests differently, and status names the source of α", async () => {
  await setResource("quick", 1, { optimizeFor: "latency" });
  await setResource("bulk", 1, { alpha: 1 });
  for (const name of ["quick", "bulk"]) {
    const ask = (agent: WireAgent, weight: number) =>
      acquire(agent, `${agent.id}-${name}`, { resources: [name], weight });
    await ask(a1, 1);
    await ask(a3, 1);
    await ask(a2, 1);
    await release(a1, `a1-${name}`);
    await acquire(a1, `a1-heavy-${name}`, { resources: [name], weight: 9 });
    await release(a3, `a3-${name}`);
  }
  const { resources } = await swarm.client.status();
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the status holds
  const said = resources.map(({ resource, alpha, alphaFrom, holders }: any) => [
    resource,
    alpha,
    alphaFrom,
    holders[0]?.agent,
  ]);
  expect(said).toEqual([
    ["gpu", 0.25, "policy", undefined],
    ["quick", 0, "resource", "a2"],
    ["bulk", 1, "resource", "a1"],
  ]);
  const { resources: set } = await swarm.client.ask(subjects.query("_", "settings"), {});
  expect(set.find(({ resource }: { resource: string }) => resource === "bulk")).toEqual({
    resource: "bulk",
    alpha: { value: 1, autoTune: false, from: "resource" },
    settings: { slots: 1, maxWaiters: limits.waitersPerResourceMax, ownAlpha: { value: 1, autoTune: false } },
  });
});

describe("acquiring", () => {
  it("is answered after the commit: granted, or waiting until a push says granted", async () => {
    expect(await acquire(a1, "h1")).toEqual({ term: 1, idx: expect.any(Number), answer: granted });
    expect(await acquire(a2, "h2")).toMatchObject({ answer: waiting });
    expect(await release(a1, "h1")).toMatchObject({ ok: true, was: "held" });
    expect(await a2.push("slots-granted")).toEqual({
      type: "slots-granted",
      term: 1,
      incarnation: "a2-1",
      handles: ["h2"],
    });
  });

  it("asked again by the same handle is answered with how it stands, and done once", async () => {
    await acquire(a1, "h1");
    expect(await acquire(a1, "h1")).toMatchObject({ answer: granted });
    expect(await acquire(a1, "h1", { weight: 2 })).toMatchObject({ answer: { code: "WAGGLE_CONFLICT" } });
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it.each([
    ["an unknown resource", { resources: ["gpuu"] }, "WAGGLE_UNKNOWN_RESOURCE", /did you mean gpu\?/],
    ["more slots than there are", { resources: ["gpu", "gpu"] }, "WAGGLE_ABOVE_CAPACITY", /gpu has 1 slot/],
  ])("refuses %s, and changes nothing", async (_, more, code, message) => {
    const before = recordCount(store);
    expect((await acquire(a1, "h1", more)).answer).toMatchObject({
      ok: false,
      code,
      field: "resources",
      message: expect.stringMatching(message),
    });
    expect(recordCount(store)).toBe(before);
  });

  it.each([
    ["a weight below 1", { weight: 0.5 }, "weight"],
    ["a weight that is no number", { weight: Number.NaN }, "weight"],
    ["no resource", { resources: [] }, "resources"],
    ["a handle with spaces", { handle: "a b" }, "handle"],
    ["a time-out below 0", { timeoutMs: -1 }, "timeoutMs"],
  ])("refuses a message with %s", async (_, more, field) => {
    expect(await acquire(a1, "h1", more)).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", field });
  });

  it("refuses the waiter beyond maxWaiters with backpressure", async () => {
    await setResource("gpu", 1, { maxWaiters: 1 });
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    expect((await acquire(a3, "h3")).answer).toMatchObject({
      code: "WAGGLE_BACKPRESSURE",
      message: expect.stringMatching(/^gpu has 1 request waiting.*waggle resource set gpu --max-waiters N/),
      retryAfterMs: limits.retryAfterMs,
    });
  });

  it("refuses out of name order while holding, and says what to do", async () => {
    await setResource("disk", 1);
    await acquire(a1, "h1");
    const { answer } = await acquire(a1, "h2", { resources: ["disk"] });
    expect(answer).toMatchObject({
      code: "WAGGLE_ACQUIRE_ORDER",
      message: expect.stringContaining("at once"),
    });
    expect(await acquire(a1, "h3", { resources: ["disk"], holder: "other" })).toMatchObject({
      answer: granted,
    });
  });

  it("refuses an ended session", async () => {
    await a1.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" });
    expect(await acquire(a1, "h1")).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_AGENT" });
  });
});

describe("releasing", () => {
  it("twice is once, and an unknown handle is another answer", async () => {
    await acquire(a1, "h1");
    await release(a1, "h1");
    expect(await release(a1, "h1")).toMatchObject({ ok: true, was: "ended", reason: "released" });
    expect(await release(a1, "never")).toMatchObject({
      ok: false,
      code: "WAGGLE_UNKNOWN_HANDLE",
      field: "handle",
    });
  });

  it("of a waiting handle ends the wait", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    expect(await release(a2, "h2")).toMatchObject({ ok: true, was: "waiting" });
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });
});

describe("a time-out", () => {
  it("ends the wait with a push, and a later grant goes to another agent", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2", { timeoutMs: 500 });
    await acquire(a3, "h3");
    await clock.advance(600);
    expect(await a2.push("slot-waits-ended")).toMatchObject({
      waits: [{ handle: "h2", reason: "timed-out" }],
    });
    await release(a1, "h1");
    expect(await a3.push("slots-granted")).toMatchObject({ handles: ["h3"] });
    expect((await acquire(a2, "h2", { timeoutMs: 500 })).answer).toMatchObject({
      code: "WAGGLE_ACQUIRE_TIMED_OUT",
    });
  });

  it("that races a grant loses where the grant is first in the journal", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2", { timeoutMs: 500 });
    clock.stall(600); // both are due in the same turn, and commands come before timers
    await release(a1, "h1");
    expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
    await clock.advance(1_000);
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
    expect(await release(a2, "h2")).toMatchObject({ was: "held" });
  });
});

describe("fewer slots than a waiting request needs", () => {
  it("end the wait with a push, and the same request is refused from then on", async () => {
    await setResource("gpu", 3);
    const two = { resources: ["gpu", "gpu"] };
    await acquire(a1, "h1", two);
    expect((await acquire(a2, "h2", two)).answer).toEqual(waiting);
    expect((await acquire(a3, "h3", two)).answer).toEqual(waiting);
    expect(await setResource("gpu", 1)).toMatchObject({ ok: true });
    expect(await a2.push("slot-waits-ended")).toMatchObject({
      waits: [{ handle: "h2", reason: "above-capacity" }],
    });
    expect(await gpu()).toMatchObject({ inUse: 2, waiting: 0 });
    for (const handle of ["h2", "h4"])
      expect((await acquire(a2, handle, two)).answer).toMatchObject({
        ok: false,
        code: "WAGGLE_ABOVE_CAPACITY",
        field: "resources",
      });
    expect(await release(a2, "h2")).toMatchObject({ ok: true, was: "ended", reason: "above-capacity" });
    // The push to A3 was lost: the next heartbeat repeats the grant.
    await heartbeat(a3, [], ["h3"]);
    expect(await a3.push("slot-waits-ended")).toMatchObject({ waits: [{ handle: "h3" }] });
  });
});

describe("an agent that dies", () => {
  it("while holding gives the slot to the next, after H", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    for (let second = 0; second <= limits.agentLostMs / 1_000; second += 1) {
      await heartbeat(a2, [], ["h2"]);
      await clock.advance(1_000);
    }
    expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it("while waiting is passed over after 3 s of silence", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    await acquire(a3, "h3");
    for (let silentMs = 0; silentMs <= limits.unresponsiveSilenceMs; silentMs += limits.heartbeatMs) {
      await heartbeat(a1, ["h1"]);
      await heartbeat(a3, [], ["h3"]);
      await clock.advance(limits.heartbeatMs);
    }
    await release(a1, "h1");
    expect(await a3.push("slots-granted")).toMatchObject({ handles: ["h3"] });
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 1 });
  });

  it("while waiting, and is granted before that is noticed, gives the slot to the next after H", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    await acquire(a3, "h3");
    await release(a1, "h1");
    expect(await gpu()).toMatchObject({ holders: [{ agent: "a2", handle: "h2" }] });
    for (let silentMs = 0; silentMs <= limits.agentLostMs; silentMs += limits.heartbeatMs) {
      await heartbeat(a3, [], ["h3"]);
      await clock.advance(limits.heartbeatMs);
    }
    expect(await a3.push("slots-granted")).toMatchObject({ handles: ["h3"] });
  });

  it("while waiting, and is back with a new session, waits no more", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    await acquire(a3, "h3");
    await a2.ask(subjects.agent("_", "a2", "join"), {
      ...a2.joinMessage,
      incarnation: "a2-2",
      after: "a2-1",
    });
    await release(a1, "h1");
    expect(await a3.push("slots-granted")).toMatchObject({ handles: ["h3"] });
  });
});

describe("a heartbeat", () => {
  it("that agrees changes nothing", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    const before = recordCount(store);
    expect(await heartbeat(a1, ["h1"])).toMatchObject({ renewed: true });
    expect(await heartbeat(a2, [], ["h2"])).toMatchObject({ renewed: true });
    expect(recordCount(store)).toBe(before);
  });

  it("that lists a grant as waiting is granted again, in case the push was lost", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    await release(a1, "h1");
    await a2.push("slots-granted");
    await heartbeat(a2, [], ["h2"]);
    expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
  });

  it("without a held slot gives the slot up", async () => {
    await acquire(a1, "h1");
    await acquire(a2, "h2");
    await clock.advance(limits.slotUnlistedMs);
    await heartbeat(a1, []);
    expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
  });

  it("with another agent's handles is notified to stop, and to ask for unknown waits", async () => {
    await heartbeat(a1, ["h9"], ["h8"]);
    expect(await a1.push("slots-revoked")).toMatchObject({ handles: ["h9"] });
    expect(await a1.pushes.next()).toMatchObject({
      type: "slot-waits-ended",
      waits: [{ handle: "h8", reason: "unknown" }],
    });
  });
});

it("nothing leaves before its commit", async () => {
  await acquire(a1, "h1");
  await acquire(a2, "h2");
  first.hold();
  let isAnswered = false;
  const released = release(a1, "h1").then(() => {
    isAnswered = true;
  });
  await clock.settle();
  expect(isAnswered).toBe(false);
  expect(a2.pushes.all).toEqual([]);
  first.release();
  await released;
  expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
});

it("everything works on under a new leader, which repeats the grants", async () => {
  await acquire(a1, "h1");
  await acquire(a2, "h2", { weight: 3 });
  await swarm.startAnother("c2");
  first.journal.setOffline(true);
  await clock.advance(2 * limits.leaderTimeoutMs);
  expect(await a1.push("slots-granted")).toMatchObject({ term: 2, handles: ["h1"] });
  expect(await acquire(a2, "h2", { weight: 3 })).toMatchObject({ term: 2, answer: waiting });
  expect(await release(a1, "h1")).toMatchObject({ ok: true, term: 2, was: "held" });
  expect(await a2.push("slots-granted")).toMatchObject({ term: 2, handles: ["h2"] });
});

it("a request that waits for tokens is granted by the next leader, and idle times start anew", async () => {
  await setResource("gpu", 2);
  const budget = { tokens: 100, windowMs: 3_600_000 };
  await swarm.client.ask(subjects.operator("project"), { project: "acme", budget });
  await acquire(a1, "h1", { tokens: 80, project: "acme", idleTimeoutMs: 4_000 });
  expect(await acquire(a2, "h2", { tokens: 30, project: "acme" })).toMatchObject({ answer: waiting });
  expect((await gpu()).waiters).toMatchObject([{ handle: "h2", waitsFor: "project-budget", tokens: 30 }]);
  await clock.advance(2_000);
  await swarm.startAnother("c2");
  first.journal.setOffline(true);
  await clock.advance(2 * limits.leaderTimeoutMs);
  expect(await a1.push("slots-granted")).toMatchObject({ term: 2, handles: ["h1"] });
  expect(await touch(a1, "h1")).toMatchObject({ ok: true, term: 2, state: "held" });
  expect((await gpu()).inUse).toBe(1);
  const { incarnation } = a1.joinMessage;
  const report = { incarnation, handle: "h1", usage: { tokens: 10 } };
  await a1.ask(subjects.agent("_", "a1", "release"), report);
  expect(await a2.push("slots-granted")).toMatchObject({ term: 2, handles: ["h2"] });
  expect(await touch(a1, "h1")).toMatchObject({ ok: true, state: "ended", reason: "released" });
});

it("an idle lease is taken back, and the holder is told at once", async () => {
  await acquire(a1, "h1", { idleTimeoutMs: 1_000 });
  await acquire(a2, "h2");
  await clock.advance(1_000);
  expect(await a1.push("slots-revoked")).toMatchObject({ handles: ["h1"], reason: "idle" });
  expect(await a2.push("slots-granted")).toMatchObject({ handles: ["h2"] });
  expect(await touch(a1, "h1")).toMatchObject({ ok: true, state: "ended", reason: "idle" });
  expect(await touch(a1, "never")).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_HANDLE" });
});

it.each([
  [{ tokens: 1.5 }, "tokens"],
  [{ tokens: -1 }, "tokens"],
  [{ project: "a.b" }, "project"],
  [{ label: "two\nlines" }, "label"],
  [{ as: "two words" }, "as"],
  [{ idleTimeoutMs: 999 }, "idleTimeoutMs"],
])("wrong terms %j are refused by name", async (terms, field) => {
  expect(await acquire(a1, "h1", terms)).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", field });
  expect((await gpu()).inUse).toBe(0);
});

it("status shows each resource: slots, in use, waiting, utilisation, α", async () => {
  await setResource("gpu", 2);
  await acquire(a1, "h1");
  await clock.advance(1_000);
  await acquire(a2, "h2");
  await acquire(a3, "h3");
  const status = await gpu();
  expect(status).toMatchObject({
    resource: "gpu",
    slots: 2,
    maxWaiters: 100,
    inUse: 2,
    waiting: 1,
    tick: 0,
    alpha: 0.25,
    holders: [
      { agent: "a1", handle: "h1" },
      { agent: "a2", handle: "h2" },
    ],
  });
  expect(status.utilisation).toBeGreaterThan(0.3);
  expect(status.utilisation).toBeLessThanOrEqual(0.5);
});
