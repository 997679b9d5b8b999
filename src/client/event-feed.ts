// Reads the journal's batches from a given position, to the present or without end.
//
// Following is reading: news only say that more batches exist (journal-news.ts), and each page begins after the
// last batch yielded. So no batch is lost, doubled or out of order, whatever happens to pushes, leaders and
// connections. Subscribing to news before the first page leaves no gap between the two. The feed is pull-based:
// the next page is requested when the last is used up.

import { firstValueFrom } from "rxjs";
import type { Clock, Random } from "../clock.ts";
import {
  BackpressureError,
  JournalDamagedError,
  NoLeaderError,
  UnreachableError,
  UnreadableAnswerError,
} from "../errors.ts";
import { limits } from "../limits.ts";
import { LossError } from "../protocol/loss-error.ts";
import { pauseAfter } from "../retry-paused.ts";
import type { Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import { BatchSequence } from "./batch-sequence.ts";
import type { JournalNews } from "./journal-news.ts";
import type { JournalBatch, JournalPage, JournalPages, PageStart } from "./journal-pages.ts";

export interface EventFeedDeps {
  readonly reader: JournalPages;
  readonly news: JournalNews;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
}

export interface FeedOptions {
  /** Project of the events, or all projects (`_`). */
  readonly project: string;
  readonly start: PageStart;
  /** With payloads and results. Events of all projects have them in any case. */
  readonly contents: boolean;
  /** Continue after reaching the present. */
  readonly follow: boolean;
  /** A batch that exists: the present is at least this batch, even if a coordinator that answers lags. Default: 0 */
  readonly knownIdx?: number;
  /** Called when the first page ends before the batch to start with. Rejects if no such batch exists. */
  readonly onBeyondEnd?: (from: number) => Promise<void>;
  /** Ends the feed without an error. */
  readonly signal: AbortSignal;
}

/** Batches in order, each once. The present is the newest batch when the reading began.
 *  @throws NoLeaderError, UnreachableError when the first page is unavailable, or a later page without `follow`
 *  @throws UnreadableAnswerError when answers contain no page for `limits.askTimeoutMs`
 *  @throws JournalDamagedError, LossError */
export async function* readBatches(deps: EventFeedDeps, options: FeedOptions): AsyncGenerator<JournalBatch> {
  const stopNews = options.follow ? deps.news.follow(options.project) : undefined;
  try {
    yield* new Reading(deps, options).batches();
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    stopNews?.();
  }
}

class Reading {
  readonly #deps: EventFeedDeps;
  readonly #options: FeedOptions;
  readonly #sequence = new BatchSequence();
  #start: PageStart;
  /** Number of consecutive pages without progress although more batches should exist. */
  #idlePages = 0;
  #idleSinceMs = 0;

  constructor(deps: EventFeedDeps, options: FeedOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#start = options.start;
  }

  async *batches(): AsyncGenerator<JournalBatch> {
    const { follow, signal, knownIdx = 0 } = this.#options;
    let page = await this.#nextPage({ mayOutlive: false });
    if ("from" in this.#start && this.#start.from > page.last + 1)
      await this.#options.onBeyondEnd?.(this.#start.from);
    const presentIdx = Math.max(page.last, knownIdx);
    for (;;) {
      requireAsked(page, this.#start);
      for (const batch of page.batches) {
        this.#sequence.append(batch);
        const isChanged = page.changed?.includes(batch.idx) === true;
        if (this.#isWanted(batch)) yield isChanged ? { ...batch, isChanged } : batch;
        if (signal.aborted) return;
      }
      const next = this.#nextAfter(page);
      this.#start = { from: next };
      if (!follow && next > presentIdx) return;
      await this.#waitForMore(page, next, follow ? this.#deps.news.lastIdx : presentIdx);
      if (signal.aborted) return;
      page = await this.#nextPage({ mayOutlive: follow });
    }
  }

  /** A lagging coordinator may not have a batch of the start time yet, and then returns older batches. */
  #isWanted(batch: JournalBatch): boolean {
    const { start } = this.#options;
    return "from" in start || batch.at >= start.since;
  }

  #nextAfter(page: JournalPage): number {
    const last = page.batches.at(-1);
    if (last !== undefined) return last.idx + 1;
    return "from" in this.#start ? this.#start.from : page.next;
  }

  /** @param wantedIdx the furthest batch that is known to exist */
  async #waitForMore(page: JournalPage, next: number, wantedIdx: number): Promise<void> {
    const { clock, news } = this.#deps;
    const { signal } = this.#options;
    if (page.batches.length > 0) {
      this.#idlePages = 0;
      if (page.last >= next) return;
    }
    if (wantedIdx < next && page.last === next - 1) return await news.beyond(next - 1, signal);

    if (this.#idlePages === 0) this.#idleSinceMs = clock.monotonicMs();
    this.#idlePages += 1;
    if (clock.monotonicMs() - this.#idleSinceMs > limits.askTimeoutMs) this.#giveUp(page, next);
    const pace = { ...askPace(this.#deps), hurry$: abortOf(signal) };
    await firstValueFrom(pauseAfter(this.#idlePages, pace));
  }

  /** A standby may lag, but never for so long. */
  #giveUp(page: JournalPage, next: number): void {
    if (page.last >= next)
      throw new JournalDamagedError(
        `The journal has batches ${next} to ${page.last} but no coordinator returns them: check the journal's storage (\`waggle doctor\`)`,
      );
    const last = this.#sequence.last;
    if (page.last < next - 1 && last !== undefined)
      throw new LossError(last, { term: last.term, idx: page.last });
    if (!this.#options.follow)
      throw new UnreachableError(`No coordinator returns the journal beyond batch ${page.last}`);
    // News announced batches that no coordinator has: forget the announced index.
    this.#deps.news.forget();
    this.#idlePages = 0;
  }

  /** Every reader waits while coordinators are busy with other reads; asker.ts observes the requested delay. A
   *  follower also survives the absence of coordinators. A reader up to the present does not wait for the next
   *  coordinator. */
  async #nextPage({ mayOutlive }: { readonly mayOutlive: boolean }): Promise<JournalPage> {
    const { reader, transport } = this.#deps;
    for (;;) {
      try {
        const { project, contents, signal } = this.#options;
        return await reader.page({ project, start: this.#start, contents }, signal);
      } catch (error) {
        const isHeldBack = error instanceof BackpressureError;
        if (!isHeldBack && !(mayOutlive && mayPass(error))) throw error;
        if (transport.status() === "closed") throw error;
      }
    }
  }
}

/** @throws JournalDamagedError for a page that does not match the request: the feed would repeat the request
 *    without end, or take the page for a different part of the journal */
function requireAsked({ next, last, batches }: JournalPage, start: PageStart): void {
  const from = batches[0]?.idx ?? next;
  const isAsked = "from" in start ? from === start.from : from >= 1 && from <= last + 1;
  if (isAsked) return;
  const asked = "from" in start ? `from batch ${start.from} on` : `from the time ${start.since} on`;
  throw new JournalDamagedError(
    `A coordinator was asked for batches ${asked} and answered with batches from ${from} on: its journal is damaged, or it violates the protocol`,
  );
}

/** True if a follower retries after the error. A coordinator with unreadable answers will not improve. */
function mayPass(error: unknown): boolean {
  if (error instanceof UnreadableAnswerError) return false;
  return error instanceof NoLeaderError || error instanceof UnreachableError;
}
