// Whether a coordinator that has read the journal so far, and cannot read on, may throw away what it folded and begin
// anew: what stood where it was is purged, lost or replaced.
//
// The rule: only where that loses nothing that was committed. A snapshot that can be read reaches further than it has
// read, or another saved that much and went on behind it (saved-end.ts), or the last batch that it has read still
// stands where it read it, and a snapshot that can be read holds what was applied besides. Where another record stands
// in that batch's place the fault is believed once it lasts, for who saved it may not be known yet, and at once where
// there are no snapshots; else after patience: that none is found proves nothing. Nor does that nobody answers, for
// however long.

import type { Clock } from "../../clock.ts";
import { Endurance, lossEndurance } from "../../endurance.ts";
import { MissingRecordsError, UnreachableError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { isSameBytes, type RecentRecords } from "../../journal/recent-records.ts";
import type { Folded } from "../../journal/replay.ts";
import { isOfThoseBefore } from "../../journal/snapshot/left-out.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import { type ReadableSnapshots, reachesBehind } from "../compaction/readable-snapshots.ts";
import { isSavedByAnother } from "../repair/saved-end.ts";

export interface BeginAnewDeps {
  readonly journal: Journal;
  readonly readable: ReadableSnapshots;
  readonly recent: () => RecentRecords;
  readonly clock: Clock;
  /** What was read so far. */
  readonly folded: () => Folded;
  /** Whether another coordinator said later than T before that instant that it leads: it is for that one to save what
   *  was lost. */
  readonly isLed: (sinceMonotonicMs: number) => boolean;
  readonly isOver: () => boolean;
}

/** What a look at the journal and its snapshots shows. */
type Look = "lossless" | "lost" | "unknown" | "unanswered";

/** Resolves with whether it may. What is not known is looked for again for `limits.lossPatienceRunningMs`, longer
 *  while another leads or nobody answers, and so are records that are missing.
 *  @param cause why the journal cannot be read on */
export async function mayBeginAnew(cause: unknown, deps: BeginAnewDeps): Promise<boolean> {
  const { clock, isLed, isOver, readable } = deps;
  const endurance = new Endurance(clock, limits.lossPatienceRunningMs, limits.lossLooksMin);
  const certainty = lossEndurance(clock, limits.readBackPatienceMs, readable.areKept);
  const mayBeFound = cause instanceof MissingRecordsError;
  for (;;) {
    const begunMonotonicMs = clock.monotonicMs();
    const look = await lookAgain(deps);
    if (look === "lossless") return true;
    if (isLed(begunMonotonicMs) || look === "unanswered") endurance.renew();
    if (look === "unanswered") certainty.renew();
    const isCertain = look === "lost" && !mayBeFound && certainty.isBelieved();
    if (isCertain || endurance.isBelieved()) return false;
    await pause(clock, limits.catchUpRetryMs);
    if (isOver()) return false;
  }
}

/** Whether a snapshot that can be read reaches further than what was read. @throws UnreachableError */
export async function isOvertaken({
  readable,
  folded,
}: Pick<BeginAnewDeps, "readable" | "folded">): Promise<boolean> {
  const own = folded().position;
  return await readable.has((position) => reachesBehind(position, own));
}

async function lookAgain(deps: BeginAnewDeps): Promise<Look> {
  try {
    const found = await lookAtRecord(deps);
    if (found === "lossless" || (await isOvertaken(deps))) return "lossless";
    return (await isSavedByAnother({ committed: [deps.folded().position] }, deps)) ? "lossless" : found;
  } catch (cause) {
    return cause instanceof UnreachableError ? "unanswered" : "lost"; // the first fault says more
  }
}

/** Whether the last batch that was read, and with it all before, stands where it was read: at most dead records behind
 *  it were replaced. That is the last one that was applied, unless the journal lost that, and goes on behind a snapshot
 *  of it, which must be there to begin at. */
async function lookAtRecord(deps: BeginAnewDeps): Promise<Look> {
  const { journal, recent, folded } = deps;
  const { places, position } = folded();
  const idx = places.lastUntil(position.seq);
  const seq = idx && places.seqOf(idx);
  if (seq === undefined) return "lost";
  if (idx !== position.idx && !(await canBeginAtSnapshot(seq, deps))) return "lost";
  if (recent().at(seq) === undefined) return "lost"; // there is nothing to compare with
  const { lastSeq } = await journal.position();
  const held = recent().at(Math.min(seq, lastSeq));
  const found = held && (await journal.read(held.seq));
  if (held === undefined || found === undefined) return "unknown";
  if (!isSameBytes(found.bytes, held.bytes)) return "lost";
  return held.seq === seq ? "lossless" : "unknown";
}

/** Whether a snapshot of all that was applied can be read, and would not be left out for what stands behind `batchSeq`
 *  up to where it ends. One that reaches further is looked for, too (`isOvertaken`). */
async function canBeginAtSnapshot(
  batchSeq: number,
  { journal, readable, folded }: BeginAnewDeps,
): Promise<boolean> {
  const { position } = folded();
  if (!(await readable.has(({ hash }) => hash === position.hash))) return false;
  const fromSeq = Math.max(batchSeq + 1, position.seq - limits.deadComparedMax);
  for (let seq = fromSeq; seq <= position.seq; seq += 1) {
    const record = await journal.read(seq);
    if (record !== undefined && isOfThoseBefore(record, folded())) return false;
  }
  return true;
}
