// One term of leadership, from the moment it is won (campaign.ts): the coordinator's actor (docs/architecture.md).
//
//   inbox → decide → append(batch) → apply → effects → answers
//
// Overview. Messages become entries of one bounded inbox. A turn takes what waits, decides it in order on the
// state, plans assignments, and appends one batch for all of it. The state runs ahead of the journal by at most
// two batches; when an append is refused, this object, its state included, is thrown away.
//
// The rule: nothing leaves before its commit (commits.ts). What a turn decided is visible here at once, and to nobody
// else.
//
// Ends: deposed (another term stands in the journal), halted (an invariant broke, or the journal is damaged),
// or ended of its own accord (`end`), asked to or because nobody can reach it, which says so in the journal so that a
// standby need not wait.
//
// Not here: what goes into a turn (turns.ts), what only time brings (pulse.ts), what is told (telling.ts), how turns
// are committed, and what is done where the journal lost records (commits.ts).

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import { InvariantError, type JournalDamagedError, WaggleError } from "../../errors.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { Folded, Replay } from "../../journal/replay.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { SwarmState } from "../../state/state.ts";
import { publishingUntil } from "../../transport/publishing-until.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Announcements } from "../announcements.ts";
import type { PendingBatch } from "../append/sends.ts";
import { type Compaction, Compactor } from "../compaction/compactor.ts";
import type { CompactionStatus } from "../compaction/known-snapshots.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { DeadRecordLog } from "../repair/dead-records.ts";
import { AuditReader } from "../requests/audit-reader.ts";
import { Awaiting } from "../requests/awaiting.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import type { JournalReads } from "../requests/journal-reads.ts";
import { Reception } from "../requests/reception.ts";
import type { Timing } from "../timing.ts";
import { AgentDesk } from "./agent-desk.ts";
import { AwaitDesk } from "./await-desk.ts";
import type { Victory } from "./campaign.ts";
import { Commits } from "./commits.ts";
import { Deafness } from "./deafness.ts";
import { FullJournal } from "./full-journal.ts";
import { HandOver } from "./hand-over.ts";
import { endsTerm, type Held } from "./in-flight.ts";
import { Monitor } from "./monitor.ts";
import { Presences } from "./presence.ts";
import { Pulse } from "./pulse.ts";
import { RefusalTally } from "./refusal-tally.ts";
import { RequestDesk } from "./request-desk.ts";
import { RetryDesk } from "./retry-desk.ts";
import { Telling } from "./telling.ts";
import { Turns } from "./turns.ts";
import { Upkeep } from "./upkeep.ts";

export interface LeaderDeps {
  /** Of this coordinator, for people. */
  readonly id: string;
  readonly timing: Timing;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly journal: Journal;
  readonly recent: RecentRecords;
  readonly reads: JournalReads;
  readonly room: JournalRoom;
  /** What this coordinator found when it read the journal. */
  readonly foundSnapshots: FoundSnapshots;
  readonly readable: ReadableSnapshots;
  /** Absent where the journal is never cut. */
  readonly compaction?: Compaction;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly deadLog: DeadRecordLog;
  /** Of the other coordinators. */
  readonly announcements: Announcements;
  /** Ids of the coordinators that stand by, as far as they were heard lately. */
  readonly standbys: () => readonly string[];
}

export type LeaderEnd =
  | { readonly kind: "deposed" }
  /** It stepped down for another, and stands by; `folded` is the journal up to and with its `TermEnded`. */
  | { readonly kind: "handed-over"; readonly folded: Folded }
  | { readonly kind: "ended" }
  | { readonly kind: "halted"; readonly error: WaggleError };

export class Leader {
  readonly term: Term;
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly reader: AuditReader;
  readonly desk: RequestDesk;

  readonly #deps: LeaderDeps;
  readonly #replay: Replay;
  readonly #victory: Victory;
  readonly #onEnd: (end: LeaderEnd) => void;
  readonly #turns: Turns;
  readonly #telling: Telling;
  readonly #full: FullJournal;
  readonly #handOver: HandOver;
  readonly #reception: Reception;
  readonly #compactor: Compactor | undefined;
  readonly #commits: Commits;
  readonly #pulse: Pulse;
  #phase: "leading" | "ending" | "over" = "leading";
  /** Whether it ended at once: nothing more leaves, not even what is committed. */
  #isCut = false;

  /** @param replay up to and with the term's own `TermStarted`; its state becomes this leader's
   *  @param onEnd called once */
  constructor(given: LeaderDeps, replay: Replay, victory: Victory, onEnd: (end: LeaderEnd) => void) {
    const deps = { ...given, transport: publishingUntil(() => this.#isCut, given.transport) };
    const { clock, room, logger } = deps;
    this.#deps = deps;
    this.#replay = replay;
    this.#victory = victory;
    this.#onEnd = onEnd;
    this.term = replay.position.term;
    this.presences = new Presences(clock);
    this.monitor = new Monitor(replay.state, logger);
    this.reader = new AuditReader({ ...deps, places: replay.places });
    this.#turns = this.#startTurns();
    const awaiting = new Awaiting();
    const refusals = new RefusalTally(clock.monotonicMs());
    this.#telling = new Telling({
      ...this.#shared,
      awaiting,
      answer: (entries) => this.#turns.answer(entries, this.committed),
    });
    this.#full = new FullJournal(room, logger);
    this.#handOver = new HandOver(
      { ...deps, term: this.term },
      { enqueue: (entry) => this.enqueue(entry), end: () => this.end() },
    );
    this.desk = this.#startDesk(awaiting, refusals);
    this.#reception = new Reception(deps, this.desk);
    this.#compactor = this.#startCompactor();
    this.#commits = this.#startCommits();
    this.#pulse = this.#startPulse(refusals);
  }

  /** Takes office: tells again what was not confirmed, and takes requests. */
  begin(): void {
    this.presences.restart(this.state);
    this.#telling.begin(this.#victory, this.committed);
    this.#reception.open();
    this.#pulse.begin();
    this.#turns.schedule();
    this.#commits.begin();
  }

  /** Of the journal's snapshots; undefined where there are none. */
  get compaction(): CompactionStatus | undefined {
    return this.#compactor?.status;
  }

  get state(): SwarmState {
    return this.#replay.state;
  }

  /** Of the newest batch in the state. */
  get tailHash(): string {
    return this.#commits.folded().position.hash;
  }

  /** Why nothing can be decided or answered now, if so: for whoever asks, who asks again. */
  get stuckReason(): string | undefined {
    return this.#full.stuckReason;
  }

  /** Of the batch for which the journal has no room, if so. */
  get neededBytes(): number | undefined {
    return this.#full.neededBytes;
  }

  /** The first batch of the record: what was purged of a full journal is not there, though it be said only later. */
  get auditFirstIdx(): BatchIndex {
    return batchIndex(Math.max(this.#telling.firstIdx, this.#compactor?.keptIdx ?? 1));
  }

  /** What the state contains and is not committed, oldest first. */
  get pending(): readonly PendingBatch[] {
    return this.#commits.pending;
  }

  /** Whether all that the state contains is committed. */
  get isSettled(): boolean {
    return this.#commits.isSettled;
  }

  get committed(): Commit {
    return this.#commits.committed;
  }

  /** Journal time. */
  get now(): Instant {
    return this.#victory.time.now();
  }

  get journalId(): string {
    return this.#commits.journalId;
  }

  /** The last record of the journal that is known here. */
  get lastSeq(): number {
    return this.#commits.lastSeq;
  }

  /** Puts an entry before the next turn. @returns false when the inbox is full */
  enqueue(entry: InboxEntry): boolean {
    return this.#phase === "leading" && this.#turns.enqueue(entry);
  }

  /** Ends the term of its own accord: takes nothing new, settles what is in flight, says so in the journal. */
  end(): void {
    if (this.#phase !== "leading") return;
    this.#phase = "ending";
    this.#reception.close();
    this.#turns.schedule();
  }

  /** The journal lost records that a restart would read, under an unchanged end. */
  rescue(lost: JournalDamagedError): void {
    this.#commits.rescue("hole", lost);
  }

  /** The journal was purged, by this leader or by another that makes room and does not know of this one. */
  purgedBelow(firstSeq: number): void {
    this.#compactor?.purgedBelow(firstSeq);
  }

  /** Ends at once: leaves what is in flight as it is, and sends nothing more to anybody. */
  abandon(): void {
    this.#isCut = true;
    this.#finish({ kind: "ended" });
  }

  // --- its parts ----------------------------------------------------------------------------------

  /** What several of them work on. */
  get #shared() {
    const { presences, monitor, term, state } = this;
    return { ...this.#deps, state, term, presences, monitor, time: this.#victory.time };
  }

  #startTurns(): Turns {
    return new Turns(this.#shared, {
      isOver: () => this.#isOver,
      onTime: () => this.#takeTurn(),
      nextIdx: () => this.#commits.nextIdx,
      take: (held) => this.#commits.take(held),
    });
  }

  #startDesk(awaiting: Awaiting, refusals: RefusalTally): RequestDesk {
    const parts = {
      ...this.#shared,
      awaiting,
      outbox: this.#telling.outbox,
      reader: this.reader,
      enqueue: (entry: InboxEntry) => this.enqueue(entry),
      isTrusted: () => this.#commits.isTrusted,
      auditFirstIdx: () => this.auditFirstIdx,
    };
    return new RequestDesk({
      ...parts,
      agents: new AgentDesk(parts),
      awaited: new AwaitDesk(parts),
      retries: new RetryDesk({ ...parts, refusals }),
      refusals,
      stuckReason: () => this.stuckReason,
      transfer: (request) => this.#handOver.take(request),
    });
  }

  #startCompactor(): Compactor | undefined {
    const { compaction } = this.#deps;
    if (compaction === undefined) return undefined;
    return new Compactor({ ...this.#deps, ...compaction }, this.#replay, {
      ask: (command) => this.#turns.ask(command),
      onLost: (error) => this.#commits.rescue("snapshots-lost", error),
    });
  }

  #startCommits(): Commits {
    const { compaction, room } = this.#deps;
    const deps = { ...this.#deps, term: this.term, snapshots: compaction?.snapshots };
    return new Commits(deps, this.#replay, this.#victory.sentMonotonicMs, {
      isOver: () => this.#isOver,
      appendBeat: () => this.#turns.runBeat(),
      resume: () => this.#turns.schedule(),
      trimAudit: (firstIdx, reason) => this.#turns.ask({ type: "TrimAudit", firstIdx, reason }),
      onStored: ({ turn }, record) => {
        room.stored(record.bytes);
        this.#compactor?.committed(turn.recorded, record);
      },
      onSaved: (manifest, reason) =>
        this.#compactor?.saved(manifest, { trims: reason === "hole" || reason === "tail-lost" }),
      tell: (held, commit) => this.#telling.tell(held, commit),
      answer: (entries) => this.#turns.answer(entries, this.committed),
      onCommitted: (held) => this.#committed(held),
      onFull: (full) => {
        this.#compactor?.full(full !== undefined);
        this.#full.saw(full);
      },
      onDeposed: () => this.#finish({ kind: "deposed" }),
      onBroken: (cause) => this.#broke(cause),
    });
  }

  #startPulse(refusals: RefusalTally): Pulse {
    const parts = {
      ...this.#shared,
      refusals,
      turns: this.#turns,
      commits: this.#commits,
      compactor: this.#compactor,
    };
    return new Pulse(
      { ...parts, deafness: new Deafness(parts), upkeep: new Upkeep(parts) },
      {
        isOver: () => this.#isOver,
        isLeading: () => this.#phase === "leading",
        onConnected: () => {
          this.enqueue(this.#telling.again());
          this.#compactor?.reconnected();
        },
        onDeaf: () => {
          this.#handOver.standAside();
          this.end();
        },
        onBroken: (cause) => this.#broke(cause),
      },
    );
  }

  // --- the turn, and the last one -----------------------------------------------------------------

  /** Whatever throws in here is a bug, and leading on with it would do harm. */
  #takeTurn(): void {
    if (this.#isOver || !this.#commits.takesTurns) return;
    try {
      this.#pulse.look();
      const isLast = this.#phase === "ending" && this.#turns.isInboxEmpty;
      if (isLast) return this.#endTerm();
      this.#turns.run();
      if (this.#phase === "ending" && this.isSettled) this.#turns.schedule(); // no commit will
    } catch (cause) {
      this.#broke(cause);
    }
  }

  #committed(held: Held): void {
    if (this.#phase === "ending" && endsTerm(held)) this.#hasEnded();
    else this.#turns.schedule();
  }

  #endTerm(): void {
    const to = this.#handOver.accepted?.to;
    this.#turns.run({ last: { type: "EndTerm", ...(to === undefined ? {} : { to }) } });
  }

  #hasEnded(): void {
    if (!this.#handOver.standsBy) return this.#finish({ kind: "ended" });
    this.#handOver.accepted?.answer({ ok: true, ...this.committed });
    this.#finish({ kind: "handed-over", folded: this.#commits.folded() });
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

  #finish(end: LeaderEnd): void {
    if (this.#isOver) return;
    this.#phase = "over";
    this.#reception.close();
    this.#pulse.stop();
    this.#compactor?.end();
    this.#turns.stop();
    this.#commits.stop();
    this.#onEnd(end);
  }
}
