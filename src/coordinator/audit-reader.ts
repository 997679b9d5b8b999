// Reading back what was committed: pages for followers of the audit, outcomes of ended tasks. Asynchronous and
// bounded by a page; nothing is parsed for a page, its batches pass through as bytes.

import type { EndedTask } from "../core/state.ts";
import { JournalDamagedError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant } from "../ids.ts";
import { type Batch, decodeBatch } from "../journal/batch.ts";
import type { BatchPlaces } from "../journal/batch-places.ts";
import type { Journal } from "../journal/journal.ts";
import { limits } from "../limits.ts";
import type { Outcome } from "../protocol/schemas.ts";
import { outcomeOf } from "./outcome.ts";

export class AuditReader {
  readonly #journal: Journal;
  readonly #places: BatchPlaces;
  /** A few decoded batches: outcomes are asked for in the order in which they arose. */
  readonly #recentByIdx = new Map<BatchIndex, Batch>();

  /** @param places of what is committed */
  constructor(journal: Journal, places: BatchPlaces) {
    this.#journal = journal;
    this.#places = places;
  }

  /** How an ended task ended; `gone` when its batch is no longer held. @throws UnreachableError, JournalDamagedError */
  async outcome(ended: EndedTask): Promise<Outcome> {
    const batch = await this.#batch(ended.endedIdx);
    for (const event of batch?.events ?? []) {
      if (!("task" in event) || event.task !== ended.id) continue;
      const outcome = outcomeOf(event, ended.attempts);
      if (outcome !== undefined) return outcome;
    }
    return { task: ended.id, state: ended.state, attempts: ended.attempts, gone: true };
  }

  /** A page of committed batches from `from` to `last`, as the JSON of `journalPageSchema`.
   *  @throws UnreachableError, JournalDamagedError */
  async page(from: BatchIndex, last: BatchIndex): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let next = from;
    let bytes = 0;
    const fromSeq = this.#places.seqOf(from);
    if (from <= last && fromSeq !== undefined) {
      for await (const record of this.#journal.replay(fromSeq)) {
        if (this.#places.idxAt(record.seq) === undefined) continue;
        if (bytes > 0 && bytes + record.bytes.length > limits.queryPageBytesMax) break;
        parts.push(record.bytes);
        bytes += record.bytes.length;
        next = batchIndex(next + 1);
        if (next > last) break;
      }
    }
    return joinPage({ next, last }, parts);
  }

  /** The first batch at or after an instant, by bisection from `first` on; one past `last` when there is none.
   *  @throws UnreachableError; JournalDamagedError when a batch on the way is not held */
  async firstSince(
    since: Instant,
    { first, last }: { readonly first: BatchIndex; readonly last: BatchIndex },
  ): Promise<BatchIndex> {
    let low: number = first;
    let high = last + 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const batch = await this.#batch(batchIndex(middle));
      if (batch === undefined) throw new JournalDamagedError(`batch ${middle} is not found`);
      if (batch.at < since) low = middle + 1;
      else high = middle;
    }
    return batchIndex(low);
  }

  async #batch(idx: BatchIndex): Promise<Batch | undefined> {
    const known = this.#recentByIdx.get(idx);
    if (known !== undefined) return known;
    const seq = this.#places.seqOf(idx);
    const record = seq === undefined ? undefined : await this.#journal.read(seq);
    const batch = record === undefined ? undefined : decodeBatch(record.bytes);
    if (batch === undefined) return undefined;
    this.#recentByIdx.set(idx, batch);
    const oldest = this.#recentByIdx.keys().next();
    if (this.#recentByIdx.size > limits.recentBatchesMax && oldest.done === false)
      this.#recentByIdx.delete(oldest.value);
    return batch;
  }
}

function joinPage(
  { next, last }: { readonly next: number; readonly last: number },
  batches: readonly Uint8Array[],
): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from(`{"next":${next},"last":${last},"batches":[`)];
  for (const [at, batch] of batches.entries()) {
    if (at > 0) parts.push(Buffer.from(","));
    parts.push(batch);
  }
  parts.push(Buffer.from("]}"));
  return Buffer.concat(parts);
}
