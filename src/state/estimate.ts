// What an attempt is expected to take: tokens, which budgets hold back, and cost, which fairness charges
// (docs/scheduling.md, "The clocks"). Both are corrected at the attempt's end by what was reported.

import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TaskSpec } from "./event.ts";
import type { KindRow, SwarmState } from "./state.ts";
import { thousandthsPerWeight } from "./weight.ts";

/** The submitter's word, as far as the kind's was kept; else what attempts of the kind took so far, else the policy's
 *  default. @param runsAs the kind it would run as, where that is not its own · @returns a whole number ≥ 0 */
export function tokensEstimate(state: SwarmState, spec: TaskSpec, runsAs: Kind = spec.kind): number {
  const row = state.kindByName.get(runsAs);
  if (spec.tokens !== undefined) return corrected(state, spec, spec.tokens, row);
  const learnt = row?.tokensMean;
  return learnt === undefined ? state.policy.tokensDefault : Math.round(learnt);
}

/** Where an estimate comes from: its submitter (`raised` where the kind used more than its estimates), the attempts
 *  of its kind so far, or the policy's `tokensDefault`. */
export type EstimateSource = "said" | "raised" | "learnt" | "default";

export function estimateSource(state: SwarmState, spec: TaskSpec): EstimateSource {
  if (spec.tokens !== undefined) return tokensEstimate(state, spec) === spec.tokens ? "said" : "raised";
  return state.kindByName.get(spec.kind)?.tokensMean === undefined ? "default" : "learnt";
}

/** How many times their estimates the attempts of a kind used, of those with one: a quotient of means, so that many
 *  small estimates that were far off do not weigh on a large one. From 1 to `limits.estimateFactorMax`. */
export function estimateFactor({ estimateMeans }: Pick<KindRow, "estimateMeans">): number {
  if (estimateMeans === undefined) return 1;
  const { used, estimated } = estimateMeans;
  return Math.min(limits.estimateFactorMax, Math.max(1, used / estimated));
}

/** Takes what an attempt used beside its submitter's estimate into its kind's. An estimate of 0 counts as 1. */
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

/** Takes an attempt's reported tokens into its kind's mean. */
export function learnTokens(row: KindRow, tokens: number): void {
  const share = limits.tokensLearningShare;
  row.tokensMean = row.tokensMean === undefined ? tokens : row.tokensMean + share * (tokens - row.tokensMean);
}

/** What a grant charges to its project's and user's clocks: the weight in whole thousandths. */
export function costEstimate(spec: Pick<TaskSpec, "weight">): number {
  return Math.round(spec.weight * thousandthsPerWeight);
}

/** An estimate times its kind's factor; of what is added no more than leaves it fit an empty budget, for what never
 *  ran would never teach otherwise. */
function corrected(state: SwarmState, spec: TaskSpec, said: number, row: KindRow | undefined): number {
  const factor = row === undefined ? 1 : estimateFactor(row);
  if (factor === 1) return said;
  const own = state.projectById.get(spec.project)?.settings?.budget;
  let most: number = limits.tokensPerAttemptMax;
  for (const budget of [own, state.policy.budget])
    if (budget !== undefined) most = Math.min(most, budget.tokens);
  return Math.max(said, Math.min(most, Math.ceil(Math.max(1, said) * factor)));
}

/** How an attempt that was charged for ended. */
export interface SpentAttempt {
  /** What its grant charged, thousandths. */
  readonly charged: number;
  /** Infrastructure refused it, or its agent was lost: it costs nothing. */
  readonly isReturned: boolean;
  /** As the agent reported, if it did. */
  readonly tokens: number | undefined;
}

/**
 * What an attempt cost more (or, below 0, less) than was charged. The submitter's estimate of tokens says what
 * the weight was meant for: who used twice as many is charged twice the weight. Without an estimate or a report
 * the weight stands.
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
