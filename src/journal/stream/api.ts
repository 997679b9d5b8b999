// The JetStream API, as far as a journal needs it: one stream's state, settings, records, and readers of it.
// Records are got through STREAM.MSG.GET, which the stream's leader answers; direct get is answered by any
// replica, and may not know the newest record.

import { z } from "zod";
import { UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { RequestFailure } from "../../transport/transport.ts";
import type { JournalRecord } from "../journal.ts";
import type { StreamIdentity } from "./identity.ts";
import type { StreamWire } from "./wire.ts";

/** The server said no. `errCode` is JetStream's own. */
export class StreamApiError extends UnreachableError {
  readonly errCode: number;

  constructor({ err_code, description }: ApiError) {
    super(`JetStream says: ${description} (${err_code})`);
    this.errCode = err_code;
  }
}

/** Whether it says that there is no such stream. */
export function isStreamMissing(error: unknown): boolean {
  return error instanceof StreamApiError && error.errCode === apiCodes.streamNotFound;
}

export const apiCodes = {
  messageNotFound: 10037,
  noResources: 10023,
  noAccountStorage: 10028,
  offForAccount: 10039,
  /** The server met an error of its own; of a record: its store is damaged there. */
  streamFailed: 10051,
  noStorage: 10047,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  subjectsOverlap: 10065,
  off: 10076,
} as const;

export interface StreamReport {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Fewer than the sequences from first to last where records were lost. */
  readonly records: number;
  readonly bytes: number;
  /** When the stream was created, in the server's words. */
  readonly created: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Undefined where its server is no member of a cluster. */
  readonly cluster: StreamCluster | undefined;
}

/** Who keeps a stream in a cluster. */
export type StreamCluster = z.infer<typeof clusterSchema>;

export interface StreamRecord extends JournalRecord {
  readonly subject: string;
}

const errorSchema = z.object({ err_code: z.number().default(0), description: z.string() });
type ApiError = z.infer<typeof errorSchema>;
const refusalSchema = z.object({ error: errorSchema });
const clusterSchema = z.object({
  /** Absent, or empty, while a majority of its servers is away. */
  leader: z.string().optional(),
  /** The others; without a leader, the one that answers too. */
  replicas: z
    .array(
      z.object({
        name: z.string(),
        /** False from 10 s of silence on. */
        current: z.boolean().default(false),
        offline: z.boolean().default(false),
        /** Nanoseconds since it was heard. */
        active: z.number().default(0),
        /** Records that it has yet to take. */
        lag: z.number().default(0),
      }),
    )
    .nullish(),
});
const reportSchema = z.object({
  config: z.record(z.string(), z.unknown()),
  created: z.string(),
  state: z.object({
    first_seq: z.number(),
    last_seq: z.number(),
    messages: z.number(),
    bytes: z.number(),
  }),
  /** For people: nothing is decided by it, and a server that says it otherwise is as good. */
  cluster: clusterSchema.optional().catch(undefined),
});
const purgeSchema = z.object({ success: z.literal(true) });
const anySchema = z.unknown();
const messageSchema = z.object({
  message: z.object({ seq: z.number(), subject: z.string(), data: z.string().default("") }),
});

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class StreamApi {
  readonly stream: string;
  readonly #wire: StreamWire;
  readonly #timeoutMs: number;
  readonly #identity: StreamIdentity | undefined;

  /** @param identity with it, a stream that is gone or another one is a JournalDamagedError of every question */
  constructor(
    wire: StreamWire,
    stream: string,
    { timeoutMs = limits.appendTimeoutMs, identity }: { timeoutMs?: number; identity?: StreamIdentity } = {},
  ) {
    this.#wire = wire;
    this.stream = stream;
    this.#timeoutMs = timeoutMs;
    this.#identity = identity;
  }

  /** @throws StreamApiError, UnreachableError */
  async info(): Promise<StreamReport> {
    const { config, created, state, cluster } = await this.#call(`STREAM.INFO.${this.stream}`, reportSchema);
    this.#identity?.described(created);
    const { first_seq, last_seq, messages, bytes } = state;
    return { firstSeq: first_seq, lastSeq: last_seq, records: messages, bytes, created, config, cluster };
  }

  /** Removes every record below `seq`. @throws StreamApiError, UnreachableError */
  async purgeBelow(seq: number): Promise<void> {
    await this.#call(`STREAM.PURGE.${this.stream}`, purgeSchema, { seq });
  }

  /** @throws StreamApiError, UnreachableError */
  async create(config: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#call(`STREAM.CREATE.${this.stream}`, anySchema, config);
  }

  /** @throws StreamApiError, UnreachableError */
  async update(config: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#call(`STREAM.UPDATE.${this.stream}`, anySchema, config);
  }

  /** With all that it holds. @throws StreamApiError, UnreachableError */
  async remove(): Promise<void> {
    await this.#call(`STREAM.DELETE.${this.stream}`, anySchema);
  }

  /** With its subject, or undefined where none is, or none that can be read. @throws StreamApiError,
   *  UnreachableError */
  async read(seq: number): Promise<StreamRecord | undefined> {
    try {
      return await this.#get({ seq });
    } catch (error) {
      if (error instanceof StreamApiError && error.errCode === apiCodes.streamFailed) return undefined;
      throw error;
    }
  }

  /** The first record at or after `seq` that has this subject. @throws StreamApiError, UnreachableError */
  readNext(seq: number, subject: string): Promise<StreamRecord | undefined> {
    return this.#get({ seq, next_by_subj: subject });
  }

  /** A reader from `fromSeq` on, or from the end where the stream ends before. Lives in memory and on one
   *  server, so it may vanish; then it is made again. @throws StreamApiError, UnreachableError */
  async createConsumer(name: string, fromSeq: number): Promise<void> {
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
    await this.#call(`CONSUMER.CREATE.${this.stream}.${name}`, anySchema, {
      stream_name: this.stream,
      config,
    });
  }

  /** Tells the server that a reader is not needed; if it does not hear, it will notice. */
  forgetConsumer(name: string): void {
    const subject = `$JS.API.CONSUMER.DELETE.${this.stream}.${name}`;
    void this.#wire.ask(subject, encoder.encode(""), { timeoutMs: this.#timeoutMs });
  }

  /** Asks for records, which come to `inbox`. */
  pull(name: string, inbox: string, { records, bytes }: { records: number; bytes: number }): void {
    const request = {
      batch: records,
      max_bytes: bytes,
      expires: nanoseconds(limits.journalPullMs),
      idle_heartbeat: nanoseconds(limits.journalHeartbeatMs),
    };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${this.stream}.${name}`;
    this.#wire.publish(subject, encoder.encode(JSON.stringify(request)), inbox);
  }

  async #get(question: { readonly seq: number; readonly next_by_subj?: string }) {
    try {
      const { message } = await this.#call(`STREAM.MSG.GET.${this.stream}`, messageSchema, question);
      const { seq, subject, data } = message;
      return { seq, subject, bytes: new Uint8Array(Buffer.from(data, "base64")) };
    } catch (error) {
      if (error instanceof StreamApiError && error.errCode === apiCodes.messageNotFound) return undefined;
      throw error;
    }
  }

  async #call<T>(verb: string, schema: z.ZodType<T>, body?: unknown): Promise<T> {
    const request = encoder.encode(body === undefined ? "" : JSON.stringify(body));
    const timeoutMs = this.#timeoutMs;
    const outcome = await this.#wire.ask(`$JS.API.${verb}`, request, { timeoutMs });
    if (outcome.kind !== "answered") {
      this.#identity?.mayExist();
      throw unansweredError(outcome.kind, timeoutMs);
    }
    try {
      const answer = parseAnswer(decoder.decode(outcome.data), schema);
      this.#identity?.mayExist();
      return answer;
    } catch (error) {
      if (isStreamMissing(error)) this.#identity?.missing();
      else this.#identity?.mayExist();
      throw error;
    }
  }
}

function parseAnswer<T>(text: string, schema: z.ZodType<T>): T {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (cause) {
    throw new UnreachableError("what answers for JetStream is something else", { cause });
  }
  const refusal = refusalSchema.safeParse(answer);
  if (refusal.success) throw new StreamApiError(refusal.data.error);
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new UnreachableError("what answers for JetStream is something else", { cause: parsed.error });
}

/** Why nothing was answered, in words. */
export function unansweredError(failure: RequestFailure, timeoutMs: number): UnreachableError {
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
