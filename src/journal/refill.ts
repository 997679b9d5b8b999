// Whether a journal goes on as it was read, and putting back what it lost of its end: after a power failure a log may
// be shorter than what was read from it. The records are appended byte for byte where they stood, so that several
// coordinators may do it at once, and each finds the others' as its own.
//
// The rule: the record at which the journal ends now must be the one that stood there before, and where that is dead,
// so must all be from the newest batch before it on: one dead record may be like another. If one of them is another,
// somebody wrote behind the lost end, and what was lost cannot be put back. Dead records at its end are put back only
// by whoever holds as much as anybody: a leader that had not met them may have written in their place, and others have
// read that.

import type { Endurance } from "../endurance.ts";
import { limits } from "../limits.ts";
import type { Journal } from "./journal.ts";
import { forkError, refusedTailError, unreadableError } from "./journal-errors.ts";
import { isSameBytes, type RecentRecords } from "./recent-records.ts";

export type Refilled =
  /** The journal ends where it ended, or goes on. */
  | { readonly kind: "whole"; readonly lastSeq: number }
  /** What stood behind `untilSeq` was purged by who stands behind it. */
  | { readonly kind: "purged" }
  /** So many by us. */
  | { readonly kind: "refilled"; readonly records: number }
  /** Some of what is missing behind `lastSeq` is not held any more. Nothing was appended. */
  | { readonly kind: "not-held"; readonly lastSeq: number }
  /** Not to the end, for now: no room, no answer, or each record refused, as by a server that does not know yet what it
   *  holds. What was appended stands. */
  | { readonly kind: "unfinished"; readonly cause: unknown };

/** Appends again what `journal` lost of the records up to `untilSeq`, or to the last one that is held.
 *  @param miss of the record behind which that is
 *  @throws UnreachableError; JournalDamagedError when it went on differently */
export async function refill(
  journal: Journal,
  recent: RecentRecords,
  untilSeq: number,
  miss: Endurance,
): Promise<Refilled> {
  const { firstSeq, lastSeq } = await journal.position();
  if (firstSeq > untilSeq + 1) return { kind: "purged" };
  if (lastSeq >= untilSeq) return { kind: "whole", lastSeq };
  if (!isHeld(recent, lastSeq)) return { kind: "not-held", lastSeq };
  if (!(await isSameLine(journal, recent, lastSeq, miss)))
    return { kind: "unfinished", cause: unreadableError(lastSeq) };
  let stored = 0;
  for (let seq = lastSeq + 1; seq <= untilSeq; seq += 1) {
    const record = recent.at(seq);
    if (record === undefined) return { kind: "not-held", lastSeq: seq - 1 }; // dropped meanwhile
    const outcome = await journal.append(record.bytes, seq - 1);
    if (outcome.kind === "stored") {
      stored += 1;
      continue;
    }
    if (outcome.kind !== "refused") return { kind: "unfinished", cause: outcome };
    // Somebody else puts it back, too; or nobody does, and what comes next must not land behind what is not known.
    if (!(await isFound(journal, recent, seq)))
      return { kind: "unfinished", cause: refusedTailError(seq - 1, untilSeq) };
  }
  if (stored > 0) return { kind: "refilled", records: stored };
  const now = await journal.position(); // somebody else may have put it back
  return now.lastSeq >= untilSeq
    ? { kind: "whole", lastSeq: now.lastSeq }
    : { kind: "unfinished", cause: refusedTailError(now.lastSeq, untilSeq) };
}

/** Whether everything behind `lastSeq` is held, and from a batch before it on what is compared; of an empty journal
 *  nothing is. */
function isHeld(recent: RecentRecords, lastSeq: number): boolean {
  return recent.at(lastSeq + 1) !== undefined && (lastSeq === 0 || recent.lastLiveUntil(lastSeq) > 0);
}

/** Whether the journal goes up to `seq` as it was read: what stands there is found, or has not been for long, for a
 *  server may not find what it holds, nor another record that stands there.
 *  @throws JournalDamagedError when another record stands there; UnreachableError */
export function isSameLine(
  journal: Journal,
  recent: RecentRecords,
  seq: number,
  miss: Endurance,
): Promise<boolean> {
  return isFoundOrGone(isLineFound(journal, recent, seq), miss);
}

/** Whether the record at `seq` is found, and where it is dead, all from the newest batch before it on: a dead one may
 *  have been lost, and a batch written in its place by a leader that had not met it, behind which the journal goes on
 *  as it did. Looks at the first `limits.deadComparedMax`. What was purged is not looked for.
 *  @throws as `isSameLine` */
export async function isLineFound(journal: Journal, recent: RecentRecords, seq: number): Promise<boolean> {
  const fromSeq = Math.max(recent.firstSeq, recent.lastLiveUntil(seq));
  const untilSeq = Math.min(seq, fromSeq + limits.deadComparedMax);
  const missing: number[] = [];
  const look = async (place: number) => {
    if (!(await isFound(journal, recent, place))) missing.push(place);
  };
  for (let next = fromSeq; next < untilSeq; next += limits.deadComparedAtOnce) {
    const count = Math.min(limits.deadComparedAtOnce, untilSeq - next);
    await Promise.all(Array.from({ length: count }, (_, at) => look(next + at)));
  }
  await look(seq);
  if (missing.length === 0) return true;
  const { firstSeq } = await journal.position();
  return missing.every((place) => place < firstSeq);
}

/** Whether a record is found there, or none is held to compare. @throws as `isSameLine` */
async function isFound(journal: Journal, recent: RecentRecords, seq: number): Promise<boolean> {
  const held = recent.at(seq);
  if (held === undefined) return true;
  const found = await journal.read(seq);
  if (found !== undefined && !isSameBytes(found.bytes, held.bytes)) throw forkError(seq);
  return found !== undefined;
}

/** Whether it is found, or was missing for so long that it is believed to be gone. Time in which nobody answers does
 *  not count. @throws as `found` */
async function isFoundOrGone(found: Promise<boolean>, miss: Endurance): Promise<boolean> {
  try {
    if (!(await found)) return miss.isBelieved();
  } catch (cause) {
    miss.renew();
    throw cause;
  }
  miss.renew();
  return true;
}
