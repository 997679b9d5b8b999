// What a journal recorded, as the workload of a replay: inputs with their times, attempts with durations, outcomes and
// tokens, and slot leases with their holding times. Folds batches in order. Not here: reading the journal (the caller),
// running the workload again (playback.ts).

import { apply } from "../../core/apply.ts";
import type { Command, ReportedRefusal, ReportedSlotRefusal } from "../../core/command.ts";
import { departureErrors } from "../../core/decide-agent.ts";
import { causeOf } from "../../core/recorded-inputs.ts";
import type { RecordedBatch } from "../../core/reproduction.ts";
import { jitterOf } from "../../core/retry.ts";
import { encodeState } from "../../core/snapshot/encode.ts";
import { type AgentId, attemptKey, type Instant, type SlotHandle, type TaskRef, taskKey } from "../../ids.ts";
import type { Event, EventOf, SlotUse } from "../../state/event.ts";
import { passTo } from "../../state/journal-time.ts";
import { slotLeaseKey } from "../../state/slot-key.ts";
import { findSlotLease } from "../../state/slot-rows.ts";
import { emptyState, runsTasks, type SwarmState } from "../../state/state.ts";
import { Course } from "./course.ts";

/** An input, and when it came: journal time. */
export interface TimedInput {
  readonly at: Instant;
  readonly command: Command;
}

/** How an attempt ended as recorded. */
export type AttemptOutcome =
  | "completed"
  | "failed"
  | "infrastructure"
  | "refused"
  | "invalid"
  | "aborted"
  | "timed-out"
  | "stalled"
  | "lost"
  | "revoked"
  /** It was still running when its task was cancelled or expired, or at the end of the record. */
  | "unknown";

export interface RecordedAttempt {
  readonly outcome: AttemptOutcome;
  /** From the assignment to the end, ms; of `unknown`: at least so long. */
  readonly durationMs: number;
  readonly tokens: number | undefined;
  readonly error: string;
  /** What the report asked to hold; `until` relative to its end. */
  readonly refusal: ReportedRefusal | undefined;
  /** With which its retry was spread, [0, 1). */
  readonly jitter: number;
  /** Until the agent confirmed that a revoked attempt stopped, ms, and the tokens that it then reported. */
  release: { readonly afterMs: number; readonly tokens: number | undefined } | undefined;
}

/** How a request for slots went on. */
export interface RecordedLease {
  /** From the grant to the release, ms; undefined: not granted, or held at the end of the record. */
  holdMs: number | undefined;
  /** From the request to its withdrawal, ms; undefined: never withdrawn. */
  patienceMs: number | undefined;
  /** As reported with the release. */
  usage: SlotUse | undefined;
  /** As reported with the release; the time relative to it. */
  refusal: ReportedSlotRefusal | undefined;
  unanswered: true | undefined;
}

/** Means of a kind's completed attempts. */
export interface KindMeans {
  readonly durationMs: number;
  readonly tokens: number | undefined;
}

export interface Recording {
  /** The state before the first input, as the lines of a snapshot. */
  readonly start: readonly string[];
  readonly startAt: Instant;
  readonly endAt: Instant;
  readonly firstIdx: number;
  readonly lastIdx: number;
  readonly inputs: readonly TimedInput[];
  /** By `taskKey`, in order; without attempts that were lost with their agent. */
  readonly attemptsByTask: ReadonlyMap<string, readonly RecordedAttempt[]>;
  /** By `slotLeaseKey`. */
  readonly leaseByKey: ReadonlyMap<string, RecordedLease>;
  readonly meansByKind: ReadonlyMap<string, KindMeans>;
  /** Over all kinds; undefined if no attempt completed. */
  readonly means: KindMeans | undefined;
  /** Kinds that some agent served. */
  readonly kinds: readonly string[];
  readonly happened: Course;
  /** Departures from this instant on ended the swarm, and not its work: a replay leaves them out. */
  readonly lastWorkAt: number;
}

const errorsOfDeparture: ReadonlySet<string> = new Set(Object.values(departureErrors));

export class Recorder {
  #state: SwarmState = emptyState();
  #start: string[] | undefined;
  #startAt = 0 as Instant;
  #firstIdx = 0;
  readonly #inputs: TimedInput[] = [];
  readonly #attemptsByTask = new Map<string, RecordedAttempt[]>();
  /** Revoked attempts by `attemptKey`, and when. */
  readonly #revoked = new Map<string, { readonly attempt: RecordedAttempt; readonly at: Instant }>();
  readonly #leaseByKey = new Map<string, RecordedLease>();
  readonly #sums = new Sums();
  readonly #kinds = new Set<string>();
  readonly #course = new Course();
  readonly #isFirst: (batch: RecordedBatch) => boolean;

  /** @param isFirst whether the record begins with a batch; batches before it only make the state */
  constructor(isFirst: (batch: RecordedBatch) => boolean) {
    this.#isFirst = isFirst;
  }

  /** Whether the record has begun. */
  get hasBegun(): boolean {
    return this.#start !== undefined;
  }

  /** The newest batch taken. */
  get last(): { readonly idx: number; readonly at: number } {
    return { idx: this.#state.idx, at: this.#state.at };
  }

  /** Continues from a state, whose batches are not kept. @param state is taken over */
  continueFrom(state: SwarmState): void {
    this.#state = state;
  }

  take(batch: RecordedBatch): void {
    const { at, idx, events } = batch;
    if (this.#start === undefined && this.#isFirst(batch)) this.#begin(batch);
    const [first] = events;
    if (first !== undefined) passTo(this.#state, at, first);
    this.#state.idx = idx;
    for (const [from, event] of events.entries()) {
      if (this.#start !== undefined) this.#note(event, events, from, at);
      apply(this.#state, event, { at, idx });
      if (this.#start !== undefined) this.#course.take(event, at);
    }
  }

  /** @throws RangeError if the record has not begun */
  finish(): Recording {
    if (this.#start === undefined) throw new RangeError("no batch was recorded");
    const state = this.#state;
    for (const row of state.taskById.values())
      if (row.open !== undefined) this.#add(row.open, "unknown", state.at - row.open.assignedAt);
    return {
      start: this.#start,
      startAt: this.#startAt,
      endAt: state.at,
      firstIdx: this.#firstIdx,
      lastIdx: state.idx,
      inputs: this.#inputs,
      attemptsByTask: this.#attemptsByTask,
      leaseByKey: this.#leaseByKey,
      meansByKind: this.#sums.byKind(),
      means: this.#sums.all(),
      kinds: [...this.#kinds].sort(),
      happened: this.#course,
      lastWorkAt: this.#course.lastEndAt ?? state.at,
    };
  }

  #begin({ at, idx }: RecordedBatch): void {
    const state = this.#state;
    this.#start = [...encodeState(state)];
    this.#startAt = at;
    this.#firstIdx = idx;
    for (const row of state.taskById.values()) {
      this.#course.addWaiting(row.spec, row.open?.assignedAt ?? row.queuedAt);
      if (row.open !== undefined) this.#course.addOpen(row.open, row.open.agent, row.open.assignedAt);
    }
    for (const row of state.agentById.values())
      if (row.online && runsTasks(row)) for (const kind of row.kinds) this.#kinds.add(kind);
  }

  #note(event: Event, events: readonly Event[], from: number, at: Instant): void {
    switch (event.type) {
      case "TaskCompleted":
        this.#sums.add(this.#state.taskById.get(event)?.open?.kind ?? "", event.latencyMs, event.tokens);
        this.#add(event, "completed", event.latencyMs, event.tokens);
        return;
      case "AttemptFailed":
      case "TaskFailed":
      case "TaskDeadLettered":
        return this.#noteFailure(event, at);
      case "TaskCancelled":
      case "TaskExpired":
        return this.#noteStopped(event, events, from, at);
      case "AttemptReleased":
        return this.#noteRelease(event, at);
      case "AgentJoined":
        for (const kind of event.kinds) this.#kinds.add(kind);
        return this.#input(event, [event], 0, at);
      case "AgentLeft":
        // The join that fenced a session is the input, or the grant that forbids it.
        return event.reason === "fenced" || event.reason === "forbidden"
          ? undefined
          : this.#input(event, [event], 0, at);
      case "HoldPlaced":
        // The hold of a report follows from the report. A report about slots that had ended has no other effect.
        if (event.by === "refusals")
          return this.#noteRefusedLate(event.reportedBy, event.handle, event.reason);
        if (event.by !== "operator" && event.handle === undefined) return undefined;
        return this.#input(event, [{ ...event, by: "operator" }], 0, at);
      case "HoldEnded":
        return event.reason === "operator" ? this.#input(event, [event], 0, at) : undefined;
      case "SlotAwaited":
      case "SlotGranted":
        this.#leaseByKey.set(slotLeaseKey(event), this.#leaseByKey.get(slotLeaseKey(event)) ?? newLease());
        return this.#input(event, [event], 0, at);
      case "SlotReleased":
        return this.#noteReleased(event, at);
      case "SlotRefused":
        return this.#noteRefusedLate(event.agent, event.handle, event.reason);
      case "SlotWaitEnded":
        return this.#noteWithdrawn(event, at);
      default:
        return this.#input(event, events, from, at);
    }
  }

  /** Adds the command behind an event, if it does not follow from the work or the clock. */
  #input(event: Event, events: readonly Event[], from: number, at: Instant): void {
    if (!inputTypes.has(event.type)) return;
    const command = causeOf(this.#state, events, { from, at });
    if (command === undefined || command === "due" || command === "plan") return;
    this.#inputs.push({ at, command: withoutPayload(command) });
  }

  #noteFailure(event: EventOf<"AttemptFailed" | "TaskFailed" | "TaskDeadLettered">, at: Instant): void {
    const { failure, latencyMs, tokens } = event;
    if (failure.class === "lost" && errorsOfDeparture.has(failure.error)) return;
    const row = this.#state.taskById.get(event);
    const retryAt = event.type === "AttemptFailed" ? event.retryAt : undefined;
    const jitter = row === undefined ? 0 : jitterOf(row, failure.class, { failedAt: at, retryAt });
    const refusal = "refusal" in event ? relative(event.refusal, at) : undefined;
    const details = { error: failure.error, jitter, refusal };
    const attempt = this.#add(event, failure.class, latencyMs, tokens, details);
    if (event.type !== "TaskFailed" && event.revoked === true)
      this.#revoked.set(attemptKey(event), { attempt, at });
  }

  #noteStopped(
    event: EventOf<"TaskCancelled" | "TaskExpired">,
    events: readonly Event[],
    from: number,
    at: Instant,
  ): void {
    const open = this.#state.taskById.get(event)?.open;
    if (open !== undefined) {
      const attempt = this.#add(event, "unknown", at - open.assignedAt);
      this.#revoked.set(attemptKey(open), { attempt, at });
    }
    this.#input(event, events, from, at);
  }

  #noteRelease(event: EventOf<"AttemptReleased">, at: Instant): void {
    const revoked = this.#revoked.get(attemptKey(event));
    if (revoked === undefined) return;
    this.#revoked.delete(attemptKey(event));
    revoked.attempt.release = { afterMs: at - revoked.at, tokens: event.tokens };
  }

  #add(
    ref: TaskRef,
    outcome: AttemptOutcome,
    durationMs: number,
    tokens?: number,
    { error = "", jitter = 0, refusal }: AttemptDetails = {},
  ): RecordedAttempt {
    const attempt: RecordedAttempt = {
      outcome,
      durationMs,
      tokens,
      error,
      refusal,
      jitter,
      release: undefined,
    };
    const key = taskKey(ref);
    const known = this.#attemptsByTask.get(key);
    if (known === undefined) this.#attemptsByTask.set(key, [attempt]);
    else known.push(attempt);
    return attempt;
  }

  #noteReleased(event: EventOf<"SlotReleased">, at: Instant): void {
    const { agent, handle, usage, refusal } = event;
    const row = findSlotLease(this.#state, agent, handle);
    const lease = this.#lease(agent, handle);
    lease.usage = usage;
    lease.refusal = relative(refusal, at);
    lease.unanswered = event.unanswered;
    if (row?.grantedAt !== undefined) lease.holdMs = at - row.grantedAt;
  }

  /** A refusal without a time that was reported after the end of its slots is played with their release. */
  #noteRefusedLate(
    agent: AgentId | undefined,
    handle: SlotHandle | undefined,
    reason: string | undefined,
  ): void {
    if (agent === undefined || handle === undefined) return;
    this.#lease(agent, handle).refusal ??= reason === undefined ? {} : { reason };
  }

  #noteWithdrawn({ agent, handles, reason }: EventOf<"SlotWaitEnded">, at: Instant): void {
    if (reason !== "aborted" && reason !== "lost") return;
    for (const handle of handles) {
      const row = findSlotLease(this.#state, agent, handle);
      if (row !== undefined) this.#lease(agent, handle).patienceMs = at - row.requestedAt;
    }
  }

  #lease(agent: AgentId, handle: EventOf<"SlotReleased">["handle"]): RecordedLease {
    const key = slotLeaseKey({ agent, handle });
    const known = this.#leaseByKey.get(key) ?? newLease();
    this.#leaseByKey.set(key, known);
    return known;
  }
}

interface AttemptDetails {
  readonly error?: string;
  readonly jitter?: number;
  readonly refusal?: ReportedRefusal | undefined;
}

/** In a playback the attempt ends at another instant. */
function relative<Kept extends { readonly until?: Instant }>(
  refusal: Kept | undefined,
  at: Instant,
): (Omit<Kept, "until"> & { readonly forMs?: number }) | undefined {
  if (refusal === undefined) return undefined;
  const { until, ...rest } = refusal;
  return until === undefined ? rest : { ...rest, forMs: until - at };
}

function newLease(): RecordedLease {
  return {
    holdMs: undefined,
    patienceMs: undefined,
    usage: undefined,
    refusal: undefined,
    unanswered: undefined,
  };
}

/** Events that bring something from outside, whoever runs the tasks. */
const inputTypes: ReadonlySet<Event["type"]> = new Set<Event["type"]>([
  "TaskRescheduled",
  "TermStarted",
  "TaskSubmitted",
  "TaskRetried",
  "TaskCancelled",
  "AgentJoined",
  "AgentLeft",
  "AgentDrained",
  "AgentUndrained",
  "SlotAwaited",
  "SlotGranted",
  "PolicyChanged",
  "ProjectConfigured",
  "ProjectRemoved",
  "KindConfigured",
  "ResourceConfigured",
  "ResourceRemoved",
  "RateConfigured",
  "RateRemoved",
  "GrantConfigured",
  "GrantRemoved",
  "HoldPlaced",
  "HoldEnded",
  "ProjectPaused",
  "ProjectResumed",
  "SwarmPaused",
  "SwarmResumed",
]);

/** No decision reads a payload. */
function withoutPayload(command: Command): Command {
  if (command.type === "SubmitTask") return { ...command, task: { ...command.task, payload: "" } };
  if (command.type === "RetryTask") return { ...command, spec: { ...command.spec, payload: "" } };
  return command;
}

/** Durations and tokens of completed attempts by kind. */
class Sums {
  readonly #byKind = new Map<string, { count: number; ms: number; reports: number; tokens: number }>();

  add(kind: string, ms: number, tokens: number | undefined): void {
    const sum = this.#byKind.get(kind) ?? { count: 0, ms: 0, reports: 0, tokens: 0 };
    sum.count += 1;
    sum.ms += ms;
    if (tokens !== undefined) {
      sum.reports += 1;
      sum.tokens += tokens;
    }
    this.#byKind.set(kind, sum);
  }

  byKind(): Map<string, KindMeans> {
    return new Map([...this.#byKind].map(([kind, sum]) => [kind, meansOf(sum)]));
  }

  all(): KindMeans | undefined {
    const total = { count: 0, ms: 0, reports: 0, tokens: 0 };
    for (const { count, ms, reports, tokens } of this.#byKind.values()) {
      total.count += count;
      total.ms += ms;
      total.reports += reports;
      total.tokens += tokens;
    }
    return total.count === 0 ? undefined : meansOf(total);
  }
}

function meansOf(sum: {
  readonly count: number;
  readonly ms: number;
  readonly reports: number;
  readonly tokens: number;
}): KindMeans {
  return {
    durationMs: Math.round(sum.ms / sum.count),
    tokens: sum.reports === 0 ? undefined : Math.round(sum.tokens / sum.reports),
  };
}
