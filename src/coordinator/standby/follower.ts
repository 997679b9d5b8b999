// Follows the journal while its coordinator does not lead: all by which the copy of it (journal-copy.ts) stays one.
//
//   begin ── read to the end (catch-up.ts) ── stand by (standby.ts) ── it is time → the coordinator campaigns
//                        ▲                        │
//                        │                        ├ the journal goes on behind what was not read, or cannot be
//                        └── throw it away ───────┤ read on, and nothing is lost by that (begin-anew.ts)
//                                                 └ the end is lost: saved first (lost-end.ts)
//
//   campaign ── no room, and what would make some cannot be read → saved first, stand by
//
// What a campaign or a term is begun with is asked for here. A leader takes the copy over and runs ahead of the
// journal with it: afterwards it is folded anew, or goes on from where the term was handed over.

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { type JournalDamagedError, mayPass } from "../../errors.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import { isLineFound } from "../../journal/refill.ts";
import type { Folded, Verdict } from "../../journal/replay.ts";
import { isRestartLost } from "../../journal/snapshot/losses.ts";
import { snapshotNow } from "../../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { limits } from "../../limits.ts";
import type { Event } from "../../state/event.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Announcements } from "../announcements.ts";
import type { Announcer } from "../announcer.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import { FollowedTime } from "../leader/journal-clock.ts";
import type { DeadRecordLog } from "../repair/dead-records.ts";
import { goOnBehind } from "../repair/lost-end.ts";
import { isSavedByAnother } from "../repair/saved-end.ts";
import { type Timing, timingOf } from "../timing.ts";
import { type BeginAnewDeps, isOvertaken, mayBeginAnew } from "./begin-anew.ts";
import { catchUp } from "./catch-up.ts";
import { JournalCopy } from "./journal-copy.ts";
import { SeenHole } from "./seen-hole.ts";
import { Standby, type StandbyHooks } from "./standby.ts";

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

export class Follower {
  /** Journal time, of what is read as it is written. */
  readonly time = new FollowedTime();
  /** The leader's own while one leads here. */
  readonly copy: JournalCopy;
  /** Found while nobody here led. */
  readonly seenHole = new SeenHole();
  readonly #deps: FollowerDeps;
  readonly #hooks: FollowerHooks;
  /** For how long the end is lost, and it cannot be told whose line the journal ends with now (line-end.ts). */
  readonly #unprovenEnd: Endurance;
  #standby: Standby | undefined;
  readonly #ending = new AbortController();

  constructor(deps: FollowerDeps, hooks: FollowerHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.copy = new JournalCopy(deps);
    this.#unprovenEnd = new Endurance(deps.clock, limits.lossPatienceRunningMs, limits.lossLooksMin);
  }

  /** By the T of the term that it leads or follows; of its own while there is none. */
  get timing(): Timing {
    const { leaderTimeoutMs } = this.copy.replay.state;
    return leaderTimeoutMs === 0 ? this.#deps.timing : timingOf(leaderTimeoutMs);
  }

  /** Coordinators that were heard within T are there. */
  get lately() {
    return { now: this.#deps.clock.monotonicMs(), withinMs: this.timing.timeoutMs };
  }

  /** Reads the journal to its end; a server that does not answer is not waited for.
   *  @throws UnreachableError, JournalDamagedError */
  async begin(): Promise<void> {
    await this.#catchUp({ isPatient: false });
  }

  /** Reads on, until it is time. */
  standBy(): void {
    if (this.#ending.signal.aborted) return;
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
        recent: this.copy.recent,
        isConnected: () => transport.status() === "connected",
        position: () => this.copy.replay.position,
        timing: () => this.timing,
        take: (record) => this.take(record),
        isOvertaken: () => this.#deps.readable.beginBehind(this.copy.replay.position),
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
    const verdict = this.copy.fold(record);
    this.#unprovenEnd.renew();
    this.time.read(this.copy.replay.state.at, this.#deps.clock.monotonicMs());
    if (verdict.kind === "dead") this.#deps.deadLog.tell(record, verdict.reason);
    else for (const event of verdict.batch.events) this.#sawEvent(event);
    if (verdict.kind === "dead" && verdict.reason === "broken-chain") void this.#lookBehind(record);
    return verdict;
  }

  /** Folds what a campaign that was lost has read: it may not be there to be read again. */
  foldHeld(): void {
    const { position } = this.copy.replay;
    for (let seq = position.seq + 1; seq <= this.copy.recent.lastSeq; seq += 1) {
      const held = this.copy.recent.at(seq);
      if (held === undefined) return;
      this.take(held);
    }
  }

  /** Throws away what was folded, reads the journal again, and stands by. */
  async foldAnew(): Promise<void> {
    this.copy.forget();
    try {
      await this.#catchUp({ isPatient: true });
      this.standBy();
    } catch (cause) {
      this.#hooks.onHalted(cause);
    }
  }

  /** No further call to a hook of standing by. Idempotent. */
  end(): void {
    this.#ending.abort();
    this.#standby?.end();
  }

  // --- reading to the end -------------------------------------------------------------------------

  /** @param isPatient whether a server that does not answer is waited for */
  async #catchUp({ isPatient }: { readonly isPatient: boolean }): Promise<void> {
    const { announcer, announcements, clock, timing } = this.#deps;
    const heard = announcer.listen();
    let holeBefore = this.seenHole.error;
    const startedMs = clock.monotonicMs();
    const { timeoutMs } = timing;
    const heardMs = limits.announcementTimeouts * timeoutMs;
    const since = (monotonicMs: number) => this.#since(monotonicMs, heardMs);
    try {
      await catchUp({
        ...this.#storage,
        timeoutMs,
        isPatient,
        isOver: () => this.#ending.signal.aborted,
        isLed: (begunMonotonicMs) => announcements.isLed(0, since(begunMonotonicMs)),
        isHeld: ({ term, idx }) =>
          announcements.ahead({ term, idx: idx - 1 }, { now: clock.monotonicMs(), timeoutMs })?.isBelieved ??
          false,
        isMoreHeld: (begunMonotonicMs) =>
          announcements.isMoreHeld(this.copy.replay.position, since(begunMonotonicMs)),
        onSnapshotsLost: () => announcer.announce({ lacksSnapshots: true }),
        onRestored: (restored) => {
          holeBefore = this.seenHole.error;
          this.copy.restored(restored);
        },
        take: (record) => this.copy.fold(record),
        goOnBehind: (lost) => this.#goOnBehind(lost.folded, lost.lastSeq, lost),
      });
      this.seenHole.readWhole(holeBefore);
      this.copy.tellRead(clock.monotonicMs() - startedMs);
    } finally {
      heard.unsubscribe();
    }
  }

  /** From `heardMs` before an instant on. */
  #since(monotonicMs: number, heardMs: number) {
    const now = this.#deps.clock.monotonicMs();
    return { now, withinMs: heardMs + now - monotonicMs };
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
      const isSaved = await isSavedByAnother({ committed: [this.copy.replay.position] }, this.#deps);
      if (isSaved) this.copy.forgetRecords();
      if (isSaved || (await this.#goOnBehind(this.copy.replay, lastSeq, lost))) return await this.foldAnew();
      if (this.#unprovenEnd.isBelieved()) return this.#hooks.onHalted(lost);
    } catch (cause) {
      const isFork = cause === lost; // unless another saved it, of which a server that lags may not know yet
      const isBelieved = isFork && (!this.#deps.readable.areKept || this.#unprovenEnd.isBelieved());
      if (!mayPass(cause) || isBelieved) return this.#hooks.onHalted(cause);
      if (!isFork) this.#unprovenEnd.renew();
      this.#deps.logger.error(
        { err: cause },
        "the state could not be saved for the end that the journal lost",
      );
    }
    this.standBy();
  }

  /** Saves what was folded where nobody could begin from what the journal and its snapshots hold. Who leads does so
   *  itself, but not while there is no room for what it runs ahead of the journal with.
   *  @param make makes a snapshot from them */
  async saveWhereLost(make: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const standby = this.#standby;
    try {
      await make(this.#ending.signal);
    } catch (cause) {
      if (!isRestartLost(cause) || standby === undefined || standby !== this.#standby || standby.isOver)
        return;
      standby.end();
      await this.saveFolded(cause);
    }
  }

  /** Saves what was folded, for what a restart would read of it is lost, and stands by. Until it is saved that may be
   *  all that is left of it. */
  async saveFolded(lost: JournalDamagedError): Promise<void> {
    const { snapshots, journal, clock, logger } = this.#deps;
    const { replay, recent } = this.copy;
    try {
      if (snapshots !== undefined && (await isLineFound(journal, recent, replay.position.seq))) {
        await snapshotNow(replay, { store: snapshots, journal, clock, logger });
        logger.error(
          { err: lost, idx: replay.position.idx },
          "a restart could not read the journal: the state is saved",
        );
      }
    } catch (cause) {
      if (!mayPass(cause)) return this.#hooks.onHalted(cause);
      logger.error({ err: cause }, "the state could not be saved for what the journal lost");
    }
    this.standBy();
  }

  async #goOnBehind(folded: Folded, lastSeq: number, lost: JournalDamagedError): Promise<boolean> {
    if (!(await goOnBehind({ folded, lastSeq, lost }, this.#storage))) {
      this.#deps.logger.warn({ lastSeq }, "the journal lost its end, and what it ends with is not found");
      return false;
    }
    this.copy.forgetRecords();
    return true;
  }

  #sawEvent(event: Event): void {
    const { id, logger } = this.#deps;
    if (event.type === "AuditTrimmed" && event.reason === "hole") this.seenHole.forget();
    if (event.type === "TermStarted" && event.leader !== id)
      logger.info({ leader: event.leader, term: event.term }, "standing by: another coordinator leads");
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
    const hasStrayed = this.copy.replay.strayedAtSeq !== undefined;
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
      recent: () => this.copy.recent,
      folded: () => this.copy.replay,
      isLed: (begunMonotonicMs) =>
        announcements.isLed(0, this.#since(begunMonotonicMs, this.timing.timeoutMs)),
      isOver: () => this.#ending.signal.aborted,
    };
  }
}
