// How agents join, resume, are fenced, lapse and leave, and how their heartbeats are reconciled.

import { describe, expect, it } from "vitest";
import type { Command, HeldAttempt } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  type Incarnation,
  incarnation,
  kind,
  NO_GROUP,
  taskId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { aRef } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

const a1 = agentId("a1");
const first = incarnation("a1-1");
const names = (count: number) => Array.from({ length: count }, (_, at) => `t${at + 1}`);
const held = (...ids: string[]): HeldAttempt[] =>
  ids.map((id) => ({ ...aRef(id), attempt: attemptNumber(1) }));

function reconcile(seen: number, ...ids: string[]): Extract<Command, { type: "ReconcileAgent" }> {
  return {
    type: "ReconcileAgent",
    agent: a1,
    incarnation: first,
    held: held(...ids),
    seen: assignmentNumber(seen),
  };
}

/** Agent a1 with tasks under way. */
function busy(count: number, overrides: Parameters<typeof join>[1] = {}): Turns {
  const turns = new Turns();
  turns.turn(join("a1", { maxConcurrent: Math.min(count, limits.maxConcurrentMax), ...overrides }));
  turns.turn(...names(count).map((id) => submit({ id: taskId(id) })));
  return turns;
}

describe("joining", () => {
  it("resumes the same session: held attempts continue, lost attempts are retried, foreign attempts are named", () => {
    const turns = busy(3);
    const [reply] = turns.turn(
      join("a1", { maxConcurrent: 3, held: held("t1", "t9"), seen: assignmentNumber(2) }),
    );
    expect(reply).toEqual({ kind: "joined", resumed: true, unknownAttempts: held("t9") });
    expect(turns.task("t1").state).toBe("running");
    expect(turns.last("AttemptFailed")).toMatchObject({ task: "t2", failure: { class: "lost" } });
    // t3 has not arrived: it is neither lost nor confirmed.
    expect(turns.task("t3")).toMatchObject({ state: "assigned", attempt: 1 });
  });

  it("with other kinds and capacity takes effect at once, open attempts continue", () => {
    const turns = busy(2);
    turns.turn(
      join("a1", { kinds: [kind("l")], maxConcurrent: 3, held: held("t1", "t2"), seen: assignmentNumber(2) }),
    );
    turns.turn(submit({ id: taskId("t3") }), submit({ id: taskId("t4"), kind: kind("l") }));
    expect(turns.task("t3").state).toBe("queued");
    expect(turns.task("t4").open?.agent).toBe("a1");
    expect(turns.agent("a1").open.size).toBe(3);
  });

  it("is followed by heartbeats with a new maxConcurrent: more capacity is used at once, less as attempts end", () => {
    const turns = new Turns();
    const labels = { zone: "b" };
    turns.turn(join("a1", { maxConcurrent: 1, prefetch: 1, role: "senior", agentType: "gpu", labels }));
    turns.turn(...names(4).map((id) => submit({ id: taskId(id) })));
    const before = turns.agent("a1");
    const was = { role: before.role, agentType: before.agentType, labels: before.labels, prefetch: 1 };
    expect(before.open.size).toBe(2);
    turns.turn({ ...reconcile(2, "t1", "t2"), maxConcurrent: 3 });
    expect(turns.agent("a1")).toMatchObject({ ...was, maxConcurrent: 3, lastNumber: 4, confirmedNumber: 2 });
    expect(turns.agent("a1").open.size).toBe(4);
    turns.turn({ ...reconcile(4, "t1", "t2", "t3", "t4"), maxConcurrent: 1 });
    turns.turn(submit({ id: taskId("t5") }), turns.report("t1", { kind: "completed", result: "" }));
    expect(turns.task("t5").state).toBe("queued");
    expect(turns.all("AgentJoined")).toHaveLength(3);
    turns.turn({ ...reconcile(4, "t2", "t3", "t4"), maxConcurrent: 1 });
    expect(turns.all("AgentJoined"), "known facts are not recorded again").toHaveLength(3);
  });

  it("as a new incarnation fences the old one: its attempts run again, with numbers from 1", () => {
    const turns = busy(2);
    const [reply] = turns.turn(
      join("a1", { incarnation: incarnation("a1-2"), maxConcurrent: 2, held: held("t1") }),
    );
    expect(reply).toEqual({ kind: "joined", resumed: false, unknownAttempts: held("t1") });
    expect(turns.last("AgentLeft")).toMatchObject({ incarnation: "a1-1", reason: "fenced" });
    expect(turns.effects).toContainEqual({ kind: "notify", agent: a1, incarnation: first, what: "fenced" });
    for (const id of ["t1", "t2"]) expect(turns.task(id)).toMatchObject({ attempt: 2, state: "assigned" });
    expect(turns.agent("a1")).toMatchObject({ incarnation: "a1-2", lastNumber: 2, confirmedNumber: 0 });
  });

  it("of a new session is refused unless the join names the newest session, and the answer names it", () => {
    const turns = busy(1);
    const before = fingerprint(turns.state);
    const second = join("a1", { incarnation: incarnation("a1-2") });
    for (const stranger of ["a1-0", "a1-2"])
      expect(turns.turn({ ...second, after: incarnation(stranger) })).toEqual([
        { kind: "not-newest", agent: a1, newest: first },
      ]);
    expect(decideOnly(turns, second)).toEqual({ kind: "not-newest", agent: a1, newest: first });
    expect(fingerprint(turns.state)).toBe(before);
    expect(turns.turn({ ...second, after: first })).toMatchObject([{ kind: "joined", resumed: false }]);
  });

  it("that a grant refused fences no later session when a copy arrives after the grant is gone", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn({ type: "LeaveAgent", agent: a1, incarnation: first });
    turns.turn({ type: "SetGrant", group: NO_GROUP, grant: { maxConcurrent: 1 } });
    const refused = { ...join("a1", { incarnation: incarnation("a1-2"), maxConcurrent: 2 }), after: first };
    expect(turns.turn(refused)).toMatchObject([{ kind: "beyond-grant" }]);
    const third = incarnation("a1-3");
    turns.turn(join("a1", { incarnation: third }), submit());
    turns.turn({ type: "RemoveGrant", group: NO_GROUP });
    expect(turns.turn(refused)).toEqual([{ kind: "not-newest", agent: a1, newest: third }]);
    expect(turns.agent("a1")).toMatchObject({ incarnation: third, online: true });
    expect(turns.task("t1")).toMatchObject({ state: "assigned", attempt: 1 });
  });

  it("again with a fenced session is refused, and fences no session", () => {
    const turns = new Turns();
    const incarnations = Array.from({ length: limits.fencedIncarnationsMax + 1 }, (_, n) =>
      incarnation(`a1-${n + 1}`),
    );
    for (const one of incarnations) turns.turn(join("a1", { incarnation: one }));
    const before = fingerprint(turns.state);
    for (const one of incarnations.slice(0, -1))
      expect(turns.turn(join("a1", { incarnation: one }))).toEqual([{ kind: "fenced", agent: a1 }]);
    expect(fingerprint(turns.state)).toBe(before);
    expect(turns.agent("a1").incarnation).toBe(incarnations.at(-1));
  });

  it("keeps no more than the newest fenced sessions", () => {
    const turns = new Turns();
    const incarnations = Array.from({ length: limits.fencedIncarnationsMax + 2 }, (_, n) =>
      incarnation(`a1-${n + 1}`),
    );
    for (const one of incarnations) turns.turn(join("a1", { incarnation: one }));
    expect(turns.agent("a1").fencedIncarnations).toEqual(incarnations.slice(1, -1));
  });

  it.each<[string, (session: Incarnation) => Command[]]>([
    ["fenced", () => []],
    ["left", (session) => [{ type: "LeaveAgent", agent: a1, incarnation: session }]],
    ["lapsed", (session) => [{ type: "LapseAgent", agent: a1, incarnation: session }]],
  ])("by a late copy is refused, however many sessions followed: %s", (_, end) => {
    const turns = new Turns();
    const incarnations = Array.from({ length: 40 }, (_, n) => incarnation(`a1-${n + 1}`));
    const joins = incarnations.map((one, n) => ({
      ...join("a1", { incarnation: one }),
      ...(n === 0 ? {} : { after: incarnation(`a1-${n}`) }),
    }));
    for (const [n, command] of joins.entries()) {
      turns.turn(command, submit({ id: taskId(`of-${n}`) }));
      if (n < joins.length - 1) turns.turn(...end(command.incarnation));
    }
    for (const copy of joins.slice(0, -1))
      expect(decideOnly(turns, copy).kind).toMatch(/^(fenced|not-newest)$/);
  });

  it("again with an ended session is refused: its numbers and tokens would be assigned twice", () => {
    const turns = busy(1);
    turns.turn({ type: "LapseAgent", agent: a1, incarnation: first });
    const before = fingerprint(turns.state);
    expect(turns.turn(join("a1"))).toEqual([{ kind: "not-newest", agent: a1, newest: first }]);
    expect(fingerprint(turns.state)).toBe(before);
    expect(turns.turn(join("a1", { incarnation: incarnation("a1-2") }))).toMatchObject([{ resumed: false }]);
  });

  it("is refused at the maximum of agents, unless the agent is known", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    const { agentById } = turns.state;
    const row = turns.agent("a1");
    for (let n = agentById.size; n < limits.agentsMax; n += 1) agentById.set(agentId(`x${n}`), row);
    expect(turns.state.agentById.size).toBe(limits.agentsMax);
    expect(decideOnly(turns, join("new"))).toMatchObject({ kind: "too-many-agents" });
    expect(decideOnly(turns, join("a1"))).toMatchObject({ kind: "joined" });
  });

  it("at the maximum, first forgets agents that came for slots alone, then the agent that left longest ago", () => {
    const turns = new Turns();
    const gone = ["old", "older-than-slots", "slots-1", "slots-2"];
    for (const id of gone) {
      turns.turn(join(id, id.startsWith("slots") ? { kinds: [] } : {}));
      turns.turn({ type: "LeaveAgent", agent: agentId(id), incarnation: incarnation(`${id}-1`) });
      turns.pass(10);
    }
    turns.turn(join("there"), join("there-for-slots", { kinds: [] }));
    const { agentById } = turns.state;
    const row = turns.agent("there");
    for (let n = agentById.size; n < limits.agentsMax; n += 1) agentById.set(agentId(`x${n}`), row);
    const forgotten: string[] = [];
    for (let n = 0; n < gone.length; n += 1) {
      const { events } = decide(turns.state, join("new"), turns.at);
      const [first, second] = events;
      if (first?.type !== "AgentForgotten") throw new Error(`nobody is forgotten, but ${first?.type}`);
      expect(second).toMatchObject({ type: "AgentJoined", agent: "new" });
      forgotten.push(first.agent);
      agentById.set(first.agent, row);
    }
    expect(forgotten).toEqual(["slots-1", "slots-2", "old", "older-than-slots"]);
    expect(decideOnly(turns, join("new"))).toMatchObject({ kind: "too-many-agents" });
  });
});

describe("a heartbeat", () => {
  it("confirms assignments that arrived", () => {
    const turns = busy(3);
    turns.turn(reconcile(2, "t1", "t2"));
    expect(["t1", "t2", "t3"].map((id) => turns.task(id).state)).toEqual(["running", "running", "assigned"]);
    const before = fingerprint(turns.state);
    turns.turn(reconcile(2, "t1", "t2"), reconcile(1, "t1", "t2"));
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("without an attempt that had arrived loses the attempt: not counted against the agent", () => {
    const turns = busy(2);
    turns.turn(reconcile(2, "t2"));
    expect(turns.all("AttemptFailed")).toMatchObject([{ task: "t1", failure: { class: "lost" } }]);
    expect(turns.agent("a1").recordByKind.size).toBe(0);
    expect(turns.task("t1")).toMatchObject({ attempt: 2, failures: 1 });
  });

  it("loses the attempts missing from the list, in any order of the list", () => {
    const lists = [
      ["t4", "t3", "t1"],
      ["t9", "t1", "t3", "t4"],
      ["t1", "t1", "t4", "t3"],
    ];
    for (const list of lists) {
      const turns = busy(4);
      turns.turn(reconcile(4, ...list));
      expect(turns.all("AttemptFailed").map(({ task }) => task)).toEqual(["t2"]);
    }
  });

  it("that lists a foreign attempt is corrected", () => {
    const turns = busy(1);
    const [reply] = turns.turn(reconcile(1, "t1", "t7"));
    expect(reply).toEqual({ kind: "reconciled", unknown: held("t7") });
  });

  it("of another session has no effect", () => {
    const turns = busy(1);
    const before = fingerprint(turns.state);
    turns.turn({ ...reconcile(1), incarnation: incarnation("a1-0") });
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("skips numbers that the agent has seen and the journal does not know", () => {
    const turns = busy(2, { maxConcurrent: 4 });
    const [reply] = turns.turn(reconcile(5, "t1", "t2", "t9"));
    expect(reply).toMatchObject({ kind: "reconciled", unknown: held("t9") });
    expect(turns.agent("a1")).toMatchObject({ lastNumber: 5, confirmedNumber: 5 });
    expect([...turns.agent("a1").open.values()].map(({ state }) => state)).toEqual(["running", "running"]);
    turns.turn(submit({ id: taskId("t3") }));
    expect([...turns.agent("a1").open.keys()]).toEqual([1, 2, 6]);
  });

  it("does not believe an agent that claims to have seen more than can have been under way", () => {
    const turns = busy(1, { maxConcurrent: 4 });
    turns.turn(reconcile(Number.MAX_SAFE_INTEGER, "t1"));
    expect(turns.agent("a1")).toMatchObject({ lastNumber: 1, confirmedNumber: 1 });
    turns.turn(submit({ id: taskId("t2") }));
    expect([...turns.agent("a1").open.keys()]).toEqual([1, 2]);
  });

  it("makes an unresponsive agent responsive when it has seen everything", () => {
    const turns = busy(2, { maxConcurrent: 3 });
    turns.turn({ type: "MarkUnresponsive", agent: a1, incarnation: first });
    turns.turn(submit({ id: taskId("t3") }));
    expect(turns.task("t3").state).toBe("queued");
    turns.turn(reconcile(1, "t1"));
    expect(turns.agent("a1").unresponsive).toBe(true);
    turns.turn(reconcile(2, "t1", "t2"));
    expect(turns.agent("a1").unresponsive).toBe(false);
    expect(turns.task("t3").state).toBe("assigned");
  });

  it("of an agent that takes nothing new drains the agent", () => {
    const turns = busy(1, { maxConcurrent: 2 });
    turns.turn({ ...reconcile(1, "t1"), draining: true });
    turns.turn(submit({ id: taskId("t2") }));
    expect(turns.task("t2").state).toBe("queued");
  });
});

describe("draining", () => {
  it("keeps running attempts, assigns nothing new, and can be undone; for an offline agent it is refused", () => {
    const turns = busy(1, { maxConcurrent: 2 });
    turns.turn({ type: "DrainAgent", agent: a1 }, { type: "DrainAgent", agent: a1 });
    expect(turns.all("AgentDrained")).toHaveLength(1);
    expect(turns.effects.at(-1)).toEqual({ kind: "notify", agent: a1, incarnation: first, what: "drain" });
    turns.turn(submit({ id: taskId("t2") }));
    expect([turns.task("t1").state, turns.task("t2").state]).toEqual(["assigned", "queued"]);
    turns.turn({ type: "UndrainAgent", agent: a1 });
    expect(turns.task("t2").state).toBe("assigned");
    turns.turn({ type: "LeaveAgent", agent: a1, incarnation: first });
    const offline = { kind: "agent-not-online", agent: a1 };
    expect(turns.turn({ type: "DrainAgent", agent: a1 }, { type: "UndrainAgent", agent: a1 })).toEqual([
      offline,
      offline,
    ]);
  });

  it("ends with the session", () => {
    const turns = busy(1);
    turns.turn({ type: "DrainAgent", agent: a1 });
    turns.turn(join("a1", { incarnation: incarnation("a1-2") }));
    expect(turns.agent("a1").draining).toBe(false);
  });
});

describe("going", () => {
  it.each([
    ["LeaveAgent", "left"],
    ["LapseAgent", "lapsed"],
  ] as const)("%s closes every attempt, frees revoked capacity, and has no effect twice", (type, reason) => {
    const turns = busy(2);
    turns.turn({ type: "CancelTask", project: turns.task("t1").spec.project, task: taskId("t1"), round: 1 });
    turns.turn({ type, agent: a1, incarnation: first }, { type, agent: a1, incarnation: first });
    expect(turns.all("AgentLeft")).toMatchObject([{ reason }]);
    expect(turns.last("AttemptReleased")).toMatchObject({ task: "t1", reason: "agent-gone" });
    expect(turns.task("t2")).toMatchObject({ state: "queued", failures: 1 });
    const notices = turns.effects.filter((effect) => effect.kind === "notify");
    expect(notices).toEqual(
      type === "LeaveAgent" ? [] : [{ kind: "notify", agent: a1, incarnation: first, what: "rejoin" }],
    );
  });

  it("of another incarnation has no effect", () => {
    const turns = busy(1);
    const before = fingerprint(turns.state);
    for (const type of ["LeaveAgent", "LapseAgent", "MarkUnresponsive"] as const)
      turns.turn({ type, agent: a1, incarnation: incarnation("a1-0") });
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("is forgotten a day later, with learned values; an agent that returns earlier is known", () => {
    const turns = busy(1);
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    turns.turn({ type: "LeaveAgent", agent: a1, incarnation: first });
    turns.pass(limits.agentForgottenMs - 1);
    turns.turn(join("a1", { incarnation: incarnation("a1-2") }));
    expect(turns.agent("a1")).toMatchObject({ completed: 1 });
    turns.turn({ type: "LeaveAgent", agent: a1, incarnation: incarnation("a1-2") });
    turns.pass(limits.agentForgottenMs);
    turns.turn();
    expect(turns.state.agentById.size).toBe(0);
    expect(turns.state.timers.size).toBe(0);
  });

  it("is forgotten within a minute if it came for slots alone, and a day later if it ever ran a task", () => {
    const turns = busy(1);
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    turns.turn(join("a1", { kinds: [] }), join("slots", { kinds: [] }), join("new"));
    for (const id of ["a1", "slots", "new"])
      turns.turn({ type: "LeaveAgent", agent: agentId(id), incarnation: turns.agent(id).incarnation });
    turns.pass(limits.slotAgentForgottenMs - 1);
    turns.turn();
    expect([...turns.state.agentById.keys()]).toEqual(["a1", "slots", "new"]);
    turns.pass(1);
    turns.turn();
    expect([...turns.state.agentById.keys()]).toEqual(["a1", "new"]);
    turns.pass(limits.agentForgottenMs);
    turns.turn();
    expect(turns.state.agentById.size).toBe(0);
  });

  it("with more attempts than one batch closes takes several, and none is assigned back meanwhile", () => {
    const count = 2 * limits.closuresPerCommandMax + 10;
    const turns = busy(count);
    turns.turn(); // one batch has no room for so many assignments
    const leave: Command = { type: "LeaveAgent", agent: a1, incarnation: first };
    expect(turns.turn(leave)).toEqual([{ kind: "again" }]);
    expect(turns.turn(leave)).toEqual([{ kind: "again" }]);
    expect(turns.turn(leave)).toEqual([{ kind: "ok" }]);
    expect(turns.state.counts.queued).toBe(count);
    for (const id of names(count)) expect(turns.task(id)).toMatchObject({ attempt: 1, failures: 1 });
  });
});

/** The reply to a command without effect. */
function decideOnly(turns: Turns, command: Command) {
  return decide(turns.state, command, turns.at).reply;
}
