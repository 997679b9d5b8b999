// How a task ended, as clients are told: from the event that ended it.

import type { TaskRef } from "../../ids.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { Event } from "../../state/event.ts";

/** The outcome in a terminal event; undefined for any other.
 *  @param ended the task's last attempt number, and the round that ended */
export function outcomeOf(
  event: Event,
  ended: { readonly attempts: number; readonly round: number },
): Outcome | undefined {
  const place = placeOf(ended);
  switch (event.type) {
    case "TaskCompleted":
      return {
        ...taskOf(event),
        state: "completed",
        ...place,
        agent: event.agent,
        result: event.result,
        ...(event.encoding === undefined ? {} : { encoding: event.encoding }),
        ...(event.tokens === undefined ? {} : { tokens: event.tokens }),
        latencyMs: event.latencyMs,
      };
    case "TaskFailed":
      return { ...failureOf(event, place), state: "failed" };
    case "TaskDeadLettered":
      return { ...failureOf(event, place), state: "dead-lettered", reason: event.reason };
    case "TaskCancelled":
      return { ...taskOf(event), state: "cancelled", ...place, reason: event.reason };
    case "TaskExpired":
      return { ...taskOf(event), state: "expired", ...place, reason: "deadline" };
    default:
      return undefined;
  }
}

/** The round of a task that was never retried goes without saying. */
export function placeOf({ attempts, round }: { readonly attempts: number; readonly round: number }) {
  return { attempts, ...(round === 1 ? {} : { round }) };
}

function taskOf({ project, task }: TaskRef): TaskRef {
  return { project, task };
}

function failureOf(
  event: Extract<Event, { type: "TaskFailed" | "TaskDeadLettered" }>,
  place: ReturnType<typeof placeOf>,
) {
  return {
    ...taskOf(event),
    ...place,
    agent: event.agent,
    failureClass: event.failure.class,
    error: event.failure.error,
    latencyMs: event.latencyMs,
  };
}
