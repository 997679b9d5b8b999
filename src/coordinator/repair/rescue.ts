// What a leader does when the journal lost records that a restart would read, or the snapshots that stand for what was
// purged of it, and nobody can put them back: a snapshot of the state in memory stands for them. It learns of the loss
// from whoever found it, or by reading back what was acknowledged (read-back.ts), and is done with it once the journal
// is proven to keep again.
//
//   at rest → save → go on behind it → append a beat → is it found? ─yes→ put on record where the audit is whole again
//     ▲                                                    │ no
//     └──────── wait, or purge once what is not kept ◄─────┘   (purge-unkept.ts)
//
// Not here: what the leader may do and say meanwhile (embargo.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { JournalDamagedError, mayPass, UnreachableError } from "../../errors.ts";
import { type BatchIndex, batchIndex } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import { unreadableError } from "../../journal/journal-errors.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { Folded } from "../../journal/replay.ts";
import { RestartLostError } from "../../journal/snapshot/losses.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import { snapshotNow } from "../../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { TrimReason } from "../../state/event.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import type { Embargo } from "./embargo.ts";
import { firstSeqBehindHoles } from "./hole.ts";
import { purgeUnkept } from "./purge-unkept.ts";
import { ReadBack } from "./read-back.ts";

/** `unreadable`: the journal acknowledged records and does not find them. `snapshots-lost`: the journal is whole,
 *  and nothing that can be read leads to where it begins; or it counts all records, and what a restart would read of it
 *  is damaged: the record is as it was. */
export type LossReason = Extract<TrimReason, "hole" | "tail-lost"> | "unreadable" | "snapshots-lost";

export interface RescueDeps {
  readonly journal: Journal;
  /** Absent where there are none: then nothing can be rescued. */
  readonly snapshots: SnapshotStore | undefined;
  readonly readable: ReadableSnapshots;
  readonly recent: RecentRecords;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is asked of the leader whose state is saved. */
export interface RescuedLeader {
  readonly isOver: () => boolean;
  /** Whether nothing is in flight. */
  readonly isSettled: () => boolean;
  /** Where the newest committed batch stands. */
  readonly committedSeq: () => number;
  /** The journal up to the newest batch, to go on behind the record `seq`; by default, the last one that it knows. */
  readonly folded: (seq?: number) => Folded;
  /** What was in flight is durable without the journal: appends behind the record `seq`. */
  readonly continueBehind: (seq: number) => void;
  readonly appendBeat: () => void;
  /** A snapshot of the state is durable. */
  readonly saved: (manifest: Manifest, reason: LossReason) => void;
  /** Turns go on. */
  readonly resume: () => void;
  /** Puts on record from which batch on the journal is whole. */
  readonly trimAudit: (firstIdx: BatchIndex, reason: TrimReason) => void;
  /** Another batch stands where one of its own was acknowledged. Resolves with whether that was the end of the term: it
   *  is to be told again where it was not. */
  readonly forked: (error: JournalDamagedError) => Promise<boolean>;
  /** The term cannot go on. */
  readonly broke: (cause: unknown) => void;
}

export class Rescue {
  readonly #deps: RescueDeps;
  readonly #embargo: Embargo;
  readonly #leader: RescuedLeader;
  readonly #readBack: ReadBack;
  /** Bumped when a rescue takes the place of another. */
  #round = 0;
  /** Records were found to be lost while a rescue was under way, which it takes in: what is appended behind what it
   *  saves is looked for before it is over. */
  #hasLostMore = false;
  /** Called after the next commit: a round that another has taken the place of may wait for rest, too. */
  #onceCommitted: (() => void)[] = [];

  constructor(deps: RescueDeps, embargo: Embargo, leader: RescuedLeader) {
    this.#deps = deps;
    this.#embargo = embargo;
    this.#leader = leader;
    const hooks = {
      onDoubt: () => this.#embargo.doubt(),
      onFound: () => this.#dispel(),
      onUnreadable: (error: JournalDamagedError) => this.#sawUnreadable(error),
      onDamaged: (error: JournalDamagedError) => void this.#leader.forked(error),
    };
    this.#readBack = new ReadBack({ ...deps, committedSeq: leader.committedSeq }, hooks);
  }

  /** Puts on record where the journal is whole, should it have lost its end, or records be missing: who began from a
   *  snapshot that another saved for their loss is not told of it by the journal, where that one's term ended before it
   *  could say so, or never began. What nobody has saved stays to be found. To be called when the term begins. */
  async trimBehindLosses(): Promise<void> {
    const folded = this.#leader.folded();
    const { firstBehindGap } = folded.places;
    if (firstBehindGap !== undefined && firstBehindGap > folded.state.auditFirstIdx)
      this.#leader.trimAudit(firstBehindGap, "tail-lost");
    await this.#trimWhere(folded, async () => {
      const { firstSeq, missing } = await this.#deps.journal.position();
      if (missing === 0) return undefined;
      const { state, places, position } = folded;
      const auditSeq = places.seqOf(state.auditFirstIdx) ?? firstSeq;
      const lowestSeq = position.seq - limits.holeScanRecordsMax;
      const holes = { fromSeq: Math.max(auditSeq, lowestSeq), lastSeq: position.seq };
      const wholeSeq = await firstSeqBehindHoles(holes, this.#deps);
      const isSaved = wholeSeq !== undefined && (await this.#deps.readable.leadsTo(wholeSeq));
      return isSaved ? wholeSeq : undefined;
    });
  }

  /** Asks, when the last answer is old, whether the journal keeps what it acknowledged. */
  look(): void {
    this.#readBack.look();
  }

  /** The server may have lost something: the next look asks, however young the last answer is. */
  lookSoon(): void {
    this.#readBack.lookSoon();
  }

  /** To be called after each commit. */
  committed(): void {
    for (const run of this.#onceCommitted.splice(0)) run();
  }

  /** What a restart would read is lost: saves the state once nothing is in flight. */
  saveAtRest(reason: LossReason, lost: JournalDamagedError): void {
    if (this.#leader.isOver()) return;
    if (this.#embargo.holdsTurns) {
      this.#hasLostMore ||= reason !== "snapshots-lost";
      return;
    }
    try {
      this.#begin(reason, lost);
    } catch (cause) {
      return this.#leader.broke(cause);
    }
    this.#hasLostMore = false;
    void this.#run(reason, () => this.#foldedAtRest());
  }

  /** The journal ends at `lastSeq`: what is in flight finds no place, and is saved with the rest.
   *  @throws JournalDamagedError where there is nowhere to save to */
  saveLostTail(lastSeq: number, lost: JournalDamagedError): void {
    this.#begin("tail-lost", lost);
    void this.#run("tail-lost", async () => this.#leader.folded(lastSeq));
  }

  stop(): void {
    this.#readBack.stop();
  }

  #dispel(): void {
    try {
      this.#embargo.dispel();
    } catch (cause) {
      this.#leader.broke(cause);
    }
  }

  /** Where there is nothing to save to, it is waited for. */
  #sawUnreadable(error: JournalDamagedError): void {
    if (this.#deps.snapshots !== undefined) this.saveAtRest("unreadable", error);
    else this.#deps.logger.error({ err: error }, "the journal does not keep what it acknowledges");
  }

  /** @throws JournalDamagedError where there is nowhere to save to */
  #begin(reason: LossReason, lost: JournalDamagedError): void {
    if (this.#deps.snapshots === undefined) throw lost;
    this.#deps.logger.error(
      { err: lost },
      `${lost instanceof RestartLostError ? "a restart could not read the journal" : whatIsLost[reason]}: the state is saved as a snapshot, and nothing is answered until it is`,
    );
    this.#embargo.impose({ mayBeat: reason === "hole" || reason === "snapshots-lost" });
  }

  /** Saves the state, behind which the journal goes on; what is in flight is durable with it. Over once the journal
   *  keeps what is appended behind it. */
  async #run(reason: LossReason, fold: () => Promise<Folded>): Promise<void> {
    this.#round += 1;
    const round = this.#round;
    const isCurrent = () => !this.#leader.isOver() && round === this.#round;
    let mayPurge = true;
    try {
      let folded = await this.#save(fold, reason, isCurrent);
      if (!isCurrent()) return;
      if (reason === "tail-lost") this.#leader.continueBehind(folded.position.seq);
      while (!(await this.#isKeptBehind(folded))) {
        if (!isCurrent()) return;
        this.#begin("unreadable", unreadableError(folded.position.seq + 1));
        this.#hasLostMore = true;
        folded = await this.#save(() => this.#foldedAtRest(), reason, isCurrent);
        if (!isCurrent()) return;
        if (mayPurge && (await purgeUnkept(folded, this.#deps))) {
          mayPurge = false; // what it did not help once it will not help again
          continue;
        }
        this.#deps.logger.error(
          { idx: folded.position.idx },
          "the state is saved, and the journal still does not keep what it acknowledges: purge its stream (`nats stream purge`), which the snapshot stands for, or replace the server",
        );
        await pause(this.#deps.clock, limits.rescueProbeMs);
        if (!isCurrent()) return;
      }
      if (!isCurrent()) return;
      this.#readBack.forgive();
      this.#deps.logger.warn("the state is saved: answers go on");
      this.#embargo.lift();
      this.#leader.resume();
      await this.#trimAudit(folded, reason);
    } catch (cause) {
      if (!(cause instanceof JournalDamagedError)) return this.#leader.broke(cause);
      while (isCurrent() && !(await this.#leader.forked(cause)))
        await pause(this.#deps.clock, limits.journalLookMs);
    }
  }

  /** Resolves when the state is durable, however often that fails, with what was saved.
   *  @param fold gives the state at rest, anew for each try: beats went on since the last one
   *  @param isCurrent whether it is still wanted: nothing is saved any more when it is not
   *  @throws whatever no further try would mend */
  async #save(fold: () => Promise<Folded>, reason: LossReason, isCurrent: () => boolean): Promise<Folded> {
    const { snapshots, journal, clock, logger } = this.#deps;
    for (;;) {
      const folded = await fold();
      if (snapshots === undefined || !isCurrent()) return folded;
      try {
        const manifest = await snapshotNow(folded, { store: snapshots, journal, clock, logger });
        if (!isCurrent()) return folded;
        this.#leader.saved(manifest, reason);
        this.#embargo.saved();
        return folded;
      } catch (cause) {
        if (!mayPass(cause)) throw cause;
        logger.error(
          { err: cause },
          "the state could not be saved: it is tried again, and nothing is answered",
        );
        await pause(clock, limits.rescueRetryMs);
      }
    }
  }

  /** Appends a beat: stored, it proves that nobody else went on there, and found, that the journal keeps it. */
  async #isKeptBehind({ position }: Folded): Promise<boolean> {
    this.#leader.appendBeat();
    await this.#atRest();
    return !this.#leader.isOver() && this.#readBack.areKept(position.seq + 1);
  }

  async #foldedAtRest(): Promise<Folded> {
    await this.#atRest();
    return this.#leader.folded();
  }

  /** Once nothing is in flight. */
  async #atRest(): Promise<void> {
    while (!this.#leader.isSettled() && !this.#leader.isOver())
      await new Promise<void>((resolve) => {
        this.#onceCommitted.push(resolve);
      });
  }

  /** Where only what a restart begins with was lost, the record is as it was. */
  async #trimAudit(folded: Folded, loss: LossReason): Promise<void> {
    if (loss === "snapshots-lost" && !this.#hasLostMore) return;
    const { seq: lastSeq, idx } = folded.position;
    if (loss === "tail-lost") return this.#leader.trimAudit(batchIndex(idx + 1), "tail-lost"); // where late copies may stand
    const fromSeq = Math.max(1, lastSeq - limits.holeScanRecordsMax);
    await this.#trimWhere(folded, async () => {
      return (await firstSeqBehindHoles({ fromSeq, lastSeq }, this.#deps)) ?? fromSeq;
    });
  }

  /** …at the record that is looked for, as often as nobody answers; nowhere where none is found. */
  async #trimWhere(folded: Folded, look: () => Promise<number | undefined>): Promise<void> {
    const { clock, logger } = this.#deps;
    while (!this.#leader.isOver()) {
      try {
        const wholeSeq = await look();
        if (wholeSeq === undefined || this.#leader.isOver()) return;
        return this.#leader.trimAudit(firstIdxFrom(wholeSeq, folded), "hole");
      } catch (cause) {
        logger.warn({ err: cause }, "it could not be read where the journal is whole again");
        if (!(cause instanceof UnreachableError)) return;
        await pause(clock, limits.rescueRetryMs);
      }
    }
  }
}

const lostRecords = "the journal lost records";

const whatIsLost: Readonly<Record<LossReason, string>> = {
  hole: lostRecords,
  "tail-lost": lostRecords,
  unreadable: lostRecords,
  "snapshots-lost": "no snapshot can be read of what was purged from the journal",
};

function firstIdxFrom(seq: number, { places, position }: Folded): BatchIndex {
  return places.firstFrom(seq) ?? batchIndex(position.idx + 1);
}
