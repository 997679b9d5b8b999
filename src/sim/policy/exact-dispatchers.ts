// The published schedulers that are more than an order of users, as dispatchers: Lucio's with its TopN, and the
// budget document's over snapshots. What decides is scheduling/exact; here stands only what they are told.

import { schedule } from "../../scheduling/exact/budget-scheduler.ts";
import { LucioScheduler } from "../../scheduling/exact/lucio.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";

/** Agents by the places that are free, in order of joining. */
class FreePlaces {
  readonly #agents: readonly SimAgent[];
  readonly #held: number[];

  constructor(agents: readonly SimAgent[]) {
    this.#agents = agents;
    this.#held = agents.map(() => 0);
  }

  get total(): number {
    return this.#agents.reduce((sum, { maxConcurrent }) => sum + maxConcurrent, 0);
  }

  idle(): SimAgent[] {
    return this.#agents.filter(({ index }) => this.#held[index] === 0);
  }

  first(): SimAgent | undefined {
    return this.#agents.find(({ index, maxConcurrent }) => (this.#held[index] ?? 0) < maxConcurrent);
  }

  take({ index }: SimAgent): void {
    this.#held[index] = (this.#held[index] ?? 0) + 1;
  }

  free({ index }: SimAgent): void {
    this.#held[index] = (this.#held[index] ?? 0) - 1;
  }
}

/** Lucio's scheduler, TopN being all places there are. It knows no kinds: what nobody serves is kept from it. */
export class LucioDispatcher implements Dispatcher {
  readonly #scheduler: LucioScheduler;
  readonly #places: FreePlaces;
  readonly #served: ReadonlySet<string>;
  readonly #taskById = new Map<string, SimTask>();

  constructor(agents: readonly SimAgent[]) {
    this.#places = new FreePlaces(agents);
    this.#scheduler = new LucioScheduler(this.#places.total);
    this.#served = new Set(agents.flatMap(({ kinds }) => kinds));
  }

  ended({ task, agent }: AttemptEnd): void {
    this.#scheduler.ended(idOf(task));
    this.#taskById.delete(idOf(task));
    this.#places.free(agent);
  }

  submitted(task: SimTask): void {
    if (!this.#served.has(task.kind)) return;
    this.#taskById.set(idOf(task), task);
    this.#scheduler.submit({ id: idOf(task), user: task.user, taskWeight: 1 });
  }

  plan(at: number): Assignment[] {
    return this.#scheduler.schedule(at).map(({ task: { id } }) => {
      const agent = this.#places.first() as SimAgent;
      this.#places.take(agent);
      return { task: this.#taskById.get(id) as SimTask, agent };
    });
  }

  dueAt(): undefined {
    return undefined;
  }
}

/** Tokens that a task of weight 1 is taken to use: the scenarios have none. */
const TOKENS_PER_WEIGHT = 1_000;

/** The budget document's scheduler. It knows no kinds either. Each user is a project of credit weight 1 without a
 *  limit; its window is longer than any scenario. */
export class BudgetDispatcher implements Dispatcher {
  readonly #places: FreePlaces;
  readonly #waitingByUser = new Map<string, SimTask[]>();
  readonly #tokens: Record<string, number> = {};
  readonly #active: Record<string, number> = {};
  readonly #completed: Record<string, number> = {};
  readonly #served: ReadonlySet<string>;

  constructor(agents: readonly SimAgent[]) {
    this.#places = new FreePlaces(agents);
    this.#served = new Set(agents.flatMap(({ kinds }) => kinds));
  }

  ended({ task, agent, succeeds }: AttemptEnd): void {
    const { user, weight } = task;
    this.#places.free(agent);
    this.#active[user] = (this.#active[user] ?? 0) - 1;
    this.#tokens[user] = (this.#tokens[user] ?? 0) + weight * TOKENS_PER_WEIGHT;
    if (succeeds) this.#completed[user] = (this.#completed[user] ?? 0) + 1;
  }

  submitted(task: SimTask): void {
    if (!this.#served.has(task.kind)) return;
    const waiting = this.#waitingByUser.get(task.user);
    if (waiting === undefined) this.#waitingByUser.set(task.user, [task]);
    else waiting.push(task);
  }

  plan(): Assignment[] {
    const idle = this.#places.idle();
    if (idle.length === 0) return [];
    // No more of a project's tasks can go in one round than there are idle agents.
    const ready = [...this.#waitingByUser.values()].flatMap((waiting) => waiting.slice(0, idle.length));
    const taskById = new Map(ready.map((task) => [idOf(task), task]));
    const agentById = new Map(idle.map((agent) => [String(agent.index), agent]));
    const actions = schedule({
      projects: [...this.#waitingByUser.keys()].map((id) => ({
        id,
        creditWeight: 1,
        status: "active",
        budgetLimit: null,
        maxConcurrentAgents: this.#places.total,
      })),
      tasks: ready.map((task) => ({ id: idOf(task), projectId: task.user, status: "ready", priority: 100 })),
      agents: idle.map(({ index }) => ({ id: String(index), state: "idle" })),
      projectTokenUsage: this.#tokens,
      projectActiveAgentCounts: this.#active,
      tasksCompletedInWindow: this.#completed,
      globalBudget: null,
      globalTokensUsed: Object.values(this.#tokens).reduce((sum, tokens) => sum + tokens, 0),
    });
    return actions.map(({ agentId, taskId }) => {
      const task = taskById.get(taskId) as SimTask;
      const agent = agentById.get(agentId) as SimAgent;
      const waiting = this.#waitingByUser.get(task.user) as SimTask[];
      waiting.splice(waiting.indexOf(task), 1);
      this.#places.take(agent);
      this.#active[task.user] = (this.#active[task.user] ?? 0) + 1;
      return { task, agent };
    });
  }

  dueAt(): undefined {
    return undefined;
  }
}

/** Sorts as the index does: equal priorities are ordered by id. */
function idOf({ index }: SimTask): string {
  return `t${String(index).padStart(7, "0")}`;
}
