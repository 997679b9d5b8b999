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
// Not here: how turns are committed, and what is done where the journal lost records (commits.ts).

import type { Logger } from "pino";
import type { Clock, Random } from "../clock.ts";
import type { Command } from "../core/command.ts";
import { type Effect, standingGrants, unconfirmedAssignments } from "../core/effect.ts";
import type { TrimReason } from "../core/event.ts";
import type { SwarmState } from "../core/state.ts";
import { type RecordedEvent, Turn } from "../core/step.ts";
import { Endurance } from "../endurance.ts";
import { InvariantError, type JournalDamagedError, WaggleError } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant, type Term } from "../ids.ts";
import type { Journal } from "../journal/journal.ts";
import type { RecentRecords } from "../journal/recent-records.ts";
import type { Folded, Replay } from "../journal/replay.ts";
import type { FoundSnapshots } from "../journal/snapshot/restore.ts";
import { limits } from "../limits.ts";
import type { Subjects } from "../protocol/subjects.ts";
import { Planner } from "../scheduling/planner.ts";
import { Wake } from "../scheduling/wake.ts";
import type { Subscription, Transport } from "../transport/transport.ts";
import { AgentGate } from "./agent-gate.ts";
import { AgentMirrors } from "./agent-mirror.ts";
import type { Announcements } from "./announcements.ts";
import { AuditReader } from "./audit-reader.ts";
import { Awaiting } from "./awaiting.ts";
import type { Victory } from "./campaign.ts";
import { Commits } from "./commits.ts";
import type { Full } from "./committer.ts";
import { type Compaction, type CompactionStatus, Compactor } from "./compactor.ts";
import type { DeadRecordLog } from "./dead-records.ts";
import { DueTimer } from "./due-timer.ts";
import { EventPublisher } from "./event-publisher.ts";
import { HandOver } from "./hand-over.ts";
import { endsTerm, type Held } from "./in-flight.ts";
import { type Commit, Inbox, type InboxEntry } from "./inbox.ts";
import type { JournalClock } from "./journal-clock.ts";
import { type JournalRoom, roomFields } from "./journal-room.ts";
import { Monitor } from "./monitor.ts";
import { Outbox } from "./outbox.ts";
import { Presences } from "./presence.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import { RefusalTally } from "./refusal-tally.ts";
import { RequestDesk } from "./request-desk.ts";
import { Requests } from "./requests.ts";
import type { Timing } from "./timing.ts";
import { takeCommands, takeEntries } from "./turn-intake.ts";

export interface LeaderDeps {
  /** Of this coordinator, for people. */
  readonly id: string;
  readonly timing: Timing;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly journal: Journal;
  readonly recent: RecentRecords;
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
  readonly mirrors = new AgentMirrors();
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly reader: AuditReader;
  readonly desk: RequestDesk;

  readonly #deps: LeaderDeps;
  readonly #replay: Replay;
  readonly #state: SwarmState;
  readonly #planner: Planner;
  readonly #wake: Wake;
  readonly #dueTimer: DueTimer;
  readonly #time: JournalClock;
  readonly #inbox = new Inbox();
  readonly #commits: Commits;
  readonly #outbox: Outbox;
  readonly #publisher: EventPublisher;
  readonly #compactor: Compactor | undefined;
  readonly #requests: Requests;
  readonly #handOver: HandOver;
  readonly #victory: Victory;
  readonly #onEnd: (end: LeaderEnd) => void;
  readonly #jitter = () => this.#deps.random.next();

  #phase: "leading" | "ending" | "over" = "leading";
  #isTurnScheduled = false;
  /** Nothing is assigned: the journal keeps what room it has for the results of what runs. */
  #isHeldBack = false;
  /** Why the journal takes no batch, while it takes none. */
  #full: Full | undefined;
  /** The first batch that is kept, by what is committed and may be told: the state is ahead of that. */
  #toldFirstIdx: BatchIndex;
  /** Entries that wait for their turn or for their commit. */
  #unanswered = 0;
  /** Commands of its own, ahead of the inbox and beyond its bound. */
  #own: Command[] = [];
  #subscriptions: Subscription[] = [];
  #stopStatus: (() => void) | undefined;
  #cancelPulse: (() => void) | undefined;
  #pulseMonotonicMs: number;
  /** What only time brings was not looked at since the last pulse. */
  #isLookDue = false;
  /** Nobody can reach it, and it reaches the journal. */
  readonly #deafness: Endurance;
  #isSteppingDown = false;
  readonly #refusals: RefusalTally;

  /** @param replay up to and with the term's own `TermStarted`; its state becomes this leader's
   *  @param onEnd called once */
  constructor(deps: LeaderDeps, replay: Replay, victory: Victory, onEnd: (end: LeaderEnd) => void) {
    const { clock, journal, transport, subjects } = deps;
    this.#deps = deps;
    this.#replay = replay;
    this.#state = replay.state;
    this.#toldFirstIdx = replay.state.auditFirstIdx;
    this.#planner = new Planner(replay.state);
    this.#wake = new Wake(replay.state);
    this.#dueTimer = new DueTimer(clock, () => this.#scheduleTurn());
    this.term = replay.position.term;
    this.#time = victory.time;
    this.#victory = victory;
    this.#onEnd = onEnd;
    const now = clock.monotonicMs();
    this.#pulseMonotonicMs = now;
    this.#deafness = new Endurance(clock, deps.timing.deafMs);
    this.#refusals = new RefusalTally(now);
    this.presences = new Presences(clock);
    this.monitor = new Monitor(replay.state, deps.logger);
    this.reader = new AuditReader(journal, replay.places, clock);
    const awaiting = new Awaiting();
    this.#outbox = new Outbox(transport, subjects, awaiting, this.presences);
    this.#publisher = new EventPublisher(transport, subjects);
    this.#handOver = new HandOver(
      { ...deps, term: this.term },
      { enqueue: (entry) => this.enqueue(entry), end: () => this.end() },
    );
    this.desk = new RequestDesk({
      ...deps,
      term: this.term,
      state: this.#state,
      presences: this.presences,
      gate: new AgentGate(clock),
      awaiting,
      outbox: this.#outbox,
      reader: this.reader,
      refusals: this.#refusals,
      enqueue: (entry) => this.enqueue(entry),
      isTrusted: () => this.#commits.isTrusted,
      auditFirstIdx: () => this.auditFirstIdx,
      stuckReason: () => this.stuckReason,
      transfer: (request) => this.#handOver.take(request),
    });
    this.#requests = new Requests(subjects, deps.random, this.desk);
    this.#compactor = this.#startCompactor();
    this.#commits = this.#startCommits();
  }

  /** Takes office: tells again what was not confirmed, and takes requests. */
  begin(): void {
    const { transport, subjects } = this.#deps;
    this.presences.restart(this.#state);
    this.mirrors.sync(this.#state, this.#state.agentById.keys());
    this.#outbox.perform(untoldOf(this.#state), this.committed);
    this.#stopStatus = transport.onStatus((status) => {
      if (status !== "connected") return;
      this.#deafness.renew();
      this.#tellAgain();
      this.#compactor?.checkSoon();
    });
    this.#publisher.publish([recordedStart(this.#victory.started)], this.committed, this.#victory.at);
    this.#subscriptions = subjects.leaderPatterns.map((pattern) =>
      transport.subscribe(pattern, (message) => this.#requests.take(message)),
    );
    this.#pulse();
    this.#scheduleTurn();
    this.#commits.begin();
  }

  /** What was to be told while nobody could be reached was not kept: by now it may not be so any more. */
  #tellAgain(): void {
    let untold: readonly Effect[] = [];
    this.enqueue({
      commands: [],
      replies: [],
      look: (state) => {
        untold = untoldOf(state);
      },
      finish: (commit) => this.#outbox.perform(untold, commit),
    });
  }

  /** Of the journal's snapshots; undefined where there are none. */
  get compaction(): CompactionStatus | undefined {
    return this.#compactor?.status;
  }

  get state(): SwarmState {
    return this.#state;
  }

  /** Why nothing can be decided or answered now, if so: for whoever asks, who asks again. */
  get stuckReason(): string | undefined {
    if (this.#full === undefined) return undefined;
    const { remedy } = this.#deps.room.usage;
    return `the journal is full, and nothing is done or answered until it has room: ${this.#full.message}${remedy === undefined ? "" : `; ${remedy}`}`;
  }

  /** Of the batch for which the journal has no room, if so. */
  get neededBytes(): number | undefined {
    return this.#full?.bytes;
  }

  /** The first batch of the record: what was purged of a full journal is not there, though it be said only later. */
  get auditFirstIdx(): BatchIndex {
    return batchIndex(Math.max(this.#toldFirstIdx, this.#compactor?.keptIdx ?? 1));
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
    return this.#time.now();
  }

  get journalId(): string {
    return this.#commits.journalId;
  }

  /** Puts an entry before the next turn. @returns false when the inbox is full */
  enqueue(entry: InboxEntry): boolean {
    if (this.#phase !== "leading" || this.#unanswered >= limits.inboxDepthMax) return false;
    this.#unanswered += 1;
    this.#inbox.push(entry);
    this.#scheduleTurn();
    return true;
  }

  /** Ends the term of its own accord: takes nothing new, settles what is in flight, says so in the journal. */
  end(): void {
    if (this.#phase !== "leading") return;
    this.#phase = "ending";
    this.#unsubscribe();
    this.#scheduleTurn();
  }

  /** The journal lost records that a restart would read, under an unchanged end. */
  rescue(lost: JournalDamagedError): void {
    this.#commits.rescue("hole", lost);
  }

  /** The journal was purged, by this leader or by another that makes room and does not know of this one. */
  purgedBelow(firstSeq: number): void {
    this.#compactor?.purgedBelow(firstSeq);
  }

  /** The journal lost records that nobody can read any more: the audit begins at `firstIdx`. */
  trimAudit(firstIdx: BatchIndex, reason: TrimReason): void {
    this.#own.push({ type: "TrimAudit", firstIdx, reason });
    this.#scheduleTurn();
  }

  /** Ends at once, leaving what is in flight as it is. */
  abandon(): void {
    this.#finish({ kind: "ended" });
  }

  // --- its parts ----------------------------------------------------------------------------------

  #startCommits(): Commits {
    const { compaction, room } = this.#deps;
    const deps = { ...this.#deps, term: this.term, snapshots: compaction?.snapshots };
    return new Commits(deps, this.#replay, this.#victory.sentMonotonicMs, {
      isOver: () => this.#isOver,
      appendBeat: () => this.#appendBeat(),
      resume: () => this.#scheduleTurn(),
      trimAudit: (firstIdx, reason) => this.trimAudit(firstIdx, reason),
      onStored: ({ turn }, record) => {
        room.stored(record.bytes);
        this.#compactor?.committed(turn.recorded, record);
      },
      onSaved: (manifest) => this.#compactor?.saved(manifest),
      tell: (held, commit) => this.#tell(held, commit),
      answer: (entries) => this.#answer(entries),
      onCommitted: (held) => this.#committed(held),
      onFull: (full) => this.#sawFull(full),
      onDeposed: () => this.#finish({ kind: "deposed" }),
      onBroken: (cause) => this.#broke(cause),
    });
  }

  #startCompactor(): Compactor | undefined {
    const { compaction } = this.#deps;
    if (compaction === undefined) return undefined;
    return new Compactor({ ...this.#deps, ...compaction }, this.#replay, {
      ask: (command) => {
        this.#own.push(command);
        this.#scheduleTurn();
      },
      onLost: (error) => this.#commits.rescue("snapshots-lost", error),
    });
  }

  // --- the turn -----------------------------------------------------------------------------------

  #scheduleTurn(): void {
    if (this.#isTurnScheduled || this.#isOver) return;
    this.#isTurnScheduled = true;
    this.#deps.clock.soon(() => {
      this.#isTurnScheduled = false;
      this.#runTurn();
    });
  }

  #runTurn(): void {
    if (this.#isOver || !this.#commits.takesTurns) return;
    this.#guarded(() => {
      this.#look();
      const isLast = this.#phase === "ending" && this.#inbox.depth === 0;
      if (isLast) return this.#endTerm();
      this.#appendTurn();
      if (this.#phase === "ending" && this.isSettled) this.#scheduleTurn(); // no commit will
    });
  }

  /** One turn, in one batch: what waits, what is due, what can be assigned. A term ends with its last command. */
  #appendTurn({ last }: { readonly last?: Command } = {}): void {
    const startedMs = this.#deps.clock.monotonicMs();
    const at = this.#time.now();
    const turn = new Turn(this.#state, at, this.#commits.nextIdx, this.#planner);
    const entries: InboxEntry[] = [];
    const isLate = () => this.#deps.clock.monotonicMs() - startedMs > limits.turnMsMax;
    const waiting = { inbox: this.#inbox, state: this.#state, isLate, done: entries };
    const tookAll = takeCommands(turn, this.#own) && takeEntries(turn, waiting);
    const didDue = turn.takeDue(this.#jitter);
    this.#isHeldBack = this.#deps.room.isTight;
    const didPlan = this.#isHeldBack || turn.plan();
    if (last !== undefined) turn.take(last);
    this.mirrors.sync(this.#state, turn.touchedAgents);
    this.#wake.touch(turn.touchedAgents);
    this.#commits.take({ turn, at, entries });
    this.#dueTimer.set(this.#wake.nextAt(at), at);
    if (!tookAll || !didDue || !didPlan) this.#scheduleTurn();
    this.#noteTurnLength(startedMs);
  }

  #committed(held: Held): void {
    if (this.#phase === "ending" && endsTerm(held)) this.#hasEnded();
    else this.#scheduleTurn();
  }

  #tell(held: Held, commit: Commit): void {
    for (const { event } of held.turn.recorded)
      if (event.type === "AuditTrimmed") this.#toldFirstIdx = event.firstIdx;
    this.#outbox.perform(held.turn.effects, commit);
    this.#answer(held.entries);
    this.#publisher.publish(held.turn.recorded, commit, held.at);
    this.monitor.committed(held.turn.recorded);
  }

  #answer(entries: readonly InboxEntry[]): void {
    this.#unanswered -= entries.length;
    for (const entry of entries) entry.finish(this.committed);
  }

  #endTerm(): void {
    const to = this.#handOver.accepted?.to;
    this.#appendTurn({ last: { type: "EndTerm", ...(to === undefined ? {} : { to }) } });
  }

  #hasEnded(): void {
    const transfer = this.#handOver.accepted;
    if (transfer === undefined && !this.#isSteppingDown) return this.#finish({ kind: "ended" });
    transfer?.answer({ ok: true, ...this.committed });
    this.#finish({ kind: "handed-over", folded: this.#commits.folded() });
  }

  // --- what only time brings ----------------------------------------------------------------------

  #appendBeat(): void {
    const at = this.#time.now();
    const turn = new Turn(this.#state, at, this.#commits.nextIdx, this.#planner);
    turn.take({ type: "RenewTerm" });
    this.#commits.take({ turn, at, entries: [] });
  }

  #pulse(): void {
    if (this.#isOver) return;
    const now = this.#deps.clock.monotonicMs();
    const { pulseMs, pulseLateMs } = this.#deps.timing;
    const isLate = now - this.#pulseMonotonicMs > pulseLateMs + pulseMs;
    const isConnected = this.#deps.transport.status() === "connected";
    this.#lookWhoHears({ isLate, isConnected });
    if (isLate || !isConnected) this.presences.restart(this.#state);
    if (!isConnected) this.#commits.lookSoon(); // once it is: the server may have lost something
    this.#pulseMonotonicMs = now;
    if (this.#commits.takesBeats && this.#beat(now).length > 0) this.#appendBeat();
    this.#isLookDue = true;
    if (this.#commits.takesTurns) this.#look();
    this.presences.sweep(this.#state);
    this.monitor.pulse(this.#time.now());
    if (this.#own.length > 0 || (this.#isHeldBack && !this.#deps.room.isTight)) this.#scheduleTurn();
    this.#deps.room.look();
    if (this.#deps.announcements.areSnapshotsMissed({ now, withinMs: this.#deps.timing.timeoutMs }))
      this.#compactor?.checkSooner();
    this.#commits.look();
    this.#compactor?.look(this.#time.now());
    this.#cancelPulse = this.#deps.clock.after(pulseMs, () => this.#pulse());
  }

  /** A leader whose connection to agents and clients is away for long, and which renews its term in the journal all the
   *  while, keeps everybody who can be reached from leading: it steps down
   *  (docs/adr/0017-a-leader-that-nobody-can-reach-steps-down.md). */
  #lookWhoHears({ isLate, isConnected }: { readonly isLate: boolean; readonly isConnected: boolean }): void {
    const { journal, logger, timing } = this.#deps;
    const isDeaf = !isConnected && this.#commits.isTrusted && journal.sharable;
    if (isLate || !isDeaf) return this.#deafness.renew();
    if (this.#phase !== "leading" || !this.#deafness.isOver) return;
    logger.error(
      { term: this.term, deafMs: timing.deafMs },
      "nobody can reach this coordinator, which reaches the journal: it ends its term, so that another may lead. Look why its connection to the server does not come back",
    );
    this.#isSteppingDown = true;
    this.end();
  }

  /** Once a pulse, when a turn can decide what is found: by then, whoever was silent before may have been heard. */
  #look(): void {
    // While what an earlier look found is undecided, finding it again would only pile up.
    if (!this.#isLookDue || this.#own.length > 0) return;
    this.#isLookDue = false;
    const now = this.#deps.clock.monotonicMs();
    const overdue = this.presences.overdue(this.#state, this.#jitter);
    this.#own.push(...overdue, ...this.#refusals.take(now), ...this.#beat(now));
  }

  /** An idle leader shows that it lives, where somebody stands by. */
  #beat(now: number): Command[] {
    const { beatMs, pulseMs } = this.#deps.timing;
    const isIdle = this.isSettled && now - this.#commits.appendedMonotonicMs >= beatMs - pulseMs;
    return this.#deps.journal.sharable && isIdle ? [{ type: "RenewTerm" }] : [];
  }

  // --- endings and alarms -------------------------------------------------------------------------

  #sawFull(full: Full | undefined): void {
    const { logger, room } = this.#deps;
    this.#full = full;
    this.#compactor?.full(full !== undefined);
    room.lookAgain();
    const { bytes: _, ...bound } = roomFields(room.usage); // of before it was full
    if (full !== undefined)
      logger.error(
        { reason: full.message, ...bound },
        "the journal is full: nothing is done until there is room; what snapshots stand for is purged where that helps",
      );
    else logger.info("the journal takes batches again");
  }

  #noteTurnLength(startedMs: number): void {
    const turnMs = this.#deps.clock.monotonicMs() - startedMs;
    if (turnMs > limits.turnMsAlarm)
      this.#deps.logger.warn({ turnMs: Math.round(turnMs) }, "a turn took long");
  }

  get #isOver(): boolean {
    return this.#phase === "over";
  }

  /** Whatever throws in here is a bug, and leading on with it would do harm. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (cause) {
      this.#broke(cause);
    }
  }

  #broke(cause: unknown): void {
    const error =
      cause instanceof WaggleError
        ? cause
        : new InvariantError(cause instanceof Error ? (cause.stack ?? cause.message) : String(cause));
    this.#finish({ kind: "halted", error });
  }

  #unsubscribe(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }

  #finish(end: LeaderEnd): void {
    if (this.#isOver) return;
    this.#phase = "over";
    this.#unsubscribe();
    this.#stopStatus?.();
    this.#cancelPulse?.();
    this.#compactor?.end();
    this.#dueTimer.stop();
    this.#commits.stop();
    this.#onEnd(end);
  }
}

/** What agents have not confirmed to have heard. */
function untoldOf(state: SwarmState): readonly Effect[] {
  return [...unconfirmedAssignments(state), ...standingGrants(state)];
}

function recordedStart(event: Victory["started"]): RecordedEvent {
  return { event, json: JSON.stringify(event), project: "_" };
}
