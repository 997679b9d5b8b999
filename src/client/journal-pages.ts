// Pages of the journal from any coordinator. Concurrent requests for the same page share one query, so that a
// hundred followers at the end of the journal cost as much as a single follower. event-feed.ts does the
// following.

import type { z } from "zod";
import { NO_PROJECT } from "../ids.ts";
import { journalPageSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker, AskOptions } from "./asker.ts";

export type JournalPage = z.infer<typeof journalPageSchema>;
export type JournalBatch = JournalPage["batches"][number] & {
  /** The batch is not as it was written: the batch after names another hash. */
  readonly isChanged?: true;
};

/** Beginning of a page: a batch index, or an instant (ms since the Unix epoch). */
export type PageStart = { readonly from: number } | { readonly since: number };

/** What a page holds. */
export interface PageRange {
  /** Filter of the events; a page lists every batch. `_`: all events. */
  readonly project: string;
  readonly start: PageStart;
  /** With payloads and results, which the whole journal always has. */
  readonly contents: boolean;
}

export class JournalPages {
  readonly #asker: Asker;
  readonly #subjects: Subjects;
  readonly #pageByStart = new Map<string, Promise<JournalPage>>();

  constructor(asker: Asker, subjects: Subjects) {
    this.#asker = asker;
    this.#subjects = subjects;
  }

  /** @throws NoLeaderError, UnreachableError, JournalDamagedError, AuditTrimmedError, or the reason of `signal` */
  async page(range: PageRange, signal?: AbortSignal): Promise<JournalPage> {
    signal?.throwIfAborted();
    const key = JSON.stringify(range);
    let page = this.#pageByStart.get(key);
    if (page === undefined) {
      page = this.#ask(range).finally(() => this.#pageByStart.delete(key));
      this.#pageByStart.set(key, page);
    }
    return signal === undefined ? await page : await untilAborted(page, signal);
  }

  async #ask({ project, start, contents }: PageRange, options: AskOptions = {}): Promise<JournalPage> {
    const isWhole = project === NO_PROJECT;
    const message = isWhole || !contents ? { v: 1, ...start } : { v: 1, ...start, withContent: true };
    const subject = this.#subjects.query(project, isWhole ? "journal" : "events");
    const question = { kind: "query", subject, message, schema: journalPageSchema } as const;
    return await this.#asker.ask(question, options);
  }
}

/** An abort leaves the shared promise to its other users. */
async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return await new Promise<Value>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
