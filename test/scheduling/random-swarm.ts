// Swarms in every state that a history of legal events can lead to: full, draining, suspended, half forgotten, with
// failed tasks. The same seed gives the same swarm.

import { type GroupId, kind as kindNamed, projectId, resourceName } from "../../src/ids.ts";
import { holdAt } from "../../src/scheduling/hold.ts";
import type { FailureClass } from "../../src/state/event.ts";
import { meetsNeeds } from "../../src/state/needs.ts";
import type { ProjectTurnRule, UserTurnRule } from "../../src/state/policy.ts";
import type { TurnBases } from "../../src/state/receipt.ts";
import type { BudgetMode, BudgetSettings, KindSettings } from "../../src/state/settings.ts";
import type { AgentRow, OpenAttempt, TaskRow } from "../../src/state/state.ts";
import { refOf } from "../../src/state/task-rows.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

/** Numbers of [0, 1), always the same for a seed (mulberry32). */
export class Dice {
  #state: number;
  /** For groups and grants, in a quarter of the seeds. */
  ofGrants: Dice | undefined;
  /** For labels, needs, affinities and holds on resources, in a quarter of the seeds: the other histories stay as they
   *  were. */
  ofLabels: Dice | undefined;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  of<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }

  shuffled<Item>(items: Iterable<Item>): Item[] {
    const all = [...items];
    for (let at = all.length - 1; at > 0; at -= 1) {
      const other = this.below(at + 1);
      [all[at], all[other]] = [all[other] as Item, all[at] as Item];
    }
    return all;
  }
}

function labelsOf(dice: Dice | undefined) {
  if (dice === undefined || dice.below(3) === 0) return {};
  return { labels: { gpu: dice.of(["a", "h"]) as string, ...(dice.below(2) === 0 ? { zone: "eu" } : {}) } };
}

function groupOf(dice: Dice | undefined) {
  const group = dice?.of(["east", "west", undefined]);
  return group === undefined ? {} : { group };
}

/** Nothing under way is of a project that the new grant excludes: the core takes such attempts back first. */
function setGrant(swarm: SwarmFixture, dice: Dice): void {
  const group = dice.of(["east", "west", "_"]) as GroupId;
  const granted = projects.filter(() => dice.below(2) === 0).map(projectId);
  const grant = dice.below(4) === 0 ? {} : { projects: granted };
  const grants = swarm.state.grants.with(group, grant);
  const isFree = agentsOf(swarm).every(
    (row) =>
      row.group !== group || [...row.open.values()].every(({ project }) => grants.includes(group, project)),
  );
  if (isFree) swarm.apply({ type: "GrantConfigured", group, grant });
}

function wishesOf(dice: Dice | undefined) {
  if (dice === undefined) return {};
  const gpu = dice.of(["a", ["a", "h"], ["h"], "none"]) as string | string[];
  return {
    ...(dice.below(3) === 0
      ? { needs: { ...(dice.below(2) === 0 ? { zone: ["eu", "us"] } : {}), gpu } }
      : {}),
    ...(dice.below(2) === 0 ? { affinity: dice.of(["s1", "s2"]) as string } : {}),
  };
}

const kinds = ["k", "l", "m"];
const roles = [undefined, undefined, undefined, "x", "y"];
const agentTypes = [undefined, "small", "large"];
const failureClasses: FailureClass[] = [
  "failed",
  "failed",
  "timed-out",
  "stalled",
  "lost",
  "infrastructure",
  "aborted",
];
const projects = ["p", "q", "r", "s"];
const users = ["ann", "ben", "cleo"];
const turns: TurnBases[] = [
  { project: "rule", user: "rule" },
  { project: "starvation-limit", user: "rule" },
  { project: "guarantee", user: "starvation-limit" },
  { project: "rule", user: "starvation-limit" },
];
const projectRules: ProjectTurnRule[] = ["clock", "clock", "recency", "deficit", "load", "fifo", "none"];
const userRules: UserTurnRule[] = ["clock", "clock", "recency", "load", "fifo"];

export function aRandomSwarm(seed: number): SwarmFixture {
  const dice = new Dice(seed);
  if (seed % 4 === 2) dice.ofLabels = new Dice(seed + 1);
  if (seed % 4 === 1) dice.ofGrants = new Dice(seed + 1);
  const swarm = new SwarmFixture();
  setPolicy(swarm, dice);
  const agents = 1 + dice.below(8);
  for (let n = 0; n < agents; n += 1) join(swarm, dice, `a${n}`);
  const steps = dice.below(120);
  for (let n = 0; n < steps; n += 1) step(swarm, dice);
  // Makes work for the planner: capacity becomes free and tasks arrive.
  const freed = dice.below(10);
  for (let n = 0; n < freed; n += 1) endAttempt(swarm, dice);
  const arrived = dice.below(12);
  for (let n = 0; n < arrived; n += 1) submit(swarm, dice);
  if (swarm.state.isPaused && dice.next() < 0.8) swarm.pauseSwarm(false);
  return swarm;
}

/** The same state, with the maps without a defined order in another order. */
export function shuffleMaps({ state }: SwarmFixture, seed: number): void {
  const dice = new Dice(seed);
  const queues = [...state.queueByKey.values()];
  const members = queues.flatMap(({ memberByProject }) => [...memberByProject.values()]);
  const maps: Map<unknown, unknown>[] = [
    state.agentById,
    state.queueByKey,
    state.onlineByKind,
    state.kindByName,
    state.recordByKind,
    state.projectById,
    ...state.onlineByKind.values(),
    ...queues.map(({ memberByProject }) => memberByProject),
    ...members.map(({ memberByUser }) => memberByUser),
    ...[...state.projectById.values()].map(({ userByName }) => userByName),
    ...[...state.agentById.values()].flatMap(({ recordByKind, suspensionByKind }) => [
      recordByKind,
      suspensionByKind,
    ]),
  ];
  for (const map of maps) {
    const entries = dice.shuffled(map);
    map.clear();
    for (const [key, value] of entries) map.set(key, value);
  }
}

function setPolicy(swarm: SwarmFixture, dice: Dice): void {
  const topN = dice.below(4) === 0 ? dice.below(8) + 1 : undefined;
  swarm.setPolicy({
    ...turnRules(dice),
    agentRule: dice.below(4) === 0 ? "first-idle" : "score",
    lambda: dice.of([0, 0.25, 0.25, 4]) as number,
    speedExponent: dice.of([0, 0.5, 1, 1, 2]) as number,
    alpha: dice.of([0, 0.25, 0.5, 1]) as number,
    starvationLimit: dice.of([0, 1, 1, 2, 20]) as number,
    guaranteeMs: dice.of([1, 500, 60_000, 3_600_000]) as number,
    tokensDefault: 100,
    ...(topN === undefined ? {} : { topN }),
    ...(dice.below(8) === 0 ? { budget: aBudget(dice, 3) } : {}),
  });
}

function aBudget(dice: Dice, times: number): BudgetSettings {
  return {
    tokens: times * (100 + dice.below(1_000)),
    windowMs: dice.of([600, 60_000, 3_600_000]) as number,
    mode: dice.of(["wait", "reject", "alert", "downgrade", "downgrade"] as const) as BudgetMode,
  };
}

function join(swarm: SwarmFixture, dice: Dice, id: string): void {
  const role = dice.of(roles);
  const agentType = dice.of(agentTypes);
  swarm.join(id, {
    kinds: dice.next() < 0.15 ? [] : kinds.filter(() => dice.next() < 0.6),
    maxConcurrent: 1 + dice.below(3),
    prefetch: dice.below(4),
    ...(role === undefined ? {} : { role }),
    ...(agentType === undefined ? {} : { agentType }),
    ...labelsOf(dice.ofLabels),
    ...groupOf(dice.ofGrants),
  });
}

function step(swarm: SwarmFixture, dice: Dice): void {
  if (dice.ofGrants?.below(12) === 0) setGrant(swarm, dice.ofGrants);
  const chance = dice.next();
  if (chance < 0.3) return submit(swarm, dice);
  if (chance < 0.45) return assign(swarm, dice);
  if (chance < 0.57) return void swarm.plan();
  if (chance < 0.8) return endAttempt(swarm, dice);
  if (chance < 0.86) return swarm.pass(dice.of([1, 90, 499, 500, 4_999, 5_000, 61_000, 4_000_000]) ?? 0);
  if (chance < 0.93) return changeAgent(swarm, dice);
  changeSettings(swarm, dice);
}

function submit(swarm: SwarmFixture, dice: Dice): void {
  const role = dice.of(roles);
  swarm.submit(`t${swarm.state.submissions}`, {
    project: projects[Math.min(dice.below(4), dice.below(4))] as string,
    user: users[Math.min(dice.below(3), dice.below(3))] as string,
    kind: dice.of([...kinds, ...kinds, "nobody-serves-this"]) ?? "k",
    priority: 99 + dice.below(3),
    weight: 1 + dice.below(8) / 2,
    maxAttempts: 1 + dice.below(3),
    ...(role === undefined ? {} : { role }),
    ...(dice.below(2) === 0 ? { tokens: dice.below(400) } : {}),
    ...wishesOf(dice.ofLabels),
  });
}

/** To any agent with free capacity and the labels, suited or not: states that a planner alone would never reach. */
function assign(swarm: SwarmFixture, dice: Dice): void {
  const task = dice.of([...swarm.state.taskById.values()].filter((row) => row.state === "queued"));
  const agent = dice.of(
    agentsOf(swarm).filter((row) => row.online && row.open.size < row.maxConcurrent + row.prefetch),
  );
  if (task === undefined || agent === undefined || holdAt(swarm.state, agent, task.spec.kind) === "held")
    return;
  if (!meetsNeeds(agent.labels, task.spec.needs)) return;
  if (!swarm.state.grants.includes(agent.group, task.spec.project)) return;
  swarm.assign(task.spec.id, agent.id, dice.of(turns));
}

function endAttempt(swarm: SwarmFixture, dice: Dice): void {
  const row = dice.of([...swarm.state.taskById.values()].filter(({ open }) => open !== undefined));
  if (row?.open === undefined) return;
  const chance = dice.next();
  if (chance < 0.45) {
    const tokens = dice.below(2) === 0 ? dice.below(600) : undefined;
    return swarm.complete(row.spec.id, dice.below(1000), tokens);
  }
  if (chance < 0.5) return swarm.cancel(row.spec.id);
  if (chance < 0.53) return swarm.apply({ type: "TaskExpired", ...refOf(row.spec) });
  if (chance < 0.56) return giveUp(swarm, row.open, "TaskFailed", "invalid");
  if (chance < 0.66) return release(swarm, dice);
  failOnce(swarm, dice, row);
}

function failOnce(swarm: SwarmFixture, dice: Dice, row: TaskRow): void {
  const failureClass = dice.of(failureClasses) ?? "failed";
  if (row.failures + 1 < row.spec.maxAttempts || failureClass === "infrastructure") {
    const retryMs = dice.next() < 0.2 ? 1 + dice.below(5) : 0;
    return swarm.fail(row.spec.id, { failureClass, revoked: dice.next() < 0.2, retryMs });
  }
  giveUp(swarm, row.open as OpenAttempt, "TaskDeadLettered", failureClass);
}

function giveUp(
  swarm: SwarmFixture,
  { project, task, attempt, agent }: OpenAttempt,
  type: "TaskFailed" | "TaskDeadLettered",
  failureClass: FailureClass,
): void {
  const ended = { project, task, attempt, agent, failure: { class: failureClass, error: "" }, latencyMs: 1 };
  if (type === "TaskFailed") swarm.apply({ type, ...ended });
  else swarm.apply({ type, reason: "attempts-exhausted", ...ended });
}

/** Releases revoked attempts, and queues delayed tasks again. */
function release(swarm: SwarmFixture, dice: Dice): void {
  const revoked = dice.of(
    agentsOf(swarm).flatMap(({ open }) => [...open.values()].filter(({ state }) => state === "revoked")),
  );
  if (revoked !== undefined) {
    const { project, task, attempt, agent } = revoked;
    swarm.apply({ type: "AttemptReleased", project, task, attempt, agent, reason: "confirmed" });
  }
  const delayed = dice.of([...swarm.state.taskById.values()].filter(({ state }) => state === "delayed"));
  if (delayed !== undefined) swarm.apply({ type: "TaskReleased", ...refOf(delayed.spec) });
}

function changeAgent(swarm: SwarmFixture, dice: Dice): void {
  const agent = dice.of(agentsOf(swarm));
  if (agent === undefined) return;
  const { id } = agent;
  if (!agent.online) return join(swarm, dice, id);
  switch (dice.below(7)) {
    case 0:
      return swarm.drain(id);
    case 6:
      return changeHold(swarm, dice, agent);
    case 1:
      return swarm.apply({ type: agent.draining ? "AgentUndrained" : "AgentDrained", agent: id });
    case 2:
      return swarm.apply({ type: agent.unresponsive ? "AgentResponsive" : "AgentUnresponsive", agent: id });
    case 3:
      if (agent.open.size === 0) swarm.leave(id);
      return;
    default:
      return swarm.suspend(id, {
        kind: dice.of(kinds) ?? "k",
        until: swarm.at + (dice.below(3) === 0 ? 60_000 : -dice.below(2)),
      });
  }
}

/** Places a hold on an agent or its type, lets it elapse, or ends it. Or holds all agents of a kind, or a resource that
 *  refused an attempt. */
function changeHold(swarm: SwarmFixture, dice: Dice, { id, agentType, kinds: own }: AgentRow): void {
  if (dice.ofLabels?.below(3) === 0) return changeResourceHold(swarm, dice.ofLabels);
  const kind = dice.of([...own]);
  if (kind !== undefined && dice.below(4) === 0) {
    const unheld = agentsOf(swarm).filter((of) => of.kinds.has(kind) && !swarm.state.holds.agent.has(of.id));
    for (const agent of unheld) swarm.hold("agent", agent.id, swarm.at + 60_000);
    return;
  }
  const target =
    agentType === undefined || dice.below(2) === 0
      ? ({ on: "agent", name: id } as const)
      : ({ on: "type", name: agentType } as const);
  const hold = swarm.state.holds[target.on].get(target.name);
  if (hold === undefined) return swarm.hold(target.on, target.name, swarm.at + 60_000);
  if (hold.timer === undefined) return swarm.apply({ type: "HoldEnded", ...target, reason: "operator" });
  return swarm.apply({ type: "HoldElapsed", ...target });
}

function changeResourceHold(swarm: SwarmFixture, dice: Dice): void {
  const name = resourceName(dice.of(["r", "s"]) ?? "r");
  const hold = swarm.state.holds.resource.get(name);
  if (hold?.timer !== undefined) {
    const row = dice.of([...swarm.state.taskById.values()].filter(({ open }) => open !== undefined));
    if (row === undefined || dice.below(3) === 0)
      return swarm.apply({ type: "HoldElapsed", on: "resource", name });
    return swarm.fail(row.spec.id, { failureClass: "refused", refusal: { on: { resource: name } } });
  }
  if (hold !== undefined && dice.below(2) === 0)
    return swarm.apply({ type: "HoldEnded", on: "resource", name, reason: "operator" });
  const settings = { slots: 2, maxWaiters: 9 };
  if (!swarm.state.resourceByName.has(name))
    swarm.apply({ type: "ResourceConfigured", resource: name, settings });
  swarm.hold("resource", name, swarm.at + 60_000);
}

function changeSettings(swarm: SwarmFixture, dice: Dice): void {
  const project = dice.of(projects) as string;
  const kind = dice.of(kinds) as string;
  switch (dice.below(10)) {
    case 0:
      return swarm.setProject(project, { creditWeight: dice.of([0.3, 1, 2, 7]) as number });
    case 1:
      return swarm.setProject(project, { maxConcurrent: 1 + dice.below(3) });
    case 2:
      return swarm.pauseProject(project, dice.next() < 0.4);
    case 3:
      return swarm.setKind(kind, { importance: dice.of([0.3, 1, 2, 3]) as number });
    case 4:
      return setPolicy(swarm, dice);
    case 5:
      return swarm.setProject(project, { budget: aBudget(dice, 1) });
    case 6:
    case 8:
      return swarm.setKind(kind, cheaper(dice, kind));
    case 7:
      return swarm.setRate(dice.of(["small", "large"]) as string, 100 + dice.below(2_000), dice.next() < 0.5);
    default:
      return swarm.pauseSwarm(dice.next() < 0.1);
  }
}

/** A cheaper kind, a cheaper type, or both. */
function cheaper(dice: Dice, kind: string): Partial<KindSettings> {
  const other = kindNamed(dice.of(kinds.filter((each) => each !== kind)) as string);
  const chance = dice.next();
  return {
    ...(chance < 0.6 ? { cheaper: other } : {}),
    ...(chance > 0.33 ? { cheaperType: dice.of(["small", "large"]) as string } : {}),
  };
}

function agentsOf(swarm: SwarmFixture): AgentRow[] {
  return [...swarm.state.agentById.values()];
}

/** Number of waiting tasks, for a test to see that its swarms are worth planning. */
export function queuedCount(swarm: SwarmFixture): number {
  return swarm.state.counts.queued;
}

/** Any two rules, except clocks of users where projects take no turns, which is refused. */
function turnRules(dice: Dice): { projectTurn: ProjectTurnRule; userTurn: UserTurnRule } {
  const projectTurn = dice.of(projectRules) as ProjectTurnRule;
  const userTurn = dice.of(userRules) as UserTurnRule;
  return projectTurn === "none" && userTurn === "clock"
    ? { projectTurn, userTurn: "fifo" }
    : { projectTurn, userTurn };
}
