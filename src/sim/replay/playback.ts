// Runs a recording again in virtual time, by the production step (core/step.ts), under the recorded rules or others.
//
// Kept from the record: arrivals, cancellations and retries of tasks; joins, departures and drains of agents; settings
// and pauses; requests for slots. Each attempt of a task keeps its duration, outcome and tokens, whichever agent runs
// it. Each slot lease keeps its holding time.
//
// Different from the record: agents get their tasks at once, and no message is lost. An attempt that was lost with its
// agent is no property of the task. Its next attempt takes its place, and a replay loses attempts with the agents that
// leave. Attempts that the record never finished take the mean of their kind.

import type { Command, CommandOf, Reply } from "../../core/command.ts";
import { afterNewest } from "../../core/recorded-inputs.ts";
import { decodeState } from "../../core/snapshot/decode.ts";
import { Turn } from "../../core/step.ts";
import { InvalidValueError } from "../../errors.ts";
import {
  type AssignmentNumber,
  agentId,
  attemptKey,
  batchIndex,
  type Instant,
  incarnation,
  instant,
  type TaskRef,
  taskKey,
} from "../../ids.ts";
import { digestOf } from "../../result-digest.ts";
import { Planner } from "../../scheduling/planner.ts";
import { Wake } from "../../scheduling/wake.ts";
import { findOpen } from "../../state/agent-rows.ts";
import type { Event, EventOf } from "../../state/event.ts";
import { IndexedHeap } from "../../state/indexed-heap.ts";
import { slotLeaseKey } from "../../state/slot-key.ts";
import { slotLeasesOf } from "../../state/slot-rows.ts";
import { type AgentRow, type OpenAttempt, runsTasks, type SwarmState } from "../../state/state.ts";
import { Course } from "./course.ts";
import type { RecordedAttempt, RecordedLease, Recording } from "./recording.ts";
import type { Variation } from "./variation.ts";

export interface PlaybackResult {
  readonly course: Course;
  /** Attempts that took the mean of their kind, because the record does not hold their end. */
  readonly estimated: number;
  /** When nothing could happen any more; ms since 1970. */
  readonly endAt: number;
}

export interface PlaybackProgress {
  readonly ended: number;
  readonly tasks: number;
}

/** Something that happens by itself at an instant. */
interface Due {
  readonly at: number;
  readonly order: number;
  readonly command: () => Command | undefined;
  heapAt: number;
}

/** Results are not played back. */
const noDigest = digestOf({ result: "" });
/** Jitter of a retry that the record does not hold. */
const MEAN_JITTER = 0.5;
/** Duration of an attempt of which nothing is known, ms. */
const UNKNOWN_DURATION_MS = 1_000;
/** A swarm that still waits so long after the record's end waits for ever. */
const WAIT_MS_MAX = 400 * 86_400_000;

const workEvents: ReadonlySet<Event["type"]> = new Set([
  "TaskAssigned",
  "TaskCompleted",
  "AttemptFailed",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
  "SlotGranted",
  "SlotReleased",
]);

export class Playback {
  readonly #recording: Recording;
  readonly #variation: Variation;
  readonly #state: SwarmState;
  readonly #planner: Planner;
  readonly #wake: Wake;
  readonly #course = new Course();
  readonly #due = new IndexedHeap<Due>(isEarlier);
  /** Ends of running attempts, by `attemptKey`. */
  readonly #endByAttempt = new Map<string, Due>();
  /** Recorded attempts that each task has used up. */
  readonly #usedByTask = new Map<string, number>();
  /** Records of running attempts, by `attemptKey`. */
  readonly #recordByAttempt = new Map<string, RecordedAttempt>();
  /** Tasks to retry as soon as they have ended. */
  readonly #retryByTask = new Map<string, CommandOf<"RetryTask">>();
  #commands: Command[] = [];
  #nextInput = 0;
  #idx: number;
  #at: Instant;
  /** Journal time of the last assignment, end of a task or attempt, or grant of slots. */
  #lastWorkAt = 0;
  #order = 0;
  #estimated = 0;

  constructor(recording: Recording, variation: Variation) {
    this.#recording = recording;
    this.#variation = variation;
    this.#state = decodeState(recording.start);
    this.#planner = new Planner(this.#state);
    this.#wake = new Wake(this.#state);
    this.#idx = this.#state.idx;
    this.#at = recording.startAt;
  }

  /** Runs to the end, with a step after each instant: other work may run between two steps.
   *  @throws InvalidValueError if a setting of the variation does not fit the recorded settings */
  *run(): Generator<PlaybackProgress, PlaybackResult> {
    this.#begin();
    for (let at = this.#nextAt(); at !== undefined; at = this.#nextAt()) {
      this.#instant(at);
      yield this.#progress();
    }
    return { course: this.#course, estimated: this.#estimated, endAt: this.#endAt };
  }

  /** Work that waits for ever lets time pass, window by window: the course ends with its last event. */
  get #endAt(): number {
    return this.#hasWork ? Math.max(this.#recording.endAt, this.#lastWorkAt) : this.#at;
  }

  #progress(): PlaybackProgress {
    return { ended: this.#course.tasks.length - this.#state.taskById.size, tasks: this.#course.tasks.length };
  }

  // --- time -----------------------------------------------------------------------------------------

  /** Undefined when nothing is left to do. */
  #nextAt(): Instant | undefined {
    const input = this.#recording.inputs[this.#nextInput]?.at;
    const due = this.#due.peek()?.at;
    const wake = this.#hasWork ? this.#wake.nextAt(this.#at) : undefined;
    const next = Math.min(input ?? Infinity, due ?? Infinity, wake ?? Infinity);
    const isOver = input === undefined && (!this.#hasWork || next > this.#recording.endAt + WAIT_MS_MAX);
    return isOver || next === Infinity ? undefined : instant(Math.max(next, this.#at));
  }

  get #hasWork(): boolean {
    return this.#state.taskById.size > 0 || this.#state.slotsByAgent.size > 0;
  }

  /** Ends free capacity before arrivals ask for it. */
  #instant(at: Instant): void {
    this.#at = at;
    for (let due = this.#due.peek(); due !== undefined && due.at <= at; due = this.#due.peek()) {
      this.#due.remove(due);
      const command = due.command();
      if (command !== undefined) this.#commands.push(command);
    }
    const { inputs } = this.#recording;
    for (let input = inputs[this.#nextInput]; input !== undefined && input.at <= at; ) {
      const command = this.#inputOf(input.command, input.at);
      if (command !== undefined) this.#commands.push(command);
      this.#nextInput += 1;
      input = inputs[this.#nextInput];
    }
    this.#turns();
  }

  #schedule(at: number, command: () => Command | undefined): Due {
    this.#order += 1;
    const due: Due = { at, order: this.#order, command, heapAt: -1 };
    this.#due.push(due);
    return due;
  }

  // --- turns ----------------------------------------------------------------------------------------

  /** Runs turns until nothing more can be done at this instant. */
  #turns(): void {
    for (let isDone = false; !isDone; ) {
      this.#idx += 1;
      const turn = new Turn(this.#state, this.#at, batchIndex(this.#idx), this.#planner);
      const tookAll = this.#takeCommands(turn);
      isDone = turn.takeDue(() => MEAN_JITTER) && turn.plan() && tookAll;
      this.#wake.touch(turn.touchedAgents);
      for (const { event } of turn.recorded) this.#follow(event);
      for (const effect of turn.effects) if (effect.kind === "revoke") this.#stop(effect.attempt);
      isDone &&= this.#commands.length === 0;
    }
  }

  /** @returns whether no command is left */
  #takeCommands(turn: Turn): boolean {
    for (let command = this.#commands[0]; command !== undefined; command = this.#commands[0]) {
      if (turn.isFull) return false;
      const reply = turn.take(command);
      if (reply.kind === "again") return false;
      this.#commands.shift();
      this.#answered(command, reply);
    }
    return true;
  }

  #answered(command: Command, reply: Reply): void {
    if (reply.kind === "invalid-setting" && command.type === "SetPolicy")
      throw new InvalidValueError(reply.sentence, { field: reply.field });
    if (command.type === "SubmitTask" && reply.kind !== "accepted") this.#course.refused += 1;
    const isLive = command.type === "RetryTask" && this.#state.taskById.get(command) !== undefined;
    if (isLive && reply.kind === "not-retried") this.#retryByTask.set(taskKey(command), command);
  }

  #follow(event: Event): void {
    this.#course.take(event, this.#at);
    if (workEvents.has(event.type)) this.#lastWorkAt = this.#at;
    switch (event.type) {
      case "TaskAssigned":
        return this.#started(event);
      case "TaskCompleted":
      case "AttemptFailed":
      case "TaskFailed":
      case "TaskDeadLettered":
        this.#ended(event);
        return event.type === "TaskFailed" || event.type === "TaskDeadLettered"
          ? this.#retryIfWanted(event)
          : undefined;
      case "TaskCancelled":
      case "TaskExpired":
        return this.#retryIfWanted(event);
      case "SlotGranted":
        return this.#granted(event);
      default:
    }
  }

  #retryIfWanted(ref: TaskRef): void {
    const retry = this.#retryByTask.get(taskKey(ref));
    if (retry === undefined) return;
    this.#retryByTask.delete(taskKey(ref));
    const round = (this.#state.endedById.get(ref)?.round ?? 0) + 1;
    this.#commands.push({ ...retry, round });
  }

  // --- the beginning --------------------------------------------------------------------------------

  #begin(): void {
    const state = this.#state;
    for (const row of state.taskById.values()) {
      this.#course.addWaiting(row.spec, row.open?.assignedAt ?? row.queuedAt);
      if (row.open === undefined) continue;
      this.#course.addOpen(row.open, row.open.agent, row.open.assignedAt);
      this.#runs(row.open);
    }
    for (const agent of state.agentById.values())
      for (const open of agent.open.values()) if (open.state === "revoked") this.#stop(open);
    for (const leases of state.slotsByAgent.values())
      for (const lease of leases.values())
        if (lease.state === "held") this.#holds(lease, lease.grantedAt ?? this.#at);
    const { policy } = this.#variation;
    if (policy !== undefined) this.#commands.push({ type: "SetPolicy", patch: policy });
    for (const agent of state.agentById.values()) if (agent.online) this.#greet(agent);
    this.#turns();
    this.#addAgents();
  }

  /** The first heartbeat of an agent: it has every assignment, and its other capacity. */
  #greet(row: AgentRow): void {
    const { maxConcurrent } = this.#resized(joinLike(row));
    this.#commands.push({ ...this.#heartbeatOf(row, () => true), maxConcurrent });
  }

  #addAgents(): void {
    const { agentsAdded = 0 } = this.#variation;
    const present = [...this.#state.agentById.values()].filter((row) => row.online && runsTasks(row));
    const joins = this.#recording.inputs.flatMap(({ command }) =>
      command.type === "JoinAgent" && command.kinds.length > 0 ? [command] : [],
    );
    const profiles = new Map<string, CommandOf<"JoinAgent">>();
    for (const row of present) profiles.set(row.id, joinLike(row));
    for (const join of joins) if (!profiles.has(join.agent)) profiles.set(join.agent, join);
    const models = [...profiles.values()];
    for (let n = 0; n < agentsAdded && models.length > 0; n += 1) {
      const model = models[n % models.length] as CommandOf<"JoinAgent">;
      const name = `added-${n + 1}-like-${model.agent}`.slice(0, AGENT_ID_CHARACTERS);
      const join = { ...model, agent: agentId(name), incarnation: incarnation(name), ...asNew };
      this.#commands.push(this.#resized(join));
    }
    this.#turns();
  }

  // --- inputs ---------------------------------------------------------------------------------------

  #inputOf(command: Command, at: Instant): Command | undefined {
    switch (command.type) {
      case "JoinAgent":
        return this.#resized({
          ...command,
          ...asNew,
          ...afterNewest(this.#state.agentById.get(command.agent)),
        });
      case "LeaveAgent":
      case "LapseAgent":
      case "DrainAgent":
        return at >= this.#recording.lastWorkAt ? undefined : command;
      case "SetPolicy":
        return { type: "SetPolicy", patch: { ...command.patch, ...this.#variation.policy } };
      case "CancelTask":
      case "RescheduleTask":
        return { ...command, round: this.#state.taskById.get(command)?.round ?? command.round };
      case "RetryTask":
        return { ...command, round: (this.#state.endedById.get(command)?.round ?? command.round - 1) + 1 };
      case "TouchSlots":
        return undefined;
      case "AcquireSlots": {
        this.#asksFor(command, at);
        const { idleTimeoutMs: _, ...request } = command; // held as long as recorded, touched or not
        return request;
      }
      default:
        return command;
    }
  }

  #resized(join: CommandOf<"JoinAgent">): CommandOf<"JoinAgent"> {
    return { ...join, maxConcurrent: this.#capacityOf(join.kinds) ?? join.maxConcurrent };
  }

  #capacityOf(kinds: Iterable<string>): number | undefined {
    let largest: number | undefined;
    for (const kind of kinds) {
      const capacity = this.#variation.capacityByKind?.get(kind);
      if (capacity !== undefined && capacity > (largest ?? 0)) largest = capacity;
    }
    return largest;
  }

  // --- attempts -------------------------------------------------------------------------------------

  #started(event: EventOf<"TaskAssigned">): void {
    const open = this.#state.taskById.get(event)?.open;
    if (open !== undefined && open.attempt === event.attempt) this.#runs(open);
  }

  #runs(open: OpenAttempt): void {
    const key = taskKey(open);
    const used = this.#usedByTask.get(key) ?? 0;
    this.#usedByTask.set(key, used + 1);
    const recorded = this.#recording.attemptsByTask.get(key)?.[used];
    const record =
      recorded === undefined || recorded.outcome === "unknown" ? this.#estimate(open, recorded) : recorded;
    this.#recordByAttempt.set(attemptKey(open), record);
    if (record.outcome === "timed-out") return; // its own timer ends it
    const at = open.assignedAt + Math.max(1, record.durationMs);
    const end = this.#schedule(Math.max(at, this.#at), () => this.#endOf(open, record));
    this.#endByAttempt.set(attemptKey(open), end);
  }

  #estimate(open: OpenAttempt, known: RecordedAttempt | undefined): RecordedAttempt {
    const { meansByKind, means } = this.#recording;
    const { durationMs = UNKNOWN_DURATION_MS, tokens } = meansByKind.get(open.kind) ?? means ?? {};
    this.#estimated += 1;
    return {
      outcome: "completed",
      durationMs: Math.max(durationMs, known?.durationMs ?? 0),
      tokens,
      error: "",
      refusal: undefined,
      jitter: MEAN_JITTER,
      release: known?.release,
    };
  }

  #endOf(
    open: OpenAttempt,
    { outcome, tokens, error, jitter, refusal }: RecordedAttempt,
  ): Command | undefined {
    const row = this.#state.agentById.get(open.agent);
    if (row === undefined || findOpen(this.#state, row, open) !== open || open.state === "revoked")
      return undefined;
    const { project, task, attempt } = open;
    const report = (reported: CommandOf<"ReportResult">["outcome"]): Command => ({
      type: "ReportResult",
      ...identityOf(open),
      outcome: tokens === undefined ? reported : { ...reported, tokens },
      jitter,
    });
    switch (outcome) {
      case "completed":
        return report({ kind: "completed", result: "", digest: noDigest });
      case "infrastructure":
      case "refused":
        return report({ kind: "infrastructure", error, ...(refusal === undefined ? {} : { refusal }) });
      case "failed":
      case "invalid":
        return report({ kind: outcome, error });
      case "aborted":
        return report({ kind: "revoked" });
      case "stalled":
        return { type: "StallAttempt", project, task, attempt, jitter };
      case "revoked":
        return { type: "RevokeAttempt", project, task, attempt };
      case "lost":
        return this.#heartbeatOf(row, (held) => held !== open);
      case "timed-out":
      case "unknown":
        return undefined;
    }
  }

  /** A heartbeat of an agent that has every assignment, and holds some. */
  #heartbeatOf(row: AgentRow, holds: (open: OpenAttempt) => boolean): CommandOf<"ReconcileAgent"> {
    const leases = slotLeasesOf(this.#state, row.id);
    const handlesOf = (wanted: "held" | "waiting") =>
      leases.filter(({ state }) => state === wanted).map(({ handle }) => handle);
    return {
      type: "ReconcileAgent",
      agent: row.id,
      incarnation: row.incarnation,
      held: [...row.open.values()].filter(holds),
      seen: row.lastNumber as AssignmentNumber,
      slots: { held: handlesOf("held"), waiting: handlesOf("waiting") },
    };
  }

  #ended(event: EventOf<"TaskCompleted" | "AttemptFailed" | "TaskFailed" | "TaskDeadLettered">): void {
    this.#unschedule(event);
    const record = this.#recordByAttempt.get(attemptKey(event));
    const isLost = "failure" in event && event.failure.class === "lost";
    // The agent left before the attempt's end: the next attempt takes the same record.
    if (isLost && record?.outcome !== "lost")
      this.#usedByTask.set(taskKey(event), (this.#usedByTask.get(taskKey(event)) ?? 1) - 1);
    if (!("revoked" in event)) this.#recordByAttempt.delete(attemptKey(event));
  }

  #unschedule(attempt: TaskRef & { readonly attempt: number }): void {
    const key = attemptKey(attempt);
    const end = this.#endByAttempt.get(key);
    if (end !== undefined && end.heapAt !== -1) this.#due.remove(end);
    this.#endByAttempt.delete(key);
  }

  /** The agent of a revoked attempt confirms after a while. */
  #stop(open: OpenAttempt): void {
    this.#unschedule(open);
    const key = attemptKey(open);
    const { release } = this.#recordByAttempt.get(key) ?? {};
    this.#recordByAttempt.delete(key);
    const tokens = release?.tokens === undefined ? {} : { tokens: release.tokens };
    this.#schedule(this.#at + Math.max(1, release?.afterMs ?? 1), () => ({
      type: "ReportResult",
      ...identityOf(open),
      outcome: { kind: "revoked", ...tokens },
      jitter: MEAN_JITTER,
    }));
  }

  // --- slots ----------------------------------------------------------------------------------------

  #granted(event: EventOf<"SlotGranted">): void {
    this.#holds(event, this.#at);
  }

  #holds(lease: Pick<EventOf<"SlotGranted">, "agent" | "incarnation" | "handle">, grantedAt: number): void {
    const recorded = this.#recording.leaseByKey.get(slotLeaseKey(lease));
    if (recorded?.holdMs !== undefined)
      this.#schedule(Math.max(grantedAt + recorded.holdMs, this.#at + 1), () => releaseOf(lease, recorded));
  }

  /** A recorded request that was withdrawn is withdrawn after the same time, if it still waits. */
  #asksFor(request: CommandOf<"AcquireSlots">, at: number): void {
    const { agent, handle } = request;
    const patienceMs = this.#recording.leaseByKey.get(slotLeaseKey(request))?.patienceMs;
    if (patienceMs === undefined) return;
    this.#schedule(at + Math.max(1, patienceMs), () => {
      const isWaiting = slotLeasesOf(this.#state, agent).some(
        (lease) => lease.handle === handle && lease.state === "waiting",
      );
      return isWaiting ? releaseOf(request) : undefined;
    });
  }
}

const AGENT_ID_CHARACTERS = 64;
const asNew = { held: [], seen: 0 as AssignmentNumber } as const;

function isEarlier(a: Due, b: Due): boolean {
  return a.at !== b.at ? a.at < b.at : a.order < b.order;
}

function identityOf({ agent, incarnation: of, project, task, attempt, token }: OpenAttempt) {
  return { agent, incarnation: of, project, task, attempt, token };
}

function releaseOf(
  { agent, incarnation: of, handle }: Pick<EventOf<"SlotGranted">, "agent" | "incarnation" | "handle">,
  { usage, refusal, unanswered }: Partial<RecordedLease> = {},
): Command {
  return {
    type: "ReleaseSlots",
    agent,
    incarnation: of,
    handle,
    ...(usage === undefined ? {} : { usage }),
    ...(refusal === undefined ? {} : { refusal }),
    ...(unanswered === undefined ? {} : { unanswered }),
  };
}

function joinLike(row: AgentRow): CommandOf<"JoinAgent"> {
  const { id, incarnation: of, kinds, role, agentType, labels, maxConcurrent, prefetch } = row;
  return {
    type: "JoinAgent",
    agent: id,
    incarnation: of,
    kinds: [...kinds],
    ...(role === undefined ? {} : { role }),
    ...(agentType === undefined ? {} : { agentType }),
    labels,
    maxConcurrent,
    ...(prefetch === 0 ? {} : { prefetch }),
    ...asNew,
  };
}

/** Runs a recording to its end, at once. */
export function playBack(recording: Recording, variation: Variation): PlaybackResult {
  const running = new Playback(recording, variation).run();
  for (;;) {
    const step = running.next();
    if (step.done === true) return step.value;
  }
}
