// The next step of a task whose attempt ended without success. The caller supplies the jitter, so that the decision is
// a value and replay never draws again.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { DeadLetterReason, FailureClass } from "../state/event.ts";
import type { TaskRow } from "../state/state.ts";

export type RetryDecision =
  | { readonly kind: "retry"; readonly retryAt: Instant | undefined }
  | { readonly kind: "dead-letter"; readonly reason: DeadLetterReason }
  /** The task's own fault: no further attempt can do better. */
  | { readonly kind: "fail" };

/** Decides the next step of a task that no hold explains (`verdictOnRefusal`). @param jitter [0, 1) */
export function decideRetry(
  row: TaskRow,
  failureClass: Exclude<FailureClass, "refused">,
  failedAt: Instant,
  jitter: number,
): RetryDecision {
  assert(jitter >= 0 && jitter < 1, "jitter is a fraction");
  switch (failureClass) {
    case "invalid":
      return { kind: "fail" };
    case "infrastructure":
      if (row.infrastructureFailures >= limits.infrastructureFailuresMax) {
        return { kind: "dead-letter", reason: "infrastructure-exhausted" };
      }
      return { kind: "retry", retryAt: backOff(failedAt, row.infrastructureFailures + 1, jitter) };
    case "failed":
    case "aborted":
    case "timed-out":
    case "stalled":
    case "lost":
    case "revoked":
      if (row.failures + 1 >= row.spec.maxAttempts)
        return { kind: "dead-letter", reason: "attempts-exhausted" };
      return {
        kind: "retry",
        retryAt: isImmediate(failureClass) ? undefined : backOff(failedAt, row.failures + 1, jitter),
      };
  }
}

/** The end of the attempt says nothing about the task: its agent is lost, or an operator revoked the attempt. */
function isImmediate(failureClass: FailureClass): boolean {
  return failureClass === "lost" || failureClass === "revoked";
}

/**
 * A jitter with which `decideRetry` decides the given retry again: a journal holds the retry, and not the jitter.
 * @param retryAt as decided; undefined: any jitter will do
 * @returns [0, 1)
 */
export function jitterOf(
  row: Pick<TaskRow, "failures" | "infrastructureFailures">,
  failureClass: FailureClass,
  { failedAt, retryAt }: { readonly failedAt: Instant; readonly retryAt: Instant | undefined },
): number {
  if (retryAt === undefined) return 0;
  const before = failureClass === "infrastructure" ? row.infrastructureFailures : row.failures;
  const share = (retryAt - failedAt) / backOffMs(before + 1);
  return Math.min(Math.max(0, (share - 0.5) * 2), JITTER_MAX);
}

/** The largest number below 1. */
const JITTER_MAX = 1 - Number.EPSILON / 2;

/** The jitter spreads the upper half. */
function backOff(from: Instant, failures: number, jitter: number): Instant {
  return (from + Math.round(backOffMs(failures) * (0.5 + jitter / 2))) as Instant;
}

/** `base · 2^(failures − 1)`, at most the maximum. */
function backOffMs(failures: number): number {
  return Math.min(limits.retryBackoffMs * 2 ** (failures - 1), limits.retryBackoffMsMax);
}
