// The error behind an error. A client of HTTP or a model framework wraps the error of a call in an error of its own,
// with the call's error as `cause`. A handler then throws the wrapping error.

import { OnHoldError } from "../errors.ts";
import { InfrastructureError } from "./handler.ts";
import { isA } from "./words.ts";

/** Frameworks wrap an error two or three times. */
const DEPTH_MAX = 8;

/** The InfrastructureError that was thrown, or that is behind the thrown error. For an OnHoldError the result names the
 *  resource as scope, and no time, because the leader knows the hold. Never throws. */
export function infrastructureErrorIn(thrown: unknown): InfrastructureError | undefined {
  let at = thrown;
  for (let depth = 0; depth < DEPTH_MAX && at !== undefined; depth += 1) {
    if (isA(at, InfrastructureError)) return at;
    if (isA(at, OnHoldError)) return refusalBy(at);
    at = errorBehind(at);
  }
  return undefined;
}

function refusalBy(cause: OnHoldError): InfrastructureError {
  return new InfrastructureError(cause.message, { scope: { resource: cause.resource }, cause });
}

/** `lastError` is the one of the AI SDK's retries. Undefined when there is none, or it cannot be read. */
export function errorBehind(error: unknown): unknown {
  if (typeof error !== "object" || error === null) return undefined;
  try {
    return Reflect.get(error, "cause") ?? Reflect.get(error, "lastError") ?? undefined;
  } catch {
    return undefined; // a Proxy or a getter threw
  }
}
