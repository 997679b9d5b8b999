// The journal as any coordinator shows it, page by page. Readers that ask for the same page at the same time
// share one question, so that a hundred followers at the end of the journal cost as much as one.
// Not here: following (event-feed.ts).

import type { z } from "zod";
import { NO_PROJECT } from "../ids.ts";
import { journalPageSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";

export type JournalPage = z.infer<typeof journalPageSchema>;
export type JournalBatch = JournalPage["batches"][number];

/** Where a page begins: at a batch, or at the first batch at or after an instant. */
export type PageStart = { readonly from: number } | { readonly since: number };

export class JournalPages {
  readonly #asker: Asker;
  readonly #subject: string;
  readonly #pageByStart = new Map<string, Promise<JournalPage>>();

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subject = subjects.query(NO_PROJECT, "journal");
  }

  /** @throws NoLeaderError, UnreachableError, JournalDamagedError, AuditTrimmedError, or the reason of `signal` */
  async page(start: PageStart, signal?: AbortSignal): Promise<JournalPage> {
    signal?.throwIfAborted();
    const key = JSON.stringify(start);
    let page = this.#pageByStart.get(key);
    if (page === undefined) {
      page = this.#ask(start).finally(() => this.#pageByStart.delete(key));
      this.#pageByStart.set(key, page);
    }
    return signal === undefined ? await page : await untilAborted(page, signal);
  }

  async #ask(start: PageStart, options: AskOptions = {}): Promise<JournalPage> {
    const message = { v: 1, ...start };
    const question = { kind: "query", subject: this.#subject, message, schema: journalPageSchema } as const;
    return await this.#asker.ask(question, options);
  }
}

/** The others that share the promise go on waiting for it. */
async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return await new Promise<Value>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
