// Sends requests about one stream to a real nats-server, and returns each answer unchanged: number and text of
// the error, or no answer. Repeats nothing and translates nothing. The product's own client is
// src/journal/stream.

import { setTimeout as delay } from "node:timers/promises";
import {
  connect,
  createInbox,
  headers,
  type NatsConnection,
  NoRespondersError,
  RequestError,
} from "@nats-io/transport-node";
import type { Replica } from "../chaos/servers.ts";

const ASK_MS = 5_000;
/** Unanswered pulls in one reading, 20 ms apart. */
const UNANSWERED_MOST = 50;

/** An acknowledged append has `seq`; a refusal has `code` and `words`. */
export type Said =
  | { readonly kind: "done"; readonly seq: number; readonly body: StreamBody }
  | { readonly kind: "refused"; readonly code: number; readonly words: string }
  | { readonly kind: "no responders" }
  | { readonly kind: "no answer" };

export interface StreamBody {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly state?: { readonly messages: number; readonly first_seq: number; readonly last_seq: number };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly Replica[];
  };
  readonly message?: { readonly seq: number; readonly data?: string };
}

interface ApiBody extends StreamBody {
  readonly error?: { readonly err_code: number; readonly description: string };
  readonly seq?: number;
}

export class StreamProbe {
  readonly stream: string;
  readonly subject: string;
  readonly #connection: NatsConnection;
  readonly #replicas: number;
  readonly #onBreak = new Set<() => void>();

  private constructor(connection: NatsConnection, name: string, replicas: number) {
    this.#connection = connection;
    this.#replicas = replicas;
    this.stream = name;
    this.subject = `ground.${name}`;
    void this.#watch();
  }

  /** @param urls of one server or of a cluster; in a cluster, the connection moves to a running server */
  static async connect(urls: readonly string[], name: string, replicas: number): Promise<StreamProbe> {
    const connection = await connect({
      servers: [...urls],
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      ignoreClusterUpdates: true,
    });
    return new StreamProbe(connection, name, replicas);
  }

  async create(overrides: Readonly<Record<string, unknown>> = {}): Promise<Said> {
    return await this.#api("CREATE", {
      name: this.stream,
      subjects: [this.subject],
      storage: "file",
      discard: "new",
      max_bytes: 64 * 1024 * 1024,
      deny_delete: true,
      num_replicas: this.#replicas,
      ...overrides,
    });
  }

  async info(): Promise<Said> {
    return await this.#api("INFO");
  }

  /** @param isSealed false asks to unseal */
  async seal(isSealed = true): Promise<Said> {
    const said = await this.info();
    if (said.kind !== "done") return said;
    return await this.#api("UPDATE", { ...said.body.config, sealed: isSealed });
  }

  async remove(): Promise<Said> {
    return await this.#api("DELETE");
  }

  async purge(): Promise<Said> {
    return await this.#api("PURGE");
  }

  /** @param expected the required last sequence of the stream; absent: any */
  async append(text: string, expected?: number): Promise<Said> {
    const fields = headers();
    if (expected !== undefined) fields.set("Nats-Expected-Last-Sequence", String(expected));
    return await this.#ask(this.subject, text, fields);
  }

  /** The stored text at a sequence. */
  async read(seq: number): Promise<Said & { readonly text?: string }> {
    const said = await this.#api("MSG.GET", { seq });
    if (said.kind !== "done") return said;
    return { ...said, text: Buffer.from(said.body.message?.data ?? "", "base64").toString() };
  }

  /** All texts from the first sequence to the last, read through a consumer as a standby reads. */
  async readAll(): Promise<string[]> {
    return await (await this.openReader()).pullAll(await this.lastSeq());
  }

  /** @throws Error if the server refuses the consumer */
  async openReader(): Promise<StreamReader> {
    const name = `r${Math.random().toString(36).slice(2, 10)}`;
    const config = {
      name,
      deliver_policy: "all",
      ack_policy: "none",
      inactive_threshold: 60e9,
      mem_storage: true,
      num_replicas: 1,
    };
    const body = { stream_name: this.stream, config };
    const said = await this.#ask(`$JS.API.CONSUMER.CREATE.${this.stream}.${name}`, JSON.stringify(body));
    if (said.kind !== "done") throw new Error(`a reader of ${this.stream}: ${JSON.stringify(said)}`);
    return new StreamReader(this.#connection, `$JS.API.CONSUMER.MSG.NEXT.${this.stream}.${name}`);
  }

  /** @throws Error if the stream does not exist */
  async lastSeq(): Promise<number> {
    const said = await this.info();
    if (said.kind === "done" && said.body.state !== undefined) return said.body.state.last_seq;
    throw new Error(`the end of ${this.stream}: ${JSON.stringify(said)}`);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #api(verb: string, body?: unknown): Promise<Said> {
    return await this.#ask(
      `$JS.API.STREAM.${verb}.${this.stream}`,
      body === undefined ? "" : JSON.stringify(body),
    );
  }

  /** A request ends at once when the connection breaks or returns, because messages sent between are lost. */
  async #ask(subject: string, text: string, fields = headers()): Promise<Said> {
    let onBreak: () => void = () => undefined;
    const broken = new Promise<never>((_, reject) => {
      onBreak = () => reject(new Error("the connection broke"));
    });
    broken.catch(() => undefined);
    this.#onBreak.add(onBreak);
    try {
      const request = this.#connection.request(subject, text, { timeout: ASK_MS, headers: fields });
      request.catch(() => undefined);
      const answer = await Promise.race([request, broken]);
      const body = answer.json<ApiBody>();
      if (body.error === undefined) return { kind: "done", seq: body.seq ?? 0, body };
      return { kind: "refused", code: body.error.err_code, words: body.error.description };
    } catch (error) {
      const isUnheard =
        error instanceof NoRespondersError || (error as Error).cause instanceof NoRespondersError;
      if (isUnheard || (error instanceof RequestError && error.isNoResponders()))
        return { kind: "no responders" };
      return { kind: "no answer" };
    } finally {
      this.#onBreak.delete(onBreak);
    }
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status())
      if (type === "disconnect" || type === "reconnect") for (const onBreak of this.#onBreak) onBreak();
  }
}

/** A pull consumer in memory, as a standby uses. */
export class StreamReader {
  readonly #connection: NatsConnection;
  readonly #subject: string;

  constructor(connection: NatsConnection, subject: string) {
    this.#connection = connection;
    this.#subject = subject;
  }

  /** Pulls until it has `count` texts. In a cluster, a pull just after the consumer's creation may find nobody to
   *  answer it yet (503).
   *  @throws Error if a pull brings nothing */
  async pullAll(count: number): Promise<string[]> {
    const texts: string[] = [];
    for (let unanswered = 0; texts.length < count; ) {
      const batch = await this.pull(count - texts.length);
      texts.push(...batch.texts);
      if (batch.texts.length > 0) continue;
      if (batch.end !== "503" || ++unanswered > UNANSWERED_MOST)
        throw new Error(`the reader ended at ${texts.length} of ${count}: ${batch.end}`);
      await delay(20);
    }
    return texts;
  }

  /** Resolves with `count` texts, or at the server's status line: `409 Consumer Deleted`, `404 No Messages`. */
  async pull(count: number, { expiresMs = 5_000 } = {}): Promise<{ texts: string[]; end: string }> {
    const inbox = createInbox();
    const texts: string[] = [];
    return await new Promise((resolve) => {
      const finish = (end: string) => {
        clearTimeout(timer);
        subscription.unsubscribe();
        resolve({ texts, end });
      };
      const timer = setTimeout(() => finish("silence"), expiresMs + 1_000);
      const subscription = this.#connection.subscribe(inbox, {
        callback: (_, message) => {
          const { headers: fields } = message;
          if (fields !== undefined && fields.code > 0)
            return finish(`${fields.code} ${fields.description}`.trim());
          texts.push(message.string());
          if (texts.length === count) finish("all");
        },
      });
      const request = { batch: count, expires: expiresMs * 1_000_000 };
      this.#connection.publish(this.#subject, JSON.stringify(request), { reply: inbox });
    });
  }
}
