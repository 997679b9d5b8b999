// The claim of a queue's member at its level: a class and, within the class, a key (docs/scheduling.md, "Whose turn").
// The lower claim goes first. Claims only get worse while a round lasts.

import type { Account } from "../state/account.ts";
import type { Member } from "../state/clock-queue.ts";
import type { TurnBasis } from "../state/receipt.ts";
import type { TaskRow } from "../state/state.ts";

export interface Claim {
  /** 0 starvation limit, 1 guarantee, 2 rule. */
  readonly class: 0 | 1 | 2;
  /** By the class, or by the level's rule; then by the next keys. */
  readonly first: number;
  readonly second: number;
  readonly third: number;
}

const bases: readonly TurnBasis[] = ["starvation-limit", "guarantee", "rule"];

export function basisOf(claim: Claim): TurnBasis {
  return bases[claim.class] as TurnBasis;
}

/** Below 0 when `a` goes first; 0 only for the same account, the same task, or two members without tasks. */
export function compareClaims(a: Claim, b: Claim): number {
  return a.class - b.class || a.first - b.first || a.second - b.second || a.third - b.third;
}

/** The longest wait first. */
export function starvationLimitClaim({ sinceOrder }: Member): Claim {
  return { class: 0, first: sinceOrder, second: 0, third: 0 };
}

/** @param first 0 where the guarantee alone decides */
export function guaranteeClaim({ servedOrder, arrivedOrder }: Account, first = 0): Claim {
  return { class: 1, first, second: servedOrder, third: arrivedOrder };
}

/** Among equals the account served longest ago, then the first arrived. */
export function ruleClaim({ servedOrder, arrivedOrder }: Account, first: number): Claim {
  return { class: 2, first, second: servedOrder, third: arrivedOrder };
}

/** The longest wait first. @param queuedOrder when the task was queued */
export function starvationLimitTaskClaim(queuedOrder: number): Claim {
  return { class: 0, first: queuedOrder, second: 0, third: 0 };
}

/** The claim of a single task. */
export function claimOfTask({ spec, sequence }: Pick<TaskRow, "spec" | "sequence">): Claim {
  return taskClaim(spec.priority, sequence);
}

/** By priority, then in the order of submission. */
export function taskClaim(priority: number, sequence: number): Claim {
  return { class: 2, first: priority, second: sequence, third: 0 };
}
