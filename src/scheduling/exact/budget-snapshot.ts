// What the budget scheduler sees of the world, and what it answers (budget-scheduler specification, 2.2 and 2.3).
// Statuses are words of whoever took the snapshot: only `ready`, `idle` and `active` mean something here.

import { InvalidValueError } from "../../errors.ts";

export interface SnapshotProject {
  readonly id: string;
  /** ≥ 0; its share is this over the sum of all that are eligible. */
  readonly creditWeight: number;
  /** Only `active` ones are eligible. */
  readonly status: string;
  /** Tokens in the window; null is no limit. */
  readonly budgetLimit: number | null;
  /** Agents at once, ≥ 0. */
  readonly maxConcurrentAgents: number;
}

export interface SnapshotTask {
  readonly id: string;
  readonly projectId: string;
  /** Only `ready` ones are assigned. */
  readonly status: string;
  /** Lower goes first. */
  readonly priority: number;
}

export interface SnapshotAgent {
  readonly id: string;
  /** Only `idle` ones are assigned to. */
  readonly state: string;
}

/** Something counted for each project by its id; an absent one is 0. */
export type CountByProject = Readonly<Record<string, number>>;

export interface BudgetSnapshot {
  readonly projects: readonly SnapshotProject[];
  readonly tasks: readonly SnapshotTask[];
  readonly agents: readonly SnapshotAgent[];
  /** Tokens used in the rolling window. */
  readonly projectTokenUsage: CountByProject;
  /** Agents that run a task of the project now. */
  readonly projectActiveAgentCounts: CountByProject;
  readonly tasksCompletedInWindow: CountByProject;
  /** Tokens of all projects; null is no limit. */
  readonly globalBudget: number | null;
  readonly globalTokensUsed: number;
}

/** One idle agent gets one ready task. */
export interface AssignAction {
  readonly agentId: string;
  readonly taskId: string;
  readonly projectId: string;
}

/** What is counted for a project: 0 where nothing is, also for a project called `constructor`. */
export function countOf(counts: CountByProject, project: string): number {
  return Object.hasOwn(counts, project) ? (counts[project] as number) : 0;
}

/** @throws InvalidValueError naming the field of the first number that is none, or negative */
export function checkNumbers(snapshot: BudgetSnapshot): void {
  for (const [at, project] of snapshot.projects.entries()) {
    checkAmount(project.creditWeight, `projects[${at}].creditWeight`);
    checkAmount(project.maxConcurrentAgents, `projects[${at}].maxConcurrentAgents`);
    if (project.budgetLimit !== null) checkAmount(project.budgetLimit, `projects[${at}].budgetLimit`);
  }
  for (const [at, { priority }] of snapshot.tasks.entries()) checkFinite(priority, `tasks[${at}].priority`);
  for (const name of ["projectTokenUsage", "projectActiveAgentCounts", "tasksCompletedInWindow"] as const) {
    checkCounts(snapshot[name], name);
  }
  if (snapshot.globalBudget !== null) checkAmount(snapshot.globalBudget, "globalBudget");
  checkAmount(snapshot.globalTokensUsed, "globalTokensUsed");
}

/** @throws InvalidValueError naming the project whose count is no number, or negative */
export function checkCounts(counts: CountByProject, field: string): void {
  for (const [project, count] of Object.entries(counts)) checkAmount(count, `${field}.${project}`);
}

/** @throws InvalidValueError */
export function checkAmount(value: number, field: string): void {
  checkFinite(value, field);
  if (value < 0) throw new InvalidValueError(`${field}: must be 0 or more, not ${value}`, { field });
}

function checkFinite(value: number, field: string): void {
  if (Number.isFinite(value)) return;
  throw new InvalidValueError(`${field}: must be a number, not ${String(value)}`, { field });
}
