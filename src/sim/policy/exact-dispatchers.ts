// The published schedulers that do more than order users, as dispatchers: Lucio's with its TopN, and the budget
// document's over snapshots. scheduling/exact decides; the code here supplies its input.

import { schedule } from "../../scheduling/exact/budget-scheduler.ts";
import { LucioScheduler } from "../../scheduling/exact/lucio.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";

/** Agents by free capacity, in order of joining. */
class FreeCapacity {
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

/** Lucio's scheduler. TopN is the total capacity. The scheduler knows no kinds, so tasks without an eligible
 *  agent are withheld. */
export class LucioDispatcher implements Dispatcher {
  readonly #scheduler: LucioScheduler;
  readonly #capacity: FreeCapacity;
  readonly #served: ReadonlySet<string>;
  readonly #taskById = new Map<string, SimTask>();

  constructor(agents: readonly SimAgent[]) {
    this.#capacity = new FreeCapacity(agents);
    this.#scheduler = new LucioScheduler(this.#capacity.total);
    this.#served = new Set(agents.flatMap(({ kinds }) => kinds));
  }

  ended({ task, agent }: AttemptEnd): void {
    this.#scheduler.ended(idOf(task));
    this.#taskById.delete(idOf(task));
    this.#capacity.free(agent);
  }

  submitted(task: SimTask): void {
    if (!this.#served.has(task.kind)) return;
    this.#taskById.set(idOf(task), task);
    this.#scheduler.submit({ id: idOf(task), user: task.user, taskWeight: 1 });
  }

  plan(at: number): Assignment[] {
    return this.#scheduler.schedule(at).map(({ task: { id } }) => {
      const agent = this.#capacity.first() as SimAgent;
      this.#capacity.take(agent);
      return { task: this.#taskById.get(id) as SimTask, agent };
    });
  }

  dueAt(): undefined {
    return undefined;
  }
}

/** Assumed tokens of a task of weight 1: the scenarios define none. */
const TOKENS_PER_WEIGHT = 1_000;

/** The budget document's scheduler, which knows no kinds either. Each user is a project of credit weight 1
 *  without a limit; its window is longer than any scenario. */
export class BudgetDispatcher implements Dispatcher {
  readonly #capacity: FreeCapacity;
  readonly #waitingByUser = new Map<string, SimTask[]>();
  readonly #tokens: Record<string, number> = {};
  readonly #active: Record<string, number> = {};
  readonly #completed: Record<string, number> = {};
  readonly #served: ReadonlySet<string>;

  constructor(agents: readonly SimAgent[]) {
    this.#capacity = new FreeCapacity(agents);
    this.#served = new Set(agents.flatMap(({ kinds }) => kinds));
  }

  ended({ task, agent, succeeds }: AttemptEnd): void {
    const { user, weight } = task;
    this.#capacity.free(agent);
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
    const idle = this.#capacity.idle();
    if (idle.length === 0) return [];
    // A round can assign at most one task of a project per idle agent.
    const ready = [...this.#waitingByUser.values()].flatMap((waiting) => waiting.slice(0, idle.length));
    const taskById = new Map(ready.map((task) => [idOf(task), task]));
    const agentById = new Map(idle.map((agent) => [String(agent.index), agent]));
    const actions = schedule({
      projects: [...this.#waitingByUser.keys()].map((id) => ({
        id,
        creditWeight: 1,
        status: "active",
        budgetLimit: null,
        maxConcurrentAgents: this.#capacity.total,
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
      this.#capacity.take(agent);
      this.#active[task.user] = (this.#active[task.user] ?? 0) + 1;
      return { task, agent };
    });
  }

  dueAt(): undefined {
    return undefined;
  }
}

/** Sorts like the index: equal priorities are ordered by id. */
function idOf({ index }: SimTask): string {
  return `t${String(index).padStart(7, "0")}`;
}
