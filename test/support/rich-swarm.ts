// A small swarm with a distinct value in every field of the state: rows of all types, each in several conditions.

import type { Command, ReportedOutcome } from "../../src/core/command.ts";
import {
  agentId,
  assignmentNumber,
  batchIndex,
  type GroupId,
  incarnation,
  instant,
  kind,
  projectId,
  resourceName,
  taskId,
  term,
  userId,
} from "../../src/ids.ts";
import type { Grant } from "../../src/state/grant.ts";
import type { AgentRow } from "../../src/state/state.ts";
import { acquire, release, SlotTurns, touch } from "./slots.ts";
import { liveTask } from "./task-refs.ts";
import { join, submit } from "./turns.ts";

const k = kind("k");
const l = kind("l");

/** `inputs` has every turn of the history. */
export function richSwarm(): SlotTurns {
  const turns = new SlotTurns();
  setUp(turns);
  fallIdle(turns);
  learn(turns);
  takeTurns(turns);
  refuse(turns);
  work(turns);
  holdSlots(turns);
  retry(turns);
  return turns;
}

function setUp(turns: SlotTurns): void {
  turns.turn(
    {
      type: "SetPolicy",
      patch: {
        budget: { tokens: 100_000, windowMs: 120_000, mode: "alert" },
        guaranteeMs: 30_000,
        tokensDefault: 77,
        topN: 9,
        autoTune: true,
      },
    },
    { type: "SetProject", project: projectId("p"), patch: { queueMax: 50, maxConcurrent: 8 } },
    {
      type: "SetProject",
      project: projectId("q"),
      patch: { creditWeight: 2, budget: { tokens: 90_000, windowMs: 240_000, mode: "downgrade" } },
    },
    { type: "SetKind", kind: k, patch: { importance: 2, cheaper: l, cheaperType: "claude" } },
    ...["claude", "old"].map(
      (agentType): Command => ({
        type: "SetRate",
        agentType,
        patch: { window: "per_hour", tokensMax: 5_000, sliding: true },
      }),
    ),
    {
      type: "SetRate",
      agentType: "claude",
      patch: { window: "per_minute", tokensMax: 4_000 },
    },
    ...["gpt", "older"].map(
      (agentType): Command => ({
        type: "SetRate",
        agentType,
        patch: { window: "per_minute", tokensMax: 5_000, sliding: false },
      }),
    ),
  );
  setGrants(turns);
  turns.turn(
    join("a1", { kinds: [k, l], role: "r", agentType: "claude", labels: { zone: "z" }, prefetch: 2 }),
    join("a2", { kinds: [k], agentType: "gpt", maxConcurrent: 2 }),
    join("a3", { kinds: [kind("m"), k], role: "s", agentType: "old" }),
    join("a4", { kinds: [k], agentType: "older" }),
  );
}

/** Grants of groups without agents: every field, with two values. */
function setGrants(turns: SlotTurns): void {
  const grantOf = (name: string, count: number): Grant => ({
    kinds: [kind(name)],
    roles: [name],
    types: [name],
    labels: [name],
    projects: [projectId(name)],
    resources: [resourceName(name)],
    maxConcurrent: count,
    tokens: count,
  });
  turns.turn(
    { type: "SetGrant", group: "g" as GroupId, grant: grantOf("k", 3) },
    { type: "SetGrant", group: "h" as GroupId, grant: grantOf("l", 0) },
  );
}

/** Projects and kinds, idle after use. */
function fallIdle(turns: SlotTurns): void {
  const idle = ["i", "j"].map((name) => ({ id: `idle-${name}`, kind: kind(name), project: projectId(name) }));
  turns.turn(join("a5", { kinds: idle.map((each) => each.kind), maxConcurrent: 2 }));
  for (const { id, ...of } of idle) {
    turns.turn(submit({ id: taskId(id), ...of, tokens: 20 }));
    turns.pass(60);
    turns.turn(turns.report(id, { kind: "completed", result: "", tokens: id === "idle-i" ? 20 : 30 }));
  }
  turns.turn({ type: "LeaveAgent", agent: agentId("a5"), incarnation: incarnation("a5-1") });
}

/** An agent fails until its suspension. */
function learn(turns: SlotTurns): void {
  for (let lesson = 0; lesson < 11; lesson += 1) {
    const ids = ["a", "b", "c", "d"].map((name) => `lesson-${name}${lesson}`);
    turns.turn(...ids.map((id) => submit({ id: taskId(id), maxAttempts: 1, ...ofProject(lesson) })));
    const assigned = ids.filter((id) => liveTask(turns.state, id)?.open !== undefined);
    turns.pass(700);
    turns.turn(...assigned.map((id) => turns.report(id, lessonOf(turns, id))));
  }
  turns.turn({ type: "RemoveRate", agentType: "old" }, { type: "RemoveRate", agentType: "older" });
}

function ofProject(number: number) {
  const project = projectId(number % 2 === 0 ? "p" : "q");
  return { project, user: userId(`u${number % 3}`), tokens: 5 };
}

function lessonOf(turns: SlotTurns, id: string): ReportedOutcome {
  return turns.task(id).open?.agent === agentId("a1")
    ? { kind: "failed", error: "no", tokens: 9 }
    : { kind: "completed", result: "", tokens: 4 };
}

/** Tasks in their second round: some live, some ended again. */
function retry(turns: SlotTurns): void {
  const failed = turns.all("TaskDeadLettered").map(({ task }) => task);
  turns.turn(...failed.slice(0, 4).map((task) => turns.retry(task)));
  turns.turn({ type: "CancelTask", project: projectId("p"), task: taskId(failed[0] ?? ""), round: 1 });
}

/** Tasks of a single user wait for each other, and a task ends in each of the remaining ways. */
function takeTurns(turns: SlotTurns): void {
  const task = (number: number, overrides: Parameters<typeof submit>[0] = {}) =>
    submit({ id: taskId(`n${number}`), kind: kind("n"), ...ofProject(0), ...overrides });
  const marked = (number: number) => ({ affinity: `s${number}`, attributes: { a: `${number}` } });
  turns.turn(join("a6", { kinds: [kind("n")] }), task(1, marked(1)), task(2), task(3, marked(3)), task(4));
  turns.turn(task(5), task(6), task(7, { deadline: instant(turns.at + 10) }));
  for (const [id, outcome] of [
    ["n1", { kind: "completed", result: "" }],
    ["n2", { kind: "invalid", error: "bad" }],
    ["n3", { kind: "completed", result: "" }],
    ["n4", { kind: "infrastructure", error: "quota" }],
  ] as const) {
    turns.pass(20);
    turns.turn(turns.report(id, outcome));
  }
}

/** Tasks in every state, attempts in every state, a lost agent, and an agent that left. */
function work(turns: SlotTurns): void {
  const { at } = turns;
  const task = (id: string, overrides: Parameters<typeof submit>[0] = {}) =>
    submit({ id: taskId(id), payload: "ü\u0000", ...overrides });
  turns.turn(
    ...["1", "2", "3", "4", "5", "6", "7", "8"].map((n) =>
      task(`w${n}`, { ...ofProject(Number(n)), affinity: `w${n}` }),
    ),
    task("delayed", { notBefore: instant(at + 9_000), deadline: instant(at + 99_000), priority: 7 }),
    task("elsewhere", {
      ...{ kind: kind("nobody-serves-this"), role: "r", encoding: "base64", stallMs: 900 },
      ...{ needs: { zone: ["y", "z"] }, affinity: "x", attributes: { a: "1" } },
    }),
    task("later", {
      ...{ kind: kind("nobody-serves-this"), role: "r", weight: 2.5, maxAttempts: 9 },
      ...{ needs: { zone: ["x"] }, affinity: "y", attributes: { a: "2" } },
    }),
  );
  turns.pass(30);
  turns.turn(heartbeat(turns.agent("a2"), 1), heartbeat(turns.agent("a4"), 0));
  const cancelled = [...turns.agent("a2").open.values()].map(({ task: id }) => id).slice(0, 1);
  const failed = [...turns.agent("a3").open.values()].map(({ task: id }) => id);
  turns.turn(
    ...cancelled.map(
      (id): Command => ({
        type: "CancelTask",
        project: turns.task(id).spec.project,
        task: id,
        round: turns.task(id).round,
      }),
    ),
    ...failed.map((id) => turns.report(id, { kind: "failed", error: "no" })),
    { type: "LapseAgent", agent: agentId("a4"), incarnation: incarnation("a4-1") },
  );
  turns.turn({ type: "MarkUnresponsive", agent: agentId("a3"), incarnation: incarnation("a3-1") });
  turns.turn({ type: "DrainAgent", agent: agentId("a2") }, { type: "Pause", project: projectId("p") });
  turns.pass(5_100);
  turns.turn(
    { type: "StartTerm", term: term(2), leader: "c2", opened: "o1", timeoutMs: 1_000 },
    { type: "TrimAudit", firstIdx: batchIndex(3), reason: "retention" },
    { type: "Pause" },
  );
}

/** Holds of each scope, held and probed, and refusals in a row of each scope, of one agent and of several. */
function refuse(turns: SlotTurns): void {
  const task = (id: string, of: string) => submit({ id: taskId(id), kind: kind(of), ...ofProject(0) });
  const refused = (refusal: object): ReportedOutcome => ({ kind: "infrastructure", error: "quota", refusal });
  turns.setResource("z", { slots: 1 });
  turns.turn(
    join("a7", { kinds: [kind("g")], agentType: "held" }),
    join("a8", { kinds: [kind("h")], agentType: "held" }),
    join("a9", { kinds: [kind("g")], agentType: "refused", maxConcurrent: 3 }),
  );
  turns.turn(task("g1", "g"), task("g2", "g"), task("h1", "h"));
  turns.turn(...["g1", "g2", "h1"].map((id) => turns.report(id, refused({}))));
  turns.passToDue();
  for (const id of ["g1", "g2", "h1"]) while (turns.task(id).open === undefined) turns.passToDue();
  turns.turn(
    turns.report("g1", refused({ on: "type", forMs: 50 })),
    turns.report("h1", refused({ on: { resource: resourceName("z") }, forMs: 60 })),
  );
  const { open } = turns.task("g2");
  const holder = `${open?.incarnation}.${open?.number}`;
  turns.setResource("u", { slots: 2 });
  turns.turn(acquire("a8-0", "u"), acquire("a7-0", "u"));
  turns.turn(release("a8-0", {}), release("a7-0", {}));
  turns.turn(acquire(`${open?.agent}-u`, "u", { holder }));
  turns.turn(release(`${open?.agent}-u`));
  turns.turn(
    acquire(`${open?.agent}-1`, "z", { holder }),
    acquire("a8-1", "z"),
    { type: "PlaceHold", on: "agent", name: "a6", forMs: 70_000 },
    { type: "PlaceHold", on: "type", name: "nobody", forMs: 80_000 },
  );
  turns.passToDue();
  turns.passToDue();
}

/** A heartbeat: lists every assignment except the given number. */
function heartbeat(row: AgentRow, missing: number): Command {
  const held = Array.from(row.open.values(), ({ project, task, attempt }) => ({ project, task, attempt }));
  const seen = assignmentNumber(row.lastNumber - missing);
  return { type: "ReconcileAgent", agent: row.id, incarnation: row.incarnation, held, seen };
}

/** Slots held and waited for, some with a holder, some with a deadline. */
function holdSlots(turns: SlotTurns): void {
  turns.setResource("x", { slots: 2, ownAlpha: { value: 0.375, autoTune: true } });
  turns.setResource("y", { slots: 3, maxWaiters: 4 });
  turns.turn(
    acquire("a1-0", ["x", "x"], { timeoutMs: 90_000 }),
    acquire("a1-1", ["x", "y"], { holder: "line" }),
    acquire("a2-0", "y"),
  );
  turns.pass(11);
  turns.turn(
    acquire("a2-1", "x", { timeoutMs: 40_000 }),
    acquire("a1-2", "x", { timeoutMs: 50_000 }),
    release("a2-0"),
  );
  turns.turn(release("a1-0"), acquire("a2-2", "x", { timeoutMs: 60_000 }));
  purposes(turns);
}

/** Slots with tokens, a project, a label, a queue and an idle time: held, waiting, and lost. */
function purposes(turns: SlotTurns): void {
  turns.setResource("v", { slots: 2 });
  turns.setResource("w", { slots: 1 });
  const account = { tokens: 40, project: projectId("q"), user: userId("ann") };
  turns.turn(
    acquire("a1-3", "v", {
      ...account,
      holder: "report",
      as: "analyst",
      label: "weekly report",
      idleTimeoutMs: 100_000,
    }),
    acquire("a1-4", "v", { holder: "other", tokens: 30, project: projectId("r"), idleTimeoutMs: 1_000 }),
    acquire("a2-3", "w", { tokens: 20 }),
    acquire("a2-4", "w", { ...account, tokens: 10, as: "writer" }),
  );
  turns.pass(1_000);
  turns.turn(touch("a1-3"));
}

/** Values not reached by a short history. The invariants still hold. */
export function pokeRareValues({ state }: SlotTurns): void {
  const agent = state.agentById.get(agentId("a1"));
  agent?.suspensionByKind.set(l, { until: instant(state.at + 1), step: 3 });
  if (agent !== undefined) {
    agent.fencedIncarnations = [incarnation("a1-8"), incarnation("a1-9")];
    agent.fencedAt = state.at;
  }
  for (const record of [...(agent?.recordByKind.values() ?? []), ...state.recordByKind.values()]) {
    record.epochRate = 0.25;
    record.epochLogLatency = 3.5;
    record.epochAttempts = 7;
    record.spread = 0.5;
    record.probeStep = 2;
    record.probeFrom = 9;
  }
  const row = state.resourceByName.get(resourceName("x"));
  if (row !== undefined) row.tunedAlpha = 0.125;
}
