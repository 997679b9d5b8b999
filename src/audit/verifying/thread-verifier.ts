// Verifies the journal in a thread of the process (verify-thread.ts). The thread reads the journal by itself, and ends
// with all its memory. Node 20 loads no TypeScript in a thread, so the compiled entry runs, found by the package's own
// name.

import { createRequire } from "node:module";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import { InvariantError } from "../../errors.ts";
import { type CopiedError, errorOf, type JournalPlace } from "../../journal/thread-values.ts";
import type { FoundAudit, JournalVerifier } from "./audit-check.ts";

export type VerifyMessage =
  | { readonly type: "progress"; readonly idx: number }
  | { readonly type: "verified"; readonly found: FoundAudit | undefined }
  | { readonly type: "failed"; readonly error: CopiedError };

export class ThreadVerifier implements JournalVerifier {
  readonly #place: JournalPlace;

  constructor(place: JournalPlace) {
    this.#place = place;
  }

  async verify(signal: AbortSignal, onProgress: (idx: number) => void): Promise<FoundAudit | undefined> {
    signal.throwIfAborted();
    const thread = new Worker(createRequire(import.meta.url).resolve("waggledance/verify-thread"), {
      workerData: this.#place,
      name: "waggle-verify",
      execArgv: [],
      // As much as the leader's thread may have: both hold the state.
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(getHeapStatistics().heap_size_limit / 1024 ** 2) },
    });
    thread.unref();
    const stop = () => void thread.terminate();
    signal.addEventListener("abort", stop, { once: true });
    return await new Promise<FoundAudit | undefined>((resolve, reject) => {
      thread.on("message", (message: VerifyMessage) => {
        if (message.type === "progress") onProgress(message.idx);
        else if (message.type === "verified") resolve(message.found);
        else reject(errorOf(message.error));
      });
      thread.once("error", reject);
      thread.once("exit", (code) =>
        reject(new InvariantError(`the thread that verifies ended: exit ${code}`)),
      );
    }).finally(() => {
      signal.removeEventListener("abort", stop);
      stop(); // after a failure an open connection would keep the thread alive
    });
  }
}
