// Turns a refusal from the wire into the error that a caller catches.

import {
  AuditTrimmedError,
  BackpressureError,
  BudgetExceededError,
  InvalidMessageError,
  InvalidValueError,
  JournalDamagedError,
  NoLeaderError,
  OutcomeUnknownError,
  WaggleError,
  type WaggleErrorCode,
} from "../errors.ts";
import { limits } from "../limits.ts";
import type { CodedError } from "../protocol/schemas.ts";

/** The error class of the code. Codes without a class become a plain `WaggleError`, including codes of newer
 *  coordinators. */
export function errorFrom(refusal: CodedError): WaggleError {
  const options = refusal.field === undefined ? {} : { field: refusal.field };
  switch (refusal.code) {
    case "WAGGLE_AUDIT_TRIMMED":
      return new AuditTrimmedError(refusal.message, { firstIdx: refusal.firstIdx ?? 1 });
    case "WAGGLE_BACKPRESSURE":
      return new BackpressureError(refusal.message, refusal.retryAfterMs ?? limits.retryAfterMs);
    case "WAGGLE_BUDGET_EXCEEDED":
      return refusal.budget === undefined
        ? new WaggleError(refusal.code, refusal.message, options)
        : new BudgetExceededError(refusal.message, {
            retryAfterMs: refusal.retryAfterMs ?? limits.budgetRetryMs,
            budget: refusal.budget,
          });
    case "WAGGLE_INVALID_MESSAGE":
      return new InvalidMessageError(refusal.message, options);
    case "WAGGLE_INVALID_VALUE":
      return new InvalidValueError(refusal.message, options);
    case "WAGGLE_JOURNAL_DAMAGED":
      return new JournalDamagedError(refusal.message, options);
    case "WAGGLE_NO_LEADER":
      return new NoLeaderError(refusal.message, options);
    case "WAGGLE_OUTCOME_UNKNOWN":
      return new OutcomeUnknownError(refusal.message, options);
    default:
      return new WaggleError(refusal.code as WaggleErrorCode, refusal.message, options);
  }
}
