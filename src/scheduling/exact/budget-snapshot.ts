// What the budget scheduler sees of the world, and what it answers (budget-scheduler specification, 2.2 and 2.3).
// Statuses are words of whoever took the snapshot: only `ready`, `idle` and `active` mean something here.

import { checkAmount, checkFinite, checkObject, checkObjects, checkText } from "../../state/argument.ts";

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

/**
 * @throws InvalidValueError naming the first field that is not there or not of its sort, or whose number is none or
 *   negative
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

/** @throws InvalidValueError for what is no object, and naming the project whose count is no number, or negative */
export function checkCounts(counts: CountByProject, field: string): void {
  checkObject(counts, field);
  for (const [project, count] of Object.entries(counts)) checkAmount(count, `${field}.${project}`);
}
