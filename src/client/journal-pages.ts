// The journal as any coordinator shows it, page by page. Readers that ask for the same page at the same time
// share one question, so that a hundred followers at the end of the journal cost as much as one.
// Not here: following (event-feed.ts).

import type { z } from "zod";
import { journalPageSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";

export type JournalPage = z.infer<typeof journalPageSchema>;
export type JournalBatch = JournalPage["batches"][number];

/** Where a page begins: at a batch, or at the first batch at or after an instant. */
export type PageStart = { readonly from: number } | { readonly since: number };

export class JournalPages {
  readonly #asker: Asker;
  readonly #subjects: Subjects;
  readonly #pageByStart = new Map<string, Promise<JournalPage>>();

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subjects = subjects;
  }

  /** @param project whose events are shown: every batch stands in the page, with the events of this project; `_`: all
   *  events
   *  @throws NoLeaderError, UnreachableError, JournalDamagedError, AuditTrimmedError, or the reason of `signal` */
  async page(project: string, start: PageStart, signal?: AbortSignal): Promise<JournalPage> {
    signal?.throwIfAborted();
    const key = JSON.stringify({ project, ...start });
    let page = this.#pageByStart.get(key);
    if (page === undefined) {
      page = this.#ask(project, start).finally(() => this.#pageByStart.delete(key));
      this.#pageByStart.set(key, page);
    }
    return signal === undefined ? await page : await untilAborted(page, signal);
  }

  async #ask(project: string, start: PageStart, options: AskOptions = {}): Promise<JournalPage> {
    const message = { v: 1, ...start };
    const subject = this.#subjects.query(project, "journal");
    const question = { kind: "query", subject, message, schema: journalPageSchema } as const;
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
