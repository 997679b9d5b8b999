// What a journal in JetStream needs of a connection to NATS: a port, so that the rules of answers, pulls and settings
// stand in files that know no client library. nats.ts implements it, and so does the simulator.

import type { RequestOutcome } from "../../transport/transport.ts";

export interface StreamWire {
  /** Largest message the server takes, headers included; of the server connected last. */
  readonly maxPayloadBytes: number;
  /** `one`: a server in no cluster keeps all streams, so its "stream not found" is final. `cluster`: servers that fail
   *  over may say it of streams that exist; a server without JetStream passes requests on. */
  readonly servers: "one" | "cluster" | "without-jetstream";
  readonly status: "connected" | "reconnecting" | "closed";
  /** Sent before it returns, so that requests leave in the order of the calls. Never throws: no answer is a value, and
   *  comes at once when the connection breaks. */
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
