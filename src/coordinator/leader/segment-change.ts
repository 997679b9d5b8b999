// The planned change of segment: the leader goes on in the next segment, which begins with a base. The base and most
// copies exist already (compacting/make-next-segment.ts). With no batch in flight:
//
//   Closing → seal → the remaining copies → Opened
//
// After any failure the leader takes the lead again from memory (taking-lead/take-lead.ts).

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Term } from "../../ids.ts";
import type { BaseRef } from "../../journal/base.ts";
import { inspect } from "../../journal/inspect.ts";
import type { Journal } from "../../journal/journal.ts";
import type { RecentBatches } from "../../journal/recent-batches.ts";
import type { ChainTail, Closing } from "../../journal/records.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { SegmentWriter } from "../../journal/segment-writer.ts";

/** The next segment, claimed by this leader, with a base and copies of later batches. */
export interface NextSegment {
  readonly writer: SegmentWriter;
  readonly base: BaseRef;
  /** The last copied batch; without copies the base's last batch. */
  readonly copiedIdx: number;
  /** `hashOf` that batch. */
  readonly copiedHash: string;
}

/** The segment that the leader leaves. */
export interface LeftSegment {
  readonly number: number;
  /** Position of the segment's last record. */
  readonly position: number;
  readonly recordHash: string;
}

export interface SegmentChangeDeps {
  /** The coordinator's id, shown in the audit and in logs. */
  readonly id: string;
  readonly session: string;
  readonly journal: Journal;
  readonly recentBatches: RecentBatches;
  readonly clock: Clock;
}

/** Ends a segment of this leader. No batch is in flight. @throws as `SegmentWriter.put`, UnreachableError */
export async function closeSegment(
  left: LeftSegment,
  closing: Pick<Closing, "reason" | "to">,
  { session, journal, clock }: SegmentChangeDeps,
  signal: AbortSignal,
): Promise<void> {
  const segment = journal.segment(left.number);
  const writer = new SegmentWriter({ segment, session, position: left.position, clock, signal });
  await writer.close(closing);
  const { found } = await inspect(segment, { position: left.position, recordHash: left.recordHash });
  if (found !== "longer")
    throw new JournalDamagedError(`segment ${left.number} is ${found} behind record ${writer.position}`);
}

/** @param tail the last batch of the state, committed · @param term this leader's
 *  @returns the new segment. @throws as `closeSegment` */
export async function changeSegment(
  {
    left,
    next,
    tail,
    term,
    recent,
  }: {
    readonly left: LeftSegment;
    readonly next: NextSegment;
    readonly tail: ChainTail;
    readonly term: Term;
    readonly recent: readonly string[];
  },
  deps: SegmentChangeDeps,
  signal: AbortSignal,
): Promise<LiveSegment> {
  const { id, recentBatches } = deps;
  const { writer, base, copiedIdx, copiedHash } = next;
  const committedHash = recent.at(copiedIdx - tail.idx - 1);
  if (committedHash !== undefined && committedHash !== copiedHash)
    throw new JournalDamagedError(`batch ${copiedIdx} in segment ${left.number} is not as it was committed`);
  await closeSegment(left, { reason: "next-segment" }, deps, signal);
  for (let idx = copiedIdx + 1; idx <= tail.idx; idx += 1) {
    const bytes = recentBatches.at(idx);
    if (bytes === undefined) throw new JournalDamagedError(`batch ${idx} is not held for the next segment`);
    await writer.put(bytes);
  }
  const { journal, idx, hash } = tail;
  const previous = { segment: left.number, idx, hash };
  return await writer.open({ journal, term, leader: id, tail, previous, base, recent });
}
