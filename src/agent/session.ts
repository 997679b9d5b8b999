// One agent's conversation with the leader: joining, heartbeats, leases, assignments, results, leaving. Runs no
// handler. A handler may block this thread: then the stand-in, in its own thread, sends the heartbeats
// (stand-in.ts), and no lease is lost.
//
// What is authoritative. The leader's journal says which agent holds which attempt. The session accepts pushes
// for its present incarnation from a term not lower than the highest term it has heard. Its state is the state
// of the agent's chart (machines/agent.ts): the session runs the chart and implements its actors and actions.
// Held attempts and owed results belong to one incarnation (`IncarnationState`). When the leader has reassigned
// them (`rejoin`), they are aborted and forgotten, and the next incarnation joins. Handlers of earlier
// incarnations occupy their capacity until they end: the session offers the free capacity, joins when some is
// free, and reports more in its heartbeats.
//
// Failures. A lost assignment shows as a gap below `seen` and is sent again. After a lost answer, the same
// result is sent again. A lost heartbeat renews nothing: leases count from the sending of the last confirmed
// heartbeat. After a long time without a confirmed heartbeat, new assignments and grants wait for the next,
// because their leases may have ended. Without a leader everything waits, except an agent that drains and owes
// nothing: it leaves soon, acknowledged or not. Running attempts are aborted before their leases end.

import {
  concat,
  EMPTY,
  from,
  interval,
  map,
  mergeMap,
  Observable,
  of,
  Subject,
  startWith,
  switchMap,
} from "rxjs";
import { type Actor, createActor, fromCallback } from "xstate";
import {
  type AgentSignal,
  type AgentSnapshot,
  type AgentStanding,
  agentMachine,
  agentStanding,
  loadSignals,
} from "../../machines/agent.ts";
import { unreachable } from "../assert.ts";
import { chartClock } from "../chart-clock.ts";
import type { Clock, Random } from "../clock.ts";
import { schedulerOn } from "../clock-scheduler.ts";
import { messageOf, UnreachableError, WaggleError, type WaggleErrorCode } from "../errors.ts";
import { type Incarnation, incarnation, NO_GROUP, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import { Horizon } from "../protocol/horizon.ts";
import { logRequestSchema } from "../protocol/log-schemas.ts";
import {
  type AgentPush,
  type Assignment,
  type Heartbeat,
  heartbeatResponseSchema,
  type JoinResponse,
  joinResponseSchema,
  type Progress,
} from "../protocol/schemas.ts";
import { isInbox, subjectsOf } from "../protocol/subjects.ts";
import { type RetryPace, retryPaused, TryAgain } from "../retry-paused.ts";
import type { ConnectionStatus, Message, Transport } from "../transport/transport.ts";
import type { AttemptLedger, AttemptName, HeldAttempt } from "./attempt-ledger.ts";
import type { BundleMember } from "./bundler.ts";
import { inMessages } from "./chunk-buffer.ts";
import { Departure } from "./departure.ts";
import { attemptName, IncarnationState } from "./incarnation-state.ts";
import { type Answer, LeaderClient } from "./leader-client.ts";
import { LeaseWatch } from "./lease-watch.ts";
import type {
  AbortReason,
  AgentProfile,
  AttemptEnd,
  AttemptKey,
  AttemptOrder,
  EmittedChunks,
  ProgressReport,
  SessionLog,
  SessionNotice,
  SessionOrder,
  WrittenText,
} from "./link.ts";
import { LogStore } from "./log-store.ts";
import { OwnRecord } from "./own-record.ts";
import { readPush } from "./quick-checks.ts";
import { ResultOutbox } from "./result-outbox.ts";
import { abortReasonOf, signalling, signalOfRefusal } from "./signals.ts";
import { type LocalSlotLease, SlotLeases } from "./slot-leases.ts";
import type { StandInMember } from "./stand-in.ts";

export interface AgentSessionDeps {
  readonly swarm: SwarmId;
  readonly profile: AgentProfile;
  /** Stays open when the session closes. */
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: SessionLog;
  readonly notify: (notice: SessionNotice) => void;
  /** Sends heartbeats while this thread is blocked. Absent: none does. */
  readonly standIn?: StandInMember;
  /** Sends messages of several agents together. Absent: the agent has its connection for itself. */
  readonly bundle?: BundleMember;
}

/** What a heartbeat lists. */
interface Listing {
  readonly attempts: readonly HeldAttempt[];
  readonly slots: Heartbeat["slots"];
}

/** 36¹² values. */
const INCARNATION_LENGTH = 12;

export class AgentSession {
  readonly #deps: AgentSessionDeps;
  readonly #horizon: Horizon;
  readonly #leader: LeaderClient;
  readonly #pace: RetryPace;
  readonly #leases: LeaseWatch<HeldAttempt>;
  readonly #slotLeases: SlotLeases;
  readonly #slotWatch: LeaseWatch<LocalSlotLease>;
  readonly #departure: Departure;
  readonly #record = new OwnRecord();
  readonly #logs = new LogStore();
  readonly #chart: Actor<typeof agentMachine>;
  /** Ends the pauses before repeated requests. */
  readonly #hurry$ = new Subject<void>();
  readonly #heartbeatNow$ = new Subject<void>();
  readonly #closed$ = new Subject<void>();
  /** Attempts and slots in the stand-in's heartbeat. */
  #slated: Listing = { attempts: [], slots: undefined };
  #slatedAt = Number.NEGATIVE_INFINITY;
  /** The slated heartbeat up to its attempts. Its success rate and latency are at most one heartbeat old. Undefined:
   *  the chart or the capacity has changed, so the next slate writes it anew. */
  #slatedHead: string | undefined;
  #shown: AgentStanding = { status: "offline", saturated: false, draining: false };
  #current: IncarnationState;
  /** The agent's newest session that a leader accepted, as far as known. */
  #newest: Incarnation | undefined;
  /** Number of running handlers last reported to the chart. */
  #load = 0;
  #loadReportedAt = Number.NEGATIVE_INFINITY;
  /** Running handlers of earlier incarnations. Each occupies capacity. */
  readonly #lingering = new Set<AttemptKey>();
  /** The highest term heard; 0 before the first. */
  #term = 0;
  #heartbeatMs: number = limits.heartbeatMs;
  #leaseTtlMs: number = limits.leaseTtlMs;

  constructor(deps: AgentSessionDeps) {
    this.#deps = deps;
    const { clock, random } = deps;
    this.#horizon = new Horizon(clock);
    this.#horizon.onLoss(({ message, known, found }) =>
      deps.log.error({ known, found }, `${message} Reported results may be lost.`),
    );
    this.#leader = new LeaderClient(
      deps.transport,
      subjectsOf(deps.swarm),
      deps.profile,
      this.#horizon,
      deps.bundle,
    );
    const backOff = { pauseMs: limits.agentRetryMs, pauseMsMax: limits.agentRetryMsMax };
    this.#pace = { clock, random, backOff, hurry$: this.#hurry$, stop$: this.#closed$ };
    this.#leases = new LeaseWatch({
      clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => {
        this.#noteStandInRenewals();
        return this.#current.ledger.held();
      },
      onLosing: (attempts) => this.#abort(attempts, "lease"),
    });
    this.#slotLeases = new SlotLeases({
      ...deps,
      leader: this.#leader,
      pace: this.#pace,
      whyApart: () => (this.#capacity > 0 ? undefined : waitsForHandlers),
      incarnation: () => (this.#isIn("online") ? this.#current.incarnation : undefined),
      hear: (term) => this.#hear(term),
      confirmedAt: () => {
        this.#noteStandInRenewals();
        return this.#current.confirmedAt;
      },
      isRecent: (sentAt) => this.#isRecent(sentAt),
      onRefused: (refusal) => this.#signal(signalOfRefusal(refusal)),
      onAsking: () => this.#slateRequest(),
      onHeld: () => {
        this.#slateFirst();
        this.#slotWatch.noteRunning();
      },
      onFailure: (error) => this.#signal({ type: "FAILED", error }),
    });
    this.#slotWatch = new LeaseWatch({
      clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => {
        this.#noteStandInRenewals();
        return this.#slotLeases.all();
      },
      onLosing: (losing) => {
        for (const { order } of losing) deps.notify({ type: "slot-lost", key: order.key, reason: "lease" });
      },
    });
    this.#departure = new Departure({
      leader: this.#leader,
      pace: this.#pace,
      log: deps.log,
      current: () => this.#current,
      heartbeatNow: () => this.#heartbeatNow$.next(),
    });
    this.#current = this.#newIncarnation();
    this.#chart = createActor(this.#providedChart(), { clock: chartClock(clock) });
    this.#chart.subscribe({
      next: (snapshot) => this.#show(agentStanding(snapshot)),
      complete: () => this.#close(),
    });
  }

  /** Subscribes and begins to join. Notices report the progress. Call once. */
  start(): void {
    this.#chart.start();
    this.#signal({ type: "START" });
  }

  send(order: SessionOrder): void {
    if (this.#chart.getSnapshot().status !== "active") return;
    switch (order.type) {
      case "ended":
        return this.#onEnded(order.ends);
      case "progress":
        return this.#onProgress(order.reports);
      case "chunks":
        return this.#onChunks(order);
      case "log":
        return this.#onLog(order);
      case "acquire":
        return this.#slotLeases.acquire(order.slotLease);
      case "release":
        return this.#slotLeases.release(order.key, order.report);
      case "release-handle":
        return this.#slotLeases.releaseHandle(order);
      case "touch":
        return this.#slotLeases.touch(order.key);
      case "drain":
        return this.#signal({ type: "FINISH" });
      case "stop":
        return this.#signal({ type: "STOP" });
      default:
        return unreachable(order);
    }
  }

  #providedChart(): typeof agentMachine {
    return agentMachine.provide({
      actors: {
        connection: signalling(() => this.#connection()),
        pushes: fromCallback(() => this.#listen()),
        leases: fromCallback(() => this.#watchLeases()),
        join: signalling(() => this.#join()),
        service: fromCallback(() => this.#serve()),
        heartbeat: signalling(({ isUrgent }: { isUrgent: boolean }) => this.#heartbeats(isUrgent)),
        drainLog: signalling(() => this.#departure.drainLog()),
        announcement: signalling(() => this.#departure.announcement()),
        debts: signalling(() => this.#departure.debts()),
        goodbye: signalling(() => this.#departure.goodbye()),
      },
      actions: {
        nextIncarnation: () => this.#act(() => this.#beginNext()),
        endIncarnation: (_, { signal }) => this.#act(() => this.#endIncarnation(signal)),
        logWait: () => this.#act(() => this.#logWait()),
        abortAttempts: () => this.#act(() => this.#abort(this.#current.ledger.abortAll(), "stopping")),
        reportTheRest: () => this.#act(() => this.#reportTheRest()),
        sayFarewell: () => this.#act(() => this.#sayFarewell()),
        logUnheard: () => this.#act(() => this.#logUnheard()),
      },
      guards: {
        hasFreeSlot: () =>
          this.#lingering.size + this.#current.ledger.running < this.#deps.profile.maxConcurrent,
        isSettled: () => this.#current.ledger.isEmpty,
      },
    });
  }

  /** A failure in an action ends the agent, and leaves the chart in a valid state. */
  #act(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#signal({ type: "FAILED", error });
    }
  }

  /** Ignored after the chart has ended. */
  #signal(signal: AgentSignal): void {
    if (this.#chart.getSnapshot().status === "active") this.#chart.send(signal);
  }

  #isIn(tag: Parameters<AgentSnapshot["hasTag"]>[0]): boolean {
    return this.#chart.getSnapshot().hasTag(tag);
  }

  #show(standing: AgentStanding): void {
    const { status, draining } = standing;
    const before = this.#shown;
    this.#shown = standing;
    this.#slatedHead = undefined;
    if (status !== before.status || draining !== before.draining)
      this.#deps.notify({ type: "status", status, draining });
    if (before.status === "offline" && status !== "offline") this.#deps.notify({ type: "joined" });
  }

  /** Watches the connection, and answers a leader's queries for an attempt's log. */
  #connection(): Observable<AgentSignal> {
    const { transport, swarm, profile } = this.#deps;
    return new Observable((subscriber) => {
      const questions = transport.subscribe(
        subjectsOf(swarm).agentLog(profile.group ?? NO_GROUP, profile.id),
        (question) => this.#onLogQuestion(question),
      );
      const obey = (status: ConnectionStatus) => {
        if (status === "closed")
          subscriber.next({
            type: "FAILED",
            error: transport.closedBy ?? new UnreachableError("the agent's connection was closed"),
          });
        if (status !== "connected") return;
        this.#hurry$.next();
        this.#heartbeatNow$.next();
      };
      const unlisten = transport.onStatus(obey);
      obey(transport.status());
      return () => {
        questions.unsubscribe();
        unlisten();
      };
    });
  }

  #listen(): () => void {
    const { transport, swarm, profile } = this.#deps;
    const pushes = transport.subscribe(
      subjectsOf(swarm).assign(profile.group ?? NO_GROUP, profile.id),
      (push) => this.#onPush(push),
      { onForbidden: (violation) => this.#signal(signalOfRefusal(forbidden(violation))) },
    );
    const unlisten = this.#deps.bundle?.listen((push) => this.#handle(push));
    return () => {
      pushes.unsubscribe();
      unlisten?.();
    };
  }

  #newIncarnation(): IncarnationState {
    const { clock, random, log } = this.#deps;
    const id = incarnation(random.id(INCARNATION_LENGTH));
    const makeOutbox = (ledger: AttemptLedger) =>
      new ResultOutbox({
        incarnation: id,
        leader: this.#leader,
        pace: this.#pace,
        log,
        onSettled: (key) => ledger.release(key),
        onRefused: ({ refusal }) => this.#signal(signalOfRefusal(refusal)),
        onTerm: (term) => void this.#hear(term),
        onFailure: (error) => this.#signal({ type: "FAILED", error }),
      });
    return new IncarnationState(id, makeOutbox, clock.monotonicMs());
  }

  #beginNext(): void {
    this.#slated = { attempts: [], slots: undefined };
    this.#slatedAt = Number.NEGATIVE_INFINITY;
    this.#slatedHead = undefined;
    this.#current = this.#newIncarnation();
    this.#load = 0;
  }

  /** @param signal the cause */
  #endIncarnation(signal: AgentSignal): void {
    const reason = abortReasonOf(signal);
    for (const { key, isRunning } of this.#current.ledger.held()) if (isRunning) this.#lingering.add(key);
    this.#abort(this.#current.ledger.abortAll(), reason);
    this.#slotLeases.endIncarnation(reason);
    this.#current.end();
    this.#deps.standIn?.rest();
    if (signal.type === "LAPSED") {
      const { incarnation } = this.#current;
      const level = this.#newest === incarnation ? "warn" : "info"; // an accepted session, or none yet
      this.#deps.log[level]({ incarnation, why: signal.why }, "joining again as a new incarnation");
    }
  }

  /** Number of handlers of this incarnation that can run. Only grows during an incarnation. */
  get #capacity(): number {
    return Math.max(0, this.#deps.profile.maxConcurrent - this.#lingering.size);
  }

  #join(): Observable<AgentSignal> {
    return retryPaused((failures) => {
      const sentAt = this.#deps.clock.monotonicMs();
      const offer = { ...this.#deps.profile, maxConcurrent: this.#capacity };
      const answer = this.#leader.ask(
        "join",
        this.#current.joinRequest(offer, this.#newest),
        joinResponseSchema,
      );
      return from(answer).pipe(map((each) => this.#onJoinAnswer(each, { sentAt, isFirst: failures === 0 })));
    }, this.#pace);
  }

  /** @throws TryAgain */
  #onJoinAnswer(
    answer: Answer<JoinResponse>,
    { sentAt, isFirst }: { readonly sentAt: number; readonly isFirst: boolean },
  ): AgentSignal {
    const { log } = this.#deps;
    if (answer.kind === "refused") {
      this.#newest = answer.refusal.newest ?? this.#newest;
      return signalOfRefusal(answer.refusal);
    }
    if (answer.kind === "unanswered") {
      if (isFirst) log.info({ why: answer.why }, "waiting for a leader to join");
      throw new TryAgain();
    }
    const response = answer.value;
    if (!response.ok) return signalOfRefusal(response);
    if (!this.#hear(response.term)) throw new TryAgain();
    this.#heartbeatMs = response.heartbeatMs;
    this.#leaseTtlMs = response.leaseTtlMs;
    this.#newest = this.#current.incarnation;
    this.#current.confirmedAt = sentAt;
    this.#revoke(response.unknown);
    log.info({ incarnation: this.#current.incarnation, term: response.term }, "joined the swarm");
    return { type: "JOINED" };
  }

  #serve(): void {
    // The stand-in's thread starts beside the first acquire of a connection otherwise, for an agent that holds nothing.
    if (this.#deps.profile.kinds.length > 0) this.#slateFirst();
    this.#slotLeases.begin();
    this.#obeyDeferred();
  }

  #watchLeases(): () => void {
    const stops = [this.#leases.watch(), this.#slotWatch.watch()];
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** One heartbeat per period, and extra heartbeats. */
  #heartbeats(isUrgent: boolean): Observable<AgentSignal> {
    const isNow = isUrgent || this.#isIn("ending");
    const { bundle, clock } = this.#deps;
    const ticks$ = bundle?.turns(this.#heartbeatMs) ?? interval(this.#heartbeatMs, schedulerOn(clock));
    return this.#heartbeatNow$.pipe(
      map(() => true),
      startWith(isNow),
      switchMap((now) => concat(now ? of(0) : EMPTY, ticks$)),
      mergeMap(() => this.#heartbeat()),
    );
  }

  #heartbeat(): Observable<AgentSignal> {
    const sentAt = this.#deps.clock.monotonicMs();
    this.#reportLoad();
    const isDrainReported = this.#isIn("ending");
    const { message, listing } = this.#slate();
    this.#deps.standIn?.noteSent(this.#heartbeatMs);
    return from(this.#leader.ask("heartbeat", message, heartbeatResponseSchema)).pipe(
      mergeMap((answer): AgentSignal[] => {
        if (answer.kind === "refused") return [signalOfRefusal(answer.refusal)];
        if (!this.#isConfirmed(answer)) return [];
        if (answer.value.termStarts !== undefined) this.#horizon.noteTermStarts(answer.value.termStarts);
        this.#confirm(listing, sentAt);
        this.#obeyDeferred();
        return isDrainReported ? [{ type: "DRAIN_HEARD" }] : [];
      }),
    );
  }

  /** Makes the heartbeat for now, and gives it to the stand-in. Call for an accepted incarnation. */
  #slate(): { readonly message: string; readonly listing: Listing } {
    const slots = this.#slotLeases.listed();
    const { status, saturated } = agentStanding(this.#chart.getSnapshot());
    const { successRate, latencyMs } = this.#record;
    this.#slatedHead = this.#current.heartbeatHead(this.#capacity, {
      status,
      ...(saturated ? { saturated } : {}),
      ...(successRate === undefined ? {} : { successRate }),
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(this.#isIn("ending") ? { draining: true } : {}),
      ...(this.#horizon.needsTermStarts ? { asksTermStarts: true } : {}),
      ...(slots === undefined ? {} : { slots }),
    });
    return this.#slateAttempts(this.#slatedHead, slots);
  }

  #slateAttempts(head: string, slots?: Heartbeat["slots"]): { message: string; listing: Listing } {
    const listing = { attempts: this.#current.ledger.held(), slots };
    const message = this.#current.heartbeat(head, listing.attempts, this.#capacity);
    this.#noteStandInRenewals();
    this.#slated = listing;
    this.#slatedAt = this.#deps.clock.monotonicMs();
    this.#deps.standIn?.write(message, this.#term);
    return { message, listing };
  }

  /** A leader has accepted the incarnation: its answer to the join, or an assignment, has arrived. */
  #slateFirst(): void {
    if (this.#deps.standIn === undefined) return;
    this.#slate();
    this.#deps.standIn.noteSent(this.#heartbeatMs);
  }

  /** Shows a request for slots to the stand-in before the leader can grant it. A heartbeat without the handle would
   *  tell the leader that the agent let go of the slot. Before the first heartbeat, the stand-in sends none. */
  #slateRequest(): void {
    if (this.#deps.standIn !== undefined && this.#slatedAt > Number.NEGATIVE_INFINITY) this.#slate();
  }

  /** Shows new attempts to the stand-in before their handlers can block this thread. */
  #slateArrivals(): void {
    if (this.#deps.standIn === undefined) return;
    if (!this.#isIn("online")) return this.#slateFirst();
    const isOften = this.#deps.clock.monotonicMs() - this.#slatedAt < limits.slateMs;
    if (isOften && this.#current.ledger.size > limits.slatedAtOnceMax) return;
    const hasSlots = this.#slotLeases.listed() !== undefined || this.#slated.slots !== undefined;
    if (this.#slatedHead === undefined || hasSlots) this.#slate();
    else this.#slateAttempts(this.#slatedHead);
  }

  /** Learns which leases the stand-in renewed while this thread was blocked. */
  #noteStandInRenewals(): void {
    const ageMs = this.#deps.standIn?.confirmedAgeMs();
    if (ageMs !== undefined) this.#confirm(this.#slated, this.#deps.clock.monotonicMs() - ageMs);
  }

  #confirm({ attempts, slots }: Listing, sentAt: number): void {
    this.#current.confirm(attempts, sentAt);
    this.#slotLeases.confirm(slots, sentAt);
  }

  #isConfirmed<Value extends { readonly term: number }>(
    answer: Answer<Value>,
  ): answer is Extract<Answer<Value>, { kind: "answered" }> {
    if (answer.kind === "answered") return this.#hear(answer.value.term);
    if (answer.kind === "unanswered") this.#deps.log.debug({ why: answer.why }, "heartbeat not confirmed");
    return false;
  }

  #onPush({ data }: Message): void {
    const push = readPush(data);
    if (!push.ok)
      return this.#deps.log.warn(
        { field: push.field, why: push.message },
        "a push does not parse; ignoring it",
      );
    this.#handle(push.value);
  }

  #handle(push: AgentPush): void {
    if (push.incarnation !== this.#current.incarnation) return;
    // Pushes of an old term are late. The exceptions come from a leader of a new swarm that does not know this
    // agent.
    if (push.term < this.#term && push.type !== "rejoin" && push.type !== "fenced") return;
    this.#noteStandInRenewals();
    if (this.#hear(push.term)) this.#obeyLeader(push);
  }

  #obeyLeader(push: AgentPush): void {
    switch (push.type) {
      case "assign":
        if (!this.#isRecent(this.#current.confirmedAt)) return this.#defer(push);
        return this.#onAssigned(push.assignments);
      case "revoke":
        return this.#revoke(push.attempts);
      case "drain":
        return this.#signal({ type: "DRAIN" });
      case "undrain":
        return this.#signal({ type: "UNDRAIN" });
      case "fenced":
        return this.#signal({ type: "FENCED" });
      case "rejoin":
        if (push.refusal !== undefined) return this.#signal(signalOfRefusal(push.refusal));
        return this.#lapse("the leader reassigned the agent's attempts");
      case "slots-granted":
        if (!this.#isRecent(this.#current.confirmedAt)) return this.#defer(push);
        return this.#slotLeases.granted(push.handles);
      case "slot-waits-ended":
        return this.#slotLeases.ended(push.waits);
      case "slots-revoked":
        return this.#slotLeases.revoked(push.handles, push.reason);
      default:
        return unreachable(push);
    }
  }

  /** @returns false for a leader of an old term, which must be ignored */
  #hear(term: number): boolean {
    if (term > this.#term) {
      const isChange = this.#term > 0;
      this.#term = term;
      if (isChange) this.#onNewLeader();
    }
    if (term === this.#term) return true;
    const { clock, log } = this.#deps;
    if (clock.monotonicMs() - this.#current.confirmedAt <= this.#leaseTtlMs) return false;
    // All leases have expired, so obeying is safe, and the swarm may have been recreated.
    log.warn(
      { term, known: this.#term },
      "a leader of a lower term answers after all leases expired; joining again",
    );
    this.#term = 0;
    this.#lapse("the swarm may have been recreated");
    return false;
  }

  #onNewLeader(): void {
    this.#hurry$.next();
    this.#current.outbox.sendAgain();
  }

  /** True if a lease that counts from `sentAt` lasts long enough to be confirmed. The leader counts the agent's
   *  silence from no earlier. */
  #isRecent(sentAt: number): boolean {
    const { safeMs } = this.#leases;
    const recentMs = Math.max(safeMs - 2 * this.#heartbeatMs, safeMs / 2);
    return this.#deps.clock.monotonicMs() - sentAt <= recentMs;
  }

  /** Delayed assignments and grants may belong to another agent by now. They wait until a leader confirms that
   *  this incarnation still counts. */
  #defer(push: AgentPush): void {
    const isFirst = this.#current.defer(push);
    if (isFirst && this.#isIn("online")) this.#heartbeatNow$.next();
  }

  /** After a late answer, as after a pause of this process, pushes are deferred once more. */
  #obeyDeferred(): void {
    for (const push of this.#current.takeDeferred()) if (this.#hear(push.term)) this.#obeyLeader(push);
  }

  #onAssigned(assignments: readonly Assignment[]): void {
    const { ledger, confirmedAt } = this.#current;
    const toRun: AttemptOrder[] = [];
    for (const { held, assignment } of ledger.receive(assignments, confirmedAt)) {
      if (this.#isIn("stopping")) this.#end(unstarted(held, "the agent is stopping"));
      else if (held.isRevoked) this.#end(unstarted(held, "revoked before it started"));
      else {
        this.#logs.begin(held.key, attemptName(held)); // an ended log would keep the whole attempt in memory
        toRun.push(orderOf(held, assignment));
      }
    }
    this.#current.outbox.send();
    if (toRun.length > 0) {
      this.#slateArrivals();
      this.#deps.notify({ type: "run", attempts: toRun });
      this.#leases.noteRunning();
    }
    this.#reflectLoad();
  }

  #revoke(attempts: readonly AttemptName[]): void {
    this.#abort(this.#current.ledger.revoke(attempts), "revoked");
  }

  #lapse(why: string): void {
    this.#current.end();
    this.#signal({ type: "LAPSED", why });
  }

  #onEnded(ends: readonly AttemptEnd[]): void {
    const hadNoCapacity = this.#capacity === 0;
    for (const end of ends) {
      if (this.#logs.end(end.key)) this.#deps.standIn?.logEnded(end.key);
      if (this.#lingering.delete(end.key)) this.#slatedHead = undefined;
      this.#end(end);
    }
    this.#current.outbox.send();
    if (hadNoCapacity && this.#capacity > 0) this.#signal({ type: "SLOT_FREED" });
    this.#reflectLoad();
  }

  #end(end: AttemptEnd): void {
    const held = this.#current.report(end);
    if (held?.isRevoked === false) this.#record.note(end, this.#deps.clock.monotonicMs());
  }

  #onLog({ key, text, droppedBytes }: WrittenText): void {
    const of = this.#logs.attempt(key);
    if (of === undefined) return; // has ended
    this.#logs.append(key, text, droppedBytes);
    this.#deps.standIn?.log(of, { key, text, ...(droppedBytes === undefined ? {} : { droppedBytes }) });
  }

  #onProgress(reports: readonly ProgressReport[]): void {
    for (const { key, ...report } of reports) {
      const held = this.#current.ledger.find(key);
      if (held?.isRunning !== true) continue;
      const progress: Progress = { incarnation: this.#current.incarnation, ...attemptName(held), ...report };
      this.#leader.publishMessage("progress", progress);
    }
  }

  #onChunks({ key, first, chunks }: EmittedChunks): void {
    const held = this.#current.ledger.find(key);
    if (held?.isRunning !== true) return;
    const head = { incarnation: this.#current.incarnation, ...attemptName(held) };
    let next = first;
    for (const fitting of inMessages(chunks, this.#leader.roomBytes / 2)) {
      if (fitting !== undefined)
        this.#leader.publishMessage("chunk", { ...head, first: next, chunks: fitting });
      next += fitting?.length ?? 1;
    }
  }

  /** Only a leader sends log queries, and names the project that may see the answer. */
  #onLogQuestion({ data, reply }: Message): void {
    if (reply === undefined || !isInbox(reply)) return;
    const { transport } = this.#deps;
    const question = decode(data, logRequestSchema);
    const answer = question.ok
      ? { logs: this.#logs.read(question.value, transport.maxPayloadBytes / 2) }
      : question;
    transport.publish(reply, encode(answer));
  }

  #reportTheRest(): void {
    for (const { key } of this.#current.ledger.held()) this.#end({ key, outcome: "aborted" });
    this.#current.outbox.send();
    this.#reflectLoad();
  }

  #logWait(): void {
    this.#deps.log.info({ running: this.#lingering.size }, `${waitsForHandlers} to end`);
  }

  #sayFarewell(): void {
    this.#departure.farewell().catch((error: unknown) => this.#logError(error));
  }

  #logUnheard(): void {
    this.#deps.log.warn(
      {},
      "no leader acknowledged the agent's departure: the agent counts as lost until the next join",
    );
  }

  #close(): void {
    const { value, context } = this.#chart.getSnapshot();
    const error = value === "fenced" ? fencedError(this.#deps.profile.id) : context.error;
    this.#slotLeases.close();
    this.#closed$.next();
    this.#deps.standIn?.end();
    if (error === undefined) return this.#deps.notify({ type: "closed" });
    this.#logError(error);
    const field = error instanceof WaggleError ? error.field : undefined;
    const plain = {
      code: codeOf(error),
      message: messageOf(error),
      ...(field === undefined ? {} : { field }),
    };
    this.#deps.notify({ type: "closed", error: plain });
  }

  #abort(attempts: readonly HeldAttempt[], reason: AbortReason): void {
    if (attempts.length > 0)
      this.#deps.notify({ type: "abort", keys: attempts.map(({ key }) => key), reason });
  }

  /** Tells the chart the load now, or with the next heartbeat: few attempts cost a transition. */
  #reflectLoad(): void {
    if (this.#deps.clock.monotonicMs() - this.#loadReportedAt >= limits.loadReportMs) this.#reportLoad();
  }

  #reportLoad(): void {
    const { maxConcurrent, prefetch = 0 } = this.#deps.profile;
    const { running } = this.#current.ledger;
    const change = { before: this.#load, after: running, capacity: maxConcurrent + prefetch };
    this.#load = running;
    const signals = loadSignals(change);
    if (signals.length > 0) this.#loadReportedAt = this.#deps.clock.monotonicMs();
    for (const signal of signals) this.#signal(signal);
  }

  #logError(error: unknown): void {
    this.#deps.log.error({ code: codeOf(error), why: messageOf(error) }, "the agent has stopped");
  }
}

const waitsForHandlers = "before joining again, the agent waits for a handler of its previous incarnation";

function fencedError(id: string): WaggleError {
  return new WaggleError(
    "WAGGLE_FENCED",
    `another process joined as ${id}, so this agent has stopped. Give each process its own id`,
  );
}

function orderOf({ key }: HeldAttempt, assignment: Assignment): AttemptOrder {
  const { task, attempt, kind, project, user, payload, encoding, timeoutMs, maxAttempts } = assignment;
  const { stream, attributes, traceparent, tracestate, waitedMs } = assignment;
  const order = { key, task, attempt, kind, project, user, payload, timeoutMs, maxAttempts };
  const isPlain = encoding === undefined && stream === undefined && attributes === undefined;
  if (isPlain && traceparent === undefined) return order;
  return {
    ...order,
    ...(encoding === undefined ? {} : { encoding }),
    ...(stream === undefined ? {} : { stream }),
    ...(attributes === undefined ? {} : { attributes }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(waitedMs === undefined ? {} : { waitedMs }),
  };
}

function unstarted({ key }: HeldAttempt, error: string): AttemptEnd {
  return { key, outcome: "infrastructure", error, tokens: 0 };
}

function codeOf(error: unknown): WaggleErrorCode {
  return error instanceof WaggleError ? error.code : "WAGGLE_INVARIANT";
}
