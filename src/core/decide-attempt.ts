// How an attempt ends: by its agent's report, or by the coordinator's verdict (time-out, stall, lost agent). A report
// about an attempt that was closed before changes nothing, but frees capacity that is still occupied.

import { assert } from "../assert.ts";
import { type AttemptNumber, type Instant, type Kind, NO_GROUP, type TaskRef } from "../ids.ts";
import { limits } from "../limits.ts";
import { verdictOnRefusal } from "../scheduling/hold.ts";
import { isReinstatedBySuccess, suspensionOnFailure } from "../scheduling/suspension.ts";
import { agentOf, findOpen } from "../state/agent-rows.ts";
import type { AttemptFailure, Event, EventOf, FailureClass, ResultDigest } from "../state/event.ts";
import { chargeable, type Grant } from "../state/grant.ts";
import type { HoldTarget, Refusal } from "../state/hold.ts";
import type { OpenAttempt, SwarmState, TaskRow, TaskState } from "../state/state.ts";
import type { Writable } from "../state/writable.ts";
import type { Command, CompletedOutcome, Reply, ReportedOutcome } from "./command.ts";
import { budgetsExceeded, decideLateCharge } from "./decide-budget.ts";
import { endsOfProbed, refusalAt, roomFor } from "./decide-hold.ts";
import { answered, type Decision } from "./decision.ts";
import { grantOf, refusalOfSlots } from "./grant-rules.ts";
import { decideRetry } from "./retry.ts";
import { awaitedOnHold, endWaitsInVain } from "./wait-in-vain.ts";

type ReportResult = Extract<Command, { type: "ReportResult" }>;

export function decideResult(state: SwarmState, reported: ReportResult, at: Instant): Decision {
  const agent = state.agentById.get(reported.agent);
  const command = withinGrant(grantOf(state, agent), reported);
  const attempt = agent === undefined ? undefined : findOpen(state, agent, command);
  if (attempt === undefined || attempt.incarnation !== command.incarnation)
    return { events: decideLateCharge(state, command), reply: replyToClosed(state, command) };
  if (attempt.token !== command.token) return answered({ kind: "stale-token" });
  if (attempt.state === "revoked") {
    return { events: [released(attempt, "confirmed", command.outcome.tokens)], reply: { kind: "stale" } };
  }
  const events = endOfAttempt(state, attempt, command, at);
  const ended: Decision = { events, reply: { kind: "ok" } };
  const [event] = events;
  const isUnkept = event?.type === "TaskCompleted" && event.result === undefined;
  return isUnkept && command.outcome.kind === "completed"
    ? { ...ended, unkeptResult: command.outcome.result }
    : ended;
}

/** The report, with no more tokens than the grant of the agent's group permits. */
function withinGrant(grant: Grant | undefined, command: ReportResult): ReportResult {
  const { outcome } = command;
  const tokens = chargeable(grant, outcome.tokens);
  return tokens === undefined || tokens === outcome.tokens
    ? command
    : { ...command, outcome: { ...outcome, tokens } };
}

/** The agent is alive, but no longer reports progress. */
export function decideStall(
  state: SwarmState,
  command: Extract<Command, { type: "StallAttempt" }>,
  at: Instant,
): Decision {
  const attempt = state.taskById.get(command)?.open;
  if (attempt === undefined || attempt.attempt !== command.attempt) return answered({ kind: "none" });
  const failure: AttemptFailure = {
    class: "stalled",
    error: "no progress was reported within the task's stall limit",
  };
  return { events: [failed(state, attempt, failure, at, command.jitter)], reply: { kind: "none" } };
}

/**
 * An operator takes a running attempt from its agent, which is asked to stop it. The agent's capacity stays occupied
 * until the agent confirms, or is lost.
 */
export function decideRevoke(
  state: SwarmState,
  { project, task, attempt: wanted }: Extract<Command, { type: "RevokeAttempt" }>,
  at: Instant,
): Decision {
  const ref = { project, task };
  const known = state.taskById.get(ref) ?? state.endedById.get(ref);
  if (known === undefined) return answered({ kind: "unknown-task", task });
  const attempts = "endedAt" in known ? known.attempts : known.attempt;
  if (wanted > attempts) return answered({ kind: "no-such-attempt", task, attempts, wanted });
  const closed = { kind: "revoked", task, attempt: wanted } as const;
  const open = "endedAt" in known ? undefined : known.open;
  if (open?.attempt !== wanted) return answered({ ...closed, isRevoked: false, state: known.state });
  const failure: AttemptFailure = { class: "revoked", error: "an operator revoked the attempt" };
  const event = failed(state, open, failure, at, 0);
  const after: TaskState = event.type === "AttemptFailed" ? "queued" : "dead-lettered";
  return { events: [event], reply: { ...closed, isRevoked: true, state: after } };
}

export function decideTimeout(
  state: SwarmState,
  attempt: OpenAttempt,
  at: Instant,
  jitter: number,
): readonly Event[] {
  const resource = awaitedOnHold(state, attempt);
  if (resource === undefined) {
    const error = "the attempt ran longer than the task's timeoutMs";
    return [failed(state, attempt, { class: "timed-out", error }, at, jitter)];
  }
  const error = `the attempt waited for a slot of ${resource}, which is on hold, until the end of the task's timeoutMs`;
  // The agent needs a moment to end the attempt.
  const retryAt = (at + limits.retryBackoffMs) as Instant;
  return [
    failed(state, attempt, { class: "refused", error }, at, jitter, {
      refusal: { on: { resource } },
      retryAt,
    }),
  ];
}

/** Closes an open attempt when its agent is gone, or does not hold the attempt. */
export function closeAsLost(state: SwarmState, attempt: OpenAttempt, error: string, at: Instant): Event {
  if (attempt.state === "revoked") return released(attempt, "agent-gone");
  return failed(state, attempt, { class: "lost", error }, at, 0);
}

/** Whether the journal keeps only a hash of a result that the project's task brings now. */
export function journalsHashes(state: SwarmState, { project }: Pick<TaskRef, "project">): boolean {
  return state.projectById.get(project)?.settings?.results === "hash";
}

/** The kind that ran in the attempt that `event` is about to close; read before the event is applied. */
export function kindClosedBy(state: SwarmState, event: Event): Kind | undefined {
  switch (event.type) {
    case "TaskCompleted":
    case "AttemptFailed":
    case "TaskFailed":
    case "TaskDeadLettered":
      return state.taskById.get(event)?.open?.kind;
    default:
      return undefined;
  }
}

/** The kind that an assigned attempt runs as; read after the event was applied. */
export function kindAssignedBy(state: SwarmState, event: Event): Kind | undefined {
  return event.type === "TaskAssigned" ? state.taskById.get(event)?.open?.kind : undefined;
}

/**
 * Reactions to an event after it is applied: suspensions, reinstatements, exceeded budgets, and what a hold stops.
 * @param ranAs the result of `kindClosedBy` before
 */
export function reactTo(
  state: SwarmState,
  event: Event,
  { at, ranAs }: { readonly at: Instant; readonly ranAs: Kind | undefined },
): readonly Event[] {
  const exceeded = budgetsExceeded(state, event, at);
  const judged = ranAs === undefined ? [] : judge(state, event, ranAs, at);
  const waits = endWaitsInVain(state, event, at);
  return exceeded.length + waits.length === 0 ? judged : [...judged, ...exceeded, ...waits];
}

function judge(state: SwarmState, event: Event, kind: Kind, at: Instant): readonly Event[] {
  switch (event.type) {
    case "TaskCompleted":
      if (!isReinstatedBySuccess(agentOf(state, event.agent), kind, at)) return [];
      return [{ type: "AgentReinstated", agent: event.agent, kind }];
    case "AttemptFailed":
    case "TaskDeadLettered":
      return suspend(state, event, kind, at);
    default:
      return [];
  }
}

const noFaultOfAgent: ReadonlySet<FailureClass> = new Set([
  "infrastructure",
  "refused",
  "aborted",
  "lost",
  "revoked",
]);

function suspend(
  state: SwarmState,
  event: EventOf<"AttemptFailed" | "TaskDeadLettered">,
  kind: Kind,
  at: Instant,
): readonly Event[] {
  if (noFaultOfAgent.has(event.failure.class)) return [];
  const suspension = suspensionOnFailure(state, agentOf(state, event.agent), kind, at);
  return suspension === undefined
    ? []
    : [{ type: "AgentSuspended", agent: event.agent, kind, ...suspension }];
}

function endOfAttempt(
  state: SwarmState,
  attempt: OpenAttempt,
  command: ReportResult,
  at: Instant,
): readonly Event[] {
  const { outcome, jitter } = command;
  switch (outcome.kind) {
    case "completed":
      return [completed(state, attempt, outcome, at), ...endsOfProbed(state, attempt)];
    case "revoked": {
      // No order to stop was sent. The attempt may have begun, so P3 counts it.
      const failure = { class: "aborted", error: "the agent stopped it before it ended" } as const;
      return [failed(state, attempt, failure, at, jitter, { reported: outcome })];
    }
    case "infrastructure":
      return refused(state, attempt, outcome, at, jitter);
    case "failed":
    case "invalid": {
      const failure = { class: outcome.kind, error: outcome.error };
      const event = failed(state, attempt, failure, at, jitter, { reported: outcome });
      return [event, ...endsOfProbed(state, attempt)];
    }
  }
}

/** The environment is at fault. A report that names a refusal may put the agent, its type or a resource on hold. */
function refused(
  state: SwarmState,
  attempt: OpenAttempt,
  reported: Extract<ReportedOutcome, { kind: "infrastructure" }>,
  at: Instant,
  jitter: number,
): readonly Event[] {
  const { error, refusal: said } = reported;
  if (said === undefined)
    return [failed(state, attempt, { class: "infrastructure", error }, at, jitter, { reported })];
  const refusal = permitted(state, attempt, refusalAt(said, at));
  const verdict = verdictOnRefusal(state, attempt, { ...refusal, error }, at);
  const failure = { class: verdict.class, error };
  const event = failed(state, attempt, failure, at, jitter, {
    reported,
    refusal,
    retryAt: verdict.retryAt,
  });
  // The holds first: the end of the attempt must not let another probe run.
  return [
    ...verdict.holds.flatMap((hold) => [...roomFor(state, hold), hold]),
    event,
    ...verdict.holds.flatMap((hold) => takeBack(state, hold, at, attempt)),
  ];
}

/**
 * Attempts that agents have prefetched, and not begun, go back to the queue before a hold on the agent or its type.
 * @param refused the refused attempt that led to the hold: its end lets the agent begin one more
 */
export function takeBack(
  state: SwarmState,
  { on, name }: HoldTarget,
  at: Instant,
  refused?: OpenAttempt,
): readonly Event[] {
  if (on === "resource") return [];
  const error = "its agent is on hold, and had not begun it";
  // The agent may have begun it since: it needs a moment to end the attempt.
  const retryAt = (at + limits.retryBackoffMs) as Instant;
  return [...state.agentById.values()]
    .filter(({ id, agentType, prefetch }) => prefetch > 0 && (on === "agent" ? id : agentType) === name)
    .flatMap(({ open, maxConcurrent }) => [...open.values()].slice(maxConcurrent))
    .filter((attempt) => attempt.state !== "revoked" && attempt !== refused)
    .map((attempt) => failed(state, attempt, { class: "refused", error }, at, 0, { retryAt }));
}

/** A refusal by a resource that the agent's grant leaves out names no resource: it counts at the agent. */
function permitted(state: SwarmState, { agent }: OpenAttempt, refusal: Refusal): Refusal {
  const { on, ...rest } = refusal;
  if (typeof on !== "object") return refusal;
  const group = agentOf(state, agent).group ?? NO_GROUP;
  const wanted = { resources: [on.resource], project: undefined, tokens: 0 };
  return refusalOfSlots(state, group, wanted) === undefined ? refusal : { ...rest, on: "agent" };
}

function completed(
  state: SwarmState,
  attempt: OpenAttempt,
  { result, digest, encoding, tokens }: CompletedOutcome,
  at: Instant,
): Event {
  const event: Writable<EventOf<"TaskCompleted">> = {
    type: "TaskCompleted",
    project: attempt.project,
    task: attempt.task,
    attempt: attempt.attempt,
    agent: attempt.agent,
    ...(journalsHashes(state, attempt) ? { resultDigest: said(digest, attempt) } : { result }),
    latencyMs: at - attempt.assignedAt,
  };
  if (encoding !== undefined) event.encoding = encoding;
  if (tokens !== undefined) event.tokens = tokens;
  return event;
}

function said(digest: ResultDigest | undefined, { task }: TaskRef): ResultDigest {
  assert(digest !== undefined, `the report of task ${task} has the digest of its result`);
  return digest;
}

/** More about an end without success. */
interface Ending {
  /** The agent's own report of the end. Without a report the agent must be asked to stop: its capacity stays occupied
   *  until it confirms, unless it is lost. */
  readonly reported?: { readonly tokens?: number };
  readonly refusal?: Refusal;
  /** When a refused attempt's task may start again. */
  readonly retryAt?: Instant | undefined;
}

function failed(
  state: SwarmState,
  attempt: OpenAttempt,
  failure: AttemptFailure,
  at: Instant,
  jitter: number,
  { reported, refusal: refusedBy, retryAt }: Ending = {},
): Event {
  const row = state.taskById.get(attempt) as TaskRow;
  const closing = {
    project: attempt.project,
    task: attempt.task,
    attempt: attempt.attempt,
    agent: attempt.agent,
    failure,
    latencyMs: at - attempt.assignedAt,
    ...(reported?.tokens === undefined ? {} : { tokens: reported.tokens }),
  };
  const refusal = refusedBy === undefined ? {} : { refusal: refusedBy };
  const hasEnded = reported !== undefined || failure.class === "lost";
  const revoked = hasEnded ? {} : ({ revoked: true } as const);
  const retry =
    failure.class === "refused"
      ? ({ kind: "retry", retryAt } as const)
      : decideRetry(row, failure.class, at, jitter);
  switch (retry.kind) {
    case "fail":
      return { type: "TaskFailed", ...closing };
    case "dead-letter":
      return { type: "TaskDeadLettered", ...closing, ...refusal, reason: retry.reason, ...revoked };
    case "retry":
      return {
        type: "AttemptFailed",
        ...closing,
        ...refusal,
        ...(retry.retryAt === undefined ? {} : { retryAt: retry.retryAt }),
        ...revoked,
      };
  }
}

function released(attempt: OpenAttempt, reason: "confirmed" | "agent-gone", tokens?: number): Event {
  return {
    type: "AttemptReleased",
    project: attempt.project,
    task: attempt.task,
    attempt: attempt.attempt,
    agent: attempt.agent,
    reason,
    ...(tokens === undefined ? {} : { tokens }),
  };
}

/** `ok` for a repeated report of the recorded outcome; `stale` for any other report of a known, ended attempt. */
function replyToClosed(state: SwarmState, report: ReportResult): Reply {
  const { attempt, agent, outcome } = report;
  const live = state.taskById.get(report);
  if (live !== undefined)
    return live.open?.attempt === attempt && live.open.agent !== agent
      ? { kind: "stale-token" }
      : closedReply(live, attempt);
  const ended = state.endedById.get(report);
  if (ended === undefined) return { kind: "gone" };
  const isRecorded =
    ended.state === "completed" &&
    ended.agent === agent &&
    ended.attempts === attempt &&
    outcome.kind === "completed";
  return isRecorded ? { kind: "ok" } : { kind: "stale" };
}

function closedReply(row: { readonly attempt: number }, attempt: AttemptNumber): Reply {
  return attempt <= row.attempt ? { kind: "stale" } : { kind: "gone" };
}
