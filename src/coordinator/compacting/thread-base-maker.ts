// Makes segments in a thread of the process (base-thread.ts). The thread reads the journal by itself, makes one
// segment, and ends with all its memory. Any failure of the thread is an error here, and nothing else. Node 20 loads no
// TypeScript in a thread, so the compiled entry runs, found by the package's own name.

import { createRequire } from "node:module";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import { unreachable } from "../../assert.ts";
import { InvariantError } from "../../errors.ts";
import type { AppendOutcome, Journal } from "../../journal/journal.ts";
import { type CopiedError, copyOf, errorOf, type JournalPlace } from "../../journal/thread-values.ts";
import type { BaseMaker, MadeSegment, MakeOrder } from "./make-next-segment.ts";

// Messages between the process and the thread: plain values, because messages are copied.

export interface ThreadOrder {
  readonly place: JournalPlace;
  readonly order: Omit<MakeOrder, "committedIdx">;
}

export type Question =
  | { readonly kind: "committed" }
  | { readonly kind: "create"; readonly segment: number }
  | {
      readonly kind: "append";
      readonly segment: number;
      readonly bytes: Uint8Array;
      readonly expected: number;
    };

/** The answer to the question with the same `id`. */
export type Answer = { readonly id: number } & (
  | { readonly value: number | undefined | AppendOutcome }
  | { readonly error: CopiedError }
);

export type ThreadMessage =
  | { readonly type: "ask"; readonly id: number; readonly question: Question }
  | { readonly type: "made"; readonly made: MadeSegment }
  | { readonly type: "failed"; readonly error: CopiedError };

export class ThreadBaseMaker implements BaseMaker {
  readonly #place: JournalPlace;
  readonly #journal: Pick<Journal, "create" | "segment">;

  /** @param journal the journal at the same place: writes files for the thread */
  constructor(place: JournalPlace, journal: Pick<Journal, "create" | "segment">) {
    this.#place = place;
    this.#journal = journal;
  }

  async make(order: MakeOrder, signal: AbortSignal): Promise<MadeSegment> {
    signal.throwIfAborted();
    const { committedIdx: _, ...plain } = order;
    const workerData: ThreadOrder = { place: this.#place, order: plain };
    const thread = new Worker(createRequire(import.meta.url).resolve("waggledance/base-thread"), {
      workerData,
      name: "waggle-base",
      execArgv: [],
      // As much as the leader's thread may have: both hold the state.
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(getHeapStatistics().heap_size_limit / 1024 ** 2) },
    });
    const stop = () => void thread.terminate();
    signal.addEventListener("abort", stop, { once: true });
    return await new Promise<MadeSegment>((resolve, reject) => {
      thread.on("message", (message: ThreadMessage) => {
        if (message.type === "made") resolve(message.made);
        else if (message.type === "failed") reject(errorOf(message.error));
        else
          void this.#answer(message.id, message.question, order).then((answer) => thread.postMessage(answer));
      });
      thread.once("error", reject);
      thread.once("exit", (code) => reject(new InvariantError(`the thread for bases ended: exit ${code}`)));
    }).finally(() => {
      signal.removeEventListener("abort", stop);
      stop(); // after a failure an open connection would keep the thread alive
    });
  }

  async #answer(id: number, question: Question, { committedIdx }: MakeOrder): Promise<Answer> {
    try {
      return { id, value: await this.#valueOf(question, committedIdx) };
    } catch (error) {
      return { id, error: copyOf(error) };
    }
  }

  async #valueOf(question: Question, committedIdx: MakeOrder["committedIdx"]) {
    switch (question.kind) {
      case "committed":
        return await committedIdx();
      case "create":
        await this.#journal.create(question.segment);
        return undefined;
      case "append":
        return await this.#journal.segment(question.segment).append(question.bytes, question.expected);
      default:
        return unreachable(question);
    }
  }
}
