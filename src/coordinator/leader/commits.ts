// How a leader's turns are committed, and when answers may leave: append before visible.
//
//   take ─ a batch into the segment (writer.ts) ─ stored, and all before → dispatched
//        ─ without events: answered with the newest batch in flight, or at once while the leader lease holds
//
// The segment changes in two ways, and no turn is taken meanwhile:
//
//   planned  the next segment is ready, no batch is in flight → segment-change.ts; the term goes on
//   faulty   the segment lost a stored batch → the leader takes the lead again from memory, with a base. The base
//            contains the batches in flight and so commits them; a new term begins
//
// Not here: the contents of a turn (turns.ts), and messages after a commit (dispatcher.ts).

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import {
  InvariantError,
  JournalDamagedError,
  messageOf,
  UnreachableError,
  WaggleError,
} from "../../errors.ts";
import { type BatchIndex, batchIndex, type Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { RecentBatches } from "../../journal/recent-batches.ts";
import type { ChainTail } from "../../journal/records.ts";
import type { LiveSegment, Replay } from "../../journal/replay.ts";
import { SegmentLostError } from "../../journal/segment-writer.ts";
import { limits } from "../../limits.ts";
import type { StoredBatch } from "../../metrics/coordinator-metrics.ts";
import { pause } from "../../pause.ts";
import type { Commit, InboxEntry } from "../../requests/inbox.ts";
import { type TakeLeadDeps, type TakenLead, takeLead } from "../taking-lead/take-lead.ts";
import type { Timing } from "../timing.ts";
import { type Held, type HeldBatch, InFlight } from "./in-flight.ts";
import { LeaderLease } from "./leader-lease.ts";
import { changeSegment, closeSegment, type LeftSegment, type NextSegment } from "./segment-change.ts";
import { SegmentWatch, type Watched } from "./segment-watch.ts";
import { UnacknowledgedLog } from "./unacknowledged-log.ts";
import { type Full, type PendingBatch, type Stored, Writer } from "./writer.ts";

export interface CommitsDeps {
  readonly id: string;
  /** Id of the coordinator's session. */
  readonly session: string;
  readonly journal: Journal;
  readonly recentBatches: RecentBatches;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** For a faulty segment. */
  readonly taking: TakeLeadDeps;
}

export interface CommitsHooks {
  readonly isOver: () => boolean;
  /** Turns are taken again. */
  readonly resume: () => void;
  /** A batch is stored. */
  readonly onStored: (held: Held, stored: StoredBatch) => void;
  /** A batch is committed: sends all messages that waited for the commit. */
  readonly dispatch: (held: HeldBatch, commit: Commit) => void;
  /** No batch is in flight: answers entries that only read. */
  readonly answer: (entries: readonly InboxEntry[]) => void;
  readonly onCommitted: () => void;
  /** The leader takes the lead again: a segment in the making is given up. */
  readonly onRenewing: () => void;
  /** The leader goes on in another segment. @param isNewTerm the leader took the lead again: readers may have lost
   *  earlier batches */
  readonly onSegment: (live: LiveSegment, isNewTerm: boolean) => void;
  /** The journal has no room. Called once until there is room again, and then with undefined. */
  readonly onFull: (full: Full | undefined) => void;
  /** Another coordinator leads: batches in flight are never committed. */
  readonly onDeposed: () => void;
  /** The term cannot go on. */
  readonly onBroken: (cause: unknown) => void;
}

export class Commits {
  readonly #deps: CommitsDeps;
  readonly #log: Replay;
  readonly #hooks: CommitsHooks;
  readonly #inFlight: InFlight;
  readonly #lease: LeaderLease;
  readonly #watch: SegmentWatch;
  readonly #unacknowledged: UnacknowledgedLog;
  readonly #ending = new AbortController();
  #live: LiveSegment;
  #writer: Writer;
  /** The segment is being changed. */
  #isChanging = false;
  /** The connection broke, or an acknowledgement came late, and the segment was not inspected since. */
  #isDoubted = false;
  #next: NextSegment | undefined;
  #renewedMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(deps: CommitsDeps, taken: TakenLead & { readonly kind: "won" }, hooks: CommitsHooks) {
    const { log, sentMonotonicMs } = taken;
    const { live } = log;
    if (live === undefined) throw new InvariantError("a leader has a segment");
    this.#deps = deps;
    this.#log = log;
    this.#hooks = hooks;
    this.#live = live;
    this.#inFlight = new InFlight(deps.session, log.tail, live.opened.term);
    this.#lease = new LeaderLease(deps, sentMonotonicMs);
    this.#unacknowledged = new UnacknowledgedLog(deps);
    this.#writer = this.#startWriter(live);
    this.#watch = new SegmentWatch(deps, {
      watched: () => this.#watched,
      onReconnected: () => this.#doubt(),
      onWhole: (startedMonotonicMs) => this.#whole(startedMonotonicMs),
      onSuperseded: () => this.#deposed(),
      onFaulty: (error) => void this.#renew(error),
      onBroken: hooks.onBroken,
    });
  }

  get term(): Term {
    return this.#inFlight.term;
  }

  /** Up to where the log is committed. */
  get committed(): Commit {
    return this.#inFlight.commit;
  }

  /** The newest committed batch. No later batch was acknowledged. */
  get acknowledged(): ChainTail {
    return this.#inFlight.committed;
  }

  /** The identity of the journal. */
  get journalId(): string {
    return this.#inFlight.tail.journal;
  }

  /** Index of the next turn's batch. */
  get nextIdx(): BatchIndex {
    return this.#inFlight.nextIdx;
  }

  /** Hash of the newest batch in the state. */
  get tailHash(): string {
    return this.#inFlight.tail.hash;
  }

  /** The leader's segment. */
  get segment(): LiveSegment {
    return this.#live;
  }

  /** Uncommitted batches of the state, oldest first. */
  get pending(): readonly PendingBatch[] {
    return this.#writer.pending;
  }

  get isSettled(): boolean {
    return this.#inFlight.newest === undefined;
  }

  /** Whether a turn may be taken now. If not, `resume` is called or a batch is committed later. */
  get takesTurns(): boolean {
    return (
      this.#writer.hasRoom && !this.#isChanging && this.#next === undefined && !this.#ending.signal.aborted
    );
  }

  /** Whether something definite may be said without a commit. */
  get holdsLease(): boolean {
    return !this.#isChanging && !this.#isDoubted && this.#lease.isProven;
  }

  /** Whether an idle leader of a shared journal is to append a heartbeat. */
  get isHeartbeatDue(): boolean {
    return this.isSettled && this.#lease.isHeartbeatDue;
  }

  /** Takes a turn: appends its batch behind the others. Answers of a turn without events leave with the newest
   *  batch in flight. Without such a batch they leave at once while the lease holds, else with a batch that says
   *  nothing else. */
  take(held: Held): void {
    if (held.turn.recorded.length === 0 && held.entries.length > 0 && !this.#mayAnswerNow())
      held.turn.take({ type: "RenewTerm" });
    if (held.turn.recorded.length > 0) return this.#append(held);
    const { newest } = this.#inFlight;
    if (newest !== undefined) newest.entries.push(...held.entries);
    else this.#hooks.answer(held.entries);
  }

  /** Inspects the segment when the last inspection is old. */
  look(): void {
    this.#watch.look();
  }

  /** Whether the segment can be closed: no batch is in flight, and the segment is not being changed. */
  get isAtRest(): boolean {
    return this.isSettled && !this.#isChanging && !this.#isDoubted;
  }

  /** A standby says that it cannot read the segment. Inspection does not find such damage, only a new segment mends
   *  it. At most once per T, because any client could say so. */
  cannotBeRead(segment: number): void {
    const { clock, timing } = this.#deps;
    const isSoon = clock.monotonicMs() - this.#renewedMonotonicMs < timing.timeoutMs;
    if (segment !== this.#live.number || this.#isChanging || isSoon) return;
    void this.#renew(new JournalDamagedError(`a standby cannot read segment ${segment}`));
  }

  /** Goes on in the next segment as soon as nothing is in flight. */
  changeTo(next: NextSegment): void {
    this.#next = next;
    this.#changeWhenSettled();
  }

  /** Ends the segment so that another coordinator may lead. No batch is in flight. @throws as `closeSegment` */
  async close(to: string | undefined): Promise<void> {
    this.#isChanging = true;
    this.#writer.stop();
    const closing = { reason: "handing-over", ...(to === undefined ? {} : { to }) } as const;
    await closeSegment(this.#left, closing, this.#deps, this.#ending.signal);
  }

  /** The committed log, for following. */
  get log(): Replay {
    this.#log.continueAt(this.#inFlight.tail, this.#writer.position, "");
    return this.#log;
  }

  /** The term is over. Batches in flight are left as they are. */
  stop(): void {
    this.#ending.abort();
    this.#writer.stop();
    this.#watch.stop();
  }

  /** Whether an answer without a batch is safe: it leaves with the newest batch in flight, or at once. */
  #mayAnswerNow(): boolean {
    return this.isSettled ? this.holdsLease : this.#lease.willBeProven;
  }

  // --- batches --------------------------------------------------------------------------------------

  #append(held: Held): void {
    const batch = this.#inFlight.add(held);
    this.#log.recent.add(batch.idx, batch.hash);
    this.#deps.recentBatches.add(batch.idx, batch.bytes, this.#deps.clock.monotonicMs());
    this.#lease.appended();
    this.#writer.append(batch);
  }

  #startWriter({ number, position }: LiveSegment): Writer {
    const { session, journal, clock, logger } = this.#deps;
    return new Writer(
      {
        session,
        segment: journal.segment(number),
        position,
        clock,
        lease: this.#lease,
      },
      {
        onCommitted: (batch, stored) => this.#guarded(() => this.#committed(batch, stored)),
        onFull: (full) => this.#hooks.onFull(full),
        onSealed: () => this.#deposed(),
        onFaulty: (error) => void this.#renew(error),
        onUnacknowledged: (cause, sentMonotonicMs) => this.#unacknowledged.notice(cause, sentMonotonicMs),
        onSuspect: () => this.#watch.lookSoon(),
        onLate: () => {
          this.#doubt();
          this.#watch.lookAnew();
        },
        onForeign: (at) => {
          this.#log.metForeign();
          logger.warn(
            { segment: number, position: at },
            "the journal has a foreign record; going on behind it",
          );
        },
      },
    );
  }

  #committed(batch: PendingBatch, { sentMonotonicMs, firstSentMonotonicMs }: Stored): void {
    const held = this.#inFlight.take(batch);
    if (held === undefined) return this.#hooks.onBroken(new InvariantError("every committed batch was held"));
    this.#lease.acknowledged(sentMonotonicMs);
    const appendMs = this.#deps.clock.monotonicMs() - firstSentMonotonicMs;
    const events = held.turn.recorded.length;
    this.#hooks.onStored(held, { events, bytes: batch.bytes.length, appendMs });
    this.#hooks.dispatch(held, this.committed);
    this.#changeWhenSettled();
    this.#hooks.onCommitted();
  }

  // --- the segment ----------------------------------------------------------------------------------

  get #watched(): Watched | undefined {
    if (this.#isChanging) return undefined;
    const { number, position, recordHash } = this.#left;
    return { segment: number, position, recordHash, isLate: this.#writer.isLate };
  }

  get #left(): LeftSegment {
    const { position, recordHash } = this.#writer;
    return { number: this.#live.number, position, recordHash };
  }

  #doubt(): void {
    this.#isDoubted = true;
    this.#writer.hold();
  }

  #whole(startedMonotonicMs: number): void {
    if (!this.#isDoubted) return;
    this.#isDoubted = false;
    this.#writer.resume(startedMonotonicMs);
    this.#changeWhenSettled();
    this.#hooks.resume();
  }

  #deposed(): void {
    if (this.#isChanging || this.#hooks.isOver()) return;
    this.#hooks.onDeposed();
  }

  #changeWhenSettled(): void {
    const next = this.#next;
    if (next === undefined || !this.isSettled || this.#isChanging || this.#isDoubted) return;
    this.#next = undefined;
    void this.#change(next);
  }

  async #change(next: NextSegment): Promise<void> {
    const { logger, clock } = this.#deps;
    const left = this.#left;
    const startedMs = clock.monotonicMs();
    this.#isChanging = true;
    this.#writer.stop();
    try {
      const { tail, term } = this.#inFlight;
      const recent = this.#log.recent.upTo(tail.idx, limits.openedHashesMax);
      const live = await changeSegment({ left, next, tail, term, recent }, this.#deps, this.#ending.signal);
      this.#lease.acknowledged(next.writer.sentMonotonicMs);
      this.#enter(live, false);
      const pausedMs = Math.round(clock.monotonicMs() - startedMs);
      logger.info({ segment: live.number, pausedMs }, "the journal continues in a new segment");
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      const mayBeMended =
        error instanceof SegmentLostError ||
        error instanceof UnreachableError ||
        error instanceof JournalDamagedError ||
        (error instanceof WaggleError && error.code === "WAGGLE_JOURNAL_FULL");
      if (!mayBeMended) return this.#hooks.onBroken(error);
      this.#isChanging = false;
      await this.#renew(error);
    }
  }

  /** Takes the lead again from memory. */
  async #renew(why: Error): Promise<void> {
    if (this.#isChanging || this.#hooks.isOver()) return;
    const { logger, taking, clock, timing } = this.#deps;
    const { signal } = this.#ending;
    const sinceMs = clock.monotonicMs() - this.#renewedMonotonicMs;
    this.#isChanging = true;
    this.#next = undefined;
    this.#writer.stop();
    this.#hooks.onRenewing();
    logger.error(
      { why: messageOf(why), segment: this.#live.number },
      "the segment is faulty; going on in a new one",
    );
    this.#log.continueAt(this.#inFlight.tail, this.#writer.position, "");
    const writing = { segment: this.#live.number, term: this.term };
    if (sinceMs < timing.timeoutMs) await pause(clock, timing.timeoutMs - sinceMs, signal);
    this.#renewedMonotonicMs = clock.monotonicMs();
    while (!signal.aborted) {
      try {
        const taken = await takeLead(this.#log, taking, signal, writing);
        if (signal.aborted) return;
        if (taken.kind === "stand-by") return this.#hooks.onDeposed();
        return this.#renewed(taken);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof WaggleError) || error.code !== "WAGGLE_JOURNAL_FULL")
          return this.#hooks.onBroken(error);
        this.#hooks.onFull({ message: error.message, bytes: 0 });
        await pause(clock, limits.journalFullRetryMs, signal);
      }
    }
  }

  #renewed({ log, sentMonotonicMs }: TakenLead & { readonly kind: "won" }): void {
    const { live } = log;
    if (live === undefined) return this.#hooks.onBroken(new InvariantError("a leader has a segment"));
    this.#guarded(() => {
      const { term } = this; // of the batches that the base commits
      const first = this.#inFlight.committed.idx + 1;
      const held = this.#inFlight.takeAll(live.opened.term);
      this.#lease.acknowledged(sentMonotonicMs);
      this.#hooks.onFull(undefined);
      for (const [at, each] of held.entries())
        this.#hooks.dispatch(each, { term, idx: batchIndex(first + at) });
      this.#enter(live, true);
    });
  }

  #enter(live: LiveSegment, isNewTerm: boolean): void {
    this.#live = live;
    this.#log.enter(live, live.position);
    const { seen } = this.#deps.taking;
    seen.highest = Math.max(seen.highest, live.number);
    this.#writer = this.#startWriter(live);
    this.#isChanging = false;
    if (this.#isDoubted) {
      this.#writer.hold(); // the connection broke meanwhile: the new segment is looked at first
      this.#watch.lookAnew();
    }
    this.#hooks.onSegment(live, isNewTerm);
    this.#hooks.resume();
  }

  /** Whatever throws in here is a bug. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (cause) {
      this.#hooks.onBroken(cause);
    }
  }
}
