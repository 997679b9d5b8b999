// One agent's side of the conversation with the leader: joining, heartbeats, leases, assignments, results,
// leaving. It runs no handler; it lives in a thread of its own where the connection is a real one, so that a
// handler that blocks its thread costs no lease.
//
// What is authoritative. The leader's journal says which agent holds what. The session believes pushes of its present
// incarnation and of a term not lower than the highest it has heard. Where it stands is the state of the agent's chart
// (machines/agent.ts): the session runs it, provides what its states do, and keeps no second account of it. What is
// held and owed belongs to one incarnation (`Life`); when the leader has given that away (`rejoin`), all of it is
// aborted and forgotten, and the next incarnation joins. Handlers of earlier incarnations keep their slots until they
// end: the session offers the free ones, joins once there is one, and says in its heartbeats when there are more.
//
// Failures. A lost assignment shows as a gap below `seen` and is sent again. A lost answer has the same result
// sent again. A lost heartbeat renews nothing: leases count from the sending of the last confirmed one. What is
// assigned or granted while none was confirmed for long waits until one is: its lease may be over already. With no
// leader everything waits, except an agent that drains and owes nothing: it leaves soon, heard or not. Running
// attempts are aborted before their leases end.

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
import { incarnation, NO_GROUP, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import { Horizon } from "../protocol/horizon.ts";
import { logRequestSchema } from "../protocol/log-schemas.ts";
import {
  type AgentPush,
  type Assignment,
  agentPushSchema,
  heartbeatResponseSchema,
  type JoinResponse,
  joinResponseSchema,
  type Progress,
} from "../protocol/schemas.ts";
import { isInbox, subjectsOf } from "../protocol/subjects.ts";
import { type RetryPace, retryPaused, TryAgain } from "../retry-paused.ts";
import type { ConnectionStatus, Message, Transport } from "../transport/transport.ts";
import type { AttemptLedger, AttemptName, HeldAttempt } from "./attempt-ledger.ts";
import { Departure } from "./departure.ts";
import { type Answer, LeaderLine } from "./leader-line.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { attemptName, Life } from "./life.ts";
import type {
  AbortReason,
  AgentProfile,
  AttemptEnd,
  AttemptKey,
  AttemptOrder,
  ProgressReport,
  SessionLink,
  SessionLog,
  SessionNotice,
  SessionOrder,
} from "./link.ts";
import { LogStore } from "./log-store.ts";
import { OwnRecord } from "./own-record.ts";
import { ResultOutbox } from "./result-outbox.ts";
import { abortReasonOf, signalling, signalOfRefusal } from "./signals.ts";
import { type LocalSlotLease, SlotLeases } from "./slot-leases.ts";

export interface AgentSessionDeps {
  readonly swarm: SwarmId;
  readonly profile: AgentProfile;
  /** Stays open when the session closes. */
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: SessionLog;
  readonly notify: (notice: SessionNotice) => void;
}

/** 36¹² of them. */
const INCARNATION_LENGTH = 12;

export class AgentSession implements SessionLink {
  readonly #deps: AgentSessionDeps;
  readonly #line: LeaderLine;
  readonly #pace: RetryPace;
  readonly #leases: LeaseWatch<HeldAttempt>;
  readonly #slotLeases: SlotLeases;
  readonly #slotWatch: LeaseWatch<LocalSlotLease>;
  readonly #departure: Departure;
  readonly #record = new OwnRecord();
  readonly #logs = new LogStore();
  readonly #chart: Actor<typeof agentMachine>;
  /** Ends the pauses before questions to a leader are repeated. */
  readonly #hurry$ = new Subject<void>();
  readonly #beatNow$ = new Subject<void>();
  readonly #closed$ = new Subject<void>();
  #shown: AgentStanding = { status: "offline", saturated: false, draining: false };
  #life: Life;
  /** What the chart was last told is in flight. */
  #load = 0;
  /** Handlers of lives before this one that have not ended, each in a place. */
  readonly #lingering = new Set<AttemptKey>();
  /** The highest heard; 0 before the first. */
  #term = 0;
  #heartbeatMs: number = limits.heartbeatMs;
  #leaseTtlMs: number = limits.leaseTtlMs;

  constructor(deps: AgentSessionDeps) {
    this.#deps = deps;
    const { clock, random } = deps;
    const horizon = new Horizon(clock);
    horizon.onLoss(({ message, known, found }) =>
      deps.log.error({ known, found }, `${message} Results that this agent reported may be among it.`),
    );
    this.#line = new LeaderLine(deps.transport, subjectsOf(deps.swarm), deps.profile, horizon);
    const backOff = { pauseMs: limits.agentRetryMs, pauseMsMax: limits.agentRetryMsMax };
    this.#pace = { clock, random, backOff, hurry$: this.#hurry$, stop$: this.#closed$ };
    this.#leases = new LeaseWatch({
      clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => this.#life.ledger.held(),
      onLosing: (attempts) => this.#abort(attempts, "lease"),
    });
    this.#slotLeases = new SlotLeases({
      ...deps,
      line: this.#line,
      pace: this.#pace,
      whyApart: () => (this.#places > 0 ? undefined : waitsForHandlers),
      life: () => (this.#isIn("online") ? this.#life.incarnation : undefined),
      hear: (term) => this.#hear(term),
      confirmedAt: () => this.#life.confirmedAt,
      isRecent: (sentAt) => this.#isRecent(sentAt),
      onRefused: (refusal) => this.#signal(signalOfRefusal(refusal)),
      onHeld: () => this.#slotWatch.noteRunning(),
      onFailure: (error) => this.#signal({ type: "FAILED", error }),
    });
    this.#slotWatch = new LeaseWatch({
      clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => this.#slotLeases.all(),
      onLosing: (losing) => {
        for (const { order } of losing) deps.notify({ type: "slot-lost", key: order.key, reason: "lease" });
      },
    });
    this.#departure = new Departure({
      line: this.#line,
      pace: this.#pace,
      log: deps.log,
      life: () => this.#life,
      beatNow: () => this.#beatNow$.next(),
    });
    this.#life = this.#newLife();
    this.#chart = createActor(this.#providedChart(), { clock: chartClock(clock) });
    this.#chart.subscribe({
      next: (snapshot) => this.#show(agentStanding(snapshot)),
      complete: () => this.#close(),
    });
  }

  /** Subscribes and begins to join; how that goes is told by notices. Call once. */
  start(): void {
    this.#chart.start();
    this.#signal({ type: "START" });
  }

  tell(order: SessionOrder): void {
    if (this.#chart.getSnapshot().status !== "active") return;
    switch (order.type) {
      case "ended":
        return this.#onEnded(order.ends);
      case "progress":
        return this.#onProgress(order.reports);
      case "log":
        return this.#logs.append(order.key, order.text, order.droppedBytes);
      case "acquire":
        return this.#slotLeases.acquire(order.slotLease);
      case "release":
        return this.#slotLeases.release(order.key);
      case "release-handle":
        return this.#slotLeases.releaseHandle(order.key, order.handle);
      case "drain":
        return this.#signal({ type: "FINISH" });
      case "stop":
        return this.#signal({ type: "STOP" });
      default:
        return unreachable(order);
    }
  }

  // --- the chart --------------------------------------------------------------------------------------

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
        endIncarnation: (_, { signal }) => this.#act(() => this.#endLife(signal)),
        logWait: () => this.#act(() => this.#logWait()),
        abortAttempts: () => this.#act(() => this.#abort(this.#life.ledger.abortAll(), "stopping")),
        reportTheRest: () => this.#act(() => this.#reportTheRest()),
        sayFarewell: () => this.#act(() => this.#sayFarewell()),
        logUnheard: () => this.#act(() => this.#logUnheard()),
      },
      guards: {
        hasFreeSlot: () =>
          this.#lingering.size + this.#life.ledger.running < this.#deps.profile.maxConcurrent,
        isSettled: () => this.#life.ledger.isEmpty,
      },
    });
  }

  /** What fails in an action ends the agent, and leaves the chart in a state. */
  #act(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#signal({ type: "FAILED", error });
    }
  }

  /** Nothing to a chart that has ended. */
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
    if (status !== before.status || draining !== before.draining)
      this.#deps.notify({ type: "status", status, draining });
    if (before.status === "offline" && status !== "offline") this.#deps.notify({ type: "joined" });
  }

  /** Watches the connection, and answers what a leader asks of an attempt's log. */
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
            error: new UnreachableError("the agent's connection was closed"),
          });
        if (status !== "connected") return;
        this.#hurry$.next();
        this.#beatNow$.next();
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
    return () => pushes.unsubscribe();
  }

  // --- incarnations -----------------------------------------------------------------------------------

  #newLife(): Life {
    const { clock, random, log } = this.#deps;
    const id = incarnation(random.id(INCARNATION_LENGTH));
    const makeOutbox = (ledger: AttemptLedger) =>
      new ResultOutbox({
        incarnation: id,
        line: this.#line,
        pace: this.#pace,
        log,
        onSettled: (key) => ledger.release(key),
        onRefused: ({ refusal }) => this.#signal(signalOfRefusal(refusal)),
        onTerm: (term) => void this.#hear(term),
        onFailure: (error) => this.#signal({ type: "FAILED", error }),
      });
    return new Life(id, makeOutbox, clock.monotonicMs());
  }

  #beginNext(): void {
    this.#life = this.#newLife();
    this.#load = 0;
  }

  /** @param signal that ends it */
  #endLife(signal: AgentSignal): void {
    const reason = abortReasonOf(signal);
    for (const { key, isRunning } of this.#life.ledger.held()) if (isRunning) this.#lingering.add(key);
    this.#abort(this.#life.ledger.abortAll(), reason);
    this.#slotLeases.endLife(reason);
    this.#life.end();
    if (signal.type === "LAPSED") {
      const fields = { incarnation: this.#life.incarnation, why: signal.why };
      this.#deps.log.warn(fields, "joining again as a new incarnation");
    }
  }

  /** Slots in which this incarnation's handlers can run. They become more, not fewer, while it goes on. */
  get #places(): number {
    return Math.max(0, this.#deps.profile.maxConcurrent - this.#lingering.size);
  }

  #join(): Observable<AgentSignal> {
    return retryPaused((failures) => {
      const sentAt = this.#deps.clock.monotonicMs();
      const offer = { ...this.#deps.profile, maxConcurrent: this.#places };
      const answer = this.#line.ask("join", this.#life.joinRequest(offer), joinResponseSchema);
      return from(answer).pipe(map((each) => this.#onJoinAnswer(each, { sentAt, isFirst: failures === 0 })));
    }, this.#pace);
  }

  /** @throws TryAgain */
  #onJoinAnswer(
    answer: Answer<JoinResponse>,
    { sentAt, isFirst }: { readonly sentAt: number; readonly isFirst: boolean },
  ): AgentSignal {
    const { log } = this.#deps;
    if (answer.kind === "refused") return signalOfRefusal(answer.refusal);
    if (answer.kind === "unanswered") {
      if (isFirst) log.info({ why: answer.why }, "waiting for a leader to join");
      throw new TryAgain();
    }
    const response = answer.value;
    if (!response.ok) return signalOfRefusal(response);
    if (!this.#hear(response.term)) throw new TryAgain();
    this.#heartbeatMs = response.heartbeatMs;
    this.#leaseTtlMs = response.leaseTtlMs;
    this.#life.confirmedAt = sentAt;
    this.#revoke(response.unknown);
    log.info({ incarnation: this.#life.incarnation, term: response.term }, "joined the swarm");
    return { type: "JOINED" };
  }

  #serve(): void {
    this.#slotLeases.begin();
    this.#obeyDeferred();
  }

  // --- heartbeats and leases --------------------------------------------------------------------------

  #watchLeases(): () => void {
    const stops = [this.#leases.watch(), this.#slotWatch.watch()];
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** One each period, which begins anew with each that is sent out of turn. */
  #heartbeats(isUrgent: boolean): Observable<AgentSignal> {
    const isNow = isUrgent || this.#isIn("ending");
    const scheduler = schedulerOn(this.#deps.clock);
    return this.#beatNow$.pipe(
      map(() => true),
      startWith(isNow),
      switchMap((now) => concat(now ? of(0) : EMPTY, interval(this.#heartbeatMs, scheduler))),
      mergeMap(() => this.#heartbeat()),
    );
  }

  #heartbeat(): Observable<AgentSignal> {
    const sentAt = this.#deps.clock.monotonicMs();
    const listed = this.#life.ledger.held();
    const slots = this.#slotLeases.listed();
    const { status, saturated } = agentStanding(this.#chart.getSnapshot());
    const isDrainTold = this.#isIn("ending");
    const { successRate, latencyMs } = this.#record;
    const message = this.#life.heartbeat(listed, this.#places, {
      status,
      ...(saturated ? { saturated } : {}),
      ...(successRate === undefined ? {} : { successRate }),
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(isDrainTold ? { draining: true } : {}),
      ...(slots === undefined ? {} : { slots }),
    });
    return from(this.#line.ask("heartbeat", message, heartbeatResponseSchema)).pipe(
      mergeMap((answer): AgentSignal[] => {
        if (answer.kind === "refused") return [signalOfRefusal(answer.refusal)];
        if (!this.#isConfirmed(answer)) return [];
        this.#life.confirm(listed, sentAt);
        this.#slotLeases.confirm(slots, sentAt);
        this.#obeyDeferred();
        return isDrainTold ? [{ type: "DRAIN_HEARD" }] : [];
      }),
    );
  }

  #isConfirmed(answer: Exclude<Answer<{ readonly term: number }>, { kind: "refused" }>): boolean {
    if (answer.kind === "answered") return this.#hear(answer.value.term);
    this.#deps.log.debug({ why: answer.why }, "heartbeat not confirmed");
    return false;
  }

  // --- what the leader says ---------------------------------------------------------------------------

  #onPush({ data }: Message): void {
    const push = decode(data, agentPushSchema);
    if (!push.ok)
      return this.#deps.log.warn({ field: push.field, why: push.message }, "a push does not parse");
    if (push.value.incarnation !== this.#life.incarnation) return;
    // Of a term gone by: late, unless a leader that knows nobody answers so, of a swarm that began anew.
    if (push.value.term < this.#term && push.value.type !== "rejoin" && push.value.type !== "fenced") return;
    if (this.#hear(push.value.term)) this.#obeyLeader(push.value);
  }

  #obeyLeader(push: AgentPush): void {
    switch (push.type) {
      case "assign":
        if (!this.#isRecent(this.#life.confirmedAt)) return this.#defer(push);
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
        return this.#lapse("the leader gave its attempts away");
      case "slots-granted":
        if (!this.#isRecent(this.#life.confirmedAt)) return this.#defer(push);
        return this.#slotLeases.granted(push.handles);
      case "slot-waits-ended":
        return this.#slotLeases.ended(push.waits);
      case "slots-revoked":
        return this.#slotLeases.revoked(push.handles);
      default:
        return unreachable(push);
    }
  }

  /** @returns whether to listen to who says it: not to a leader of a term gone by */
  #hear(term: number): boolean {
    if (term > this.#term) {
      const isChange = this.#term > 0;
      this.#term = term;
      if (isChange) this.#onNewLeader();
    }
    if (term === this.#term) return true;
    const { clock, log } = this.#deps;
    if (clock.monotonicMs() - this.#life.confirmedAt <= this.#leaseTtlMs) return false;
    // Every lease of ours is over, so there is nothing left to guard, and the swarm may have begun anew.
    log.warn({ term, known: this.#term }, "a leader of a lower term speaks and no other has for long");
    this.#term = 0;
    this.#lapse("the swarm may have begun anew");
    return false;
  }

  #onNewLeader(): void {
    this.#hurry$.next();
    this.#life.outbox.sendAgain();
  }

  /** Whether what a leader gave us, who heard what we sent then, is ours for long enough to be confirmed:
   *  it counts our silence from no earlier. */
  #isRecent(sentAt: number): boolean {
    const { safeMs } = this.#leases;
    const recentMs = Math.max(safeMs - 2 * this.#heartbeatMs, safeMs / 2);
    return this.#deps.clock.monotonicMs() - sentAt <= recentMs;
  }

  /** Nothing is begun that may have been long on its way here, and be another's by now: not before a leader confirms
   *  that this life is not given up. */
  #defer(push: AgentPush): void {
    const isFirst = this.#life.defer(push);
    if (isFirst && this.#isIn("online")) this.#beatNow$.next();
  }

  #obeyDeferred(): void {
    for (let push = this.#life.nextDeferred(); push !== undefined; push = this.#life.nextDeferred())
      if (this.#hear(push.term)) this.#obeyLeader(push);
  }

  #onAssigned(assignments: readonly Assignment[]): void {
    const { ledger, confirmedAt } = this.#life;
    const toRun: AttemptOrder[] = [];
    for (const { held, assignment } of ledger.receive(assignments, confirmedAt)) {
      if (this.#isIn("stopping")) this.#end(unstarted(held, "the agent is stopping"));
      else if (held.isRevoked) this.#end(unstarted(held, "revoked before it started"));
      else {
        this.#logs.begin(held.key, assignment);
        toRun.push(orderOf(held, assignment));
      }
    }
    if (toRun.length > 0) {
      this.#deps.notify({ type: "run", attempts: toRun });
      this.#leases.noteRunning();
    }
    this.#reflectLoad();
  }

  #revoke(attempts: readonly AttemptName[]): void {
    this.#abort(this.#life.ledger.revoke(attempts), "revoked");
  }

  #lapse(why: string): void {
    this.#life.end();
    this.#signal({ type: "LAPSED", why });
  }

  // --- what the handlers say --------------------------------------------------------------------------

  #onEnded(ends: readonly AttemptEnd[]): void {
    const hadNoPlace = this.#places === 0;
    for (const end of ends) {
      this.#logs.end(end.key);
      this.#lingering.delete(end.key);
      this.#end(end);
    }
    if (hadNoPlace && this.#places > 0) this.#signal({ type: "SLOT_FREED" });
    this.#reflectLoad();
  }

  #end(end: AttemptEnd): void {
    const held = this.#life.report(end);
    if (held?.isRevoked === false) this.#record.note(end, this.#deps.clock.monotonicMs());
  }

  #onProgress(reports: readonly ProgressReport[]): void {
    for (const { key, ...report } of reports) {
      const held = this.#life.ledger.find(key);
      if (held?.isRunning !== true) continue;
      const progress: Progress = { incarnation: this.#life.incarnation, ...attemptName(held), ...report };
      this.#line.tell("progress", progress);
    }
  }

  /** Only a leader asks here, and names the project that may see the answer. */
  #onLogQuestion({ data, reply }: Message): void {
    if (reply === undefined || !isInbox(reply)) return;
    const { transport } = this.#deps;
    const question = decode(data, logRequestSchema);
    const answer = question.ok
      ? { logs: this.#logs.read(question.value, transport.maxPayloadBytes / 2) }
      : question;
    transport.publish(reply, encode(answer));
  }

  // --- ending -----------------------------------------------------------------------------------------

  #reportTheRest(): void {
    for (const { key } of this.#life.ledger.held()) this.#end({ key, outcome: "aborted" });
    this.#reflectLoad();
  }

  #logWait(): void {
    this.#deps.log.info({ running: this.#lingering.size }, `${waitsForHandlers} to end`);
  }

  #sayFarewell(): void {
    this.#departure.farewell().catch((error: unknown) => this.#logError(error));
  }

  #logUnheard(): void {
    this.#deps.log.warn({}, "no leader heard that the agent left: it counts as lost until it joins again");
  }

  #close(): void {
    const { value, context } = this.#chart.getSnapshot();
    const error = value === "fenced" ? fencedError(this.#deps.profile.id) : context.error;
    this.#slotLeases.close();
    this.#closed$.next();
    if (error === undefined) return this.#deps.notify({ type: "closed" });
    this.#logError(error);
    this.#deps.notify({ type: "closed", error: { code: codeOf(error), message: messageOf(error) } });
  }

  // --- the rest ---------------------------------------------------------------------------------------

  #abort(attempts: readonly HeldAttempt[], reason: AbortReason): void {
    if (attempts.length > 0)
      this.#deps.notify({ type: "abort", keys: attempts.map(({ key }) => key), reason });
  }

  #reflectLoad(): void {
    const { maxConcurrent, prefetch = 0 } = this.#deps.profile;
    const { running } = this.#life.ledger;
    const change = { before: this.#load, after: running, places: maxConcurrent + prefetch };
    this.#load = running;
    for (const signal of loadSignals(change)) this.#signal(signal);
  }

  #logError(error: unknown): void {
    this.#deps.log.error({ code: codeOf(error), why: messageOf(error) }, "the agent has stopped");
  }
}

const waitsForHandlers = "before it joins again, the agent waits for a handler of its earlier life";

function fencedError(id: string): WaggleError {
  return new WaggleError(
    "WAGGLE_FENCED",
    `another process joined as ${id}: this one has stopped. Give each its own id`,
  );
}

function orderOf({ key }: HeldAttempt, assignment: Assignment): AttemptOrder {
  const { task, attempt, kind, project, user, payload, encoding, timeoutMs, maxAttempts } = assignment;
  const order = { key, task, attempt, kind, project, user, payload, timeoutMs, maxAttempts };
  return encoding === undefined ? order : { ...order, encoding };
}

function unstarted({ key }: HeldAttempt, error: string): AttemptEnd {
  return { key, outcome: "infrastructure", error, tokens: 0 };
}

function codeOf(error: unknown): WaggleErrorCode {
  return error instanceof WaggleError ? error.code : "WAGGLE_INVARIANT";
}
