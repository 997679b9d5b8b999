// One term of leadership, from the moment its segment is open (taking-lead/): the coordinator's actor
// (docs/architecture.md).
//
//   inbox → decide → append(batch) → apply → effects → answers
//
// Overview. Messages become entries of one bounded inbox. A turn takes the waiting entries, decides them in order on
// the state, plans assignments, and appends one batch for all. The state runs ahead of the journal by at most two
// batches. When an append is refused, this object is thrown away with its state.
//
// The rule: no message leaves before its commit (commits.ts). Decisions of a turn are visible here at once, and to no
// other process.
//
// Ends: deposed (another coordinator sealed the segment), halted (an invariant broke), or `end`, as the coordinator's
// chart asks. `end` closes the segment, so that a standby need not wait.
//
// Not here: the contents of a turn (turns.ts), periodic work (pulse.ts), messages after a commit (dispatcher.ts),
// commits and changes of segment (commits.ts), requests (src/requests).

import type { Logger } from "pino";
import { AuditReader } from "../../audit/reading/audit-reader.ts";
import type { JournalReads } from "../../audit/reading/journal-reads.ts";
import { AuditCheck, type AuditStatus, type JournalVerifier } from "../../audit/verifying/audit-check.ts";
import type { Clock, Random } from "../../clock.ts";
import { InvariantError, WaggleError } from "../../errors.ts";
import { type BatchIndex, batchIndex, type Instant } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { LogReader } from "../../journal/log-reader.ts";
import type { RecentBatches } from "../../journal/recent-batches.ts";
import type { ChainTail } from "../../journal/records.ts";
import type { LiveSegment, Replay } from "../../journal/replay.ts";
import { SegmentWriter } from "../../journal/segment-writer.ts";
import type { CoordinatorMetrics } from "../../metrics/coordinator-metrics.ts";
import type { LedView } from "../../metrics/gauges.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { AttemptTokens } from "../../requests/attempt-tokens.ts";
import type { Commit, InboxEntry } from "../../requests/inbox.ts";
import { Presences } from "../../requests/presence.ts";
import { Router } from "../../requests/router.ts";
import type { SwarmState } from "../../state/state.ts";
import { publishingUntil } from "../../transport/publishing-until.ts";
import type { Transport } from "../../transport/transport.ts";
import { Compaction, type CompactionDeps, type CompactionStatus } from "../compacting/compaction.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { TakeLeadDeps, TakenLead } from "../taking-lead/take-lead.ts";
import type { Timing } from "../timing.ts";
import { Commits } from "./commits.ts";
import { Dispatcher } from "./dispatcher.ts";
import { FullJournal } from "./full-journal.ts";
import { HandOver } from "./hand-over.ts";
import { Isolation } from "./isolation.ts";
import type { JournalClock } from "./journal-clock.ts";
import { Monitor } from "./monitor.ts";
import { Pulse } from "./pulse.ts";
import { Timings } from "./timings.ts";
import { Turns } from "./turns.ts";

/** How the journal is kept short. */
export type CompactionOptions = Pick<CompactionDeps, "maker" | "retention" | "everyEvents" | "baseSyncMs">;

export interface LeaderDeps {
  /** The coordinator's id, shown in the audit and in logs. */
  readonly id: string;
  /** Id of the coordinator's session. */
  readonly session: string;
  readonly timing: Timing;
  /** Longest wait of a turn for more commands, ms. */
  readonly turnSpacingMs: number;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly journal: Journal;
  readonly recentBatches: RecentBatches;
  readonly logReader: LogReader;
  readonly reads: JournalReads;
  readonly room: JournalRoom;
  readonly time: JournalClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly tokens: AttemptTokens;
  /** For a faulty segment. */
  readonly taking: TakeLeadDeps;
  /** Undefined: the journal is never compacted. */
  readonly compaction: CompactionOptions | undefined;
  /** Undefined: the journal is not verified in the background. */
  readonly verifier: JournalVerifier | undefined;
  /** Ids of the standbys that were heard lately. */
  readonly standbys: () => readonly string[];
  /** Undefined: nothing is counted. */
  readonly metrics: CoordinatorMetrics | undefined;
  /** The first batch of a term is committed: the term may be announced. */
  readonly onTermStarted: () => void;
}

export type LeaderEnd =
  /** Another coordinator leads. `acknowledged`: the last committed batch. */
  | { readonly kind: "deposed"; readonly acknowledged: ChainTail }
  /** The leader handed over and becomes a standby; the log up to its last batch. */
  | { readonly kind: "handed-over"; readonly log: Replay }
  | { readonly kind: "ended" }
  | { readonly kind: "halted"; readonly error: WaggleError };

export interface LeaderHooks {
  /** The leader gives up the lead, and waits for `end`. */
  readonly onSteppingDown: () => void;
  /** Called at most once. */
  readonly onEnd: (end: LeaderEnd) => void;
}

export class Leader {
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly timings: Timings;
  readonly reader: AuditReader;
  readonly state: SwarmState;
  readonly commits: Commits;
  readonly full: FullJournal;
  readonly router: Router;

  readonly #deps: LeaderDeps;
  readonly #hooks: LeaderHooks;
  readonly #turns: Turns;
  readonly #dispatcher: Dispatcher;
  readonly #handOver: HandOver;
  readonly #compaction: Compaction | undefined;
  readonly #auditCheck: AuditCheck | undefined;
  readonly #pulse: Pulse;
  readonly #ending = new AbortController();
  #phase: "leading" | "ending" | "closing" | "over" = "leading";
  /** The first batch of the term is not committed. */
  #isTermNew = true;
  /** After an abrupt end no message leaves, not even of committed batches. */
  #isCut = false;

  /** @param taken the open segment of this term; the state of its log becomes this leader's state */
  constructor(given: LeaderDeps, taken: TakenLead & { readonly kind: "won" }, hooks: LeaderHooks) {
    const deps = { ...given, transport: publishingUntil(() => this.#isCut, given.transport) };
    const { clock, room, logger } = deps;
    this.#deps = deps;
    this.#hooks = hooks;
    this.state = taken.log.state;
    this.presences = new Presences(clock);
    this.monitor = new Monitor(this.state, logger);
    this.timings = new Timings(deps);
    this.reader = new AuditReader(deps);
    this.#turns = this.#startTurns();
    this.#dispatcher = new Dispatcher({
      ...this.#shared,
      answer: (entries) => this.#turns.answer(entries, this.committed),
    });
    this.full = new FullJournal(room, logger);
    this.commits = this.#startCommits(taken);
    this.#compaction = this.#startCompaction();
    const { verifier } = deps;
    this.#auditCheck = verifier === undefined ? undefined : new AuditCheck({ ...deps, verifier });
    this.#handOver = new HandOver(
      { ...deps, term: () => this.commits.term },
      { enqueue: (entry) => this.enqueue(entry), stepDown: () => hooks.onSteppingDown() },
    );
    this.router = this.#startRouter();
    this.#pulse = this.#startPulse();
  }

  /** Begins the term: sends unconfirmed messages again, and takes requests. */
  begin(): void {
    this.presences.restart(this.state);
    this.#startTerm(this.commits.segment);
    this.enqueue(this.#dispatcher.resend());
    this.router.open();
    this.#pulse.begin();
  }

  /** Undefined if the journal is never compacted. */
  get compaction(): CompactionStatus | undefined {
    return this.#compaction?.status;
  }

  /** Undefined if the journal is not verified, or not yet. */
  get audit(): AuditStatus | undefined {
    return this.#auditCheck?.status;
  }

  /** The first batch that readers find in the journal. */
  get auditFirstIdx(): BatchIndex {
    return this.#dispatcher.firstIdx;
  }

  get committed(): Commit {
    return this.commits.committed;
  }

  /** Journal time. */
  get now(): Instant {
    return this.#deps.time.now();
  }

  /** For the gauges. */
  get view(): Omit<LedView, "standbys"> {
    return {
      state: this.state,
      now: this.now,
      missedHeartbeats: this.presences.missedHeartbeats,
      dropped: this.router.intake.counters,
      concentrations: this.monitor.concentrations(),
    };
  }

  /** Puts an entry before the next turn. @returns false when the inbox is full, or the term ends */
  enqueue(entry: InboxEntry): boolean {
    return this.#turns.enqueue(entry);
  }

  /** Ends the term: takes no more requests, settles batches in flight, closes the segment. */
  end(): void {
    if (this.#phase !== "leading") return;
    this.#phase = "ending";
    this.router.close();
    this.#turns.schedule();
  }

  /** Ends at once, without a call of a hook: leaves batches in flight as they are, and publishes nothing more. */
  abandon(): void {
    this.#isCut = true;
    this.#finish(undefined);
  }

  // --- its parts ----------------------------------------------------------------------------------

  /** Dependencies that several parts share. */
  get #shared() {
    const { presences, monitor, timings, state } = this;
    return { ...this.#deps, state, term: () => this.commits.term, presences, monitor, timings };
  }

  #startTurns(): Turns {
    return new Turns(this.#shared, {
      isOver: () => this.#isOver,
      isLeading: () => this.#phase === "leading",
      onTime: () => this.#takeTurn(),
      nextIdx: () => this.commits.nextIdx,
      take: (held) => this.commits.take(held),
    });
  }

  #startRouter(): Router {
    return new Router({
      ...this.#shared,
      outbox: this.#dispatcher.outbox,
      reader: this.reader,
      enqueue: (entry) => this.#turns.enqueue(entry),
      holdsLease: () => this.commits.holdsLease,
      auditFirstIdx: () => this.auditFirstIdx,
      stuckReason: () => this.full.stuckReason,
      transfer: (request) => this.#handOver.take(request),
    });
  }

  #startCommits(taken: TakenLead & { readonly kind: "won" }): Commits {
    const { room } = this.#deps;
    return new Commits(this.#deps, taken, {
      isOver: () => this.#isOver,
      resume: () => this.#turns.schedule(),
      onStored: ({ turn }, stored) => {
        room.stored(stored.bytes);
        this.timings.stored(stored);
        this.#compaction?.committed(turn.recorded, stored.bytes);
      },
      dispatch: (held, commit) => this.#dispatcher.dispatch(held, commit),
      answer: (entries) => this.#turns.answer(entries, this.committed),
      onCommitted: () => this.#committed(),
      onRenewing: () => this.#compaction?.pause(),
      onSegment: (live, isNewTerm) => this.#changedSegment(live, isNewTerm),
      onFull: (full) => {
        this.#compaction?.full(full !== undefined);
        this.full.saw(full);
      },
      onDeposed: () => this.#finish({ kind: "deposed", acknowledged: this.commits.acknowledged }),
      onBroken: (cause) => this.#broke(cause),
    });
  }

  #startCompaction(): Compaction | undefined {
    const { compaction, session, journal, clock, logger, logReader } = this.#deps;
    if (compaction === undefined) return undefined;
    const start = { live: this.commits.segment, auditFirstIdx: this.state.auditFirstIdx };
    return new Compaction({ ...this.#deps, ...compaction }, start, {
      changeTo: ({ number, position, ...made }) => {
        const segment = journal.segment(number);
        const writer = new SegmentWriter({ segment, session, position, clock, signal: this.#ending.signal });
        this.commits.changeTo({ writer, ...made });
      },
      ask: (command) => this.#turns.ask(command),
      committedIdx: () => this.committed.idx,
      onDamaged: (error) => {
        logger.error({ err: error }, "the journal cannot be read behind its newest base");
        this.commits.cannotBeRead(this.commits.segment.number);
      },
      onRemoved: () => logReader.changed(),
    });
  }

  #startPulse(): Pulse {
    const parts = {
      ...this.#shared,
      refusals: this.router.intake.refusals,
      turns: this.#turns,
      commits: this.commits,
      compaction: this.#compaction,
    };
    return new Pulse(
      { ...parts, isolation: new Isolation(parts) },
      {
        isOver: () => this.#isOver,
        isLeading: () => this.#phase === "leading",
        onConnected: () => this.enqueue(this.#dispatcher.resend()),
        onIsolated: () => {
          this.#handOver.standAside();
          this.#hooks.onSteppingDown();
        },
        onBroken: (cause) => this.#broke(cause),
      },
    );
  }

  #committed(): void {
    if (this.#isTermNew) this.#deps.onTermStarted();
    this.#isTermNew = false;
    this.#turns.schedule();
  }

  // --- segments -----------------------------------------------------------------------------------

  /** A term whose segment begins with a base follows a loss: readers may not find the batches before the base. */
  #startTerm({ opened, openedHash }: LiveSegment): void {
    this.#isTermNew = true;
    const { id, timing } = this.#deps;
    this.#turns.ask({
      type: "StartTerm",
      term: opened.term,
      leader: id,
      opened: openedHash,
      timeoutMs: timing.timeoutMs,
    });
    if (opened.base === undefined) return;
    const firstIdx = batchIndex(opened.tail.idx + 1);
    this.#turns.ask({ type: "TrimAudit", firstIdx, reason: "lost" });
  }

  #changedSegment(live: LiveSegment, isNewTerm: boolean): void {
    this.#deps.logReader.changed();
    this.#compaction?.changed(live);
    if (!isNewTerm) return;
    this.presences.restart(this.state);
    this.#startTerm(live);
  }

  // --- the turn, and the last one -----------------------------------------------------------------

  /** An error in here is a bug, and leading on would do harm. */
  #takeTurn(): void {
    if (this.#isOver || this.#phase === "closing") return;
    try {
      if (this.#phase === "ending" && this.commits.isAtRest && this.#turns.isInboxEmpty)
        return void this.#close();
      if (!this.commits.takesTurns) return;
      this.#pulse.look();
      this.#turns.run();
      if (this.#phase === "ending" && this.commits.isSettled) this.#turns.schedule(); // no commit will
    } catch (cause) {
      this.#broke(cause);
    }
  }

  /** Closes the segment: a standby takes the lead at once. */
  async #close(): Promise<void> {
    this.#phase = "closing";
    const accepted = this.#handOver.accepted;
    try {
      await this.commits.close(accepted?.to);
    } catch (error) {
      this.#deps.logger.warn(
        { err: error },
        "the segment could not be closed; a standby takes the lead after T",
      );
    }
    if (this.#isOver) return;
    if (!this.#handOver.standsBy) return this.#finish({ kind: "ended" });
    accepted?.answer({ ok: true, ...this.committed });
    this.#finish({ kind: "handed-over", log: this.commits.log });
  }

  get #isOver(): boolean {
    return this.#phase === "over";
  }

  #broke(cause: unknown): void {
    const error =
      cause instanceof WaggleError
        ? cause
        : new InvariantError(cause instanceof Error ? (cause.stack ?? cause.message) : String(cause));
    this.#isCut = true;
    this.#finish({ kind: "halted", error });
  }

  #finish(end: LeaderEnd | undefined): void {
    if (this.#isOver) return;
    this.#phase = "over";
    this.#ending.abort();
    this.router.close();
    this.#pulse.stop();
    this.#turns.stop();
    this.#compaction?.end();
    this.#auditCheck?.end();
    this.commits.stop();
    if (end !== undefined) this.#hooks.onEnd(end);
  }
}
