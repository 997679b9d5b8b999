// The error behind an error. A client of HTTP or a model framework wraps the error of a call in an error of its own,
// with the call's error as `cause`. A handler then throws the wrapping error.

import { InfrastructureError } from "./handler.ts";
import { isA } from "./words.ts";

/** Frameworks wrap an error two or three times. */
const DEPTH_MAX = 8;

/** The InfrastructureError that was thrown, or that is behind the thrown error. Never throws. */
export function infrastructureErrorIn(thrown: unknown): InfrastructureError | undefined {
  let at = thrown;
  for (let depth = 0; depth < DEPTH_MAX && at !== undefined; depth += 1) {
    if (isA(at, InfrastructureError)) return at;
    at = errorBehind(at);
  }
  return undefined;
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
