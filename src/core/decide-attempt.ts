// How an attempt ends: by its agent's report, or by the coordinator's verdict (time-out, stall, lost agent).
// A report about an attempt that was closed before changes nothing but frees the place it still held.

import type { AttemptNumber, Instant } from "../ids.ts";
import { isReinstatedBySuccess, suspensionOnFailure } from "../scheduling/suspension.ts";
import { agentOf, findOpen } from "./agent-rows.ts";
import type { Command, Reply } from "./command.ts";
import { answered, type Decision } from "./decision.ts";
import type { AttemptFailure, Event, EventOf } from "./event.ts";
import { decideRetry } from "./retry.ts";
import type { OpenAttempt, SwarmState, TaskRow } from "./state.ts";

type ReportResult = Extract<Command, { type: "ReportResult" }>;

export function decideResult(state: SwarmState, command: ReportResult, at: Instant): Decision {
  const agent = state.agentById.get(command.agent);
  const attempt = agent === undefined ? undefined : findOpen(state, agent, command.task, command.attempt);
  if (attempt === undefined || attempt.incarnation !== command.incarnation)
    return answered(replyToClosed(state, command));
  if (attempt.token !== command.token) return answered({ kind: "stale-token" });
  if (attempt.state === "revoked") {
    return { events: [released(attempt, "confirmed")], reply: { kind: "stale" } };
  }
  return { events: [endOfAttempt(state, attempt, command, at)], reply: { kind: "ok" } };
}

/** The agent no longer reports progress though it lives. */
export function decideStall(
  state: SwarmState,
  command: Extract<Command, { type: "StallAttempt" }>,
  at: Instant,
): Decision {
  const attempt = state.taskById.get(command.task)?.open;
  if (attempt === undefined || attempt.attempt !== command.attempt) return answered({ kind: "none" });
  const failure: AttemptFailure = {
    class: "stalled",
    error: "no progress was reported within the task's stall limit",
  };
  return { events: [failed(state, attempt, failure, at, command.jitter)], reply: { kind: "none" } };
}

export function decideTimeout(
  state: SwarmState,
  attempt: OpenAttempt,
  at: Instant,
  jitter: number,
): readonly Event[] {
  const failure: AttemptFailure = {
    class: "timed-out",
    error: "the attempt ran longer than the task's timeoutMs",
  };
  return [failed(state, attempt, failure, at, jitter)];
}

/** Closes whatever occupies an agent's place when that agent is gone or says it does not have it. */
export function closeAsLost(state: SwarmState, attempt: OpenAttempt, error: string, at: Instant): Event {
  if (attempt.state === "revoked") return released(attempt, "agent-gone");
  return failed(state, attempt, { class: "lost", error }, at, 0);
}

/** What follows from an event once it is applied: suspensions and their end. */
export function reactTo(state: SwarmState, event: Event, at: Instant): readonly Event[] {
  switch (event.type) {
    case "TaskCompleted": {
      const kind = state.endedById.get(event.task)?.kind;
      if (kind === undefined || !isReinstatedBySuccess(agentOf(state, event.agent), kind, at)) return [];
      return [{ type: "AgentReinstated", agent: event.agent, kind }];
    }
    case "AttemptFailed":
    case "TaskDeadLettered":
      return suspend(state, event, at);
    default:
      return [];
  }
}

function suspend(
  state: SwarmState,
  event: EventOf<"AttemptFailed" | "TaskDeadLettered">,
  at: Instant,
): readonly Event[] {
  const kind = state.taskById.get(event.task)?.spec.kind ?? state.endedById.get(event.task)?.kind;
  const countsAgainstAgent = event.failure.class !== "infrastructure" && event.failure.class !== "lost";
  if (kind === undefined || !countsAgainstAgent) return [];
  const suspension = suspensionOnFailure(state, agentOf(state, event.agent), kind, at);
  return suspension === undefined
    ? []
    : [{ type: "AgentSuspended", agent: event.agent, kind, ...suspension }];
}

function endOfAttempt(state: SwarmState, attempt: OpenAttempt, command: ReportResult, at: Instant): Event {
  const { outcome } = command;
  switch (outcome.kind) {
    case "completed":
      return {
        type: "TaskCompleted",
        task: attempt.task,
        attempt: attempt.attempt,
        agent: attempt.agent,
        result: outcome.result,
        ...(outcome.encoding === undefined ? {} : { encoding: outcome.encoding }),
        latencyMs: at - attempt.assignedAt,
        ...(outcome.tokens === undefined ? {} : { tokens: outcome.tokens }),
      };
    case "revoked":
      return failed(
        state,
        attempt,
        { class: "infrastructure", error: "the agent gave the attempt up" },
        at,
        command.jitter,
        true,
      );
    case "failed":
    case "infrastructure":
    case "invalid":
      return failed(state, attempt, { class: outcome.kind, error: outcome.error }, at, command.jitter, true);
  }
}

/** @param hasEnded the agent itself said so; otherwise it must be told, and keeps the place until it confirms */
function failed(
  state: SwarmState,
  attempt: OpenAttempt,
  failure: AttemptFailure,
  at: Instant,
  jitter: number,
  hasEnded = failure.class === "lost",
): Event {
  const row = state.taskById.get(attempt.task) as TaskRow;
  const closing = {
    task: attempt.task,
    attempt: attempt.attempt,
    agent: attempt.agent,
    failure,
    latencyMs: at - attempt.assignedAt,
  };
  const revoked = hasEnded ? {} : ({ revoked: true } as const);
  const retry = decideRetry(row, failure.class, at, jitter);
  switch (retry.kind) {
    case "fail":
      return { type: "TaskFailed", ...closing };
    case "dead-letter":
      return { type: "TaskDeadLettered", ...closing, reason: retry.reason, ...revoked };
    case "retry":
      return {
        type: "AttemptFailed",
        ...closing,
        ...(retry.retryAt === undefined ? {} : { retryAt: retry.retryAt }),
        ...revoked,
      };
  }
}

function released(attempt: OpenAttempt, reason: "confirmed" | "agent-gone"): Event {
  return {
    type: "AttemptReleased",
    task: attempt.task,
    attempt: attempt.attempt,
    agent: attempt.agent,
    reason,
  };
}

/** A repeated report of the recorded outcome is `ok`; of anything else that is known to have ended, `stale`. */
function replyToClosed(state: SwarmState, { task, attempt, agent, outcome }: ReportResult): Reply {
  const live = state.taskById.get(task);
  if (live !== undefined)
    return live.open?.attempt === attempt && live.open.agent !== agent
      ? { kind: "stale-token" }
      : closedReply(live, attempt);
  const ended = state.endedById.get(task);
  if (ended === undefined) return { kind: "gone" };
  const isRecorded =
    ended.completedBy === agent && ended.attempts === attempt && outcome.kind === "completed";
  return isRecorded ? { kind: "ok" } : { kind: "stale" };
}

function closedReply(row: { readonly attempt: number }, attempt: AttemptNumber): Reply {
  return attempt <= row.attempt ? { kind: "stale" } : { kind: "gone" };
}
