// A coordinator: follows the journal, takes the lead when the leader is silent, and leads. The chart
// machines/coordinator.ts decides the state; coordinator.ts holds the actions of each state.
//
//   restoring    reads the log from its newest base.                      (journal/log.ts)
//   following    reads on, and notices a silent leader.                   (following/)
//   takingLead   closes the live segment and opens the next one.          (taking-lead/)
//   leading      takes requests, decides, appends.                        (leader/)
//
// Only the journal is authoritative: the writer of the live segment with the highest number leads. Queries are
// answered in all states but `restoring`.

import type { Logger } from "pino";
import { BehaviorSubject, distinctUntilChanged, fromEvent, type Observable } from "rxjs";
import { type ActorRefFrom, createActor, fromCallback, fromPromise, waitFor } from "xstate";
import {
  type CoordinatorSignal,
  type CoordinatorSnapshot,
  coordinatorMachine,
  type EndTerm,
} from "../../machines/coordinator.ts";
import { JournalReads } from "../audit/reading/journal-reads.ts";
import type { JournalVerifier } from "../audit/verifying/audit-check.ts";
import { chartClock } from "../chart-clock.ts";
import type { Clock, Random } from "../clock.ts";
import { InvariantError, JournalDamagedError, mayAnswerLater, messageOf, WaggleError } from "../errors.ts";
import { GracePeriod } from "../grace-period.ts";
import type { SwarmId, Term } from "../ids.ts";
import type { Journal } from "../journal/journal.ts";
import { withoutRemedy } from "../journal/journal-errors.ts";
import { findLive } from "../journal/live.ts";
import { bringUpTo, restore } from "../journal/log.ts";
import { LogReader } from "../journal/log-reader.ts";
import { RecentBatches } from "../journal/recent-batches.ts";
import type { ChainTail } from "../journal/records.ts";
import { emptyTail, type LiveSegment, Replay } from "../journal/replay.ts";
import { limits } from "../limits.ts";
import type { CoordinatorMetrics } from "../metrics/coordinator-metrics.ts";
import type { CoordinatorView } from "../metrics/gauges.ts";
import { pause } from "../pause.ts";
import type { ProcessFigures } from "../process-watch.ts";
import type { CoordinatorHeartbeat } from "../protocol/schemas.ts";
import { type Subjects, subjectsOf } from "../protocol/subjects.ts";
import { AttemptTokens } from "../requests/attempt-tokens.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { SwarmState } from "../state/state.ts";
import type { Subscription, Transport } from "../transport/transport.ts";
import { Announcements } from "./announcements.ts";
import { Announcer } from "./announcer.ts";
import { follow } from "./following/following.ts";
import { JournalRoom } from "./journal-room.ts";
import { FollowedTime, JournalClock } from "./leader/journal-clock.ts";
import { type CompactionOptions, Leader, type LeaderEnd } from "./leader/leader.ts";
import type { PendingBatch } from "./leader/writer.ts";
import { Queries } from "./queries/queries.ts";
import { type TakeLeadDeps, type TakenLead, takeLead } from "./taking-lead/take-lead.ts";
import { type Timing, timingOf } from "./timing.ts";

export interface CoordinatorOptions {
  /** Name of the process for people, recorded in the journal as the term's leader. */
  readonly id: string;
  readonly swarm: SwarmId;
  readonly transport: Transport;
  readonly journal: Journal;
  /** How to keep the journal short. Absent: the journal grows. */
  readonly compaction?: CompactionOptions;
  /** Verifies the journal in the background while the coordinator leads. Absent: nobody does. */
  readonly verifier?: JournalVerifier;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** T of the coordinator's terms, ms. Default `limits.leaderTimeoutMs`. */
  readonly leaderTimeoutMs?: number;
  /** Longest wait of a turn for more commands, ms. Default `limits.turnSpacingMs`; 0: turns never wait. */
  readonly turnSpacingMs?: number;
  /** Key of the attempts' tokens, that all coordinators of the swarm hold, and nobody else. At least
   *  `limits.tokenKeyBytesMin` bytes. Absent: tokens follow from the journal. */
  readonly tokenKey?: Uint8Array;
  /** Counts what the coordinator does. Absent: nothing is counted. */
  readonly metrics?: CoordinatorMetrics;
  /** Event loop and memory of the process, for `status` and metrics. Absent: neither shows them. */
  readonly processFigures?: () => ProcessFigures;
}

export type Role = "standing-by" | "leading" | "halted" | "stopped";

export interface CoordinatorProbe {
  /** The state, read-only, valid until the next change. Undefined while batches are in flight. */
  readonly settledState: SwarmState | undefined;
  /** Hash of the newest batch in `settledState`; empty before the first batch, undefined with the state. */
  readonly settledHash: string | undefined;
  /** Decided and not committed, oldest first. */
  readonly pending: readonly PendingBatch[];
}

export interface Coordinator {
  /** The present role, then each change; completes when stopped or halted. */
  readonly role$: Observable<Role>;
  /** Silence after which the coordinator takes the lead, ms: T of the followed term, and the jitter. */
  readonly silenceMsMax: number;
  /** The peer that announced within T to lead, of the highest term. A dead leader stays for T. */
  readonly heardLeader: Pick<CoordinatorHeartbeat, "id" | "term"> | undefined;
  /** Resolves with the term when the coordinator leads, at once if already leading. Rejects if the coordinator ends
   *  before. */
  whenLeading(): Promise<Term>;
  /** Resolves at the end: with the error of a halted coordinator, with undefined for a stopped one. */
  readonly closed: Promise<WaggleError | undefined>;
  /** Hands over and ends: commits batches in flight, closes the segment. Idempotent. Leaves the transport and the
   *  journal open for the caller. */
  stop(): Promise<void>;
}

/** A coordinator as checkers of tests and simulations see it. */
export interface ProbedCoordinator extends Coordinator {
  readonly probe: CoordinatorProbe;
}

/** Starts a coordinator. Resolves once the journal is read: the coordinator follows, or takes the lead if alone.
 *  @throws UnreachableError, JournalDamagedError */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  return await startProbedCoordinator(options);
}

/** As `startCoordinator`, for checkers. */
export async function startProbedCoordinator(options: CoordinatorOptions): Promise<ProbedCoordinator> {
  const coordinator = new RunningCoordinator(options);
  await coordinator.start();
  return coordinator;
}

const readBackOff = { pauseMs: limits.journalRetryMs, pauseMsMax: limits.journalRetryMsMax };

class RunningCoordinator implements ProbedCoordinator {
  readonly closed: Promise<WaggleError | undefined>;
  readonly #options: CoordinatorOptions;
  readonly #session: string;
  readonly #subjects: Subjects;
  /** Times of the coordinator's own terms. */
  readonly #timing: Timing;
  readonly #actor: ActorRefFrom<typeof coordinatorMachine>;
  readonly #role = new BehaviorSubject<Role>("standing-by");
  readonly #logReader: LogReader;
  readonly #recentBatches = new RecentBatches();
  readonly #followedTime = new FollowedTime();
  readonly #room: JournalRoom;
  readonly #reads: JournalReads;
  readonly #queries: Queries;
  readonly #announcements = new Announcements();
  readonly #announcer: Announcer;
  readonly #subscriptions: Subscription[] = [];
  readonly #emptyLog = new Replay();
  readonly #seen = { highest: 0 };
  #log: Replay | undefined;
  /** After a deposed leader's term, until the log is read again: the last batch committed in the term.
   *
   *  The state of a deposed leader contains batches in flight, and the next leader may leave them out. So the state
   *  is dropped, and the log is read again. If the journal lost its end meanwhile, the batches up to
   *  `#acknowledged` come from `#recentBatches`, and announcements report `#acknowledged` to peer coordinators.
   *  Batches in flight are dropped, because no answer was sent for them. */
  #acknowledged: ChainTail | undefined;
  /** The live segment with a silent or absent leader; 0 where no segment was live. */
  #silentSegment = 0;
  #taken: (TakenLead & { readonly kind: "won" }) | undefined;
  #leader: Leader | undefined;
  #cancelHeartbeat: (() => void) | undefined;
  #hasStarted = false;
  /** No peer coordinator answered at the start. */
  #wasAlone = false;

  constructor(given: CoordinatorOptions) {
    // Several coordinators may share a log file: each line names its coordinator.
    const options = { ...given, logger: given.logger.child({ coordinator: given.id }) };
    const { journal, clock, logger, random } = options;
    this.#options = options;
    this.#session = random.id(limits.sessionCharacters);
    this.#subjects = subjectsOf(options.swarm);
    this.#timing = timingOf(options.leaderTimeoutMs ?? limits.leaderTimeoutMs);
    this.#logReader = new LogReader(journal);
    this.#announcer = new Announcer({
      ...options,
      subjects: this.#subjects,
      announcements: this.#announcements,
      held: () => this.#leader?.committed ?? this.#acknowledged ?? this.#log?.tail ?? { term: 0, idx: 0 },
      isLeading: () => this.#leader !== undefined,
      termStarts: () => this.#leader && this.#heldLog.state.termStarts,
      neededBytes: () => this.#leader?.full.neededBytes,
      onUnreadable: (segment) => this.#leader?.commits.cannotBeRead(segment),
    });
    this.#room = new JournalRoom(journal, clock, logger);
    this.#reads = new JournalReads({
      ...options,
      logReader: this.#logReader,
      isLeading: () => this.#leader !== undefined,
      isLed: () => this.heardLeader !== undefined,
    });
    this.#queries = new Queries({
      ...options,
      reads: this.#reads,
      room: this.#room,
      subjects: this.#subjects,
      recentBatches: this.#recentBatches,
      leader: () => this.#leader,
      log: () => this.#heldLog,
      standbys: () => this.#standbys,
    });
    options.metrics?.showing(() => this.#view);
    this.#actor = this.#createActor();
    this.closed = new Promise((resolve) => {
      this.#actor.subscribe({
        next: (snapshot) => this.#changed(snapshot),
        error: (cause) =>
          resolve(this.#ended(new InvariantError(`the chart has no edge for ${String(cause)}`))),
        complete: () => {
          const { value, context } = this.#actor.getSnapshot();
          resolve(this.#ended(value === "halted" ? coded(context.error) : undefined));
        },
      });
    });
  }

  get role$(): Observable<Role> {
    return this.#role.pipe(distinctUntilChanged());
  }

  get silenceMsMax(): number {
    return this.#followedTiming.silenceMsMax;
  }

  get heardLeader() {
    return this.#announcements.leader(0, this.#lately);
  }

  get probe(): CoordinatorProbe {
    const leader = this.#leader;
    if (leader === undefined)
      return { settledState: this.#heldLog.state, settledHash: this.#heldLog.tail.hash, pending: [] };
    const { state } = leader;
    const { isSettled, tailHash, pending } = leader.commits;
    return {
      settledState: isSettled ? state : undefined,
      settledHash: isSettled ? tailHash : undefined,
      pending,
    };
  }

  async start(): Promise<void> {
    const { transport } = this.#options;
    this.#subscriptions.push(
      transport.subscribe(this.#subjects.queryPattern, (message) => {
        if (this.#hasStarted) this.#queries.take(message);
      }),
    );
    this.#actor.start();
    await waitFor(this.#actor, ({ value }) => value !== "restoring").catch(() => undefined); // `closed` says why
    const error = this.#isOver ? await this.closed : undefined;
    if (error !== undefined) throw error;
  }

  whenLeading(): Promise<Term> {
    return new Promise((resolve, reject) => {
      this.#role.subscribe({
        next: (role) => {
          if (role === "leading" && this.#leader !== undefined) resolve(this.#leader.commits.term);
        },
        complete: () => {
          const sentence = "the coordinator ended before it led";
          this.closed.then((error) => reject(error ?? new WaggleError("WAGGLE_NO_LEADER", sentence)), reject);
        },
      });
    });
  }

  async stop(): Promise<void> {
    if (!this.#isOver) this.#actor.send({ type: "STOP" });
    await this.closed;
  }

  get #isOver(): boolean {
    return this.#actor.getSnapshot().status !== "active";
  }

  // --- the chart ------------------------------------------------------------------------------------

  #createActor(): ActorRefFrom<typeof coordinatorMachine> {
    const machine = coordinatorMachine.provide({
      actors: {
        restore: fromPromise(({ signal }) => this.#restore(signal)),
        follow: fromPromise(({ signal }) => this.#follow(signal)),
        takeLead: fromPromise(({ signal }) => this.#takeLead(signal)),
        lead: fromCallback<EndTerm>(({ sendBack, receive }) => {
          const leader = this.#lead(sendBack);
          receive(() => leader.end());
          return () => this.#leave();
        }),
      },
    });
    return createActor(machine, { clock: chartClock(this.#options.clock) });
  }

  #changed(snapshot: CoordinatorSnapshot): void {
    if (snapshot.status === "active")
      this.#role.next(snapshot.matches("leading") ? "leading" : "standing-by");
  }

  /** @param error why the coordinator halted; undefined when it stopped */
  #ended(error: WaggleError | undefined): WaggleError | undefined {
    if (error !== undefined)
      this.#options.logger.fatal(
        { ...reasonOf(error), code: error.code },
        "halted: this coordinator does nothing more",
      );
    this.#leave(); // a term that failed at its beginning
    this.#queries.stop();
    this.#reads.stop();
    this.#announcer.announce({ leaves: true });
    this.#cancelHeartbeat?.();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#role.next(error === undefined ? "stopped" : "halted");
    this.#role.complete();
    return error;
  }

  // --- restoring ------------------------------------------------------------------------------------

  async #restore(signal: AbortSignal): Promise<"alone" | "accompanied"> {
    const { journal, clock, logger } = this.#options;
    const isFirst = !this.#hasStarted;
    const startedMs = clock.monotonicMs();
    this.#log = undefined;
    this.#log = await this.#readPatiently(signal, isFirst);
    this.#acknowledged = undefined;
    this.#logRestored(clock.monotonicMs() - startedMs);
    if (!isFirst) return "accompanied";
    const other = journal.sharable ? await this.#announcer.greet() : undefined;
    this.#subscriptions.push(this.#announcer.takePart());
    await this.#options.transport.flush();
    this.#hasStarted = true;
    this.#heartbeat();
    this.#wasAlone = other === undefined;
    const isNew = this.#log === undefined;
    if (isNew && other === undefined) logger.info("no journal yet: a new one begins");
    this.#silentSegment = this.#log?.place?.segment ?? 0;
    if (!journal.sharable) return "alone";
    const isClosed = this.#log?.closing?.reason === "handing-over";
    return (isNew || isClosed) && other === undefined ? "alone" : "accompanied";
  }

  /** During a failover a server may lack records for a while: only lasting damage counts. The stream of a segment just
   *  created may have no leader yet: the first reading waits as long as opening the journal does. */
  async #readPatiently(signal: AbortSignal, isFirst: boolean): Promise<Replay | undefined> {
    const { journal, clock, random, logger } = this.#options;
    const damage = new GracePeriod(clock, limits.lossPatienceMs, limits.lossLooksMin);
    const giveUpMs = isFirst ? clock.monotonicMs() + limits.journalOpenMs : Number.POSITIVE_INFINITY;
    let loggedWhy: string | undefined;
    const read = async () => {
      signal.throwIfAborted();
      try {
        return await this.#readLog();
      } catch (error) {
        const mayPass =
          error instanceof JournalDamagedError
            ? journal.sharable && !damage.isBelieved()
            : mayAnswerLater(error) && clock.monotonicMs() < giveUpMs;
        if (!mayPass) throw error;
        const why = withoutRemedy(messageOf(error));
        if (why !== loggedWhy) logger.warn({ why }, "the journal cannot be read; trying again");
        loggedWhy = why;
        throw new TryAgain({ hurry$: fromEvent(signal, "abort") }, { cause: error });
      }
    };
    return await retried(read, { clock, random, backOff: readBackOff });
  }

  /** Undefined while the journal is empty. */
  async #readLog(): Promise<Replay | undefined> {
    const { journal, logger } = this.#options;
    const { live } = await findLive(journal);
    const log = live === undefined ? undefined : await this.#readSegments(live);
    const acknowledged = this.#acknowledged;
    if (acknowledged === undefined || acknowledged.idx === 0) return log;
    this.#recentBatches.dropBehind(acknowledged.idx);
    const brought = log ?? new Replay();
    bringUpTo(brought, acknowledged, (idx) => this.#recentBatches.at(idx));
    if (brought.isAhead)
      logger.error(
        { idx: acknowledged.idx },
        "the journal lost its end; its last batches are held in memory",
      );
    return brought;
  }

  /** Reports an unreadable segment to the leader, and the leader continues in the next segment. */
  async #readSegments(live: LiveSegment): Promise<Replay> {
    const { journal, clock } = this.#options;
    try {
      return await restore(live, { journal, clock });
    } catch (error) {
      if (error instanceof JournalDamagedError && journal.sharable)
        this.#announcer.announce({ cannotRead: live.number });
      throw error;
    }
  }

  #logRestored(ms: number): void {
    if (this.#log === undefined) return;
    const { idx, term } = this.#log.tail;
    const { leader } = this.#log.state;
    this.#options.logger.info({ idx, term, leader, tookMs: Math.round(ms) }, "the journal was read");
  }

  // --- following ------------------------------------------------------------------------------------

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, transport, id, logger } = this.#options;
    this.#announcer.announce(); // as a standby
    this.#silentSegment = await follow(
      this.#log,
      {
        ...this.#options,
        session: this.#session,
        announcements: this.#announcements,
        reportUnreadable: (segment) => this.#announcer.announce({ cannotRead: segment }),
        isConnected: () => transport.status() === "connected",
        timing: () => this.#followedTiming,
      },
      {
        onBatch: ({ idx, at, events, term }, bytes) => {
          this.#followedTime.read(at, clock.monotonicMs());
          this.#recentBatches.add(idx, bytes, clock.monotonicMs());
          for (const event of events)
            if (event.type === "TermStarted" && event.leader !== id)
              logger.info({ leader: event.leader, term }, "standing by: another coordinator leads");
        },
        onRestored: (log) => {
          this.#log = log;
        },
        onSegment: () => this.#logReader.changed(),
      },
      signal,
    );
  }

  // --- taking the lead ------------------------------------------------------------------------------

  async #takeLead(signal: AbortSignal): Promise<"won" | "stands-by"> {
    const { logger, clock } = this.#options;
    this.#room.lookAgain(); // a standby's figure may be of long ago
    try {
      const taken = await takeLead(this.#log, this.#takeLeadDeps, signal);
      this.#log = taken.log;
      if (taken.kind === "stand-by") {
        logger.info("not leading: another coordinator goes first");
        return "stands-by";
      }
      this.#taken = taken;
      return "won";
    } catch (error) {
      if (!(error instanceof WaggleError) || error.code !== "WAGGLE_JOURNAL_FULL") throw error;
      logger.error({ err: error }, "the journal is full: no coordinator can lead until there is room");
      await pause(clock, limits.journalRetryMsMax, signal);
      return "stands-by";
    }
  }

  get #takeLeadDeps(): TakeLeadDeps {
    return {
      ...this.#options,
      session: this.#session,
      timing: this.#followedTiming,
      silentSegment: this.#silentSegment,
      seen: this.#seen,
      isLed: () => this.heardLeader !== undefined,
      isMoreHeld: (log) => this.#isMoreHeld(log),
    };
  }

  /** True if a peer coordinator holds more of the log. The wait for an unconfirmed announcement is bounded.
   *  After a hand-over the log is whole unless a later segment was lost: then only present coordinators are asked. */
  async #isMoreHeld(log: Pick<Replay, "tail" | "closing"> | undefined): Promise<boolean> {
    const own = log?.tail ?? emptyTail;
    const { clock, journal, logger } = this.#options;
    const isAlone =
      this.#wasAlone &&
      !this.#announcements.hasHeard({ ...this.#lately, withinMs: Number.POSITIVE_INFINITY });
    if (!journal.sharable || isAlone) return false;
    const { askMs, timeoutMs } = this.#followedTiming;
    const isClosed = log?.closing?.reason === "handing-over";
    await this.#announcer.ask(askMs, isClosed ? this.#announcements.present(this.#lately) : undefined);
    const ahead = this.#announcements.ahead(own, { now: clock.monotonicMs(), timeoutMs });
    if (ahead === undefined) return false;
    const { id, idx, term } = ahead.announcement;
    const said = { coordinator: id, idx, term, own: own.idx };
    if (ahead.isBelieved) logger.info(said, "another coordinator holds more of the journal; it goes first");
    else
      logger.error(said, "a coordinator says that it holds more of the journal and never shows it; going on");
    return ahead.isBelieved;
  }

  // --- leading --------------------------------------------------------------------------------------

  #lead(sendBack: (signal: CoordinatorSignal) => void): Leader {
    const taken = this.#taken;
    if (taken === undefined) throw new InvariantError("a coordinator leads a segment that it opened");
    this.#taken = undefined;
    this.#logReader.changed();
    const deps = {
      ...this.#options,
      session: this.#session,
      subjects: this.#subjects,
      room: this.#room,
      reads: this.#reads,
      recentBatches: this.#recentBatches,
      logReader: this.#logReader,
      time: this.#journalClock(taken.log),
      timing: this.#timing,
      turnSpacingMs: this.#options.turnSpacingMs ?? limits.turnSpacingMs,
      taking: { ...this.#takeLeadDeps, timing: this.#timing, silentSegment: undefined },
      compaction: this.#options.compaction,
      verifier: this.#options.verifier,
      metrics: this.#options.metrics,
      standbys: () => this.#standbys,
      tokens: new AttemptTokens(this.#options.tokenKey),
      onTermStarted: () => this.#announcer.announce({ began: true }),
    };
    const leader = new Leader(deps, taken, {
      onSteppingDown: () => sendBack({ type: "STEP_DOWN" }),
      onEnd: (end) => sendBack(this.#leaderEnded(leader, end)),
    });
    this.#leader = leader;
    this.#options.logger.info({ term: leader.commits.term }, "leading");
    leader.begin();
    return leader;
  }

  #journalClock({ state }: Replay): JournalClock {
    const { clock, logger } = this.#options;
    const time = new JournalClock(clock, { lastAt: state.at, followed: this.#followedTime }, (skewMs) =>
      logger.warn({ skewMs: Math.round(skewMs) }, "the wall clock and journal time differ: taken up slowly"),
    );
    const unledMs = time.now() - state.at;
    if (state.idx > 0 && unledMs > limits.clockSkewMsMax)
      logger.info({ unledMs }, "no leader for a while; timers that expired meanwhile fire now");
    return time;
  }

  #leaderEnded(leader: Leader, end: LeaderEnd): CoordinatorSignal {
    const { logger, clock } = this.#options;
    this.#followedTime.read(leader.now, clock.monotonicMs());
    switch (end.kind) {
      case "deposed":
        logger.warn("deposed: another coordinator leads");
        this.#acknowledged = end.acknowledged;
        return { type: "DEPOSED" };
      case "handed-over":
        logger.info("handed over: standing by");
        this.#log = end.log;
        return { type: "HANDED_OVER" };
      case "ended":
        return { type: "ENDED" };
      case "halted":
        return { type: "HALT", error: end.error };
    }
  }

  /** Idempotent. */
  #leave(): void {
    this.#leader?.abandon();
    this.#leader = undefined;
  }

  // --- metrics --------------------------------------------------------------------------------------

  get #view(): CoordinatorView {
    const leader = this.#leader;
    const { term, idx } = leader?.committed ?? this.#heldLog.tail;
    const leaderIdx = leader === undefined ? this.heardLeader?.idx : idx;
    const { bytes, bytesMax } = this.#room.usage;
    const process = this.#options.processFigures?.();
    return {
      role: this.#role.value,
      term,
      idx,
      lagBatches: leaderIdx === undefined ? undefined : Math.max(0, leaderIdx - idx),
      journalBytes: bytes,
      ...(process === undefined ? {} : { process }),
      ...(bytesMax === undefined ? {} : { journalBytesMax: bytesMax }),
      led: leader === undefined ? undefined : { ...leader.view, standbys: this.#standbys.length },
    };
  }

  // --- other coordinators ---------------------------------------------------------------------------

  /** By T of the followed term; without a followed term, by the coordinator's own T. */
  get #followedTiming(): Timing {
    const { leaderTimeoutMs } = this.#heldLog.state;
    return leaderTimeoutMs === 0 ? this.#timing : timingOf(leaderTimeoutMs);
  }

  get #heldLog(): Replay {
    return this.#log ?? this.#emptyLog;
  }

  get #lately() {
    return { now: this.#options.clock.monotonicMs(), withinMs: this.#followedTiming.timeoutMs };
  }

  get #standbys(): readonly string[] {
    return this.#announcements.standbys(this.#lately);
  }

  /** Announces the coordinator, to peers and to clients watching for a new term. */
  #heartbeat(): void {
    this.#announcer.announce();
    this.#cancelHeartbeat = this.#options.clock.after(this.#followedTiming.heartbeatMs, () =>
      this.#heartbeat(),
    );
  }
}

/** Fields of a log line. A stack says nothing about damage. The error of `closed` names the remedy. */
function reasonOf(error: WaggleError): { readonly why: string } | { readonly err: WaggleError } {
  return error instanceof JournalDamagedError ? { why: withoutRemedy(error.message) } : { err: error };
}

function coded(cause: unknown): WaggleError {
  if (cause instanceof WaggleError) return cause;
  return new WaggleError("WAGGLE_INVARIANT", "the coordinator met an error it does not know", { cause });
}
