// Waggle's own rules on a snapshot in the budget document's form: the production planner on a state built by
// events, as every state is. Shows Waggle's decision where `exact/budget-scheduler.ts` shows the document's. A
// snapshot has no users, kinds, weights or success rates. So all tasks of a project belong to a single user,
// every agent can serve every task, and each task is assumed to cost the mean so far.

import { apply } from "../../core/apply.ts";
import type {
  AgentId,
  AssignmentNumber,
  AttemptNumber,
  BatchIndex,
  Incarnation,
  Instant,
  Kind,
  ProjectId,
  TaskId,
  Term,
  Token,
  UserId,
} from "../../ids.ts";
import { limits } from "../../limits.ts";
import {
  type AssignAction,
  type BudgetSnapshot,
  checkSnapshot,
  countOf,
  type SnapshotProject,
  type SnapshotTask,
} from "../../scheduling/exact/budget-snapshot.ts";
import { Planner } from "../../scheduling/planner.ts";
import { refuse } from "../../state/argument.ts";
import type { Event, TaskSpec } from "../../state/event.ts";
import { emptyState, type SwarmState } from "../../state/state.ts";

const anyKind = "task" as Kind;
const pastKind = "past" as Kind;
const onlyUser = "user" as UserId;
/** Begins with a space, which no id of a snapshot may do. */
const pastAgent = " past" as AgentId;
const onlyIncarnation = "1" as Incarnation;

/** Last turn of projects without grants in the window. */
const longAgo = limits.guaranteeMs as Instant;
/** Last turn of the other projects, and the time of the round. */
const now = (2 * limits.guaranteeMs) as Instant;

/** The assignments of Waggle's rules in one round. Hard limits hold within the round: concurrency, and budgets
 *  with the mean use of completed tasks as the estimate (1 token without any). A project with a concurrency of
 *  0 is closed: none of its tasks is assigned.
 *
 *  @returns in the order of the grants
 *  @throws InvalidValueError for a credit weight of 0, a duplicate id or one that begins with a space, more
 *    projects than a swarm may have, a missing field or a field of a wrong type, and a number that is negative
 *    or NaN */
export function planSnapshot(snapshot: BudgetSnapshot): AssignAction[] {
  checkSnapshot(snapshot);
  checkOurs(snapshot);
  const tokensPerTask = tokensPerTaskOf(snapshot);
  const state = stateOf(snapshot, tokensPerTask);
  let left = tasksThatFit(snapshot.globalBudget, snapshot.globalTokensUsed, tokensPerTask);
  const round = new Planner(state).open(now);
  const actions: AssignAction[] = [];
  for (let assigned = round.next(); assigned !== undefined && left > 0; assigned = round.next()) {
    record(state, assigned, now);
    actions.push({ agentId: assigned.agent, taskId: assigned.task, projectId: assigned.project });
    left -= 1;
  }
  return actions;
}

/** Mean use of a task so far, tokens; ≥ 1. */
function tokensPerTaskOf({ projectTokenUsage, tasksCompletedInWindow }: BudgetSnapshot): number {
  const completed = sumOf(tasksCompletedInWindow);
  return completed === 0 ? 1 : Math.max(1, sumOf(projectTokenUsage) / completed);
}

/** Number of tasks of mean use that fit the rest of a limit. */
function tasksThatFit(limit: number | null, used: number, tokensPerTask: number): number {
  return limit === null ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor((limit - used) / tokensPerTask));
}

function stateOf(snapshot: BudgetSnapshot, tokensPerTask: number): SwarmState {
  const state = emptyState();
  record(
    state,
    { type: "TermStarted", term: 1 as Term, leader: "", opened: "", timeoutMs: limits.leaderTimeoutMs },
    longAgo,
  );
  const active = snapshot.projects.filter(({ status }) => status === "active");
  for (const project of active) {
    record(
      state,
      {
        type: "ProjectConfigured",
        project: project.id as ProjectId,
        settings: { creditWeight: project.creditWeight, queueMax: limits.queuedTasksPerProjectMax },
      },
      longAgo,
    );
  }
  recordPast(state, snapshot, active, tokensPerTask);
  for (const { id, state: status } of snapshot.agents) {
    if (status !== "idle") continue;
    record(
      state,
      { type: "AgentJoined", ...sessionOf(id as AgentId), kinds: [anyKind], maxConcurrent: 1 },
      now,
    );
  }
  for (const task of assignable(snapshot, active, tokensPerTask)) {
    record(state, { type: "TaskSubmitted", task: specOf(task), hash: task.id }, now);
  }
  return state;
}

/** One ended task per project, with the whole use as its weight, so that the project's clock has the value
 *  after the use. All projects start at clock 0, so virtual time stays 0 and every lag is kept. */
function recordPast(
  state: SwarmState,
  snapshot: BudgetSnapshot,
  projects: readonly SnapshotProject[],
  tokensPerTask: number,
): void {
  const session = sessionOf(pastAgent);
  record(state, { type: "AgentJoined", ...session, kinds: [pastKind], maxConcurrent: 1 }, longAgo);
  const granted = projects
    .map(({ id }) => {
      const running = countOf(snapshot.projectActiveAgentCounts, id);
      const weight = countOf(snapshot.projectTokenUsage, id) / tokensPerTask + running;
      const isInWindow = running > 0 || countOf(snapshot.tasksCompletedInWindow, id) > 0;
      return { id, weight, at: isInWindow ? now : longAgo };
    })
    .filter(({ weight, at }) => weight > 0 || at === now)
    .sort((a, b) => a.at - b.at);
  for (const [index, { id, weight, at }] of granted.entries()) {
    const task = ` ${id}` as TaskId;
    const attempt = 1 as AttemptNumber;
    const number = (index + 1) as AssignmentNumber;
    const token = `1.${number}` as Token;
    const spec = { ...specOf({ id: task, projectId: id, priority: 0 }), kind: pastKind, weight };
    record(state, { type: "TaskSubmitted", task: spec, hash: "" }, at);
    const named = { project: spec.project, task, attempt };
    record(state, { type: "TaskAssigned", ...named, ...session, number, token, receipt: unexplained }, at);
    record(state, { type: "TaskCompleted", ...named, agent: pastAgent, result: "", latencyMs: 0 }, at);
  }
  record(state, { type: "AgentLeft", ...session, reason: "left" }, now);
}

const unexplained = {
  feasible: 1,
  candidates: [],
  ineligible: {},
  decidedBy: "only",
  queue: "",
  waiting: 1,
  waitedMs: 0,
} as const;

/** The first ready tasks of each project, as many as its limits admit in one round. */
function assignable(
  snapshot: BudgetSnapshot,
  projects: readonly SnapshotProject[],
  tokensPerTask: number,
): SnapshotTask[] {
  const roomByProject = new Map(
    projects.map(({ id, budgetLimit, maxConcurrentAgents }) => {
      const capacity = maxConcurrentAgents - countOf(snapshot.projectActiveAgentCounts, id);
      const fit = tasksThatFit(budgetLimit, countOf(snapshot.projectTokenUsage, id), tokensPerTask);
      return [id, Math.min(capacity, fit)];
    }),
  );
  const ready = snapshot.tasks.filter(({ status }) => status === "ready");
  const fitting = ready
    .toSorted((a, b) => a.priority - b.priority)
    .filter(({ projectId }) => {
      const room = roomByProject.get(projectId) ?? 0;
      roomByProject.set(projectId, room - 1);
      return room > 0;
    });
  const fits = new Set(fitting);
  return ready.filter((task) => fits.has(task));
}

function specOf({ id, projectId, priority }: Omit<SnapshotTask, "status">): TaskSpec {
  return {
    id: id as TaskId,
    kind: anyKind,
    project: projectId as ProjectId,
    user: onlyUser,
    weight: 1,
    priority,
    payload: "",
    maxAttempts: limits.maxAttemptsDefault,
    timeoutMs: limits.attemptTimeoutMs,
  };
}

function sessionOf(agent: AgentId): { readonly agent: AgentId; readonly incarnation: Incarnation } {
  return { agent, incarnation: onlyIncarnation };
}

function record(state: SwarmState, event: Event, at: Instant): void {
  state.at = at;
  state.idx = 1 as BatchIndex;
  apply(state, event, { at, idx: state.idx });
}

function checkOurs({ projects, tasks, agents }: BudgetSnapshot): void {
  for (const [at, { creditWeight }] of projects.entries()) {
    if (creditWeight === 0) {
      refuse(
        `projects[${at}].creditWeight`,
        "must be above 0: a share of nothing would wait for ever; pause it instead",
      );
    }
  }
  if (projects.length > limits.projectsMax) refuse("projects", `a swarm has at most ${limits.projectsMax}`);
  checkIds(projects, "projects");
  checkIds(tasks, "tasks");
  checkIds(agents, "agents");
}

function checkIds(things: readonly { readonly id: string }[], name: string): void {
  const seen = new Set<string>();
  for (const [at, { id }] of things.entries()) {
    if (id.startsWith(" ")) refuse(`${name}[${at}].id`, "must not begin with a space");
    if (seen.has(id)) refuse(`${name}[${at}].id`, `'${id}' stands twice`);
    seen.add(id);
  }
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
