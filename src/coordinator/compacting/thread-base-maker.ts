// Segments made in a thread of the process (base-thread.ts), which reads the journal by itself, ends with what it was
// started for, and takes its memory with it. Its failure, whatever it is, is an error here and nothing else. Node 20
// loads no TypeScript in a thread, so it is always the compiled entry that runs, found by the package's own name.

import { createRequire } from "node:module";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import { unreachable } from "../../assert.ts";
import type { Journal } from "../../chain/journal.ts";
import { InvariantError } from "../../errors.ts";
import type { BaseMaker } from "./base-maker.ts";
import type { MadeSegment, MakeOrder } from "./make-next-segment.ts";
import {
  type Answer,
  copyOf,
  errorOf,
  type JournalPlace,
  type Question,
  type ThreadOrder,
  type ThreadWord,
} from "./thread-words.ts";

export class ThreadBaseMaker implements BaseMaker {
  readonly #place: JournalPlace;
  readonly #journal: Pick<Journal, "create" | "segment">;

  /** @param journal of the same place: writes for the thread what the thread cannot */
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
      // As much as this thread may have, whose state the other one holds a second time.
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(getHeapStatistics().heap_size_limit / 1024 ** 2) },
    });
    const stop = () => void thread.terminate();
    signal.addEventListener("abort", stop, { once: true });
    return await new Promise<MadeSegment>((resolve, reject) => {
      thread.on("message", (word: ThreadWord) => {
        if (word.type === "made") resolve(word.made);
        else if (word.type === "failed") reject(errorOf(word.error));
        else void this.#answer(word.id, word.question, order).then((answer) => thread.postMessage(answer));
      });
      thread.once("error", reject);
      thread.once("exit", (code) => reject(new InvariantError(`the thread for bases ended: exit ${code}`)));
    }).finally(() => {
      signal.removeEventListener("abort", stop);
      stop(); // after a failure its connections may be open, which keep it alive
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
