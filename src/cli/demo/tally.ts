// What the demo's journal adds up to: attempts by agent and kind, waits by user. Folded from the same events
// that anybody may follow; nothing is asked of the agents.

import { taskOf } from "../../audit/filter.ts";
import type { JournaledEvent } from "../../audit/journaled-event.ts";
import type { DemoTask } from "./scenario.ts";

export interface KindTally {
  readonly attempts: number;
  readonly completed: number;
}

export interface AgentTally {
  readonly agent: string;
  readonly attempts: number;
  /** Of all attempts, [0, 1]. */
  readonly share: number;
  readonly byKind: Readonly<Record<string, KindTally>>;
  readonly latencyMsMean: number;
}

export interface UserTally {
  readonly user: string;
  readonly tasks: number;
  readonly completed: number;
  /** From a task's submission to its first assignment. */
  readonly waitMsMean: number;
  readonly waitMsMax: number;
}

interface TaskRow {
  readonly task: DemoTask;
  submittedAt: number | undefined;
  assignedAt: number | undefined;
  ended: "completed" | "otherwise" | undefined;
}

interface AgentRow {
  attempts: number;
  closed: number;
  latencyMsSum: number;
  readonly byKind: Map<string, { attempts: number; completed: number }>;
}

export class DemoTally {
  readonly #rowById = new Map<string, TaskRow>();
  readonly #agentById = new Map<string, AgentRow>();
  /** Who got the outlines, in the order of the decisions. */
  readonly #outlinesTo: string[] = [];
  #endedCount = 0;

  constructor(tasks: Iterable<DemoTask>) {
    for (const task of tasks) {
      this.#rowById.set(task.id, { task, submittedAt: undefined, assignedAt: undefined, ended: undefined });
    }
  }

  get hasAllEnded(): boolean {
    return this.#endedCount === this.#rowById.size;
  }

  /** Takes the next event of the journal; those of other tasks are passed over. */
  add({ event, at }: JournaledEvent): void {
    const id = taskOf(event);
    const row = id === undefined ? undefined : this.#rowById.get(id);
    if (row === undefined) return;
    switch (event.type) {
      case "TaskSubmitted":
        row.submittedAt = at;
        break;
      case "TaskAssigned":
        row.assignedAt ??= at;
        this.#assigned(event.agent, row.task.kind);
        break;
      case "TaskCompleted":
        this.#closed(event.agent, event.latencyMs, row.task.kind);
        this.#ended(row, "completed");
        break;
      case "AttemptFailed":
        this.#closed(event.agent, event.latencyMs);
        break;
      case "TaskFailed":
      case "TaskDeadLettered":
        this.#closed(event.agent, event.latencyMs);
        this.#ended(row, "otherwise");
        break;
      case "TaskCancelled":
      case "TaskExpired":
        this.#ended(row, "otherwise");
        break;
      default:
        break; // says nothing that is shown
    }
  }

  agents(ids: readonly string[]): readonly AgentTally[] {
    const total = [...this.#agentById.values()].reduce((sum, row) => sum + row.attempts, 0);
    return ids.map((agent) => {
      const row = this.#agent(agent);
      return {
        agent,
        attempts: row.attempts,
        share: total === 0 ? 0 : row.attempts / total,
        byKind: Object.fromEntries(row.byKind),
        latencyMsMean: row.closed === 0 ? 0 : row.latencyMsSum / row.closed,
      };
    });
  }

  users(): readonly UserTally[] {
    const all = [...this.#rowById.values()];
    return [...new Set(all.map(({ task }) => task.user))].map((user) => {
      const rows = all.filter(({ task }) => task.user === user);
      const waits = rows.flatMap(({ submittedAt, assignedAt }) =>
        submittedAt === undefined || assignedAt === undefined ? [] : [assignedAt - submittedAt],
      );
      return {
        user,
        tasks: rows.length,
        completed: rows.filter((row) => row.ended === "completed").length,
        waitMsMean: waits.length === 0 ? 0 : waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
        waitMsMax: waits.reduce((longest, wait) => Math.max(longest, wait), 0),
      };
    });
  }

  /** An agent's share of the outlines over time: of each of so many equal parts of the decisions. */
  outlineShares(agent: string, parts: number): readonly number[] {
    const decisions = this.#outlinesTo;
    return Array.from({ length: parts }, (_, part) => {
      const from = Math.floor((part * decisions.length) / parts);
      return shareOf(agent, decisions.slice(from, Math.floor(((part + 1) * decisions.length) / parts)));
    });
  }

  #assigned(agent: string, kind: string): void {
    const row = this.#agent(agent);
    row.attempts += 1;
    kindRow(row, kind).attempts += 1;
    if (kind === "outline") this.#outlinesTo.push(agent);
  }

  /** @param completedKind the kind of an attempt that completed */
  #closed(agent: string, latencyMs: number, completedKind?: string): void {
    const row = this.#agent(agent);
    row.closed += 1;
    row.latencyMsSum += latencyMs;
    if (completedKind !== undefined) kindRow(row, completedKind).completed += 1;
  }

  #ended(row: TaskRow, how: "completed" | "otherwise"): void {
    if (row.ended === undefined) this.#endedCount += 1;
    row.ended = how;
  }

  #agent(id: string): AgentRow {
    const known = this.#agentById.get(id);
    if (known !== undefined) return known;
    const row: AgentRow = { attempts: 0, closed: 0, latencyMsSum: 0, byKind: new Map() };
    this.#agentById.set(id, row);
    return row;
  }
}

function kindRow(row: AgentRow, kind: string): { attempts: number; completed: number } {
  const known = row.byKind.get(kind);
  if (known !== undefined) return known;
  const fresh = { attempts: 0, completed: 0 };
  row.byKind.set(kind, fresh);
  return fresh;
}

function shareOf(agent: string, decisions: readonly string[]): number {
  return decisions.length === 0 ? 0 : decisions.filter((other) => other === agent).length / decisions.length;
}
