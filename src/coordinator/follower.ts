// Follows the journal: the copy of it that a coordinator keeps while it does not lead, and all by which it stays one.
//
//   begin ── read to the end (catch-up.ts) ── stand by (standby.ts) ── it is time → the coordinator campaigns
//                        ▲                        │
//                        │                        ├ the journal goes on behind what was not read, or cannot be
//                        └── throw it away ───────┤ read on, and nothing is lost by that (begin-anew.ts)
//                                                 └ the end is lost: saved first (lost-end.ts)
//
// What a campaign or a term is begun with is asked for here. A leader takes the copy over and runs ahead of the
// journal with it: afterwards it is folded anew, or goes on from where the term was handed over.

import type { Logger } from "pino";
import type { Clock, Random } from "../clock.ts";
import type { Event, TrimReason } from "../core/event.ts";
import { Endurance } from "../endurance.ts";
import { type JournalDamagedError, mayPass } from "../errors.ts";
import type { BatchIndex } from "../ids.ts";
import { hashOf } from "../journal/batch.ts";
import type { Journal, JournalRecord } from "../journal/journal.ts";
import { RecentRecords } from "../journal/recent-records.ts";
import { type Folded, Replay, type Verdict } from "../journal/replay.ts";
import type { FoundSnapshots } from "../journal/snapshot/restore.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import { limits } from "../limits.ts";
import type { Transport } from "../transport/transport.ts";
import type { Announcements } from "./announcements.ts";
import type { Announcer } from "./announcer.ts";
import { type BeginAnewDeps, isOvertaken, mayBeginAnew } from "./begin-anew.ts";
import { catchUp } from "./catch-up.ts";
import type { DeadRecordLog } from "./dead-records.ts";
import { FollowedTime } from "./journal-clock.ts";
import { goOnBehind } from "./lost-end.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import { isSavedByAnother } from "./saved-end.ts";
import { Standby, type StandbyHooks } from "./standby.ts";
import { type Timing, timingOf } from "./timing.ts";

export interface FollowerDeps {
  /** Of this coordinator. */
  readonly id: string;
  readonly journal: Journal;
  /** Absent where there are none. */
  readonly snapshots: SnapshotStore | undefined;
  readonly readable: ReadableSnapshots;
  readonly transport: Transport;
  readonly announcer: Pick<Announcer, "announce" | "listen" | "ask">;
  readonly announcements: Announcements;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly deadLog: DeadRecordLog;
  /** Of the terms that this coordinator leads. */
  readonly timing: Timing;
}

export interface FollowerHooks extends Pick<StandbyHooks, "onSilence" | "onHeard" | "onShort"> {
  /** It is time to campaign: it stands by no more. */
  readonly onTime: () => void;
  /** The journal cannot be followed on, nor anew. */
  readonly onHalted: (cause: unknown) => void;
}

/** What the journal lost, found while nobody here led. */
export interface SeenLosses {
  /** Not rescued by the leader of then, as far as is known. */
  readonly hole: JournalDamagedError | undefined;
  /** The last batch of an end that is lost for good, until it is on record that it is. */
  readonly lostEnd: BatchIndex | undefined;
}

export class Follower {
  /** Journal time, of what is read as it is written. */
  readonly time = new FollowedTime();
  readonly #deps: FollowerDeps;
  readonly #hooks: FollowerHooks;
  #replay = new Replay();
  #recent = new RecentRecords();
  #foundSnapshots: FoundSnapshots = { read: undefined, unreadable: [] };
  #hole: JournalDamagedError | undefined;
  #lostEnd: BatchIndex | undefined;
  /** Of a lost end of which it is not found what stands before it. */
  readonly #unprovenEnd: Endurance;
  #standby: Standby | undefined;
  #isOver = false;

  constructor(deps: FollowerDeps, hooks: FollowerHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#unprovenEnd = new Endurance(deps.clock, limits.lossPatienceRunningMs, limits.lossLooksMin);
  }

  /** The journal, folded as far as it was read; the leader's own while one leads here. */
  get replay(): Replay {
    return this.#replay;
  }

  get recent(): RecentRecords {
    return this.#recent;
  }

  /** The last time that snapshots were looked for. */
  get foundSnapshots(): FoundSnapshots {
    return this.#foundSnapshots;
  }

  /** By the T of the term that it leads or follows; of its own while there is none. */
  get timing(): Timing {
    const { leaderTimeoutMs } = this.#replay.state;
    return leaderTimeoutMs === 0 ? this.#deps.timing : timingOf(leaderTimeoutMs);
  }

  /** Coordinators that were heard within T are there. */
  get lately() {
    return { now: this.#deps.clock.monotonicMs(), withinMs: this.timing.timeoutMs };
  }

  /** Behind which record it could put back what the journal loses of its end; infinite where it began at a snapshot
   *  and has read nothing since. */
  get heldFromSeq(): number {
    const { firstSeq, lastSeq } = this.#recent;
    return lastSeq < this.#replay.position.seq ? Number.POSITIVE_INFINITY : firstSeq;
  }

  /** Reads the journal to its end; a server that does not answer is not waited for.
   *  @throws UnreachableError, JournalDamagedError */
  async begin(): Promise<void> {
    await this.#catchUp({ isPatient: false });
  }

  /** Reads on, until it is time. */
  standBy(): void {
    if (this.#isOver) return;
    const { id, journal, clock, random, logger, transport, announcer, announcements } = this.#deps;
    const { onSilence, onHeard, onShort, onTime } = this.#hooks;
    this.#standby = new Standby(
      {
        id,
        journal,
        clock,
        random,
        logger,
        announcements,
        askOthers: (signal) => announcer.ask(this.timing.askMs, signal),
        recent: this.#recent,
        isConnected: () => transport.status() === "connected",
        position: () => this.#replay.position,
        timing: () => this.timing,
        take: (record) => this.take(record),
        isOvertaken: () => this.#deps.readable.beginBehind(this.#replay.position),
      },
      {
        onSilence,
        onHeard,
        onShort,
        onUnreachable: () => this.#unprovenEnd.renew(),
        onEndLost: (lastSeq, error) => void this.#endLost(lastSeq, error),
        onOvertaken: () => void this.#overtaken(),
        onTime: () => {
          this.#standby = undefined;
          onTime();
        },
        onUnreadable: (cause) => void this.#foldAnewOrHalt(cause),
      },
    );
  }

  /** Folds a record that was just written. */
  take(record: JournalRecord): Verdict {
    const verdict = this.#fold(record);
    this.#unprovenEnd.renew();
    this.time.read(this.#replay.state.at, this.#deps.clock.monotonicMs());
    if (verdict.kind === "dead") this.#deps.deadLog.tell(record, verdict.reason);
    else for (const event of verdict.batch.events) this.#sawEvent(event);
    if (verdict.kind === "dead" && verdict.reason === "broken-chain") void this.#lookBehind(record);
    return verdict;
  }

  /** Folds what a campaign that was lost has read: it may not be there to be read again. */
  foldHeld(): void {
    const { position } = this.#replay;
    for (let seq = position.seq + 1; seq <= this.#recent.lastSeq; seq += 1) {
      const held = this.#recent.at(seq);
      if (held === undefined) return;
      this.take(held);
    }
  }

  /** Snapshots were looked for. */
  sawSnapshots(found: FoundSnapshots): void {
    this.#foundSnapshots = found;
    this.#deps.readable.found(found);
  }

  /** Remembers it, should this coordinator come to lead. */
  sawHole(lost: JournalDamagedError): void {
    this.#hole = lost;
  }

  /** For whoever leads now and sees to them: nothing is remembered of them any more. */
  takeLosses(): SeenLosses {
    const losses = { hole: this.#hole, lostEnd: this.#lostEnd };
    this.#hole = undefined;
    this.#lostEnd = undefined;
    return losses;
  }

  /** Goes on from where a term was handed over. */
  goOnFrom(folded: Folded): void {
    this.#replay = new Replay(folded);
  }

  /** Throws away what was folded, reads the journal again, and stands by. */
  async foldAnew(): Promise<void> {
    this.#replay = new Replay();
    try {
      await this.#catchUp({ isPatient: true });
      this.standBy();
    } catch (cause) {
      this.#hooks.onHalted(cause);
    }
  }

  /** No further call to a hook of standing by. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#standby?.end();
  }

  // --- reading to the end -------------------------------------------------------------------------

  /** @param isPatient whether a server that does not answer is waited for */
  async #catchUp({ isPatient }: { readonly isPatient: boolean }): Promise<void> {
    const { announcer, announcements, clock, timing } = this.#deps;
    const heard = announcer.listen();
    let holeBefore = this.#hole;
    const startedMs = clock.monotonicMs();
    const { timeoutMs } = timing;
    const lately = () => ({
      now: clock.monotonicMs(),
      withinMs: limits.announcementTimeouts * timeoutMs,
    });
    try {
      await catchUp({
        ...this.#storage,
        timeoutMs,
        isPatient,
        isOver: () => this.#isOver,
        isLed: () => announcements.isLed(0, lately()),
        isHeld: ({ term, idx }) =>
          announcements.ahead({ term, idx: idx - 1 }, { now: clock.monotonicMs(), timeoutMs })?.isBelieved ??
          false,
        isMoreHeld: () => announcements.isMoreHeld(this.#replay.position, lately()),
        onSnapshotsLost: () => announcer.announce({ lacksSnapshots: true }),
        onRestored: ({ replay, found }) => {
          holeBefore = this.#hole;
          this.#replay = replay;
          if (!this.#isOnLine(replay)) this.#recent = new RecentRecords();
          this.sawSnapshots(found);
        },
        take: (record) => this.#fold(record),
        goOnBehind: (lost) => this.#goOnBehind(lost.folded, lost.lastSeq, lost),
      });
      if (this.#hole === holeBefore) this.#hole = undefined; // what a restart reads is whole
      this.#tellRead(clock.monotonicMs() - startedMs);
    } finally {
      heard.unsubscribe();
    }
  }

  #tellRead(ms: number): void {
    const { position, state, tail } = this.#replay;
    const { idx, term } = position;
    if (idx === 0) return; // nothing was ever written
    const { read } = this.#foundSnapshots;
    const from = read === undefined ? {} : { snapshotIdx: tail.fromIdx };
    const told = {
      idx,
      term,
      leader: state.leader,
      ...from,
      batches: idx - tail.fromIdx,
      tookMs: Math.round(ms),
    };
    this.#deps.logger.info(told, "the journal was read");
  }

  /** Whether what is kept of the journal is of the line that was restored, as far as both know. */
  #isOnLine({ places, position }: Folded): boolean {
    const seq = places.seqOf(position.idx);
    const kept = seq === undefined ? undefined : this.#recent.at(seq);
    return kept === undefined || hashOf(kept.bytes) === position.hash;
  }

  #fold(record: JournalRecord): Verdict {
    const verdict = this.#replay.take(record);
    const isDead = verdict.kind === "dead";
    this.#recent.add(record, this.#deps.clock.monotonicMs(), { isDead });
    return verdict;
  }

  get #storage() {
    const { journal, snapshots, clock, logger } = this.#deps;
    return { journal, clock, logger, ...(snapshots === undefined ? {} : { snapshots }) };
  }

  // --- what the journal lost ----------------------------------------------------------------------

  /** Nobody holds what the journal lost; what this one has folded stands for it, unless another has saved it. Until it
   *  is saved it stands by with that: it may be all that is left of it. */
  async #endLost(lastSeq: number, lost: JournalDamagedError): Promise<void> {
    try {
      const isSaved = await isSavedByAnother(this.#replay.position, this.#deps);
      if (isSaved) this.#recent = new RecentRecords();
      if (isSaved || (await this.#goOnBehind(this.#replay, lastSeq, lost))) return await this.foldAnew();
      if (this.#unprovenEnd.isOver) return this.#hooks.onHalted(lost);
    } catch (cause) {
      const isFork = cause === lost; // unless another saved it, of which a server that lags may not know yet
      const isBelieved = isFork && (!this.#deps.readable.areKept || this.#unprovenEnd.isOver);
      if (!mayPass(cause) || isBelieved) return this.#hooks.onHalted(cause);
      if (!isFork) this.#unprovenEnd.renew();
      this.#deps.logger.error(
        { err: cause },
        "the state could not be saved for the end that the journal lost",
      );
    }
    this.standBy();
  }

  async #goOnBehind(folded: Folded, lastSeq: number, lost: JournalDamagedError): Promise<boolean> {
    if (!(await goOnBehind({ folded, lastSeq, lost }, this.#storage))) {
      this.#deps.logger.warn({ lastSeq }, "the journal lost its end, and what it ends with is not found");
      return false;
    }
    this.#lostEnd = folded.position.idx;
    this.#recent = new RecentRecords();
    return true;
  }

  #sawEvent(event: Event): void {
    const { id, logger } = this.#deps;
    if (event.type === "AuditTrimmed") this.#sawTrimmed(event.reason);
    if (event.type === "TermStarted" && event.leader !== id)
      logger.info({ leader: event.leader, term: event.term }, "standing by: another coordinator leads");
  }

  #sawTrimmed(reason: TrimReason): void {
    if (reason === "hole") this.#hole = undefined;
    if (reason === "tail-lost") this.#lostEnd = undefined;
  }

  // --- beginning anew -----------------------------------------------------------------------------

  /** A snapshot holds batches that the journal lost before this coordinator read them. */
  async #overtaken(): Promise<void> {
    this.#deps.logger.warn(
      "a snapshot holds more than the journal does, and than was read here: beginning anew",
    );
    await this.foldAnew();
  }

  /** What stood where we were is purged, lost or replaced. */
  async #foldAnewOrHalt(cause: unknown): Promise<void> {
    if (!(await mayBeginAnew(cause, this.#beginAnewDeps))) return this.#hooks.onHalted(cause);
    this.#deps.logger.warn({ err: cause }, "the journal cannot be read on: beginning anew");
    await this.foldAnew();
  }

  /** Batches may have been lost for good before this record, and a snapshot been written in their place; or what we
   *  read before it was replaced. */
  async #lookBehind(record: JournalRecord): Promise<void> {
    const standby = this.#standby;
    const hasStrayed = this.#replay.strayedAtSeq !== undefined;
    const mustBegin = hasStrayed || (await isOvertaken(this.#beginAnewDeps).catch(() => false)); // asked again at the next
    // Of several such records, or where it has just halted or campaigns, one begins anew.
    if (!mustBegin || standby === undefined || standby !== this.#standby || standby.isOver) return;
    standby.end();
    this.#deps.logger.warn(
      { seq: record.seq },
      "the journal goes on behind what was not read: beginning anew",
    );
    await this.foldAnew();
  }

  get #beginAnewDeps(): BeginAnewDeps {
    const { journal, readable, clock, announcements } = this.#deps;
    return {
      journal,
      readable,
      clock,
      recent: () => this.#recent,
      folded: () => this.#replay,
      isLed: () => announcements.isLed(0, this.lately),
      isOver: () => this.#isOver,
    };
  }
}
