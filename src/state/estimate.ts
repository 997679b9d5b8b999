// The expected use of an attempt: tokens, which budgets reserve, and cost, which fairness charges (docs/scheduling.md,
// "The clocks"). Both are corrected at the attempt's end by the agent's report.

import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TaskSpec } from "./event.ts";
import type { KindRow, SwarmState } from "./state.ts";
import { thousandthsPerWeight } from "./weight.ts";

/**
 * Expected tokens: the submitter's estimate times the kind's factor; else the mean of the kind's attempts so far; else
 * the policy's default.
 * @param runsAs the kind that the task would run as, if not its own
 * @returns a whole number ≥ 0
 */
export function tokensEstimate(state: SwarmState, spec: TaskSpec, runsAs: Kind = spec.kind): number {
  const row = state.kindByName.get(runsAs);
  if (spec.tokens !== undefined) return corrected(state, spec, spec.tokens, row);
  const learnt = row?.tokensMean;
  return learnt === undefined ? state.policy.tokensDefault : Math.round(learnt);
}

/**
 * Where an estimate comes from: its submitter (`raised` where the kind used more than its estimates), the attempts of
 * its kind so far, or the policy's `tokensDefault`.
 */
export type EstimateSource = "said" | "raised" | "learnt" | "default";

export function estimateSource(state: SwarmState, spec: TaskSpec): EstimateSource {
  if (spec.tokens !== undefined) return tokensEstimate(state, spec) === spec.tokens ? "said" : "raised";
  return state.kindByName.get(spec.kind)?.tokensMean === undefined ? "default" : "learnt";
}

/**
 * How many times their estimates the attempts of a kind used, among attempts with an estimate. A quotient of means, so
 * that many small bad estimates do not weigh on a large estimate. From 1 to `limits.estimateFactorMax`.
 */
export function estimateFactor({ estimateMeans }: Pick<KindRow, "estimateMeans">): number {
  if (estimateMeans === undefined) return 1;
  const { used, estimated } = estimateMeans;
  return Math.min(limits.estimateFactorMax, Math.max(1, used / estimated));
}

/** Adds an attempt's use and its submitter's estimate to the kind's means. An estimate of 0 counts as 1. */
export function learnEstimate(row: KindRow, estimate: number, used: number): void {
  const estimated = Math.max(1, estimate);
  const { estimateMeans: means } = row;
  if (means === undefined) {
    row.estimateMeans = { estimated, used };
    return;
  }
  const share = limits.tokensLearningShare;
  means.estimated += share * (estimated - means.estimated);
  means.used += share * (used - means.used);
}

/** Adds an attempt's reported tokens to the kind's mean. */
export function learnTokens(row: KindRow, tokens: number): void {
  const share = limits.tokensLearningShare;
  row.tokensMean = row.tokensMean === undefined ? tokens : row.tokensMean + share * (tokens - row.tokensMean);
}

/** The charge of a grant to its project's and user's clocks: the weight in whole thousandths. */
export function costEstimate(spec: Pick<TaskSpec, "weight">): number {
  return Math.round(spec.weight * thousandthsPerWeight);
}

/**
 * An estimate times its kind's factor. The increase stops at the size of an empty budget: a task that never fits would
 * never run, and the factor would never be corrected.
 */
function corrected(state: SwarmState, spec: TaskSpec, said: number, row: KindRow | undefined): number {
  const factor = row === undefined ? 1 : estimateFactor(row);
  if (factor === 1) return said;
  const own = state.projectById.get(spec.project)?.settings?.budget;
  let most: number = limits.tokensPerAttemptMax;
  for (const budget of [own, state.policy.budget])
    if (budget !== undefined) most = Math.min(most, budget.tokens);
  return Math.max(said, Math.min(most, Math.ceil(Math.max(1, said) * factor)));
}

/** How a charged attempt ended. */
export interface SpentAttempt {
  /** The grant's charge, thousandths. */
  readonly charged: number;
  /** Infrastructure refused the attempt, or its agent was lost: the attempt is free. */
  readonly isReturned: boolean;
  /** As the agent reported; absent without a report. */
  readonly tokens: number | undefined;
}

/**
 * The correction of an attempt's charge; below 0 when less is due. The weight is meant for the submitter's estimate of
 * tokens: an attempt that used twice the estimate costs twice the weight. Without an estimate or a report the weight
 * stands.
 *
 * @returns whole thousandths
 */
export function costCorrection(spec: Pick<TaskSpec, "weight" | "tokens">, spent: SpentAttempt): number {
  if (spent.isReturned) return -spent.charged;
  const { tokens } = spent;
  if (tokens === undefined || spec.tokens === undefined || spec.tokens === 0)
    return costEstimate(spec) - spent.charged;
  const ratio = Math.min(tokens / spec.tokens, limits.costRatioMax);
  return Math.round(costEstimate(spec) * ratio) - spent.charged;
}
