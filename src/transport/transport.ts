// The port of the wire: subjects, requests, subscriptions. Knows bytes and subjects, not the content of
// messages. Implementations: memory.ts (one process, for tests and simulation), nats.ts (any NATS server or the
// development broker). Both pass one conformance suite: test/transport/conformance.ts.

import type { WaggleError } from "../errors.ts";
import type { Listeners } from "../listeners.ts";

export interface Message {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Subject for an answer, if wanted. Must be checked against the inbox prefix before publishing to it. */
  readonly reply: string | undefined;
}

export interface SubscribeOptions {
  /** Name of a queue group: each message goes to one member of the group. */
  readonly queue?: string;
  /** Called when the server forbids the subscription, so that no message comes. Default: the transport logs the
   *  error. */
  readonly onForbidden?: (violation: Violation) => void;
}

export interface Subscription {
  /** Stops delivery at once. Idempotent. */
  unsubscribe(): void;
}

export type ConnectionStatus = "connected" | "reconnecting" | "closed";

/** A request without an answer. `no-responders`: the subject has no subscriber. `timeout`: a receiver may still
 *  act. `disconnected`: the connection broke while the request was in flight. */
export type RequestFailure = "no-responders" | "timeout" | "disconnected";

export type RequestOutcome =
  | { readonly kind: "answered"; readonly data: Uint8Array }
  | { readonly kind: RequestFailure };

/** An operation that the server forbids this user. */
export interface Violation {
  readonly operation: "publish" | "subscribe";
  readonly subject: string;
}

/** A request that the server forbids. A forbidden publish was not sent. Of a forbidden inbox, `isUnsent` says whether
 *  the request was sent: if so, the server withdrew the permission meanwhile, and the outcome is unknown. */
export type Forbidden = { readonly kind: "forbidden"; readonly isUnsent?: boolean } & Violation;

export interface RequestOptions {
  /** May fire up to `limits.requestTimeoutGrainMs` late, never early. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Ends the request as an abort of `signal` does. Cheaper than a signal for many requests that end together. */
  readonly ending?: Pick<Listeners, "add">;
}

export interface Transport {
  /** Prefix of every reply subject of this connection. Answers go to no other prefix. */
  readonly inboxPrefix: string;
  /** Maximum size of a message in bytes, as the server announced. */
  readonly maxPayloadBytes: number;
  /** `host:port` of the servers that the program named, to tell connections to different servers apart. Undefined:
   *  unknown. */
  readonly servers?: readonly string[] | undefined;

  /** Queued and sent in order; kept over a short reconnect. Silently dropped after close.
   *  @throws InvalidMessageError when larger than `maxPayloadBytes` */
  publish(subject: string, data: Uint8Array, reply?: string): void;

  /** Failures of the connection are results, not errors. Not queued: while reconnecting, a request ends as
   *  `disconnected` at once. An aborted `signal` ends a request as `timeout`, because a receiver may still act.
   *  @throws InvalidMessageError when larger than `maxPayloadBytes` (a rejection) */
  request(subject: string, data: Uint8Array, options: RequestOptions): Promise<RequestOutcome | Forbidden>;

  /** Calls `handler` for each message, in order of arrival. Restored after a reconnect. `*` matches one token,
   *  `>` the rest. `handler` must not throw. */
  subscribe(subject: string, handler: (message: Message) => void, options?: SubscribeOptions): Subscription;

  /** The error with which the transport closed by itself: the server refuses credentials that were accepted before.
   *  Undefined while the transport is open, and after `close`. */
  readonly closedBy?: WaggleError | undefined;

  /** Calls `listener` at each change, not for the present status. Returns a function that removes the listener. */
  onStatus(listener: (status: ConnectionStatus) => void): () => void;
  status(): ConnectionStatus;

  /** Resolves when all earlier publishes and subscriptions have reached the server. @throws UnreachableError */
  flush(): Promise<void>;

  /** Sends the queued messages, then closes. Idempotent. */
  close(): Promise<void>;
}

/** True if `subject` matches `pattern` with NATS wildcards (`*` one token, `>` one or more at the end). */
export function subjectMatches(pattern: string, subject: string): boolean {
  const wanted = pattern.split(".");
  const given = subject.split(".");
  for (const [at, token] of wanted.entries()) {
    if (token === ">") return given.length > at;
    if (given[at] === undefined) return false;
    if (token !== "*" && token !== given[at]) return false;
  }
  return wanted.length === given.length;
}
