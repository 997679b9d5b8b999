// The budget scheduler, to the letter (budget-scheduler specification, section 2): which idle agent gets which ready
// task, by guarantee and deficit of the projects. Gaps included: a task is not matched with an agent's abilities, and
// tokens count only once used. Waggle's own scheduler is the planner.

import { InvalidValueError } from "../../errors.ts";
import {
  type AssignAction,
  type BudgetSnapshot,
  checkSnapshot,
  countOf,
  type SnapshotProject,
  type SnapshotTask,
} from "./budget-snapshot.ts";
import { BudgetManager } from "./fair-share.ts";

/**
 * Steps 1 to 8 of section 2.4.
 *
 * @returns at most one action for each idle agent, in the order of the snapshot's agents
 * @throws InvalidValueError for a missing field or a field of a wrong type, and for an invalid or negative number. Also
 *   where the document divides by zero: the eligible projects' weights sum to 0
 */
export function schedule(snapshot: BudgetSnapshot): AssignAction[] {
  checkSnapshot(snapshot);
  const budget = new BudgetManager(snapshot.globalBudget);
  if (budget.isGlobalBudgetExhausted(snapshot.globalTokensUsed)) return [];
  const idle = snapshot.agents.filter(({ state }) => state === "idle");
  if (idle.length === 0) return [];
  const readyByProject = sortedReady(snapshot.tasks);
  const eligible = snapshot.projects.filter(
    ({ id, status }) => status === "active" && readyByProject.has(id),
  );
  if (eligible.length === 0) return [];

  const projects = byGuaranteeAndDeficit(eligible, snapshot);
  const round = new BudgetRound(snapshot, readyByProject, budget);
  for (const { id } of idle) round.assign(id, projects);
  return round.actions;
}

/** The accumulated state over the idle agents (step 7). */
class BudgetRound {
  readonly actions: AssignAction[] = [];
  readonly #snapshot: BudgetSnapshot;
  readonly #readyByProject: ReadonlyMap<string, readonly SnapshotTask[]>;
  readonly #budget: BudgetManager;
  readonly #assignedAgents = new Set<string>();
  readonly #assignedTasks = new Set<string>();
  /** Agents that run a project's tasks, new ones included, by project; only projects with an assignment in this
   *  round. */
  readonly #activeCounts = new Map<string, number>();
  /** The first index in each project's list that may hold an unassigned task. */
  readonly #beginByProject = new Map<string, number>();

  constructor(
    snapshot: BudgetSnapshot,
    readyByProject: ReadonlyMap<string, readonly SnapshotTask[]>,
    budget: BudgetManager,
  ) {
    this.#snapshot = snapshot;
    this.#readyByProject = readyByProject;
    this.#budget = budget;
  }

  /** Gives the agent the first task of the first project that accepts, if any. */
  assign(agentId: string, projects: readonly SnapshotProject[]): void {
    if (this.#assignedAgents.has(agentId)) return;
    for (const project of projects) {
      if (!this.#isOpen(project)) continue;
      const task = this.#firstUnassigned(project.id);
      if (task === undefined) continue;
      this.actions.push({ agentId, taskId: task.id, projectId: project.id });
      this.#assignedAgents.add(agentId);
      this.#assignedTasks.add(task.id);
      this.#activeCounts.set(project.id, this.#activeCount(project.id) + 1);
      return;
    }
  }

  /** The two checks of section 2.6. */
  #isOpen({ id, budgetLimit, maxConcurrentAgents }: SnapshotProject): boolean {
    const used = countOf(this.#snapshot.projectTokenUsage, id);
    if (this.#budget.isProjectBudgetExhausted(used, budgetLimit)) return false;
    return this.#activeCount(id) < maxConcurrentAgents;
  }

  #activeCount(project: string): number {
    return this.#activeCounts.get(project) ?? countOf(this.#snapshot.projectActiveAgentCounts, project);
  }

  #firstUnassigned(project: string): SnapshotTask | undefined {
    const tasks = this.#readyByProject.get(project) ?? [];
    let at = this.#beginByProject.get(project) ?? 0;
    while (at < tasks.length && this.#assignedTasks.has((tasks[at] as SnapshotTask).id)) at += 1;
    this.#beginByProject.set(project, at);
    return tasks[at];
  }
}

/** Steps 3 and 4. */
function sortedReady(tasks: readonly SnapshotTask[]): Map<string, SnapshotTask[]> {
  const readyByProject = new Map<string, SnapshotTask[]>();
  for (const task of tasks) {
    if (task.status !== "ready") continue;
    const others = readyByProject.get(task.projectId);
    if (others === undefined) readyByProject.set(task.projectId, [task]);
    else others.push(task);
  }
  for (const ready of readyByProject.values()) {
    ready.sort((a, b) => a.priority - b.priority || byCodePoints(a.id, b.id));
  }
  return readyByProject;
}

/**
 * Step 6 and section 2.5: (has_guarantee, actual − target) ascending; equal projects stay in the snapshot's order. The
 * document sorts for each agent; nothing in the key changes within a round, so one sort is the same.
 */
function byGuaranteeAndDeficit(
  eligible: readonly SnapshotProject[],
  snapshot: BudgetSnapshot,
): SnapshotProject[] {
  const totalWeight = eligible.reduce((total, { creditWeight }) => total + creditWeight, 0);
  if (totalWeight === 0) {
    throw new InvalidValueError(
      "the credit weights of all eligible projects are 0: the budget specification (2.5) divides by their sum, " +
        "and a division by zero has no answer. Give one of them a weight above 0",
      { field: "projects" },
    );
  }
  const usage = snapshot.projectTokenUsage;
  const totalTokens = Object.values(usage).reduce((total, tokens) => total + tokens, 0) || 1;
  const keyed = eligible.map((project) => ({
    project,
    hasGuarantee: countOf(snapshot.tasksCompletedInWindow, project.id) === 0 ? 0 : 1,
    deficit: countOf(usage, project.id) / totalTokens - project.creditWeight / totalWeight,
  }));
  keyed.sort((a, b) => a.hasGuarantee - b.hasGuarantee || a.deficit - b.deficit);
  return keyed.map(({ project }) => project);
}

/** As the document's language orders text: by code points, not by UTF-16 units. */
function byCodePoints(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at += 1) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return rankOfUnit(unitA) - rankOfUnit(unitB);
  }
  return a.length - b.length;
}

/** Surrogates, which encode the code points above U+FFFF, sort after all other units. */
function rankOfUnit(unit: number): number {
  const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
  return isSurrogate ? unit + 0x10000 : unit;
}
