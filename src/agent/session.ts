// One agent's side of the conversation with the leader: joining, heartbeats, leases, assignments, results,
// leaving. It runs no handler; it lives in a thread of its own where the connection is a real one, so that a
// handler that blocks its thread costs no lease.
//
// What is authoritative. The leader's journal says who holds what; the session believes pushes of its present
// incarnation and of a term not lower than the highest it has heard. It is one life at a time: an incarnation
// with its ledger of attempts and its outbox. When the leader has given the life's attempts away (`rejoin`),
// everything of it is aborted and forgotten, and the next life joins under a new incarnation. Handlers of lives before
// it keep their places until they end: it offers what is free beside them, joins once something is, and says in
// its heartbeats when there is more.
//
//   serving ─drain→ draining ─nothing held, and a leader knows or none is there→ leaving ─→ closed
//      └─────stop──────┴──→ stopping ─nothing held, or too late──→ leaving
//   any: fenced, refused, connection closed → closed, with an error
//
// Failures. A lost assignment shows as a gap below `seen` and is sent again. A lost answer has the same result
// sent again. A lost heartbeat renews nothing: leases count from the sending of the last confirmed one. What is
// assigned or granted while none was confirmed for long waits until one is: its lease may be over already. With no
// leader everything waits, except an agent that drains and owes nothing: it leaves soon, heard or not. Running
// attempts are aborted before their leases end.

import { unreachable } from "../assert.ts";
import type { Clock, Random } from "../clock.ts";
import { messageOf, UnreachableError, WaggleError, type WaggleErrorCode } from "../errors.ts";
import { incarnation, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import { Horizon } from "../protocol/horizon.ts";
import { logRequestSchema } from "../protocol/log-schemas.ts";
import {
  type AgentPush,
  type Assignment,
  agentPushSchema,
  type CodedError,
  heartbeatResponseSchema,
  type JoinResponse,
  joinResponseSchema,
  okResponseSchema,
  type Progress,
} from "../protocol/schemas.ts";
import { isInbox, subjectsOf } from "../protocol/subjects.ts";
import type { ConnectionStatus, Message, Transport } from "../transport/transport.ts";
import { Acquisitions, type LocalAcquisition } from "./acquisitions.ts";
import type { AttemptLedger, AttemptName, HeldAttempt } from "./attempt-ledger.ts";
import { LeaderLine } from "./leader-line.ts";
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
import { OwnChart } from "./own-chart.ts";
import { OwnRecord } from "./own-record.ts";
import { Patience } from "./patience.ts";
import { ResultOutbox } from "./result-outbox.ts";

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

type Phase = "serving" | "draining" | "stopping" | "leaving" | "closed";

/** 36¹² of them. */
const INCARNATION_LENGTH = 12;

export class AgentSession implements SessionLink {
  readonly #deps: AgentSessionDeps;
  readonly #line: LeaderLine;
  readonly #patience: Patience;
  readonly #leases: LeaseWatch<HeldAttempt>;
  readonly #acquisitions: Acquisitions;
  readonly #slotLeases: LeaseWatch<LocalAcquisition>;
  readonly #record = new OwnRecord();
  readonly #logs = new LogStore();
  readonly #chart: OwnChart;
  readonly #timers = new Set<() => void>();
  #phase: Phase = "serving";
  #life: Life;
  /** Handlers of lives before this one that have not ended, each in a place. */
  readonly #lingering = new Set<AttemptKey>();
  /** The highest heard; 0 before the first. */
  #term = 0;
  #heartbeatMs: number = limits.heartbeatMs;
  #leaseTtlMs: number = limits.leaseTtlMs;
  #cancelBeat: () => void = () => undefined;
  #disconnect: () => void = () => undefined;

  constructor(deps: AgentSessionDeps) {
    this.#deps = deps;
    const horizon = new Horizon(deps.clock);
    horizon.onLoss(({ message, known, found }) =>
      deps.log.error({ known, found }, `${message} Results that this agent reported may be among it.`),
    );
    this.#line = new LeaderLine(deps.transport, subjectsOf(deps.swarm), deps.profile.id, horizon);
    this.#patience = new Patience(deps.clock, deps.random);
    this.#leases = new LeaseWatch({
      clock: deps.clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => this.#life.ledger.held(),
      onLosing: (attempts) => this.#abort(attempts, "lease"),
    });
    this.#acquisitions = new Acquisitions({
      ...deps,
      line: this.#line,
      patience: this.#patience,
      whyApart: () => (this.#life.waitsForPlace ? waitsForHandlers : undefined),
      life: () => (this.#life.isJoined && this.#isCurrent(this.#life) ? this.#life.incarnation : undefined),
      hear: (term) => this.#hear(term),
      confirmedAt: () => this.#life.confirmedAt,
      isRecent: (sentAt) => this.#isRecent(sentAt),
      onRefused: (refusal) => this.#onRefused(refusal),
      onHeld: () => this.#slotLeases.start(),
      onFailure: (error) => this.#fail(error),
    });
    this.#slotLeases = new LeaseWatch({
      clock: deps.clock,
      leaseTtlMs: () => this.#leaseTtlMs,
      held: () => this.#acquisitions.all(),
      onLosing: (losing) => {
        for (const { order } of losing) deps.notify({ type: "slot-lost", key: order.key, reason: "lease" });
      },
    });
    const { maxConcurrent, prefetch = 0 } = deps.profile;
    this.#chart = new OwnChart(maxConcurrent + prefetch, (shown) =>
      deps.notify({ type: "status", ...shown }),
    );
    this.#life = this.#newLife();
  }

  /** Subscribes and begins to join; how that goes is told by notices. Call once. */
  start(): void {
    const { transport, swarm, profile } = this.#deps;
    const subscription = transport.subscribe(subjectsOf(swarm).assign(profile.id), (push) =>
      this.#onPush(push),
    );
    const logQuestions = transport.subscribe(subjectsOf(swarm).agentLog(profile.id), (question) =>
      this.#onLogQuestion(question),
    );
    const unlisten = transport.onStatus((status) => this.#onConnection(status));
    this.#disconnect = () => {
      subscription.unsubscribe();
      logQuestions.unsubscribe();
      unlisten();
    };
    if (transport.status() === "closed") this.#onConnection("closed");
    else this.#begin(this.#life);
  }

  tell(order: SessionOrder): void {
    if (this.#phase === "closed") return;
    switch (order.type) {
      case "ended":
        return this.#onEnded(order.ends);
      case "progress":
        return this.#onProgress(order.reports);
      case "log":
        return this.#logs.append(order.key, order.text, order.droppedBytes);
      case "acquire":
        return this.#acquisitions.acquire(order.acquisition);
      case "release":
        return this.#acquisitions.release(order.key);
      case "release-handle":
        return this.#acquisitions.releaseHandle(order.key, order.handle);
      case "drain":
        return this.#drain();
      case "stop":
        return this.#stop();
      default:
        return unreachable(order);
    }
  }

  // --- lives ------------------------------------------------------------------------------------------

  #newLife(): Life {
    const { clock, random, log } = this.#deps;
    const id = incarnation(random.id(INCARNATION_LENGTH));
    const makeOutbox = (ledger: AttemptLedger) =>
      new ResultOutbox({
        incarnation: id,
        line: this.#line,
        patience: this.#patience,
        log,
        onSettled: (key) => {
          ledger.release(key);
          this.#leaveIfDone();
        },
        onRefused: ({ refusal }) => this.#onRefused(refusal),
        onTerm: (term) => void this.#hear(term),
        onFailure: (error) => this.#fail(error),
      });
    return new Life(id, makeOutbox, clock.monotonicMs());
  }

  /** Places in which this life's handlers can run. They become more, not fewer, while it goes on. */
  get #places(): number {
    return Math.max(0, this.#deps.profile.maxConcurrent - this.#lingering.size);
  }

  /** Joins, once it has a place to offer. */
  #begin(life: Life): void {
    if (this.#places > 0) return this.#attempted(this.#join(life));
    this.#deps.log.info({ running: this.#lingering.size }, `${waitsForHandlers} to end`);
    life.waitsForPlace = true;
  }

  /** A place is free. Another process may have joined in its stead meanwhile, which a join would fence: a heartbeat of
   *  a life that nobody knows is answered by whether one has. If so it is fenced, else it is told to join anew. */
  #beginLate(life: Life): void {
    life.waitsForPlace = false;
    this.#beat();
  }

  async #join(life: Life): Promise<void> {
    for (let failures = 1; this.#isCurrent(life); failures += 1) {
      const sentAt = this.#deps.clock.monotonicMs();
      const offer = { ...this.#deps.profile, maxConcurrent: this.#places };
      const answer = await this.#line.ask("join", life.joinRequest(offer), joinResponseSchema);
      if (!this.#isCurrent(life)) return;
      if (answer.kind === "refused") return this.#onRefused(answer.refusal);
      if (answer.kind === "answered") {
        if (!answer.value.ok) return this.#onRefused(answer.value);
        if (this.#hear(answer.value.term)) return this.#joined(life, answer.value, sentAt);
      } else if (failures === 1) this.#deps.log.info({ why: answer.why }, "waiting for a leader to join");
      await this.#patience.afterFailure(failures);
    }
  }

  #joined(life: Life, response: Extract<JoinResponse, { ok: true }>, sentAt: number): void {
    this.#heartbeatMs = response.heartbeatMs;
    this.#leaseTtlMs = response.leaseTtlMs;
    life.isJoined = true;
    life.confirmedAt = sentAt;
    this.#chart.send({ type: "JOINED" });
    if (this.#phase !== "serving") this.#chart.send({ type: "DRAIN" });
    this.#revoke(life, response.unknown);
    this.#reflectLoad();
    this.#deps.log.info({ incarnation: life.incarnation, term: response.term }, "joined the swarm");
    this.#deps.notify({ type: "joined" });
    this.#acquisitions.begin();
    this.#obeyDeferred(life);
    if (this.#phase === "serving") this.#scheduleBeat();
    else this.#beat();
  }

  /** The leader has given away what this life held: it ends, and another begins. */
  #lapse(why: string): void {
    this.#deps.log.warn({ incarnation: this.#life.incarnation, why }, "joining again as a new incarnation");
    this.#endLife("lapsed");
    this.#chart.send({ type: "LAPSED" });
    if (this.#phase !== "serving") return this.#close();
    this.#life = this.#newLife();
    this.#begin(this.#life);
  }

  #endLife(reason: AbortReason): void {
    for (const { key, isRunning } of this.#life.ledger.held()) if (isRunning) this.#lingering.add(key);
    this.#abort(this.#life.ledger.abortAll(), reason);
    this.#acquisitions.endLife(reason);
    this.#life.outbox.close();
    this.#leases.stop();
    this.#slotLeases.stop();
    this.#cancelBeat();
  }

  // --- heartbeats and leases --------------------------------------------------------------------------

  #scheduleBeat(): void {
    this.#cancelBeat();
    this.#cancelBeat = this.#deps.clock.after(this.#heartbeatMs, () => this.#beat());
  }

  #beat(): void {
    this.#scheduleBeat();
    this.#attempted(this.#heartbeat(this.#life));
  }

  async #heartbeat(life: Life): Promise<void> {
    const sentAt = this.#deps.clock.monotonicMs();
    const listed = life.ledger.held();
    const slots = this.#acquisitions.listed();
    const isDrainTold = this.#phase !== "serving";
    const { successRate, latencyMs } = this.#record;
    const message = life.heartbeat(listed, this.#places, {
      status: this.#chart.status,
      ...(successRate === undefined ? {} : { successRate }),
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(isDrainTold ? { draining: true } : {}),
      ...(slots === undefined ? {} : { slots }),
    });
    const answer = await this.#line.ask("heartbeat", message, heartbeatResponseSchema);
    if (!this.#isCurrent(life)) return;
    if (answer.kind === "refused") return this.#onRefused(answer.refusal);
    if (answer.kind === "unanswered")
      return this.#deps.log.debug({ why: answer.why }, "heartbeat not confirmed");
    if (!this.#hear(answer.value.term)) return;
    life.confirm(listed, sentAt);
    this.#acquisitions.confirm(slots, sentAt);
    this.#obeyDeferred(life);
    life.isDrainKnown ||= isDrainTold;
    this.#leaveIfDone();
  }

  // --- what the leader says ---------------------------------------------------------------------------

  #onPush({ data }: Message): void {
    const push = decode(data, agentPushSchema);
    if (!push.ok)
      return this.#deps.log.warn({ field: push.field, why: push.message }, "a push does not parse");
    const life = this.#life;
    if (push.value.incarnation !== life.incarnation || !this.#isCurrent(life)) return;
    // Of a term gone by: late, unless a leader that knows nobody answers so, of a swarm that began anew.
    if (push.value.term < this.#term && push.value.type !== "rejoin" && push.value.type !== "fenced") return;
    if (this.#hear(push.value.term)) this.#obeyLeader(life, push.value);
  }

  #obeyLeader(life: Life, push: AgentPush): void {
    switch (push.type) {
      case "assign":
        if (!this.#isRecent(life.confirmedAt)) return this.#defer(life, push);
        return this.#onAssigned(life, push.assignments);
      case "revoke":
        return this.#revoke(life, push.attempts);
      case "drain":
        return this.#chart.send({ type: "DRAIN" });
      case "undrain":
        if (this.#phase === "serving") this.#chart.send({ type: "UNDRAIN" });
        return;
      case "fenced":
        return this.#onFenced();
      case "rejoin":
        return this.#lapse("the leader gave its attempts away");
      case "slots-granted":
        if (!this.#isRecent(life.confirmedAt)) return this.#defer(life, push);
        return this.#acquisitions.granted(push.handles);
      case "slot-waits-ended":
        return this.#acquisitions.ended(push.waits);
      case "slots-revoked":
        return this.#acquisitions.revoked(push.handles);
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
    this.#patience.cutShort();
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
  #defer(life: Life, push: AgentPush): void {
    const isFirst = life.defer(push);
    if (isFirst && life.isJoined) this.#beat();
  }

  #obeyDeferred(life: Life): void {
    for (const push of life.takeDeferred())
      if (this.#isCurrent(life) && this.#hear(push.term)) this.#obeyLeader(life, push);
  }

  #onAssigned(life: Life, assignments: readonly Assignment[]): void {
    const toRun: AttemptOrder[] = [];
    for (const { held, assignment } of life.ledger.receive(assignments, life.confirmedAt)) {
      if (this.#phase === "stopping") this.#end(life, unstarted(held, "the agent is stopping"));
      else if (held.isRevoked) this.#end(life, unstarted(held, "revoked before it started"));
      else {
        this.#logs.begin(held.key, assignment);
        toRun.push(orderOf(held, assignment));
      }
    }
    if (toRun.length > 0) {
      this.#deps.notify({ type: "run", attempts: toRun });
      this.#leases.start();
    }
    this.#reflectLoad();
  }

  #revoke(life: Life, attempts: readonly AttemptName[]): void {
    this.#abort(life.ledger.revoke(attempts), "revoked");
  }

  #onFenced(): void {
    if (this.#phase === "closed") return;
    // The one word of a fenced life: it tells a restart, where nobody is left to say it, from two processes.
    this.#attempted(this.#sayFarewell(this.#life));
    this.#chart.send({ type: "FENCED" });
    this.#fail(
      new WaggleError(
        "WAGGLE_FENCED",
        `another process joined as ${this.#deps.profile.id}: this one has stopped. Give each its own id`,
      ),
    );
  }

  #onRefused({ code, message }: CodedError): void {
    if (code === "WAGGLE_FENCED") this.#onFenced();
    else if (code === "WAGGLE_UNKNOWN_AGENT") this.#lapse("the leader does not know it");
    // Codes of a later version pass through as they are.
    else this.#fail(new WaggleError(code as WaggleErrorCode, `the leader refuses this agent: ${message}`));
  }

  #onConnection(status: ConnectionStatus): void {
    if (status === "closed") this.#fail(new UnreachableError("the agent's connection was closed"));
    if (status !== "connected") return;
    this.#patience.cutShort();
    if (this.#life.isJoined && this.#isCurrent(this.#life)) this.#beat();
  }

  // --- what the handlers say --------------------------------------------------------------------------

  #onEnded(ends: readonly AttemptEnd[]): void {
    for (const end of ends) {
      this.#logs.end(end.key);
      this.#lingering.delete(end.key);
      this.#end(this.#life, end);
    }
    const life = this.#life;
    if (life.waitsForPlace && this.#places > 0 && this.#isCurrent(life)) this.#beginLate(life);
    this.#reflectLoad();
  }

  #end(life: Life, end: AttemptEnd): void {
    const held = life.report(end);
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

  #drain(): void {
    if (this.#phase !== "serving") return;
    this.#phase = "draining";
    this.#chart.send({ type: "DRAIN" });
    if (this.#life.isJoined) this.#beat();
    this.#leaveIfDone();
    this.#lookAgain({ wasDone: false, said: "" });
  }

  /** Says what the drain waits for when that changes, and ends a wait for nothing but a leader. */
  #lookAgain({ wasDone, said }: { readonly wasDone: boolean; readonly said: string }): void {
    this.#after(limits.agentDrainLookMs, () => {
      if (this.#phase !== "draining") return;
      const { isEmpty: isDone, running, unanswered } = this.#life.ledger;
      if (isDone && wasDone) return this.#leave();
      const waitsFor = isDone ? "a leader" : running > 0 ? "handlers" : "a leader to take its results";
      if (waitsFor !== said)
        this.#deps.log.info({ running, unanswered }, `draining: the agent waits for ${waitsFor}`);
      this.#lookAgain({ wasDone: isDone, said: waitsFor });
    });
  }

  #stop(): void {
    if (this.#phase !== "serving" && this.#phase !== "draining") return;
    this.#phase = "stopping";
    this.#chart.send({ type: "DRAIN" });
    this.#abort(this.#life.ledger.abortAll(), "stopping");
    this.#after(limits.agentStopMs, () => this.#speakForTheRest());
    this.#leaveIfDone();
  }

  #speakForTheRest(): void {
    const { ledger } = this.#life;
    for (const held of ledger.held()) {
      this.#end(this.#life, { key: held.key, outcome: "aborted" });
    }
    this.#reflectLoad();
    this.#after(limits.agentLeaveMs, () => this.#leave());
  }

  #leaveIfDone(): void {
    const { ledger, isJoined, isDrainKnown } = this.#life;
    if (!ledger.isEmpty) return;
    if (this.#phase === "stopping") this.#leave();
    // Until a leader knows, an assignment may be on its way; after its answer none is.
    if (this.#phase === "draining" && (isDrainKnown || !isJoined)) this.#leave();
  }

  #leave(): void {
    if (this.#phase === "leaving" || this.#phase === "closed") return;
    this.#phase = "leaving";
    this.#endLife("stopping");
    this.#after(limits.agentLeaveMs, () => this.#leaveUnheard());
    this.#attempted(this.#sayGoodbye(this.#life));
  }

  async #sayGoodbye({ incarnation, isJoined }: Life): Promise<void> {
    for (let failures = 1; this.#phase === "leaving"; failures += 1) {
      const answer = await this.#line.ask("leave", { incarnation }, okResponseSchema);
      if (answer.kind !== "unanswered" || !isJoined) return this.#close();
      await this.#patience.afterFailure(failures);
    }
  }

  async #sayFarewell({ incarnation }: Life): Promise<void> {
    await this.#line.ask("leave", { incarnation }, okResponseSchema);
  }

  #leaveUnheard(): void {
    if (this.#life.isJoined)
      this.#deps.log.warn({}, "no leader heard that the agent left: it counts as lost until it joins again");
    this.#close();
  }

  #fail(error: unknown): void {
    if (this.#phase === "closed") return;
    this.#deps.log.error({ code: codeOf(error), why: messageOf(error) }, "the agent has stopped");
    this.#endLife(codeOf(error) === "WAGGLE_FENCED" ? "fenced" : "stopping");
    this.#close({ code: codeOf(error), message: messageOf(error) });
  }

  #close(error?: { readonly code: WaggleErrorCode; readonly message: string }): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#acquisitions.close();
    for (const cancel of this.#timers) cancel();
    this.#leases.stop();
    this.#cancelBeat();
    this.#life.outbox.close();
    this.#disconnect();
    this.#patience.cutShort();
    this.#chart.send({ type: "LEFT" });
    this.#chart.stop();
    this.#deps.notify({ type: "closed", ...(error === undefined ? {} : { error }) });
  }

  // --- the rest ---------------------------------------------------------------------------------------

  #abort(attempts: readonly HeldAttempt[], reason: AbortReason): void {
    if (attempts.length > 0)
      this.#deps.notify({ type: "abort", keys: attempts.map(({ key }) => key), reason });
  }

  #reflectLoad(): void {
    this.#chart.reflect(this.#life.ledger.running);
  }

  #after(ms: number, run: () => void): void {
    const cancel = this.#deps.clock.after(ms, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
  }

  /** What runs on its own and should not fail; if it does, the agent is of no use any more. */
  #attempted(running: Promise<void>): void {
    running.catch((error: unknown) => this.#fail(error));
  }

  #isCurrent(life: Life): boolean {
    return this.#life === life && this.#phase !== "leaving" && this.#phase !== "closed";
  }
}

const waitsForHandlers = "before it joins again, the agent waits for a handler of its earlier life";

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
