// Swarms in every state that a history of legal events can lead to: full, draining, suspended, half forgotten,
// with tasks that failed here and there. The same seed gives the same swarm.

import type { FailureClass } from "../../src/core/event.ts";
import type { AgentRow, OpenAttempt, TaskRow } from "../../src/core/state.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

/** Numbers of [0, 1), always the same for a seed (mulberry32). */
export class Dice {
  #state: number;

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

const kinds = ["k", "l", "m"];
const roles = [undefined, undefined, "x", "y"];
const failureClasses: FailureClass[] = ["failed", "failed", "timed-out", "lost", "infrastructure"];

export function aRandomSwarm(seed: number): SwarmFixture {
  const dice = new Dice(seed);
  const swarm = new SwarmFixture();
  const agents = 1 + dice.below(10);
  for (let n = 0; n < agents; n += 1) join(swarm, dice, `a${n}`);
  const steps = dice.below(120);
  for (let n = 0; n < steps; n += 1) step(swarm, dice);
  // So that there is something to plan: places become free and tasks arrive.
  const freed = dice.below(10);
  for (let n = 0; n < freed; n += 1) endAttempt(swarm, dice);
  const arrived = dice.below(12);
  for (let n = 0; n < arrived; n += 1) submit(swarm, dice);
  return swarm;
}

/** The same state with the maps that have no order of their own in another one. */
export function shuffleMaps({ state }: SwarmFixture, seed: number): void {
  const dice = new Dice(seed);
  const maps: Map<unknown, unknown>[] = [
    state.agentById,
    state.laneByKey,
    state.taskById,
    state.onlineByKind,
  ];
  for (const map of [...maps, ...state.onlineByKind.values()]) {
    const entries = dice.shuffled(map);
    map.clear();
    for (const [key, value] of entries) map.set(key, value);
  }
}

function join(swarm: SwarmFixture, dice: Dice, id: string): void {
  const role = dice.of(roles);
  swarm.join(id, {
    kinds: kinds.filter(() => dice.next() < 0.6),
    maxConcurrent: 1 + dice.below(3),
    prefetch: dice.below(4),
    ...(role === undefined ? {} : { role }),
  });
}

function step(swarm: SwarmFixture, dice: Dice): void {
  const chance = dice.next();
  if (chance < 0.3) return submit(swarm, dice);
  if (chance < 0.55) return assign(swarm, dice);
  if (chance < 0.66) return void swarm.plan();
  if (chance < 0.86) return endAttempt(swarm, dice);
  if (chance < 0.9) return swarm.pass(dice.below(3) === 0 ? dice.below(600_000) : dice.below(100));
  changeAgent(swarm, dice);
}

function submit(swarm: SwarmFixture, dice: Dice): void {
  const role = dice.of(roles);
  swarm.submit(`t${swarm.state.submissions}`, {
    kind: dice.of([...kinds, "nobody-serves-this"]) ?? "k",
    priority: 99 + dice.below(3),
    weight: 1 + dice.below(4),
    maxAttempts: 1 + dice.below(3),
    ...(role === undefined ? {} : { role }),
  });
}

/** To any agent with a place, suited or not: states that a planner alone would never reach. */
function assign(swarm: SwarmFixture, dice: Dice): void {
  const task = dice.of([...swarm.state.taskById.values()].filter((row) => row.state === "queued"));
  const agent = dice.of(
    agentsOf(swarm).filter((row) => row.online && row.open.size < row.maxConcurrent + row.prefetch),
  );
  if (task !== undefined && agent !== undefined) swarm.assign(task.spec.id, agent.id);
}

function endAttempt(swarm: SwarmFixture, dice: Dice): void {
  const row = dice.of([...swarm.state.taskById.values()].filter(({ open }) => open !== undefined));
  if (row === undefined) return;
  const task = row.spec.id;
  if (dice.next() < 0.5) return swarm.complete(task, dice.below(1000));
  const failureClass = dice.of(failureClasses) ?? "failed";
  if (row.failures + 1 < row.spec.maxAttempts || failureClass === "infrastructure") {
    return swarm.fail(task, { failureClass, revoked: dice.next() < 0.2 });
  }
  deadLetter(swarm, row, row.open as OpenAttempt, failureClass);
}

function deadLetter(swarm: SwarmFixture, row: TaskRow, open: OpenAttempt, failureClass: FailureClass): void {
  swarm.apply({
    type: "TaskDeadLettered",
    task: row.spec.id,
    attempt: open.attempt,
    agent: open.agent,
    reason: "attempts-exhausted",
    failure: { class: failureClass, error: "" },
    latencyMs: 1,
  });
}

function changeAgent(swarm: SwarmFixture, dice: Dice): void {
  const agent = dice.of(agentsOf(swarm));
  if (agent === undefined) return;
  const { id } = agent;
  if (!agent.online) return join(swarm, dice, id);
  switch (dice.below(6)) {
    case 0:
      return swarm.drain(id);
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

function agentsOf(swarm: SwarmFixture): AgentRow[] {
  return [...swarm.state.agentById.values()];
}

/** How many live tasks wait, for a test to see that its swarms are worth planning. */
export function queuedCount(swarm: SwarmFixture): number {
  return swarm.state.counts.queued;
}
