// Goes on from the last good batch of a damaged journal, when an operator says so. It opens the next segment with a
// base of the readable log, like a coordinator after a loss (taking-lead/). No coordinator should run meanwhile. A
// running leader would stand by at its next append, because its segment is sealed.
//
//   seal all segments ─ claim ─ base ─ read it back ─ open ─ one batch ─ Closing, so that any coordinator may lead
//
// The batch begins the term and names the lost batches, so that the audit shows the recovery (`AuditTrimmed`). The
// audit keeps the earlier batches that can be read.

import type { Clock, Random } from "../../clock.ts";
import { Turn } from "../../core/step.ts";
import { JournalDamagedError } from "../../errors.ts";
import { batchIndex, instant, type Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import { encodeBatch } from "../../journal/records.ts";
import type { Replay } from "../../journal/replay.ts";
import { newAttempt, newJournalId, SegmentWriter } from "../../journal/segment-writer.ts";
import { limits } from "../../limits.ts";

export interface RecoveryDeps {
  /** Id of the recovery, shown in the audit as the leader of its term. */
  readonly id: string;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Recovery {
  /** First batch of the readable stretch up to the last good batch. */
  readonly auditFirstIdx: number;
  /** The last batch that a readable record names behind the last good batch. Undefined without such a record. */
  readonly lostToIdx: number | undefined;
  /** Existing segments: after the seal they take no more records. */
  readonly sealed: readonly number[];
  /** Number of the segment to open: higher than every number ever listed. */
  readonly number: number;
}

/** @param log up to the last good batch; its state is consumed
 *  @throws UnreachableError; JournalDamagedError when a segment disappears; SegmentLostError when another process
 *  claimed the number; WaggleError WAGGLE_JOURNAL_FULL; the signal's reason */
export async function openRecovered(
  log: Replay,
  { auditFirstIdx, lostToIdx, sealed, number }: Recovery,
  { id, journal, clock, random }: RecoveryDeps,
  signal: AbortSignal,
): Promise<void> {
  const { tail, state, place } = log;
  const session = random.id(limits.sessionCharacters);
  for (const listed of sealed.toReversed()) {
    signal.throwIfAborted();
    if (!(await journal.segment(listed).seal()))
      throw new JournalDamagedError(`segment ${listed} was removed meanwhile: begin again`);
  }
  const writer = new SegmentWriter({ segment: journal.segment(number), session, clock, signal });
  await writer.claim(journal, newAttempt(random));
  const base = tail.idx > 0 ? await writer.writeBase(log) : undefined;
  const term = number as Term;
  const { opened, openedHash } = await writer.open({
    journal: tail.journal || newJournalId(random),
    term,
    leader: id,
    tail,
    previous: place === undefined ? undefined : { segment: place.segment, idx: tail.idx, hash: tail.hash },
    base,
    recent: log.recent.upTo(tail.idx, limits.openedHashesMax),
  });

  const idx = batchIndex(tail.idx + 1);
  const at = instant(Math.max(state.at, Math.floor(clock.now())));
  const turn = new Turn(state, at, idx);
  const timeoutMs = state.leaderTimeoutMs || limits.leaderTimeoutMs;
  turn.take({ type: "StartTerm", term, leader: id, opened: openedHash, timeoutMs });
  const firstIdx = batchIndex(auditFirstIdx);
  const givenUp = lostToIdx === undefined ? { from: idx } : { from: idx, to: batchIndex(lostToIdx) };
  turn.take({ type: "TrimAudit", firstIdx, reason: "lost", givenUp });
  const header = { journal: opened.journal, session, term, idx, prev: tail.hash, at };
  await writer.put(encodeBatch(header, turn.eventsJson));
  await writer.close({ reason: "handing-over" });
}
