// Why a task went where it went: small enough to stand in every assignment.
// The full table of candidates comes by replaying the journal to that batch.

import type { AgentId, ResourceName } from "../ids.ts";

/** Why an agent was not a candidate (eligibility.ts). A closed set, shared by receipts, status and docs. */
export const ineligibleReasons = [
  "offline",
  "draining",
  "wrong-kind",
  "wrong-role",
  "wrong-type",
  "full",
  "rate-limited",
  "unresponsive",
  "suspended",
  "failed-this-task",
] as const;
export type IneligibleReason = (typeof ineligibleReasons)[number];

/**
 * Why a task is given to no agent at all, whoever is free (scheduling/gates.ts). A closed set, shared by
 * explanations and docs.
 * `swarm-paused`, `project-paused`: an operator's word · `swarm-limit`: as many attempts are open as `topN` allows ·
 * `project-concurrency`: as many of the project's as it may have · `project-budget`, `global-budget`: its estimate
 * does not fit what is left.
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

/** What decided between the winner and the next: the score, or the first tie-break that differed. */
export type DecidedBy = "only" | "score" | "in-flight" | "longest-idle" | "joined" | "id" | "probe";

/** By which class a project or a user had its turn (docs/scheduling.md, "Whose turn"). */
export type TurnBasis = "starvation-limit" | "guarantee" | "rule";

/** How it came to be this task's turn. */
export interface TurnBases {
  readonly project: TurnBasis;
  readonly user: TurnBasis;
}

/** The terms of one candidate's score; `score = successRate · speed / (1 + load + λ · backlog)`. */
export interface CandidateTerms {
  readonly agent: AgentId;
  /** [0, 1], rounded to 4 decimals, as are the others. */
  readonly score: number;
  /** Learnt for the kind, [0, 1]. */
  readonly successRate: number;
  /** In flight / max concurrent, ≥ 0, before this assignment. */
  readonly load: number;
  /** L(agent) over the agents' own backlogs, [0, 1]; absent when 0. */
  readonly backlog?: number;
  /** The factor for speed, (0, 1]; absent when 1. */
  readonly speed?: number;
}

/** Budgets that an assignment did not fit and that kept it from nothing: by their mode, it is only said (`alert`), or
 *  the task was made cheaper where something cheaper is named (`downgrade`). */
export interface ExceededBudgets {
  readonly project?: "alert" | "downgrade";
  readonly global?: "alert" | "downgrade";
}

export interface Receipt {
  /** Absent when both project and user went by the rule. */
  readonly turn?: TurnBases;
  /** How many agents passed every filter. */
  readonly feasible: number;
  /** The winner, then the next two. */
  readonly candidates: readonly CandidateTerms[];
  /** How many agents failed which filter (the first that each failed); zero counts are absent. */
  readonly ineligible: Readonly<Partial<Record<IneligibleReason, number>>>;
  readonly decidedBy: DecidedBy;
  /** The queue the task waited in, and how many waited there, itself included. */
  readonly queue: string;
  readonly waiting: number;
  /** Journal time since it was last queued. */
  readonly waitedMs: number;
  /** Absent when it fits its budgets, or none is set. */
  readonly budget?: ExceededBudgets;
}

/** Why a slot lease got its slots when it did. `free`: at once, nobody was there to overtake · `load`: the
 *  highest L at the resource whose slot was free · `starvationLimit`: it had waited so long that it came next. */
export interface SlotReceipt {
  readonly by: "free" | "load" | "starvation-limit";
  /** Waiters of `resource` at that moment, itself included; 0 when it did not wait. */
  readonly waiting: number;
  readonly waitedMs: number;
  /** Where it was decided, and that resource's clock; absent when it did not wait. */
  readonly resource?: ResourceName;
  readonly tick?: number;
  /** L of the agent, [0, 1], rounded to 4 decimals; with `load` only. */
  readonly load?: number;
  /** α that L was made with, [0, 1], rounded to 4 decimals; with `load` only. */
  readonly alpha?: number;
  /** The highest of the other agents; absent when nobody else could have had it. */
  readonly runnerUp?: { readonly agent: AgentId; readonly load: number };
}
