// The port of the wire: subjects, requests, subscriptions. Knows bytes and subjects, nothing of messages.
// Implementations: memory.ts (one process, tests and simulation), nats.ts (any NATS server or the
// development broker). One conformance suite holds both: test/transport/conformance.ts.

export interface Message {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Where an answer goes, if one is wanted. Checked against the inbox prefix before anybody publishes to it. */
  readonly reply: string | undefined;
}

export interface SubscribeOptions {
  /** Members of one queue group share the messages: each goes to one of them. */
  readonly queue?: string;
  /** The server does not permit the subscription: no message comes. Default: the transport's log says so. */
  readonly onForbidden?: (violation: Violation) => void;
}

export interface Subscription {
  /** Stops delivery at once. Idempotent. */
  unsubscribe(): void;
}

export type ConnectionStatus = "connected" | "reconnecting" | "closed";

/** A request ended without an answer. `no-responders`: nobody subscribes. `timeout`: somebody may still act.
 *  `disconnected`: the connection went away with the request in flight. */
export type RequestFailure = "no-responders" | "timeout" | "disconnected";

export type RequestOutcome =
  | { readonly kind: "answered"; readonly data: Uint8Array }
  | { readonly kind: RequestFailure };

/** What the server does not permit this user. A request that may not be published was not sent; where the answer's
 *  inbox may not be subscribed to, it was, and whether it was done is unknown. */
export interface Violation {
  readonly operation: "publish" | "subscribe";
  readonly subject: string;
}

/** A request ended because the server does not permit it. */
export type Forbidden = { readonly kind: "forbidden" } & Violation;

export interface RequestOptions {
  /** May be late by `limits.requestTimeoutGrainMs`, never early. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface Transport {
  /** Prefix of every reply subject this connection makes, and the only one it answers to. */
  readonly inboxPrefix: string;
  /** Largest message in bytes, as the server announced it. */
  readonly maxPayloadBytes: number;

  /** Queued and sent in order; kept over a short reconnect. Silently dropped after close.
   *  @throws InvalidMessageError when larger than `maxPayloadBytes` */
  publish(subject: string, data: Uint8Array, reply?: string): void;

  /** Never throws for the wire's sake: every ending is a value. Not queued: while reconnecting it ends as
   *  `disconnected` at once. An aborted `signal` ends it as `timeout`, for somebody may still act.
   *  @throws InvalidMessageError when larger than `maxPayloadBytes` (a rejection) */
  request(subject: string, data: Uint8Array, options: RequestOptions): Promise<RequestOutcome | Forbidden>;

  /** Calls `handler` for each message, in order of arrival; restored after a reconnect. `*` matches one token,
   *  `>` the rest. `handler` must not throw. */
  subscribe(subject: string, handler: (message: Message) => void, options?: SubscribeOptions): Subscription;

  /** Calls `listener` at each change, not for the present status. Returns a function that stops it. */
  onStatus(listener: (status: ConnectionStatus) => void): () => void;
  status(): ConnectionStatus;

  /** Resolves when everything published and subscribed so far has reached the server. @throws UnreachableError */
  flush(): Promise<void>;

  /** Sends what is queued, then closes. Idempotent. */
  close(): Promise<void>;
}

/** Whether `subject` matches `pattern` with NATS wildcards (`*` one token, `>` one or more at the end). */
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
