// Answers over HTTP: JSON, refusals with their status, and the headers that every answer has.

import type { ServerResponse } from "node:http";
import { defined } from "../defined.ts";
import { BackpressureError, BudgetExceededError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { ApiError } from "./wire.ts";

/** No script, style or picture from elsewhere, and none inline; no frame may hold the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every answer. */
export const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** A refusal of the dashboard itself, with its HTTP status. */
export class HttpRefusal extends WaggleError {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly count: number | undefined;

  constructor(
    status: number,
    code: WaggleError["code"],
    message: string,
    more: {
      readonly field?: string;
      readonly retryAfterMs?: number;
      readonly count?: number;
    } = {},
  ) {
    super(code, message, defined({ field: more.field }));
    this.status = status;
    this.retryAfterMs = more.retryAfterMs;
    this.count = more.count;
  }
}

export function sendJson(response: ServerResponse, answer: unknown, status = 200): void {
  const bytes = Buffer.from(JSON.stringify(answer));
  response.writeHead(status, {
    ...safeHeaders,
    "content-type": "application/json; charset=utf-8",
    "content-length": bytes.length,
  });
  response.end(bytes);
}

export function sendText(response: ServerResponse, text: string, status: number): void {
  response.writeHead(status, { ...safeHeaders, "content-type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
}

/** An error without a code is a bug: the answer names no details. @returns the status that was sent */
export function sendError(response: ServerResponse, error: unknown): number {
  const answer = apiErrorOf(error);
  const status = statusOf(error);
  const { retryAfterMs } = answer.error;
  if (retryAfterMs !== undefined) response.setHeader("retry-after", String(Math.ceil(retryAfterMs / 1_000)));
  sendJson(response, answer, status);
  return status;
}

export function apiErrorOf(error: unknown): ApiError {
  if (!(error instanceof WaggleError))
    return {
      error: {
        code: "WAGGLE_INVARIANT",
        message: "The dashboard failed on this request; its log has the reason. Other requests go on",
      },
    };
  const { code, message, field } = error;
  const count = error instanceof HttpRefusal ? error.count : undefined;
  return { error: { code, message, ...defined({ field, retryAfterMs: retryAfterMsOf(error), count }) } };
}

function retryAfterMsOf(error: WaggleError): number | undefined {
  if (error instanceof BackpressureError || error instanceof BudgetExceededError) return error.retryAfterMs;
  if (error instanceof HttpRefusal) return error.retryAfterMs;
  return error.code === "WAGGLE_NO_LEADER" ? limits.dashboardRetryAfterMs : undefined;
}

const statusByCode: Partial<Record<WaggleError["code"], number>> = {
  WAGGLE_INVALID_MESSAGE: 400,
  WAGGLE_INVALID_VALUE: 400,
  WAGGLE_AMBIGUOUS_TASK: 400,
  WAGGLE_OVER_BUDGET: 400,
  WAGGLE_FORBIDDEN: 403,
  WAGGLE_UNKNOWN_TASK: 404,
  WAGGLE_UNKNOWN_AGENT: 404,
  WAGGLE_UNKNOWN_PROJECT: 404,
  WAGGLE_UNKNOWN_RESOURCE: 404,
  WAGGLE_CONFLICT: 409,
  WAGGLE_NO_STANDBY: 409,
  WAGGLE_GONE: 410,
  WAGGLE_AUDIT_TRIMMED: 410,
  WAGGLE_BACKPRESSURE: 429,
  WAGGLE_BUDGET_EXCEEDED: 429,
  WAGGLE_NO_CAPABLE_AGENT: 409,
  WAGGLE_NO_LEADER: 503,
  WAGGLE_UNREACHABLE: 503,
  WAGGLE_OUTCOME_UNKNOWN: 502,
};

function statusOf(error: unknown): number {
  if (error instanceof HttpRefusal) return error.status;
  return error instanceof WaggleError ? (statusByCode[error.code] ?? 500) : 500;
}
