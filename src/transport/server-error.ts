// Logs errors that the server reports outside a request.

import type { Logger } from "pino";
import { isRefusedLogin, violationIn } from "./nats.ts";

/** Logs an error of the server. A violation needs its subject and its consequence, a refused login its reason: neither
 *  needs a stack. */
export function logServerError(log: Pick<Logger, "warn">, error: Error): void {
  if (isRefusedLogin(error)) return log.warn(`the server refuses the credentials: ${error.message}`);
  const violation = violationIn(error);
  if (violation === undefined) return log.warn({ err: error }, "the server reported an error");
  const { operation, subject } = violation;
  const consequence =
    operation === "publish" ? "the message was not delivered" : "messages of the subject do not arrive";
  log.warn(violation, `the server does not permit this user to ${operation} to ${subject}; ${consequence}`);
}
