// What an attempt is expected to take: tokens, which budgets hold back, and cost, which fairness charges
// (design section 7, "Cost"). Both are corrected at the attempt's end by what was reported.

import type { TaskSpec } from "../core/event.ts";
import type { KindRow, SwarmState } from "../core/state.ts";
import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import { thousandthsPerWeight } from "./weight.ts";

/** The submitter's word, else what attempts of the kind took so far, else the policy's default.
 *  @param runsAs the kind it would run as, where that is not its own · @returns a whole number ≥ 0 */
export function tokensEstimate(state: SwarmState, spec: TaskSpec, runsAs: Kind = spec.kind): number {
  if (spec.tokens !== undefined) return spec.tokens;
  const learnt = state.kindByName.get(runsAs)?.tokensMean;
  return learnt === undefined ? state.policy.tokensDefault : Math.round(learnt);
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
