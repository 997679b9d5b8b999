// What the journal in a stream needs of a connection to NATS, and no more: a port, so that the rules of
// answers, pulls and settings stand in files that know no client library. nats.ts carries it out.

import type { RequestOutcome } from "../../transport/transport.ts";

export interface StreamWire {
  /** Largest message the server takes, headers included; of the server connected last. */
  readonly maxPayloadBytes: number;
  readonly status: "connected" | "reconnecting" | "closed";
  /** Sent before it returns, so that requests leave in the order of the calls. Never throws: no answer is a
   *  value, and comes at once when the connection breaks. */
  ask(subject: string, data: Uint8Array, options: AskOptions): Promise<RequestOutcome>;
  publish(subject: string, data: Uint8Array, reply: string): void;
  /** A fresh inbox. `handler` must not throw. */
  listen(handler: (message: StreamMessage) => void): Listening;
  /** Calls `listener` at each change of `status`. Returns a function that stops it. */
  onStatus(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface AskOptions {
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Listening {
  readonly inbox: string;
  stop(): void;
}

/** What arrives in an inbox: a record, under the subject it was stored with, or a word from the server. */
export interface StreamMessage {
  readonly subject: string;
  readonly reply: string;
  /** Good until the handler returns. */
  readonly data: Uint8Array;
  /** Read from the headers when asked for. */
  readonly status: StreamStatus | undefined;
}

export interface StreamStatus {
  readonly code: number;
  readonly description: string;
  /** On heartbeats: how much the server has delivered to this consumer. */
  readonly lastConsumerSeq: number | undefined;
  /** On heartbeats: up to which record of the stream it has, delivered or passed over as not there. */
  readonly lastStreamSeq: number | undefined;
}
