// A leader and its agents: sessions, heartbeats, lapses, and messages of the wrong session or agent.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import type { Assignment } from "../../src/protocol/schemas.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { recordCount } from "../support/stored.ts";
import { noJitter, startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  clock = new ManualClock();
  log = keptLog();
  swarm = await startTestSwarm({ clock, logger: log.logger, random: noJitter });
});
afterEach(() => swarm.stop());

const held = (...ids: string[]) => ids.map((task) => ({ task, attempt: 1 }));
const task = (id: string) => swarm.client.task(id);
const statusOf = async (id: string) =>
  (await swarm.client.status()).agents.find((agent: { id: string }) => agent.id === id);
const assignments = async (agent: WireAgent, count: number) => {
  const all: Assignment[] = [];
  for (let n = 0; n < count; n += 1) all.push(await agent.assignment());
  return all;
};
/** All pushes to an agent since the last look. */
const pushesOf = async (agent: WireAgent) => {
  await clock.settle();
  return agent.pushes.all.map(({ type }) => type);
};

describe("joining", () => {
  it("tells the agent the rules of the swarm, and the swarm the agent's abilities", async () => {
    const agent = await swarm.agent("a1", { kinds: ["count", "count", "digest"], role: "r", prefetch: 2 });
    expect(await agent.join()).toMatchObject({
      ok: true,
      term: 1,
      unknown: [],
      resumed: true,
      heartbeatMs: limits.heartbeatMs,
      leaseTtlMs: limits.leaseTtlMs,
    });
    expect(await statusOf("a1")).toMatchObject({
      status: "ready",
      kinds: [{ kind: "count" }, { kind: "digest" }],
      role: "r",
      maxConcurrent: 4,
      prefetch: 2,
    });
  });

  it("again resumes: held attempts run on, unknown assignments are sent again, foreign attempts stop", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1", "t2");
    await assignments(agent, 2);
    Object.assign(agent.joinMessage, { held: [...held("t1"), { task: "other", attempt: 3 }], seen: 1 });
    expect(await agent.join()).toMatchObject({ resumed: true, unknown: [{ task: "other", attempt: 3 }] });
    expect([await task("t1"), await task("t2")]).toMatchObject([{ state: "running" }, { state: "assigned" }]);
    await agent.heartbeat(held("t1"), 1);
    await agent.heartbeat(held("t1"), 1);
    expect(await agent.assignment()).toMatchObject({ task: "t2", number: 2 });
  });

  it("as a new incarnation fences the old session, and its attempts run again", async () => {
    const old = await swarm.agent("a1");
    await swarm.submit("t1");
    const stale = await old.assignment();
    const young = await swarm.agent("a1", { incarnation: "a1-2" });
    expect(await old.push("fenced")).toMatchObject({ incarnation: "a1-1" });
    const assignment = await young.assignment();
    expect(assignment).toMatchObject({ task: "t1", attempt: 2, number: 1 });
    expect((await old.complete(stale)).answers).toEqual([{ ok: true, status: "stale" }]);
    expect((await young.complete(assignment)).answers).toEqual([{ ok: true, status: "ok" }]);
  });

  it("once fenced, an agent that sends heartbeats is fenced again, and not answered", async () => {
    const old = await swarm.agent("a1");
    await swarm.agent("a1", { incarnation: "a1-2" });
    await old.push("fenced");
    void old.heartbeat([], 0);
    expect(await old.push("fenced")).toMatchObject({ incarnation: "a1-1", term: 1 });
  });

  it("again with a fenced session is refused: of two processes the later start stays", async () => {
    const old = await swarm.agent("a1");
    const young = await swarm.agent("a1", { incarnation: "a1-2" });
    expect(await old.join()).toMatchObject({ ok: false, code: "WAGGLE_FENCED", field: "incarnation" });
    await young.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-2" });
    expect(await old.join()).toMatchObject({ ok: false, code: "WAGGLE_FENCED" });
    expect(await young.join()).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_AGENT" });
    expect(await statusOf("a1")).toMatchObject({ status: "offline" });
  });

  it.each([
    ["sends a heartbeat", (old: WireAgent) => void old.heartbeat([], 0)],
    ["leaves", (old: WireAgent) => old.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" })],
    ["joins", (old: WireAgent) => old.join()],
    ["reports", (old: WireAgent) => old.complete({ task: "t1", attempt: 1, token: "1.1" } as Assignment)],
  ])("once fenced, a session that %s shows that two processes use the id", async (_, speak) => {
    const old = await swarm.agent("a1");
    await swarm.agent("a1", { incarnation: "a1-2" });
    await clock.advance(1_000);
    expect(await statusOf("a1")).toMatchObject({ fencedAt: expect.any(Number) });
    expect((await statusOf("a1")).outlivedMs, "a restart is no alarm").toBeUndefined();
    await speak(old);
    await clock.advance(2_000);
    expect(await statusOf("a1")).toMatchObject({ status: "ready", outlivedMs: 2_000 });
    expect(log.lines.filter(({ msg }) => msg.includes("two processes use one agent id"))).toMatchObject([
      { level: "warn", agent: "a1", incarnation: "a1-1" },
    ]);
  });

  it("again with an ended session is refused, naming the field and the newest session", async () => {
    const agent = await swarm.agent("a1");
    await agent.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" });
    expect(await agent.join()).toMatchObject({
      ok: false,
      code: "WAGGLE_UNKNOWN_AGENT",
      field: "after",
      newest: "a1-1",
    });
  });

  it("as a new session names the newest session, or fences no session", async () => {
    const agent = await swarm.agent("a1");
    const join = { ...agent.joinMessage, incarnation: "a1-2" };
    const refused = { ok: false, code: "WAGGLE_UNKNOWN_AGENT", field: "after", newest: "a1-1" };
    const joining = subjects.agent("_", "a1", "join");
    expect(await agent.ask(joining, join)).toMatchObject(refused);
    expect(await agent.ask(joining, { ...join, after: "a1-0" })).toMatchObject(refused);
    expect(await agent.heartbeat([], 0)).toMatchObject({ renewed: true });
    expect(await agent.ask(joining, { ...join, after: "a1-1" })).toMatchObject({ ok: true });
    expect(await agent.push("fenced")).toMatchObject({ incarnation: "a1-1" });
  });

  it("is saturated by its newest number of slots", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 1 });
    await swarm.submit("t1");
    await agent.assignment();
    expect(await statusOf("a1")).toMatchObject({ status: "busy", saturated: true });
    Object.assign(agent.joinMessage, { maxConcurrent: 2, held: held("t1"), seen: 1 });
    await agent.join();
    expect(await statusOf("a1")).toMatchObject({ status: "busy", saturated: false, inFlight: 1 });
    Object.assign(agent.joinMessage, { maxConcurrent: 1 });
    await agent.join();
    expect(await statusOf("a1")).toMatchObject({ status: "busy", saturated: true });
  });
});

describe("silence", () => {
  it("for H loses an agent: its attempts run elsewhere, and it is told to join anew", async () => {
    const [silent, other] = [await swarm.agent("a1"), await swarm.agent("a2", { kinds: [] })];
    await swarm.submit("t1");
    await silent.assignment();
    for (let second = 0; second < limits.agentLostMs / 1_000; second += 1) {
      await clock.advance(1_000);
      await other.heartbeat([], 0);
    }
    expect(await task("t1")).toMatchObject({ state: "assigned", attempts: 1 });
    await clock.advance(2 * limits.pulseMs);
    expect(await task("t1")).toMatchObject({ state: "queued" });
    expect(await silent.push("rejoin")).toMatchObject({ incarnation: "a1-1" });
    expect([await statusOf("a1"), await statusOf("a2")]).toMatchObject([
      { status: "offline" },
      { status: "ready" },
    ]);
    void silent.heartbeat([], 1);
    expect(await silent.push("rejoin")).toMatchObject({ incarnation: "a1-1" });
  });

  it.each([
    ["a heartbeat", (agent: WireAgent) => agent.heartbeat(held("t1"), 1)],
    [
      "a result",
      (agent: WireAgent) => agent.report({ task: "x", attempt: 1, token: "1.1" } as never, "failed"),
    ],
    ["joining again", (agent: WireAgent) => agent.join()],
    [
      "progress",
      async (agent: WireAgent) => {
        const report = { incarnation: "a1-1", project: "default", task: "t1", attempt: 1 };
        agent.transport.publish(subjects.agent("_", "a1", "progress"), Buffer.from(JSON.stringify(report)));
      },
    ],
  ])("is broken by %s", async (_, speak) => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await agent.assignment();
    Object.assign(agent.joinMessage, { held: held("t1"), seen: 1 });
    await clock.advance(limits.agentLostMs - 100);
    await speak(agent);
    await clock.advance(limits.agentLostMs - 100);
    expect(await task("t1")).toMatchObject({ attempts: 1 });
    expect(await statusOf("a1")).toMatchObject({ status: "busy" });
  });

  it("of an earlier session does not count against the new session", async () => {
    await swarm.agent("a1");
    await clock.advance(limits.agentLostMs - 100);
    await swarm.agent("a1", { incarnation: "a1-2" });
    await clock.advance(1_000);
    expect(await statusOf("a1")).toMatchObject({ status: "ready" });
  });

  it("is not counted while the leader itself slept", async () => {
    await swarm.agent("a1");
    clock.stall(2 * limits.agentLostMs);
    await clock.advance(limits.agentLostMs - limits.pulseMs);
    expect(await statusOf("a1")).toMatchObject({ status: "ready" });
    await clock.advance(2 * limits.pulseMs);
    expect(await statusOf("a1")).toMatchObject({ status: "offline" });
  });

  it("is not counted while the leader was cut off, and anew when it is back", async () => {
    await swarm.agent("a1");
    const transport = swarm.transportById.get("c1");
    if (transport === undefined) throw new Error("c1 has a connection");
    const startMs = clock.monotonicMs();
    while (clock.monotonicMs() < startMs + 2 * limits.agentLostMs) {
      swarm.hub.cut(transport);
      await clock.advance(limits.leaderIsolationMs - limits.pulseMs); // a longer pause would let a standby lead
      swarm.hub.heal(transport);
      await clock.advance(limits.pulseMs);
    }
    await clock.advance(limits.agentLostMs - 2 * limits.pulseMs);
    expect(await statusOf("a1")).toMatchObject({ status: "ready" });
    await clock.advance(2 * limits.pulseMs);
    expect(await statusOf("a1")).toMatchObject({ status: "offline" });
  });
});

describe("a heartbeat", () => {
  it("confirms arrived assignments, and renews", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await agent.assignment();
    expect(await task("t1")).toMatchObject({ state: "assigned" });
    expect(await agent.heartbeat(held("t1"), 1)).toEqual({ term: 1, renewed: true });
    expect(await task("t1")).toMatchObject({ state: "running" });
  });

  it("that changes nothing is answered without a batch", async () => {
    const agent = await swarm.agent("a1");
    const before = recordCount(swarm.store);
    await agent.heartbeat([], 0);
    expect(recordCount(swarm.store)).toBe(before);
  });

  it("without a delivered attempt gives the attempt away", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await agent.assignment();
    await agent.heartbeat([], 1);
    expect(await agent.assignment()).toMatchObject({ task: "t1", attempt: 2, number: 2 });
  });

  it("with an attempt that is not the agent's has it stopped, each time", async () => {
    const agent = await swarm.agent("a1");
    for (let heartbeat = 0; heartbeat < 2; heartbeat += 1) {
      await agent.heartbeat(held("t9"), 0);
      expect(await agent.push("revoke")).toMatchObject({ attempts: held("t9") });
    }
  });

  it("repeats a lost revoke, and frees the capacity when the attempt is gone", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 1 });
    await swarm.submit("t1", "t2");
    await agent.assignment();
    await swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t1", round: 1 }] });
    await agent.push("revoke");
    await agent.heartbeat(held("t1"), 1);
    expect(await agent.push("revoke")).toMatchObject({ attempts: held("t1") });
    expect(await statusOf("a1")).toMatchObject({ inFlight: 1 });
    await agent.heartbeat([], 1);
    expect(await agent.assignment()).toMatchObject({ task: "t2" });
  });

  it("behind the assignments brings them again with the second, and makes it unresponsive with the third", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1", "t2");
    await assignments(agent, 2);
    await agent.heartbeat([], 0);
    expect(await pushesOf(agent)).toEqual(["assign"]);
    await agent.heartbeat([], 0);
    expect(await assignments(agent, 2)).toMatchObject([
      { task: "t1", number: 1 },
      { task: "t2", number: 2 },
    ]);
    expect(await statusOf("a1")).toMatchObject({ unresponsive: false });
    await agent.heartbeat([], 0);
    expect(await statusOf("a1")).toMatchObject({ unresponsive: true });
    await swarm.submit("t3");
    expect(await swarm.client.explain("t3")).toMatchObject({
      state: "queued",
      waiting: {
        obstacles: [{ reason: "none-eligible" }],
        agents: [{ agent: "a1", standing: "unresponsive" }],
      },
    });
    await agent.heartbeat(held("t1"), 1);
    expect(await statusOf("a1")).toMatchObject({ unresponsive: true });
    await agent.heartbeat(held("t1", "t2"), 2);
    expect(await statusOf("a1")).toMatchObject({ unresponsive: false });
    expect(await task("t3")).toMatchObject({ state: "assigned" });
  });

  it("that should show an assignment brings it again, within a heartbeat of the loss", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await assignments(agent, 1);
    await clock.advance(limits.heartbeatMs);
    await agent.heartbeat([], 0);
    expect(await agent.assignment()).toMatchObject({ task: "t1", number: 1, attempt: 1 });
    expect(await statusOf("a1")).toMatchObject({ unresponsive: false });
    await clock.advance(limits.heartbeatMs);
    await agent.heartbeat([], 0);
    expect(await agent.assignment()).toMatchObject({ task: "t1", number: 1, attempt: 1 });
    expect(await statusOf("a1")).toMatchObject({ unresponsive: true });
  });

  it("that is behind by something else each time comes from an agent that is slow, and hears", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 8 });
    for (let seen = 0; seen < 4; seen += 1) {
      await swarm.submit(`t${seen + 1}`);
      await assignments(agent, 1);
      await clock.advance(limits.heartbeatMs);
      await agent.heartbeat(held(...Array.from({ length: seen }, (_, at) => `t${at + 1}`)), seen);
      expect(await agent.assignment()).toMatchObject({ number: seen + 1 });
      expect(await statusOf("a1")).toMatchObject({ unresponsive: false });
    }
  });

  it("behind while attempts run keeps their leases, for as long as it takes, and nothing runs twice", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await assignments(agent, 1);
    await agent.heartbeat(held("t1"), 1);
    await swarm.submit("t2");
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(limits.heartbeatMs);
      await agent.heartbeat(held("t1"), 1);
    }
    expect(await statusOf("a1")).toMatchObject({ unresponsive: true, inFlight: 2 });
    expect([await task("t1"), await task("t2")]).toMatchObject([
      { state: "running", attempts: 1 },
      { state: "assigned", attempts: 1 },
    ]);
    expect((await pushesOf(agent)).filter((type) => type === "assign").length).toBeGreaterThan(55);
    await agent.heartbeat(held("t1", "t2"), 2);
    expect(await statusOf("a1")).toMatchObject({ unresponsive: false });
    await swarm.submit("t3");
    expect(await task("t3")).toMatchObject({ state: "assigned" });
  });

  it("right after an assignment was sent is no sign that it was lost", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    await agent.heartbeat([], 0);
    await swarm.submit("t2");
    await agent.heartbeat(held("t1"), 1);
    await agent.heartbeat(held("t1", "t2"), 2);
    expect(await pushesOf(agent)).toEqual(["assign", "assign"]);
  });

  it("of an unknown agent makes it join", async () => {
    const stranger = await swarm.agent("a1");
    const other = { ...stranger.joinMessage, status: "ready", inFlight: 0, held: [], seen: 0 };
    const pushes = stranger.listen<{ type: string }>(subjects.assign("_", "a9"));
    stranger.transport.publish(subjects.agent("_", "a9", "heartbeat"), Buffer.from(JSON.stringify(other)));
    expect(await pushes.next()).toMatchObject({ type: "rejoin", incarnation: "a1-1" });
  });
});

describe("draining and leaving", () => {
  const operator = (verb: "drain" | "undrain", agent: string) =>
    swarm.client.ask(subjects.operator(verb), { agent });

  it("assigns nothing new, notifies the agent, and can be undone", async () => {
    const agent = await swarm.agent("a1");
    expect(await operator("drain", "a1")).toMatchObject({ ok: true, term: 1 });
    expect(await agent.push("drain")).toMatchObject({ incarnation: "a1-1" });
    await swarm.submit("t1");
    expect(await swarm.client.explain("t1")).toMatchObject({
      state: "queued",
      waiting: {
        obstacles: [{ reason: "no-agent-serves-kind" }],
        agents: [{ agent: "a1", standing: "draining" }],
      },
    });
    expect(await statusOf("a1")).toMatchObject({ draining: true, status: "ready" });
    await operator("undrain", "a1");
    expect(await agent.assignment()).toMatchObject({ task: "t1" });
    await agent.push("undrain");
    expect(await operator("drain", "nobody")).toMatchObject({
      ok: false,
      code: "WAGGLE_UNKNOWN_AGENT",
      field: "agent",
    });
  });

  it("of its own accord is said by the heartbeat", async () => {
    const agent = await swarm.agent("a1");
    await agent.heartbeat([], 0, { draining: true });
    expect(await statusOf("a1")).toMatchObject({ draining: true });
  });

  it("gives the agent's attempts to further agents at once", async () => {
    const [one, other] = [
      await swarm.agent("a1", { maxConcurrent: 1 }),
      await swarm.agent("a2", { maxConcurrent: 1 }),
    ];
    await swarm.submit("t1", "t2");
    await assignments(one, 1);
    const second = await other.assignment();
    await one.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" });
    await other.complete(second);
    expect(await other.assignment()).toMatchObject({ task: "t1", attempt: 2 });
    expect(await one.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" })).toMatchObject({
      ok: true,
    });
  });

  it("with six hundred attempts closes each once", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 1_024 });
    const ids = Array.from({ length: 600 }, (_, at) => `t${at}`);
    await swarm.submit(...ids);
    await assignments(agent, ids.length);
    expect(await agent.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" })).toMatchObject({
      ok: true,
    });
    expect((await swarm.client.status()).tasks).toMatchObject({
      queued: 600,
      assigned: 0,
      "dead-lettered": 0,
    });
    for (const row of swarm.watched.settled().state.taskById.values()) expect(row.attempt).toBe(1);
  });
});

describe("a result", () => {
  it("about another agent's attempt, or with a stale token, is refused and changes nothing", async () => {
    const [one, other] = [await swarm.agent("a1"), await swarm.agent("a2", { kinds: [] })];
    await swarm.submit("t1");
    const assignment = await one.assignment();
    const stale = [{ ok: false, code: "WAGGLE_STALE_TOKEN", field: "token", message: expect.any(String) }];
    expect((await other.complete(assignment)).answers).toEqual(stale);
    expect((await one.complete({ ...assignment, token: "1.7" })).answers).toEqual(stale);
    expect(await task("t1")).toMatchObject({ state: "assigned" });
    expect((await one.complete(assignment)).answers).toEqual([{ ok: true, status: "ok" }]);
  });

  it("repeated is answered as the first time, and recorded once", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    const assignment = await agent.assignment();
    const answers = [await agent.complete(assignment), await agent.complete(assignment)];
    expect(answers.map((each) => each.answers)).toEqual(
      Array.from({ length: 2 }, () => [{ ok: true, status: "ok" }]),
    );
    expect(await statusOf("a1")).toMatchObject({ completed: 1, kinds: [{ attempts: 1 }] });
  });

  it("of an unknown task is gone; one bad report does not spoil its neighbours", async () => {
    const agent = await swarm.agent("a1");
    await swarm.submit("t1");
    const { attempt, token } = await agent.assignment();
    const results = [
      { project: "default", task: "t9", attempt: 1, token, outcome: "completed" },
      { project: "default", task: "t1", attempt, token, outcome: "exploded" },
      { project: "default", task: "t1", attempt, token, outcome: "completed", result: "ok" },
      { project: "default", task: "t1", attempt, token, outcome: "failed" },
    ];
    const { answers } = await agent.ask(subjects.agent("_", "a1", "result"), {
      incarnation: "a1-1",
      results,
    });
    expect(answers).toMatchObject([
      { ok: true, status: "gone" },
      { ok: false, code: "WAGGLE_INVALID_MESSAGE", field: "results[1].outcome" },
      { ok: true, status: "ok" },
      { ok: true, status: "stale" },
    ]);
  });

  it("after another agent completed the task is stale", async () => {
    const [slow, quick] = [await swarm.agent("a1"), await swarm.agent("a2", { kinds: [] })];
    await swarm.client.submit([{ id: "t1", kind: "count", timeoutMs: 1_000 }]);
    const late = await slow.assignment();
    Object.assign(quick.joinMessage, { kinds: ["count"] });
    await quick.join();
    await clock.advance(1_000 + limits.retryBackoffMs);
    const assignment = await quick.assignment();
    await quick.complete(assignment, "first");
    expect((await slow.complete(late, "second")).answers).toEqual([{ ok: true, status: "stale" }]);
    expect(await statusOf("a1")).toMatchObject({ inFlight: 0 });
    const { answers } = await swarm.client.ask(subjects.project("default", "await"), {
      tasks: ["t1"],
      notify: "_INBOX.me",
    });
    expect(answers).toMatchObject([{ outcome: { result: "first", agent: "a2", attempts: 2 } }]);
  });
});

describe("a result an hour late", () => {
  /** A first agent that fell silent in the middle of t1, and a second that runs t1 now. */
  async function handedOn() {
    const slow = await swarm.agent("a1");
    await swarm.client.submit([{ id: "t1", kind: "count", timeoutMs: 24 * 3_600_000 }]);
    const late = await slow.assignment();
    await slow.heartbeat(held("t1"), 1);
    const quick = await swarm.agent("a2");
    const assignment = await passTime(quick, limits.agentLostMs + 1_000).then(() => quick.assignment());
    return { slow, quick, late, assignment };
  }

  /** Time in which one agent sends heartbeats and the other agents are silent. */
  async function passTime(sender: WireAgent, ms: number, seen = 0) {
    for (let passed = 0; passed < ms; passed += 2_000) {
      await clock.advance(2_000);
      await sender.heartbeat(seen === 0 ? [] : [{ task: "t1", attempt: 2 }], seen);
    }
  }

  it("is stale when another completed the task, and changes nothing", async () => {
    const { slow, quick, late, assignment } = await handedOn();
    await quick.complete(assignment, "first");
    await passTime(quick, 3_600_000);
    expect((await slow.complete(late, "second")).answers).toEqual([{ ok: true, status: "stale" }]);
    const { answers } = await swarm.client.ask(subjects.project("default", "await"), {
      tasks: ["t1"],
      notify: "_INBOX.me",
    });
    expect(answers).toMatchObject([{ outcome: { result: "first", agent: "a2", attempts: 2 } }]);
    expect(await statusOf("a1")).toMatchObject({ status: "offline", completed: 0 });
  });

  it("is stale while another agent runs the task, which goes on; so is a result of the agent's next session", async () => {
    const { slow, quick, late, assignment } = await handedOn();
    await passTime(quick, 3_600_000, 1);
    expect((await slow.complete(late, "second")).answers).toEqual([{ ok: true, status: "stale" }]);
    const reborn = await swarm.agent("a1", { incarnation: "a1-2" });
    expect((await reborn.complete(late, "second")).answers).toEqual([{ ok: true, status: "stale" }]);
    expect(await task("t1")).toMatchObject({ state: "running", attempts: 2 });
    expect((await quick.complete(assignment, "first")).answers).toEqual([{ ok: true, status: "ok" }]);
  });
});

describe("an agent with failures where other agents succeed", () => {
  it("is suspended, waits out its back-off, and is probed with one task", async () => {
    const [bad, good] = [
      await swarm.agent("a1", { maxConcurrent: 1 }),
      await swarm.agent("a2", { maxConcurrent: 1 }),
    ];
    for (let lesson = 0; lesson < limits.suspendAttemptsMin; lesson += 1) {
      await swarm.client.submit(
        [1, 2].map((n) => ({ id: `l${lesson}-${n}`, kind: "count", maxAttempts: 1 })),
      );
      await bad.report(await bad.assignment(), "failed");
      await good.complete(await good.assignment());
    }
    expect(await statusOf("a1")).toMatchObject({ kinds: [{ suspendedUntil: expect.any(Number) }] });
    await swarm.submit("t1", "t2");
    await good.assignment();
    expect(await task("t2")).toMatchObject({ state: "queued" });
    for (let waitedMs = 0; waitedMs < limits.suspendMs + limits.pulseMs; waitedMs += limits.pulseMs) {
      await clock.advance(limits.pulseMs);
      await Promise.all([
        good.heartbeat(held("t1"), limits.suspendAttemptsMin + 1),
        bad.heartbeat([], limits.suspendAttemptsMin),
      ]);
    }
    expect(await bad.assignment()).toMatchObject({ task: "t2" });
  });
});
