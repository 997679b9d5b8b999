// The reasons of an assignment: small enough to stand in every assignment. The full table of candidates comes from
// replaying the journal to that batch.

import type { AgentId, ResourceName } from "../ids.ts";

/** Why an agent was not a candidate (eligibility.ts). A closed set, shared by receipts, status and docs. */
export const ineligibleReasons = [
  "offline",
  "draining",
  "wrong-kind",
  "label",
  "not-granted",
  "wrong-role",
  "wrong-type",
  "full",
  "rate-limited",
  "unresponsive",
  "on-hold",
  "suspended",
  "failed-this-task",
] as const;
export type IneligibleReason = (typeof ineligibleReasons)[number];

/**
 * Why a task is assigned to no agent at all (scheduling/gates.ts). A closed set, shared by explanations and docs.
 *
 * - `swarm-paused`, `project-paused`: an operator paused the swarm or the project.
 * - `swarm-limit`: as many attempts are open as `topN` allows.
 * - `project-concurrency`: the project has as many open attempts as it may have.
 * - `project-budget`, `global-budget`: the task's estimate does not fit the tokens left.
 */
export const waitingReasons = [
  "swarm-paused",
  "swarm-limit",
  "project-paused",
  "project-concurrency",
  "project-budget",
  "global-budget",
] as const;
export type WaitingReason = (typeof waitingReasons)[number];

/**
 * The difference between the winner and the runner-up: the score, or the first tie-break that differed. `affinity`: the
 * winner ran the last task with the same affinity.
 */
export type DecidedBy =
  | "only"
  | "affinity"
  | "score"
  | "in-flight"
  | "longest-idle"
  | "joined"
  | "id"
  | "probe";

/** The class by which a project or a user had its turn (docs/scheduling.md, "Whose turn"). */
export type TurnBasis = "starvation-limit" | "guarantee" | "rule";

/** How the task's turn came. */
export interface TurnBases {
  readonly project: TurnBasis;
  readonly user: TurnBasis;
}

/** The terms of one candidate's score; `score = successRate · speed / (1 + load + λ · backlog)`. */
export interface CandidateTerms {
  readonly agent: AgentId;
  /** [0, 1], rounded to 4 decimals, like the other terms. */
  readonly score: number;
  /** Learned for the kind, [0, 1]. */
  readonly successRate: number;
  /** In flight / max concurrent, ≥ 0, before this assignment. */
  readonly load: number;
  /** L(agent) over the agents' own backlogs, [0, 1]; absent when 0. */
  readonly backlog?: number;
  /** The factor for speed, (0, 1]; absent when 1. */
  readonly speed?: number;
}

/**
 * Budgets that an assignment exceeded without being held up, by mode. `alert` only records the excess. `downgrade` used
 * a cheaper kind or agent type where one is named.
 */
export interface ExceededBudgets {
  readonly project?: "alert" | "downgrade";
  readonly global?: "alert" | "downgrade";
}

export interface Receipt {
  /** Absent when both project and user went by the rule. */
  readonly turn?: TurnBases;
  /** How many agents passed every filter. */
  readonly feasible: number;
  /** The winner, then up to two runners-up. */
  readonly candidates: readonly CandidateTerms[];
  /** Number of agents by the first filter that each failed; zero counts are absent. */
  readonly ineligible: Readonly<Partial<Record<IneligibleReason, number>>>;
  readonly decidedBy: DecidedBy;
  /** The task's queue, and the number of tasks in the queue, this task included. */
  readonly queue: string;
  readonly waiting: number;
  /** Journal time since the task was last queued. */
  readonly waitedMs: number;
  /** Absent when the task fits its budgets, or none is set. */
  readonly budget?: ExceededBudgets;
}

/**
 * Why a slot lease got its slots. `free`: at once, without overtaking · `load`: the highest L at the resource with the
 * free slot · `starvation-limit`: the request had waited past the starvation limit.
 */
export interface SlotReceipt {
  readonly by: "free" | "load" | "starvation-limit";
  /** Waiters of `resource` at the moment of the grant, this one included; 0 without a wait. */
  readonly waiting: number;
  readonly waitedMs: number;
  /** The deciding resource and its clock; absent without a wait. */
  readonly resource?: ResourceName;
  readonly tick?: number;
  /** L of the agent, [0, 1], rounded to 4 decimals; with `load` only. */
  readonly load?: number;
  /** The α in L, [0, 1], rounded to 4 decimals; with `load` only. */
  readonly alpha?: number;
  /** The next highest L; absent without a competing queue. */
  readonly runnerUp?: { readonly agent: AgentId; readonly as?: string; readonly load: number };
}
