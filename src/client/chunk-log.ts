// The chunks of a task's result that this connection received, for all readers of the task. Chunks of an earlier
// attempt are void: the first chunk of a later attempt removes them, and so does the end of a later attempt.

import { Buffer } from "node:buffer";
import { limits } from "../limits.ts";
import type { ChunksPush } from "../protocol/schemas.ts";
import type { AwaitedTask } from "./awaited-task.ts";
import type { TaskInbox } from "./task-inbox.ts";

/** A part of a result, as an attempt emitted it. */
export class ResultChunk {
  /** From 1. When it grows, all chunks of earlier attempts are void. */
  readonly attempt: number;
  readonly agent: string;
  /** From 0 in each attempt. A missing number was lost on the way; the result is whole. */
  readonly index: number;
  /** Text, or base64 when `encoding` is set. */
  readonly data: string;
  readonly encoding: "base64" | undefined;

  constructor(of: {
    readonly attempt: number;
    readonly agent: string;
    readonly index: number;
    readonly data: string;
    readonly encoding?: "base64" | undefined;
  }) {
    this.attempt = of.attempt;
    this.agent = of.agent;
    this.index = of.index;
    this.data = of.data;
    this.encoding = of.encoding;
  }

  /** The chunk as text, decoded from base64 if necessary. */
  text(): string {
    return this.encoding === undefined ? this.data : Buffer.from(this.data, "base64").toString();
  }

  bytes(): Uint8Array {
    return Buffer.from(this.data, this.encoding ?? "utf8");
  }
}

export class ChunkLog {
  #chunks: ResultChunk[] = [];
  #bytes = 0;
  /** Chunks that were kept before the first of `#chunks`. */
  #removed = 0;
  #attempt = 0;
  /** Index of the next chunk of the attempt. */
  #next = 0;
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void)[] = [];

  add({ attempt, agent, first, chunks }: ChunksPush): void {
    if (attempt < this.#attempt || this.#end !== undefined) return;
    if (attempt > this.#attempt) {
      this.#attempt = attempt;
      this.#next = 0;
      this.#removeFirst(this.#chunks.length);
    }
    for (const [nth, { text: data, encoding }] of chunks.entries()) {
      const index = first + nth;
      if (index < this.#next) continue; // sent twice
      this.#next = index + 1;
      this.#chunks.push(new ResultChunk({ attempt, agent, index, data, encoding }));
      this.#bytes += data.length;
    }
    let [surplus, bytes] = [0, this.#bytes];
    while (bytes > limits.keptChunksBytesMax || this.#chunks.length - surplus > limits.keptChunksMax) {
      bytes -= this.#chunks[surplus]?.data.length ?? 0;
      surplus += 1;
    }
    this.#removeFirst(surplus);
    this.#changed();
  }

  /** The task has ended, or cannot be awaited.
   *  @param of the last attempt, which may have sent no chunk; or the error that ends all readings */
  end(of: { readonly attempts: number } | { readonly error: unknown }): void {
    if ("attempts" in of && of.attempts > this.#attempt) this.#removeFirst(this.#chunks.length);
    this.#end ??= { error: "error" in of ? of.error : undefined };
    this.#changed();
  }

  /** Reads from the first kept chunk to the task's end. Ends without an error when `signal` aborts. */
  async *read(signal: AbortSignal): AsyncGenerator<ResultChunk> {
    let at = 0;
    while (!signal.aborted) {
      at = Math.max(at, this.#removed);
      const chunk = this.#chunks[at - this.#removed];
      if (chunk !== undefined) {
        at += 1;
        yield chunk;
      } else if (this.#end === undefined) await this.#change(signal);
      else if (this.#end.error === undefined) return;
      else throw this.#end.error;
    }
  }

  #removeFirst(count: number): void {
    if (count === 0) return;
    for (const { data } of this.#chunks.splice(0, count)) this.#bytes -= data.length;
    this.#removed += count;
  }

  #changed(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  async #change(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = () => {
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wake.push(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

/** The logs of a connection's tasks. */
export class ChunkLogs {
  readonly #inbox: TaskInbox<ChunksPush>;
  readonly #logs = new WeakMap<AwaitedTask, { readonly log: ChunkLog; readonly stop: () => void }>();

  constructor(inbox: TaskInbox<ChunksPush>) {
    this.#inbox = inbox;
  }

  /** The log of a task; begins now unless it has begun. */
  of(task: AwaitedTask): ChunkLog {
    const known = this.#logs.get(task)?.log;
    if (known !== undefined) return known;
    const log = new ChunkLog();
    const stop = this.#inbox.watch({ project: task.project, task: task.id }, (push) => log.add(push));
    this.#logs.set(task, { log, stop });
    task.onEnd((awaited) => {
      stop();
      log.end(awaited.kind === "failed" ? { error: awaited.error } : { attempts: awaited.outcome.attempts });
    });
    return log;
  }

  /** The task was not accepted. */
  drop(task: AwaitedTask): void {
    this.#logs.get(task)?.stop();
    this.#logs.delete(task);
  }

  close(): void {
    this.#inbox.close();
  }
}
