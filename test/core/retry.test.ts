// The retry of a failed attempt, against the bounds of src/limits.ts.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideRetry } from "../../src/core/retry.ts";
import { InvariantError } from "../../src/errors.ts";
import { instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { FailureClass } from "../../src/state/event.ts";
import type { TaskRow } from "../../src/state/state.ts";
import { aTask } from "../support/turns.ts";

const at = instant(1_000_000);

function aRow({ failures = 0, infrastructureFailures = 0, maxAttempts = 3 } = {}): TaskRow {
  return { spec: aTask({ maxAttempts }), failures, infrastructureFailures } as TaskRow;
}

/** ms until the retry; throws when there is none. */
function waitMs(row: TaskRow, failureClass: Exclude<FailureClass, "refused">, jitter = 0): number {
  const decision = decideRetry(row, failureClass, at, jitter);
  if (decision.kind !== "retry" || decision.retryAt === undefined) throw new Error("is not put off");
  return decision.retryAt - at;
}

describe("a failed attempt", () => {
  it("is retried after a back-off that doubles up to its maximum", () => {
    const waits = [0, 1, 2, 3, 20].map((failures) =>
      waitMs(aRow({ failures, maxAttempts: 100 }), "failed", 0.999_999),
    );
    const base = limits.retryBackoffMs;
    expect(waits).toEqual([base, 2 * base, 4 * base, 8 * base, limits.retryBackoffMsMax]);
  });

  it("waits at least half of that, by the jitter", () => {
    expect(waitMs(aRow(), "failed", 0)).toBe(limits.retryBackoffMs / 2);
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.nat(30),
        (jitter, failures) => {
          const wait = waitMs(aRow({ failures, maxAttempts: 100 }), "timed-out", jitter);
          const fullMs = Math.min(limits.retryBackoffMs * 2 ** failures, limits.retryBackoffMsMax);
          expect(wait).toBeGreaterThanOrEqual(fullMs / 2);
          expect(wait).toBeLessThanOrEqual(fullMs);
          expect(Number.isInteger(wait)).toBe(true);
        },
      ),
    );
    for (const jitter of [-0.1, 1]) expect(() => waitMs(aRow(), "failed", jitter)).toThrow(InvariantError);
  });

  it.each(["failed", "timed-out", "stalled", "lost", "aborted"] as const)(
    "%s is dead at the last attempt",
    (failureClass) => {
      const decision = decideRetry(aRow({ failures: 2 }), failureClass, at, 0);
      expect(decision).toEqual({ kind: "dead-letter", reason: "attempts-exhausted" });
      expect(decideRetry(aRow({ failures: 1 }), failureClass, at, 0).kind).toBe("retry");
      expect(decideRetry(aRow({ maxAttempts: 1 }), failureClass, at, 0).kind).toBe("dead-letter");
    },
  );

  it("lost with the agent is retried at once", () => {
    expect(decideRetry(aRow(), "lost", at, 0.5)).toEqual({ kind: "retry", retryAt: undefined });
  });

  it("refused by infrastructure costs no attempt, up to its own bound", () => {
    const capped = limits.infrastructureFailuresMax;
    expect(waitMs(aRow({ failures: 0, maxAttempts: 1 }), "infrastructure")).toBe(limits.retryBackoffMs / 2);
    expect(waitMs(aRow({ infrastructureFailures: 2 }), "infrastructure")).toBe(2 * limits.retryBackoffMs);
    expect(decideRetry(aRow({ infrastructureFailures: capped }), "infrastructure", at, 0)).toEqual({
      kind: "dead-letter",
      reason: "infrastructure-exhausted",
    });
  });

  it("of invalid input is never retried", () => {
    expect(decideRetry(aRow({ maxAttempts: 100 }), "invalid", at, 0)).toEqual({ kind: "fail" });
  });
});
