// How much of a journal is kept to be read: from which batch on, and why no more. Only what two snapshots stand behind
// may go, so that a restart that cannot read the newest one still finds all it needs. Of a bounded journal no more is
// kept than leaves room for what comes, and what is over that goes a little at a time (kept-room.ts).

import { type BatchIndex, batchIndex, type Instant } from "../../ids.ts";
import type { TrimReason } from "../../state/event.ts";
import { decodeBatch } from "../batch.ts";
import type { BatchPlaces } from "../batch-places.ts";
import type { JournalReader } from "../journal.ts";
import { keptBytesMax } from "../kept-room.ts";
import type { Manifest } from "./manifest.ts";

/** Where both are said, what is kept is the less of both. */
export interface Retention {
  /** Batches younger than this are kept; infinite where only `bytes` is said. */
  readonly ageMs: number;
  /** So much of the journal's end is kept; infinite where only `ageMs` is said. */
  readonly bytes: number;
}

export interface TrimOrder {
  readonly retention: Retention;
  /** Journal time. */
  readonly now: Instant;
  /** What the journal takes of its storage. */
  readonly journalBytes: number;
  /** Its room; undefined where it has no bound. */
  readonly journalBytesMax: number | undefined;
  /** What came since the snapshot before. */
  readonly cameBytes: number;
  /** The journal is short of room: if it holds no more than may be kept, its bound is not the reason, and nothing is
   *  kept for the audit's sake. */
  readonly isShort: boolean;
}

export interface Trim {
  /** The first batch that is kept. */
  readonly firstIdx: BatchIndex;
  readonly reason: Extract<TrimReason, "retention" | "storage-short">;
}

/** @param older the snapshot before the newest · @returns undefined when nothing is to go
 *  @throws UnreachableError, JournalDamagedError */
export async function trimOf(
  journal: JournalReader,
  places: BatchPlaces,
  older: Manifest,
  order: TrimOrder,
): Promise<Trim | undefined> {
  const firstIdx = places.firstFrom((await journal.position()).firstSeq);
  const lastIdx = batchIndex(older.position.idx + 1);
  if (firstIdx === undefined || firstIdx >= lastIdx) return undefined;
  const reading = new Reading(journal, places, { firstIdx, lastIdx });
  const { retention, now, journalBytes, journalBytesMax, cameBytes, isShort } = order;
  const keptMax = keptBytesMax(journalBytesMax, cameBytes);
  const byAge = await reading.firstSince(now - retention.ageMs);
  const byBytes = await reading.firstBehind(journalBytes - Math.min(retention.bytes, keptMax));
  const isShortOfMore = isShort && journalBytes <= keptMax;
  const keptIdx = isShortOfMore ? lastIdx : batchIndex(Math.max(byAge, byBytes));
  if (keptIdx <= firstIdx) return undefined;
  const isAsked = keptIdx === byAge || (keptIdx === byBytes && retention.bytes <= keptMax);
  return { firstIdx: keptIdx, reason: isAsked ? "retention" : "storage-short" };
}

/** Answers lie between the two, both included. */
class Reading {
  readonly #journal: JournalReader;
  readonly #places: BatchPlaces;
  readonly #firstIdx: BatchIndex;
  readonly #lastIdx: BatchIndex;

  constructor(
    journal: JournalReader,
    places: BatchPlaces,
    range: { readonly firstIdx: BatchIndex; readonly lastIdx: BatchIndex },
  ) {
    this.#journal = journal;
    this.#places = places;
    this.#firstIdx = range.firstIdx;
    this.#lastIdx = range.lastIdx;
  }

  /** The first batch at or after an instant, by bisection. */
  async firstSince(since: number): Promise<number> {
    let low: number = this.#firstIdx;
    let high: number = this.#lastIdx;
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = await this.#instantOf(batchIndex(middle));
      if (at === undefined || at < since) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first batch before which so many bytes stand. */
  async firstBehind(bytes: number): Promise<number> {
    const fromSeq = this.#places.seqOf(this.#firstIdx);
    if (bytes <= 0 || fromSeq === undefined) return this.#firstIdx;
    let passed = 0;
    let idx: number = this.#firstIdx;
    for await (const record of this.#journal.replay(fromSeq)) {
      if (passed >= bytes || idx >= this.#lastIdx) break;
      passed += record.bytes.length;
      idx = (this.#places.idxAt(record.seq) ?? idx - 1) + 1;
    }
    return Math.min(idx, this.#lastIdx);
  }

  async #instantOf(idx: BatchIndex): Promise<Instant | undefined> {
    const seq = this.#places.seqOf(idx);
    const record = seq === undefined ? undefined : await this.#journal.read(seq);
    return record === undefined ? undefined : decodeBatch(record.bytes)?.at;
  }
}
