// A swarm's state of any size, driven like by a coordinator. All capacity is used. Then some attempts end, as many
// tasks arrive, and the production planner assigns the free capacity. No journal, no wire, no clock.

import { randomBytes } from "node:crypto";
import { apply } from "../src/core/apply.ts";
import { agentId, batchIndex, incarnation, instant, type Kind, kind, type TaskId, term } from "../src/ids.ts";
import { Planner } from "../src/scheduling/planner.ts";
import type { Event, TaskSpec } from "../src/state/event.ts";
import { emptyState, type OpenAttempt, type SwarmState } from "../src/state/state.ts";
import { Dice } from "../test/scheduling/random-swarm.ts";

export interface Sizes {
  readonly agents: number;
  readonly users: number;
  readonly projects: number;
  /** Waiting tasks before each round. */
  readonly queued: number;
}

const kinds: readonly Kind[] = ["a", "b", "c", "d"].map((name) => kind(`kind-${name}`));
const kindsPerAgent = 2;
/** Capacity of all agents: enough free capacity for a round of the largest size. */
const capacityMin = 6_400;
const payloadCharacters = 100;

export class LoadedSwarm {
  readonly state: SwarmState = emptyState();
  readonly planner = new Planner(this.state);
  readonly #sizes: Sizes;
  readonly #dice = new Dice(1);
  readonly #open: OpenAttempt[] = [];
  #at = instant(1_000_000_000);
  #idx = 0;

  constructor(sizes: Sizes) {
    this.#sizes = sizes;
    this.#apply({ type: "TermStarted", term: term(1), leader: "bench", opened: "o1", timeoutMs: 3_000 });
    const maxConcurrent = Math.max(4, Math.ceil(capacityMin / sizes.agents));
    for (let n = 0; n < sizes.agents; n += 1) {
      this.#apply({
        type: "AgentJoined",
        agent: agentId(`agent-${n}`),
        incarnation: incarnation(`agent-${n}-1`),
        kinds: kinds.filter((_, at) => (at + n) % kinds.length < kindsPerAgent),
        maxConcurrent,
      });
    }
  }

  /** Tasks arrive until `share` of the wanted tasks wait. */
  fill(share = 1): void {
    while (this.state.counts.queued < this.#sizes.queued * share) this.#submit();
  }

  /** Assigns until all capacity is used, and adds new waiting tasks for the assigned ones. */
  start(): void {
    const round = this.planner.open(this.#at);
    for (let event = round.next(); event !== undefined; event = round.next()) this.#assign(event);
    this.fill();
  }

  /**
   * One turn: `grants` attempts end, as many tasks arrive, and a round assigns. `observe` gets the time of each
   * decision. The opening of the round counts to the first decision, the ending to the last.
   *
   * @returns ms spent applying the assignments
   */
  turn(grants: number, observe: (decisionMs: number) => void): number {
    this.#at = instant(this.#at + 10);
    for (let n = 0; n < grants; n += 1) this.#endOne();
    this.fill();
    let applyMs = 0;
    let since = performance.now();
    const round = this.planner.open(this.#at);
    let event = round.next();
    while (event !== undefined) {
      const decidedAt = performance.now();
      this.#assign(event);
      const appliedAt = performance.now();
      applyMs += appliedAt - decidedAt;
      const spentMs = decidedAt - since;
      since = appliedAt;
      event = round.next();
      if (event !== undefined) observe(spentMs);
      else observe(spentMs + performance.now() - since);
    }
    return applyMs;
  }

  #submit(): void {
    const { users, projects } = this.#sizes;
    // A few users have much, most have little.
    const user = Math.floor(users * this.#dice.next() ** 2);
    const spec: TaskSpec = {
      id: `task-${this.state.submissions}` as TaskId,
      kind: this.#dice.of(kinds) as Kind,
      project: `project-${user % projects}` as TaskSpec["project"],
      user: `user-${user}@example.org` as TaskSpec["user"],
      weight: 1 + this.#dice.below(8),
      priority: 100 + (this.#dice.below(10) === 0 ? 10 - this.#dice.below(20) : 0),
      payload: randomBytes(payloadCharacters / 2).toString("hex"),
      maxAttempts: 3,
      timeoutMs: 3_600_000,
    };
    // Like from the wire or the journal: tasks share no strings.
    const task = JSON.parse(JSON.stringify(spec)) as TaskSpec;
    this.#apply({ type: "TaskSubmitted", task, hash: randomBytes(32).toString("hex") });
  }

  /** Most complete, some fail and are queued again, a few are refused by infrastructure. */
  #endOne(): void {
    const at = this.#dice.below(this.#open.length);
    const open = this.#open[at] as OpenAttempt;
    const { project, task, attempt, agent } = open;
    this.#open[at] = this.#open.at(-1) as OpenAttempt;
    this.#open.pop();
    const chance = this.#dice.next();
    const latencyMs = 100 + this.#dice.below(900);
    const failures = this.state.taskById.get(open)?.failures ?? 0;
    if (chance < 0.97 || failures > 1) {
      this.#apply({ type: "TaskCompleted", project, task, attempt, agent, result: "", latencyMs });
      return;
    }
    const failureClass = chance < 0.99 ? "failed" : "infrastructure";
    const failure = { class: failureClass, error: "no" } as const;
    this.#apply({ type: "AttemptFailed", project, task, attempt, agent, failure, latencyMs });
  }

  #assign(event: Extract<Event, { type: "TaskAssigned" }>): void {
    this.#apply(event);
    this.#open.push(this.state.taskById.get(event)?.open as OpenAttempt);
  }

  #apply(event: Event): void {
    this.#idx += 1;
    this.state.at = this.#at;
    apply(this.state, event, { at: this.#at, idx: batchIndex(this.#idx) });
    if ("agent" in event) this.planner.touch(event.agent);
  }
}

/** Payload of a task: the scheduler cannot save these bytes. */
export const payloadBytes = payloadCharacters;
