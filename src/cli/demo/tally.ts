// Sums of the demo's journal: each agent's share of the assignments over time, and the endings of attempts. Computed
// from public events only, without the agents and without the script.

import { taskOf } from "../../audit/filter.ts";
import type { JournaledEvent } from "../../audit/journaled-event.ts";

export interface AgentTally {
  readonly agent: string;
  readonly attempts: number;
  readonly failed: number;
  /** The agent's share of all attempts, [0, 1]. */
  readonly share: number;
}

/** From `from` to before `to`, journal time. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

interface Assigned {
  readonly at: number;
  readonly agent: string;
}

interface TaskRow {
  hasFailedOnce: boolean;
  /** An attempt failed, and the next is not assigned yet. */
  isDelayed: boolean;
  ended: "completed" | "otherwise" | undefined;
}

export class DemoTally {
  readonly #rowById = new Map<string, TaskRow>();
  /** In journal order. */
  readonly #assigned: Assigned[] = [];
  readonly #failed: Assigned[] = [];
  #endedCount = 0;
  #delayedCount = 0;

  constructor(ids: Iterable<string>) {
    for (const id of ids) this.#rowById.set(id, { hasFailedOnce: false, isDelayed: false, ended: undefined });
  }

  get ended(): number {
    return this.#endedCount;
  }

  /** Number of tasks that wait for their next attempt. */
  get delayed(): number {
    return this.#delayedCount;
  }

  /** Adds an event of the journal. Ignores tasks that are not part of this run. */
  add({ event, at }: JournaledEvent): void {
    const id = taskOf(event);
    const row = id === undefined ? undefined : this.#rowById.get(id);
    if (row === undefined) return;
    switch (event.type) {
      case "TaskAssigned":
        this.#assigned.push({ at, agent: event.agent });
        this.#delay(row, false);
        break;
      case "AttemptFailed":
        this.#failed.push({ at, agent: event.agent });
        row.hasFailedOnce = true;
        this.#delay(row, true);
        break;
      case "TaskFailed":
      case "TaskDeadLettered":
        this.#failed.push({ at, agent: event.agent });
        row.hasFailedOnce = true;
        this.#end(row, "otherwise");
        break;
      case "TaskCompleted":
        this.#end(row, "completed");
        break;
      case "TaskCancelled":
      case "TaskExpired":
        this.#end(row, "otherwise");
        break;
      default:
        break; // not part of the view
    }
  }

  agents(ids: readonly string[]): readonly AgentTally[] {
    return ids.map((agent) => {
      const attempts = this.#assigned.filter((one) => one.agent === agent).length;
      const failed = this.failures(agent);
      return { agent, attempts, failed, share: attempts / Math.max(1, this.#assigned.length) };
    });
  }

  /** Failed attempts of an agent, in a span or in all. */
  failures(agent: string, span: Span = ALWAYS): number {
    return this.#failed.filter((one) => one.agent === agent && isIn(one, span)).length;
  }

  /** Assignments of all agents in a span. */
  assignments(span: Span): number {
    return this.#assigned.filter((one) => isIn(one, span)).length;
  }

  /** An agent's share of the assignments in a span, [0, 1]; undefined without assignments. */
  share(agent: string, span: Span): number | undefined {
    const inSpan = this.#assigned.filter((one) => isIn(one, span));
    return inSpan.length === 0
      ? undefined
      : inSpan.filter((one) => one.agent === agent).length / inSpan.length;
  }

  /** Number of tasks with a failed attempt, and of completed tasks among them. */
  retried(): { readonly tasks: number; readonly completed: number } {
    const rows = [...this.#rowById.values()].filter((row) => row.hasFailedOnce);
    return { tasks: rows.length, completed: rows.filter((row) => row.ended === "completed").length };
  }

  #delay(row: TaskRow, isDelayed: boolean): void {
    if (row.isDelayed !== isDelayed) this.#delayedCount += isDelayed ? 1 : -1;
    row.isDelayed = isDelayed;
  }

  #end(row: TaskRow, how: "completed" | "otherwise"): void {
    this.#delay(row, false);
    if (row.ended === undefined) this.#endedCount += 1;
    row.ended = how;
  }
}

const ALWAYS: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

function isIn({ at }: Assigned, { from, to }: Span): boolean {
  return at >= from && at < to;
}
