// The newest base of a log, the later batches, and how many batches make another base due.

import { JournalDamagedError } from "../../errors.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { readManifest } from "../../journal/base.ts";
import type { Journal, JournalUsage } from "../../journal/journal.ts";
import { pathTo } from "../../journal/live.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";

export interface NewestBase {
  /** The last batch in the base. */
  readonly idx: BatchIndex;
  /** Journal time. */
  readonly at: Instant;
  readonly bytes: number;
}

/** Batches committed behind a base. */
export interface Behind {
  readonly events: number;
  readonly bytes: number;
}

export interface FoundBase {
  /** Undefined while the log has none. */
  readonly newest: NewestBase | undefined;
  /** The log's newest base cannot be read. */
  readonly isDamaged: boolean;
  /** A lower bound: counts stored batches only. */
  readonly behind: Behind;
}

/** @param live the segment with the end of the log, `lastIdx`
 *  @throws UnreachableError; JournalDamagedError when a segment behind the base is missing */
export async function findNewestBase(
  journal: Journal,
  live: LiveSegment,
  lastIdx: number,
): Promise<FoundBase> {
  const path = await pathTo(journal, live, ({ opened }) => opened.base !== undefined);
  const ends = await Promise.all(path.map(({ number }) => journal.segment(number).end()));
  const storedBytes = ends.reduce((bytes, end) => bytes + (end?.bytes ?? 0), 0);
  const [first] = path;
  const { base } = first.opened;
  if (base === undefined)
    return { newest: undefined, isDamaged: false, behind: { events: lastIdx, bytes: storedBytes } };
  try {
    const { tail, at, chunks } = await readManifest(journal.segment(first.number), base);
    const bytes = chunks.reduce((sum, [, size]) => sum + size, 0);
    const behind = { events: lastIdx - tail.idx, bytes: Math.max(0, storedBytes - bytes) };
    return { newest: { idx: tail.idx, at, bytes }, isDamaged: false, behind };
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    return { newest: undefined, isDamaged: true, behind: { events: lastIdx - base.idx, bytes: storedBytes } };
  }
}

/** Bytes of batches behind a base after which another base is due. They outweigh the base, or take a share of the
 *  journal's room, so that old segments are removed in time. */
export function baseSpacingBytes(
  base: Pick<NewestBase, "bytes"> | undefined,
  { bytesMax = Number.POSITIVE_INFINITY }: Pick<JournalUsage, "bytesMax">,
): number {
  const baseBytes = base?.bytes ?? 0;
  const outweighing = Math.max(limits.baseOutweighedTimes * baseBytes, limits.baseSpacingBytesMin);
  return Math.min(outweighing, Math.max(baseBytes, bytesMax * limits.baseJournalShare));
}
