// How a task ended, as clients are told: from the event that ended it.

import type { Event } from "../../core/event.ts";
import type { Outcome } from "../../protocol/schemas.ts";

/** The outcome in a terminal event; undefined for any other. @param attempts the task's last attempt number */
export function outcomeOf(event: Event, attempts: number): Outcome | undefined {
  switch (event.type) {
    case "TaskCompleted":
      return {
        task: event.task,
        state: "completed",
        attempts,
        agent: event.agent,
        result: event.result,
        ...(event.encoding === undefined ? {} : { encoding: event.encoding }),
        ...(event.tokens === undefined ? {} : { tokens: event.tokens }),
        latencyMs: event.latencyMs,
      };
    case "TaskFailed":
      return { ...failureOf(event, attempts), state: "failed" };
    case "TaskDeadLettered":
      return { ...failureOf(event, attempts), state: "dead-lettered", reason: event.reason };
    case "TaskCancelled":
      return { task: event.task, state: "cancelled", attempts, reason: event.reason };
    case "TaskExpired":
      return { task: event.task, state: "expired", attempts, reason: "deadline" };
    default:
      return undefined;
  }
}

function failureOf(event: Extract<Event, { type: "TaskFailed" | "TaskDeadLettered" }>, attempts: number) {
  return {
    task: event.task,
    attempts,
    agent: event.agent,
    failureClass: event.failure.class,
    error: event.failure.error,
    latencyMs: event.latencyMs,
  };
}
