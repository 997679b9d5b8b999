// The port from the journal to a connection to NATS. The rules of answers, pulls and settings use only the port, not a
// client library. Implemented by nats.ts and by the simulator.

import type { Forbidden, RequestOutcome } from "../../transport/transport.ts";

export interface StreamWire {
  /** Largest message accepted by the current or last server, headers included. */
  readonly maxPayloadBytes: number;
  /** `one`: a single server has all streams, so the answer "stream not found" is final. `cluster`: servers that fail
   *  over may answer so for existing streams; a server without JetStream passes requests on. */
  readonly servers: "one" | "cluster" | "without-jetstream";
  /** Version of the connected server: `2.10.27`. Empty when the server does not say. */
  readonly serverVersion: string;
  readonly status: "connected" | "reconnecting" | "closed";
  /** Sends before returning, so that requests leave in the order of the calls. Never throws: a missing answer is a
   *  value, and a broken connection or a missing permission ends the wait at once. */
  ask(subject: string, data: Uint8Array, options: AskOptions): Promise<StreamOutcome>;
  publish(subject: string, data: Uint8Array, reply: string): void;
  /** A fresh inbox. `handler` must not throw. */
  listen(handler: (message: StreamMessage) => void): Listening;
  /** Calls `listener` at each change of `status`. Returns a function to unsubscribe. */
  onStatus(listener: () => void): () => void;
  close(): Promise<void>;
}

export type StreamOutcome = RequestOutcome | Forbidden;

export interface AskOptions {
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Listening {
  readonly inbox: string;
  stop(): void;
}

/** A message to an inbox: a record under its own subject, or a status of the server. */
export interface StreamMessage {
  readonly subject: string;
  readonly reply: string;
  /** Valid until the handler returns. */
  readonly data: Uint8Array;
  /** Read from the headers on access. */
  readonly status: StreamStatus | undefined;
}

export interface StreamStatus {
  readonly code: number;
  readonly description: string;
  /** On heartbeats: how many records the server delivered to this consumer. */
  readonly lastConsumerSeq: number | undefined;
  /** On heartbeats: the last record of the stream that the server delivered, or passed over as missing. */
  readonly lastStreamSeq: number | undefined;
}
