// Reads the journal from its newest snapshot to where it ends now: how a coordinator begins, and begins anew.
//
// What is missing is looked for again before it counts as lost: a server that fails over may not know yet what it
// holds, and whoever leads makes snapshots and purges while we read. What lasts for `limits.lossPatienceMs` is
// believed, seen at five looks; by who runs already, or has heard meanwhile who could save it, after
// `limits.lossPatienceRunningMs`. While another coordinator leads, or says that it holds more than could be read,
// nothing is: it is for that one to save what the journal or its snapshots lost.
//
//   the journal ends before the snapshot goes on → another coordinator may hold the end: waits for it to put that back;
//                                                  where none says or shows for 2·T that it does, goes on from the
//                                                  snapshot, once what stands at the end is found
//   records or snapshots are not found, or what
//   was read is replaced meanwhile               → looks again, and then throws it
//   what is found is damaged                     → throws it
//   nobody answers                               → throws it, or looks again for as long as it takes

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { Endurance, lossEndurance } from "../../endurance.ts";
import { MissingRecordsError, mayPass, RewrittenError, UnreachableError } from "../../errors.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import type { ChainPosition } from "../../journal/replay.ts";
import { EndLostError, SnapshotsLostError } from "../../journal/snapshot/losses.ts";
import { type Restored, restoreAndRead } from "../../journal/snapshot/restore.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { standsBatch } from "../../journal/standing-batch.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";

export interface CatchUpDeps {
  readonly journal: Journal;
  /** Absent where there are none. */
  readonly snapshots?: SnapshotStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** T, of this coordinator. */
  readonly timeoutMs: number;
  /** Whether a server that does not answer is waited for. */
  readonly isPatient: boolean;
  readonly isOver: () => boolean;
  /** Whether another coordinator said later than 2·T before that instant that it leads. */
  readonly isLed: (sinceMonotonicMs: number) => boolean;
  /** Whether another coordinator said within 2·T that it holds the journal up to there, or more. */
  readonly isHeld: (position: ChainPosition) => boolean;
  /** Whether one said later than 2·T before that instant that it holds more than was folded here. */
  readonly isMoreHeld: (sinceMonotonicMs: number) => boolean;
  /** What was folded so far; each record behind it is given to `take`. Called again when reading begins anew. */
  readonly onRestored: (restored: Restored) => void;
  readonly take: (record: JournalRecord) => void;
  /** No snapshot can be read that leads to where the journal begins: tells the others, one of which may not know. */
  readonly onSnapshotsLost: () => void;
  /** Nobody holds what the journal lost: makes it go on from the snapshot. False where it could not be told whether
   *  that is safe, for something was not found.
   *  @throws `lost` where it is not safe; WaggleError where it could not be saved */
  readonly goOnBehind: (lost: EndLostError) => Promise<boolean>;
}

/** What may be over when it is looked for again. */
type Obstacle = UnreachableError | MissingRecordsError | RewrittenError;

/** @throws UnreachableError, JournalDamagedError */
export async function catchUp(deps: CatchUpDeps): Promise<void> {
  const { clock, journal, timeoutMs, logger, isOver, isPatient } = deps;
  const bearing = (ms: number) => lossEndurance(clock, ms, journal.sharable);
  let loss = bearing(isPatient ? limits.lossPatienceRunningMs : limits.lossPatienceMs);
  const solitude = new Endurance(clock, limits.announcementTimeouts * timeoutMs);
  let endSeq: number | undefined;
  for (;;) {
    const begunMonotonicMs = clock.monotonicMs();
    const fault = await read(deps);
    if (fault === undefined) return;
    if (isOver()) throw fault;
    if (fault instanceof SnapshotsLostError) deps.onSnapshotsLost();
    const isEnd = fault instanceof EndLostError;
    if (fault instanceof UnreachableError) {
      loss.renew();
      solitude.renew();
      endSeq = undefined; // it may have lost more
    }
    // Who could save it may be out of reach before it has. A look may take longer than one that was heard counts.
    if (deps.isLed(begunMonotonicMs) || (!isEnd && deps.isMoreHeld(begunMonotonicMs)))
      loss = bearing(limits.lossPatienceRunningMs);
    if (isEnd) {
      const { folded, lastSeq } = fault;
      const isGrowing = endSeq !== undefined && lastSeq > endSeq;
      endSeq = Math.max(lastSeq, endSeq ?? 0);
      const isPutBack = isGrowing && (await standsBatch(lastSeq, folded.position.journal, journal)) !== false;
      if (isPutBack || deps.isHeld(folded.position)) solitude.renew();
      if (solitude.isBelieved() && !(await mayLookAgain(fault, deps)) && loss.isBelieved()) throw fault;
    } else if (fault instanceof UnreachableError ? !isPatient : loss.isBelieved()) throw fault;
    const { code, message: reason } = fault; // an error may hold all that was folded
    logger.warn({ code, reason }, "the journal cannot be read: looking again");
    await pause(clock, limits.catchUpRetryMs);
  }
}

/** Whether it was gone on behind the snapshot, or could not be saved for now, by who waits. Where the journal ends with
 *  another line, somebody saved that, and a server that lags may not know the snapshot yet.
 *  @throws as `goOnBehind`, but for `lost` */
async function mayLookAgain(lost: EndLostError, { goOnBehind, isPatient }: CatchUpDeps): Promise<boolean> {
  try {
    return await goOnBehind(lost);
  } catch (cause) {
    if (cause === lost) return false;
    if (!mayPass(cause) || !isPatient) throw cause;
    return true;
  }
}

/** @returns what kept it from the end @throws whatever no further try would mend */
async function read(deps: CatchUpDeps): Promise<Obstacle | undefined> {
  try {
    const restored = await restoreAndRead(deps, (from) => {
      deps.onRestored(from);
      return deps.take;
    });
    restored.requireWhole();
    return undefined;
  } catch (cause) {
    if (cause instanceof UnreachableError || cause instanceof MissingRecordsError) return cause;
    if (cause instanceof RewrittenError) return cause;
    throw cause;
  }
}
