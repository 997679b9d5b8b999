// The part of the JetStream API for a journal: streams, records, and consumers.
// Records are read with STREAM.MSG.GET, answered by the stream's leader. Direct get is not used: any replica may
// answer, even without the newest record.

import * as z from "zod";
import { ForbiddenError, UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { forbidden } from "../../protocol/forbidden.ts";
import {
  accountLimits,
  consumerRequest,
  streamNames,
  streamRequest,
} from "../../protocol/server-subjects.ts";
import type { RequestFailure } from "../../transport/transport.ts";
import type { SegmentRecord } from "../journal.ts";
import type { StreamOutcome, StreamWire } from "./wire.ts";

/** An error answer of JetStream. `errCode` is JetStream's own, `status` is like HTTP's. */
export class StreamApiError extends UnreachableError {
  readonly errCode: number;
  readonly status: number;

  constructor({ err_code, code, description }: ApiError) {
    super(`JetStream says: ${description} (${err_code})`);
    this.errCode = err_code;
    this.status = code;
  }
}

/** True if the server answered "stream not found". */
export function isStreamMissing(error: unknown): boolean {
  return error instanceof StreamApiError && error.errCode === apiCodes.streamNotFound;
}

/** True if the server answered "stored record is unreadable". */
export function isUnreadable(error: unknown): boolean {
  return error instanceof StreamApiError && error.errCode === apiCodes.streamFailed;
}

export const apiCodes = {
  accountResources: 10002,
  noPeers: 10005,
  noResources: 10023,
  noMoreStreams: 10026,
  noAccountStorage: 10028,
  messageNotFound: 10037,
  offForAccount: 10039,
  noStorage: 10047,
  /** The server could not make the new stream's files. */
  storeNotCreated: 10049,
  /** An internal error of the server; for a record: the store is damaged. */
  streamFailed: 10051,
  messageTooLarge: 10054,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  subjectsOverlap: 10065,
  wrongLastSequence: 10071,
  off: 10076,
  /** Failures to store, among them `maximum bytes exceeded` and a full disk. */
  storeFailed: 10077,
} as const;

export interface StreamReport {
  readonly lastSeq: number;
  /** Less than `lastSeq` when records are missing: a segment is never purged. */
  readonly records: number;
  readonly bytes: number;
  readonly config: StreamConfig;
  /** Undefined when the server is in no cluster. */
  readonly cluster: StreamCluster | undefined;
}

export type StreamConfig = Readonly<Record<string, unknown>>;

/** The servers with a replica of a stream, in a cluster. */
export type StreamCluster = z.infer<typeof clusterSchema>;

/** By position; the first at or behind a position with a subject; or the last with a subject. */
export type RecordQuestion =
  | { readonly seq: number; readonly next_by_subj?: string }
  | { readonly last_by_subj: string };

const errorSchema = z.object({
  err_code: z.number().default(0),
  code: z.number().default(0),
  description: z.string(),
});
type ApiError = z.infer<typeof errorSchema>;
const refusalSchema = z.object({ error: errorSchema });
const clusterSchema = z.object({
  /** Absent, or empty, while a majority of the servers is away. */
  leader: z.string().optional(),
  /** The others; without a leader, the answering server too. */
  replicas: z
    .array(
      z.object({
        name: z.string(),
        /** False from 10 s of silence on. */
        current: z.boolean().default(false),
        offline: z.boolean().default(false),
        /** Nanoseconds since the replica's last message. */
        active: z.number().default(0),
        /** Number of records the replica is behind. */
        lag: z.number().default(0),
      }),
    )
    .nullish(),
});
const configSchema = z.record(z.string(), z.unknown());
const reportSchema = z.object({
  config: configSchema,
  state: z.object({ last_seq: z.number(), messages: z.number(), bytes: z.number() }),
  /** For people only, so an unexpected format is ignored. */
  cluster: clusterSchema.optional().catch(undefined),
});
const createdSchema = z.object({ config: configSchema });
const namesSchema = z.object({ total: z.number(), streams: z.array(z.string()).nullish() });
const accountSchema = z.object({ limits: z.object({ max_storage: z.number() }) });
const doneSchema = z.object({});
const messageSchema = z.object({
  message: z.object({ seq: z.number(), subject: z.string(), data: z.string().default("") }),
});

/** A stored record with the subject that it was published to. */
interface StreamRecord extends SegmentRecord {
  readonly subject: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Every method throws StreamApiError for an error answer, ForbiddenError without the permission to ask, and
 *  UnreachableError without an answer. */
export class StreamApi {
  readonly #wire: StreamWire;
  readonly #timeoutMs: number;
  /** Streams that were seen with a record. */
  readonly #begun = new Set<string>();

  constructor(wire: StreamWire, timeoutMs: number = limits.appendTimeoutMs) {
    this.#wire = wire;
    this.#timeoutMs = timeoutMs;
  }

  /** Names of all streams with a subject matching `subject`. Wildcards are permitted. */
  async names(subject: string): Promise<string[]> {
    const names: string[] = [];
    for (;;) {
      const page = { subject, offset: names.length };
      const { total, streams } = await this.#call(streamNames, namesSchema, page);
      names.push(...(streams ?? []));
      if (names.length >= total || streams === undefined || streams === null || streams.length === 0)
        return names;
    }
  }

  async info(stream: string): Promise<StreamReport> {
    const { config, state, cluster } = await this.#call(streamRequest("INFO", stream), reportSchema);
    return { lastSeq: state.last_seq, records: state.messages, bytes: state.bytes, config, cluster };
  }

  /** Creates a stream. @returns the settings chosen by the server */
  async create(stream: string, config: StreamConfig): Promise<StreamConfig> {
    return (await this.#call(streamRequest("CREATE", stream), createdSchema, config)).config;
  }

  /** Removes a stream and all records in it. */
  async remove(stream: string): Promise<void> {
    this.#begun.delete(stream);
    await this.#call(streamRequest("DELETE", stream), doneSchema);
  }

  /** Undefined if the stream has no matching record. Asks for the state of an unknown stream first: nats-server 2.9.10
   *  crashes when a record is requested while the stream is being created, and reports an empty stream meanwhile. */
  async record(stream: string, question: RecordQuestion): Promise<StreamRecord | undefined> {
    if (!this.#begun.has(stream)) {
      if ((await this.info(stream)).lastSeq === 0) return undefined;
      this.#begun.add(stream);
    }
    try {
      const { message } = await this.#call(streamRequest("MSG.GET", stream), messageSchema, question);
      const { seq: position, subject, data } = message;
      return { position, subject, bytes: new Uint8Array(Buffer.from(data, "base64")) };
    } catch (error) {
      if (error instanceof StreamApiError && error.errCode === apiCodes.messageNotFound) return undefined;
      throw error;
    }
  }

  /** The account's storage limit in bytes, replicas counted; undefined without a limit. */
  async storageMax(): Promise<number | undefined> {
    const { max_storage } = (await this.#call(accountLimits, accountSchema)).limits;
    return max_storage > 0 ? max_storage : undefined;
  }

  /** Creates a consumer to deliver records from `fromSeq` on. A consumer is in the memory of one server and may vanish;
   *  the reader then creates a new consumer. */
  async createConsumer(stream: string, name: string, fromSeq: number): Promise<void> {
    const config = {
      name,
      deliver_policy: "by_start_sequence",
      opt_start_seq: fromSeq,
      ack_policy: "none",
      replay_policy: "instant",
      inactive_threshold: nanoseconds(limits.journalReaderIdleMs),
      mem_storage: true,
      num_replicas: 1,
    };
    const request = { stream_name: stream, config };
    await this.#call(consumerRequest("CREATE", stream, name), doneSchema, request);
  }

  /** Removes a consumer, without waiting. If the message is lost, the server removes the idle consumer by itself. */
  forgetConsumer(stream: string, name: string): void {
    const subject = consumerRequest("DELETE", stream, name);
    void this.#wire.ask(subject, encoder.encode(""), { timeoutMs: this.#timeoutMs });
  }

  /** Requests records; the answers arrive at `inbox`. */
  pull(
    stream: string,
    name: string,
    { inbox, records, bytes }: { inbox: string; records: number; bytes: number },
  ): void {
    const request = {
      batch: records,
      max_bytes: bytes,
      expires: nanoseconds(limits.journalPullMs),
      idle_heartbeat: nanoseconds(limits.journalHeartbeatMs),
    };
    const subject = consumerRequest("MSG.NEXT", stream, name);
    this.#wire.publish(subject, encoder.encode(JSON.stringify(request)), inbox);
  }

  async #call<T>(subject: string, schema: z.ZodType<T>, body?: unknown): Promise<T> {
    const request = encoder.encode(body === undefined ? "" : JSON.stringify(body));
    const timeoutMs = this.#timeoutMs;
    const outcome = await this.#wire.ask(subject, request, { timeoutMs });
    if (outcome.kind !== "answered") throw unansweredError(outcome, timeoutMs);
    return parseAnswer(decoder.decode(outcome.data), schema);
  }
}

function parseAnswer<T>(text: string, schema: z.ZodType<T>): T {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (cause) {
    throw new UnreachableError("the answer to a JetStream request is not JSON: another service answered", {
      cause,
    });
  }
  const refusal = refusalSchema.safeParse(answer);
  if (refusal.success) throw new StreamApiError(refusal.data.error);
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new UnreachableError("the answer to a JetStream request lacks fields: another service answered", {
    cause: parsed.error,
  });
}

/** The error for a request without an answer. */
export function unansweredError(
  outcome: Exclude<StreamOutcome, { readonly kind: "answered" }>,
  timeoutMs: number,
): UnreachableError {
  if (outcome.kind === "forbidden") return new ForbiddenError(forbidden(outcome).message);
  const failure: RequestFailure = outcome.kind;
  switch (failure) {
    case "no-responders":
      return new UnreachableError("JetStream does not answer: it is off, not permitted, or failing over");
    case "timeout":
      return new UnreachableError(`JetStream did not answer within ${timeoutMs / 1000} s`);
    case "disconnected":
      return new UnreachableError("the connection to NATS is broken");
  }
}

function nanoseconds(ms: number): number {
  return ms * 1_000_000;
}
