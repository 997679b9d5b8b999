// The input and the output of the budget scheduler (budget-scheduler specification, 2.2 and 2.3). Statuses are free
// text: only `ready`, `idle` and `active` have a meaning here.

import { checkAmount, checkFinite, checkObject, checkObjects, checkText } from "../../state/argument.ts";

export interface SnapshotProject {
  readonly id: string;
  /** ≥ 0; a project's share is its weight over the sum of all eligible weights. */
  readonly creditWeight: number;
  /** Only `active` projects are eligible. */
  readonly status: string;
  /** Tokens in the window; null is no limit. */
  readonly budgetLimit: number | null;
  /** Agents at once, ≥ 0. */
  readonly maxConcurrentAgents: number;
}

export interface SnapshotTask {
  readonly id: string;
  readonly projectId: string;
  /** Only `ready` tasks are assigned. */
  readonly status: string;
  /** Lower goes first. */
  readonly priority: number;
}

export interface SnapshotAgent {
  readonly id: string;
  /** Only `idle` agents get tasks. */
  readonly state: string;
}

/** A count for each project by id; an absent project counts 0. */
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

/** The count of a project: 0 when absent, also for a project named `constructor`. */
export function countOf(counts: CountByProject, project: string): number {
  return Object.hasOwn(counts, project) ? (counts[project] as number) : 0;
}

/**
 * @throws InvalidValueError naming the first field that is missing, of a wrong type, or an invalid or negative number
 */
export function checkSnapshot(snapshot: BudgetSnapshot): void {
  checkObject(snapshot, "snapshot");
  checkObjects(snapshot.projects, "projects");
  for (const [at, project] of snapshot.projects.entries()) checkProject(project, `projects[${at}]`);
  checkObjects(snapshot.tasks, "tasks");
  for (const [at, { id, projectId, status, priority }] of snapshot.tasks.entries()) {
    checkText(id, `tasks[${at}].id`);
    checkText(projectId, `tasks[${at}].projectId`);
    checkText(status, `tasks[${at}].status`);
    checkFinite(priority, `tasks[${at}].priority`);
  }
  checkObjects(snapshot.agents, "agents");
  for (const [at, { id, state }] of snapshot.agents.entries()) {
    checkText(id, `agents[${at}].id`);
    checkText(state, `agents[${at}].state`);
  }
  for (const name of ["projectTokenUsage", "projectActiveAgentCounts", "tasksCompletedInWindow"] as const) {
    checkCounts(snapshot[name], name);
  }
  if (snapshot.globalBudget !== null) checkAmount(snapshot.globalBudget, "globalBudget");
  checkAmount(snapshot.globalTokensUsed, "globalTokensUsed");
}

function checkProject(project: SnapshotProject, field: string): void {
  checkText(project.id, `${field}.id`);
  checkText(project.status, `${field}.status`);
  checkAmount(project.creditWeight, `${field}.creditWeight`);
  checkAmount(project.maxConcurrentAgents, `${field}.maxConcurrentAgents`);
  if (project.budgetLimit !== null) checkAmount(project.budgetLimit, `${field}.budgetLimit`);
}

/**
 * @throws InvalidValueError for a value that is no object, and for a count that is no number or negative, naming the
 *   project
 */
export function checkCounts(counts: CountByProject, field: string): void {
  checkObject(counts, field);
  for (const [project, count] of Object.entries(counts)) checkAmount(count, `${field}.${project}`);
}
