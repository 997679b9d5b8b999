// Snapshots made, and looked at, in a thread of the process (snapshot-thread.ts), which opens the journal and the
// snapshots by itself, ends with what it was started for, and takes its memory with it. Its failure, whatever it is, is
// an error here and nothing else. Node 20 loads no TypeScript in a thread, so it is always the compiled entry that
// runs, found by the package's own name.

import { createRequire } from "node:module";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import { WaggleError } from "../../errors.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { SnapshotMade, SnapshotOrder } from "../../journal/snapshot/make.ts";
import type { NatsOptions } from "../../transport/nats.ts";
import { type CopiedError, errorOf } from "./copied-error.ts";
import type { Snapshotter } from "./snapshotter.ts";

/** Where the journal and its snapshots are; plain values, for they are copied. */
export type JournalPlace =
  | {
      readonly kind: "stream";
      readonly connection: Omit<NatsOptions, "signal" | "onError">;
      readonly swarm: string;
    }
  | { readonly kind: "file"; readonly folder: string; readonly snapshotFolder: string };

export type ThreadOrder =
  | { readonly type: "make"; readonly place: JournalPlace; readonly order: SnapshotOrder }
  | { readonly type: "find"; readonly place: JournalPlace; readonly lastSeq: number };

export type ThreadWord =
  | { readonly type: "made"; readonly made: SnapshotMade }
  | { readonly type: "found"; readonly found: FoundSnapshots }
  | { readonly type: "failed"; readonly error: CopiedError }
  | { readonly type: "log"; readonly fields: object; readonly text: string };

export class ThreadSnapshotter implements Snapshotter {
  readonly #place: JournalPlace;
  readonly #logger: Logger;

  constructor(place: JournalPlace, logger: Logger) {
    this.#place = place;
    this.#logger = logger;
  }

  async make(order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotMade> {
    const word = await this.#run({ type: "make", place: this.#place, order }, signal);
    if (word.type !== "made") throw ended(`it said ${word.type}`);
    return word.made;
  }

  async find(lastSeq: number, signal: AbortSignal): Promise<FoundSnapshots> {
    const word = await this.#run({ type: "find", place: this.#place, lastSeq }, signal);
    if (word.type !== "found") throw ended(`it said ${word.type}`);
    return word.found;
  }

  /** @returns its last word */
  #run(workerData: ThreadOrder, signal: AbortSignal): Promise<ThreadWord> {
    signal.throwIfAborted();
    const thread = new Worker(createRequire(import.meta.url).resolve("waggledance/snapshot-thread"), {
      workerData,
      name: "waggle-snapshot",
      execArgv: [],
      // As much as this thread may have, whose state the other one holds a second time.
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(getHeapStatistics().heap_size_limit / 1024 ** 2) },
    });
    const stop = () => void thread.terminate();
    signal.addEventListener("abort", stop, { once: true });
    return new Promise<ThreadWord>((resolve, reject) => {
      thread.on("message", (word: ThreadWord) => {
        if (word.type === "log") this.#logger.error(word.fields, word.text);
        else if (word.type === "failed") reject(errorOf(word.error));
        else resolve(word);
      });
      thread.once("error", reject);
      thread.once("exit", (code) => reject(ended(`exit ${code}`)));
    }).finally(() => {
      signal.removeEventListener("abort", stop);
      stop(); // one that failed may have its connections still, which keep it alive
    });
  }
}

function ended(why: string): WaggleError {
  return new WaggleError(
    "WAGGLE_INVARIANT",
    `the thread for snapshots ended without what it was started for: ${why}`,
  );
}
