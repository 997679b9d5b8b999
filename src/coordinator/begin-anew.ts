// Whether a coordinator that has read the journal so far, and cannot read on, may throw away what it folded and begin
// anew: what stood where it was is purged, lost or replaced.
//
// The rule: only where that loses nothing that was committed. A snapshot that can be read reaches further than it has
// read, or the last batch that it applied still stands where it read it. Else the fault is believed, after patience.

import type { Clock } from "../clock.ts";
import { Endurance } from "../endurance.ts";
import { MissingRecordsError } from "../errors.ts";
import type { Journal } from "../journal/journal.ts";
import { isSameBytes, type RecentRecords } from "../journal/recent-records.ts";
import type { Folded } from "../journal/replay.ts";
import { limits } from "../limits.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";

export interface BeginAnewDeps {
  readonly journal: Journal;
  readonly readable: ReadableSnapshots;
  readonly recent: () => RecentRecords;
  readonly clock: Clock;
  /** What was read so far. */
  readonly folded: () => Folded;
  /** Whether another coordinator said within T that it leads: it is for that one to save what was lost. */
  readonly isLed: () => boolean;
  readonly isOver: () => boolean;
}

/** Resolves with whether it may. What is missing is looked for again for `limits.lossPatienceRunningMs`, longer
 *  while another leads. @param cause why the journal cannot be read on */
export async function mayBeginAnew(cause: unknown, deps: BeginAnewDeps): Promise<boolean> {
  const { clock, isLed, isOver } = deps;
  const endurance = new Endurance(clock, limits.lossPatienceRunningMs);
  // Where the snapshots cannot be reached either, the first fault says more.
  while (!(await isLossless(deps).catch(() => false))) {
    if (isLed()) endurance.renew();
    if (endurance.isOver || !(cause instanceof MissingRecordsError)) return false;
    await new Promise<void>((resolve) => clock.after(limits.catchUpRetryMs, resolve));
    if (isOver()) return false;
  }
  return true;
}

/** Whether a snapshot that can be read reaches further than what was read. @throws UnreachableError */
export async function isOvertaken({
  readable,
  folded,
}: Pick<BeginAnewDeps, "readable" | "folded">): Promise<boolean> {
  const own = folded().position;
  return await readable.has(({ idx, seq }) => idx > own.idx || (idx === own.idx && seq > own.seq));
}

async function isLossless(deps: BeginAnewDeps): Promise<boolean> {
  return (await isOnRecord(deps)) || (await isOvertaken(deps));
}

/** Whether the last batch that was applied, and with it all before, stands where it was read: at most dead records
 *  behind it were replaced. */
async function isOnRecord({ journal, recent, folded }: BeginAnewDeps): Promise<boolean> {
  const { places, position } = folded();
  const seq = places.seqOf(position.idx);
  const held = seq === undefined ? undefined : recent().at(seq);
  if (held === undefined) return false;
  const found = await journal.read(held.seq);
  return found !== undefined && isSameBytes(found.bytes, held.bytes);
}
