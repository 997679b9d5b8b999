// Admission to the A2A server: holders of the token, or without a token only programs of this machine. A page of a
// browser must not reach the server, neither by a form of another site nor by DNS rebinding.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface GuardOptions {
  /** Requests must bring `Authorization: Bearer <token>`. Undefined: requests to a loopback name only. */
  readonly token: string | undefined;
}

export interface HttpRefusal {
  readonly status: 401 | 403 | 415;
  readonly text: string;
}

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i;

/** @returns why a request is refused */
export function admitted({ headers }: IncomingMessage, { token }: GuardOptions): HttpRefusal | undefined {
  if (token === undefined && !LOOPBACK.test(headers.host ?? ""))
    return { status: 403, text: "WAGGLE_FORBIDDEN: without a token only requests to 127.0.0.1 are served" };
  if (token !== undefined && !isEqual(headers.authorization ?? "", `Bearer ${token}`))
    return { status: 401, text: "WAGGLE_FORBIDDEN: the header Authorization: Bearer TOKEN is required" };
  if (
    headers["content-type"] !== undefined &&
    !/^application\/(?:[\w.]+\+)?json\b/i.test(headers["content-type"])
  )
    return { status: 415, text: "WAGGLE_INVALID_MESSAGE: the content type must be application/json" };
  if (headers["content-type"] === undefined && headers["content-length"] !== undefined)
    return { status: 415, text: "WAGGLE_INVALID_MESSAGE: the content type must be application/json" };
  return undefined;
}

function isEqual(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
