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

/** @param jitter [0, 1) */
export function decideRetry(
  row: TaskRow,
  failureClass: FailureClass,
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

/** `base · 2^(failures − 1)`, at most the maximum; the jitter spreads the upper half. */
function backOff(from: Instant, failures: number, jitter: number): Instant {
  const fullMs = Math.min(limits.retryBackoffMs * 2 ** (failures - 1), limits.retryBackoffMsMax);
  return (from + Math.round(fullMs * (0.5 + jitter / 2))) as Instant;
}
