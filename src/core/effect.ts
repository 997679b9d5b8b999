// What is to be done in the world because of an event: to whom something is said. Taken from the state right
// after the event was applied, held back until its batch is committed, and safe to repeat.

import { assert } from "../assert.ts";
import type { AgentId, Incarnation, ProjectId, SlotHandle, TaskId, TaskRef } from "../ids.ts";
import { NO_PROJECT } from "../ids.ts";
import type { Event, SlotWaitEndReason, TaskSpec } from "../state/event.ts";
import type { OpenAttempt, SwarmState } from "../state/state.ts";

export type Effect =
  /** Without a specification the attempt was revoked before it arrived: only its number still counts. */
  | { readonly kind: "assign"; readonly attempt: OpenAttempt; readonly spec: TaskSpec | undefined }
  | { readonly kind: "revoke"; readonly attempt: OpenAttempt; readonly reason: string }
  | {
      readonly kind: "tell";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly what: "drain" | "undrain" | "fenced" | "rejoin";
    }
  /** Slots that the agent waits for are its own now. */
  | {
      readonly kind: "slots-granted";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
    }
  /** The agent waits for them no longer, and has none of them. */
  | {
      readonly kind: "slot-waits-ended";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
      readonly reason: SlotWaitEndReason;
    }
  /** Whoever awaits the task is told how it ended. */
  | {
      readonly kind: "ended";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly event: Event;
      readonly attempts: number;
      readonly round: number;
    };

/** Says what `event`, just applied to `state`, obliges the coordinator to tell agents and clients; undefined when
 *  nothing. `revokedOpen` is the attempt the event revoked, which only the state before it knew. */
export function effectOf(
  state: SwarmState,
  event: Event,
  revokedOpen: OpenAttempt | undefined,
): readonly Effect[] {
  switch (event.type) {
    case "TaskAssigned":
      return [assignEffect(state, event)];
    case "TaskCompleted":
    case "TaskFailed":
      return [endedEffect(state, event)];
    case "TaskDeadLettered":
    case "TaskCancelled":
    case "TaskExpired":
      return [...revokeEffect(revokedOpen, reasonOf(event)), endedEffect(state, event)];
    case "AttemptFailed":
      return revokeEffect(revokedOpen, reasonOf(event));
    case "AgentDrained":
    case "AgentUndrained":
      return tell(state, event.agent, event.type === "AgentDrained" ? "drain" : "undrain");
    case "SlotGranted": {
      if (event.receipt.by === "free") return []; // the answer to whoever asked says so
      const { agent, incarnation, handle } = event;
      return [{ kind: "slots-granted", agent, incarnation, handles: [handle] }];
    }
    case "SlotWaitEnded": {
      if (event.reason !== "timed-out" && event.reason !== "above-capacity") return []; // the agent ended it, or is gone
      const { agent, incarnation, handles, reason } = event;
      return [{ kind: "slot-waits-ended", agent, incarnation, handles, reason }];
    }
    case "AgentLeft":
      if (event.reason === "left") return [];
      return [
        {
          kind: "tell",
          agent: event.agent,
          incarnation: event.incarnation,
          what: event.reason === "fenced" ? "fenced" : "rejoin",
        },
      ];
    default:
      return [];
  }
}

/** The attempt that `event` is about to revoke, looked up before it is applied. */
export function revokedBy(state: SwarmState, event: Event): OpenAttempt | undefined {
  switch (event.type) {
    case "TaskCancelled":
    case "TaskExpired":
      return state.taskById.get(event)?.open;
    case "AttemptFailed":
    case "TaskDeadLettered":
      return event.revoked === true ? state.taskById.get(event)?.open : undefined;
    default:
      return undefined;
  }
}

/** Every assignment of which its agent has not confirmed the arrival: sent again on taking over. */
export function unconfirmedAssignments(state: SwarmState): Effect[] {
  const effects: Effect[] = [];
  for (const agent of state.agentById.values()) {
    for (const attempt of agent.open.values()) {
      if (attempt.state !== "running") effects.push(...sentAgain(state, attempt));
    }
  }
  return effects;
}

/** Every slot that is held, by agent: said again on taking over, for it is not known which grants arrived. */
export function standingGrants(state: SwarmState): Effect[] {
  return [...state.slotsByAgent].flatMap(([agent, slots]): Effect[] => {
    const held = [...slots.values()].filter((slot) => slot.state === "held");
    const [first] = held;
    if (first === undefined) return [];
    const { incarnation } = first;
    return [{ kind: "slots-granted", agent, incarnation, handles: held.map(({ handle }) => handle) }];
  });
}

/** What tells an agent of an attempt it may not have heard of. A revoked one is assigned once more, as revoked, so
 *  that no number is missing, and the agent can confirm that it does not run. */
export function sentAgain(state: SwarmState, attempt: OpenAttempt): Effect[] {
  if (attempt.state !== "revoked") return [assignEffect(state, attempt)];
  const reason = "the attempt is no longer yours";
  return [
    { kind: "revoke", attempt, reason },
    { kind: "assign", attempt, spec: undefined },
  ];
}

/** The project an event belongs to, `_` when to none. */
export function projectOf(event: Event): ProjectId | typeof NO_PROJECT {
  if (event.type === "TaskSubmitted" || event.type === "TaskRetried") return event.task.project;
  return ("project" in event ? event.project : undefined) ?? NO_PROJECT;
}

export function assignEffect(state: SwarmState, ref: TaskRef): Effect {
  const row = state.taskById.get(ref);
  assert(row?.open !== undefined, `task ${ref.task} has the attempt that is announced`);
  return { kind: "assign", attempt: row.open, spec: row.spec };
}

function endedEffect(state: SwarmState, event: Event & TaskRef): Effect {
  const { project, task } = event;
  const ended = state.endedById.get(event);
  assert(ended !== undefined, `task ${task} has ended as is told`);
  return { kind: "ended", project, task, event, attempts: ended.attempts, round: ended.round };
}

function revokeEffect(attempt: OpenAttempt | undefined, reason: string): readonly Effect[] {
  return attempt === undefined ? [] : [{ kind: "revoke", attempt, reason }];
}

function tell(state: SwarmState, agent: AgentId, what: "drain" | "undrain"): readonly Effect[] {
  const row = state.agentById.get(agent);
  return row === undefined ? [] : [{ kind: "tell", agent, incarnation: row.incarnation, what }];
}

function reasonOf(event: Event): string {
  switch (event.type) {
    case "TaskCancelled":
      return "the task was cancelled";
    case "TaskExpired":
      return "the task's deadline passed";
    case "AttemptFailed":
    case "TaskDeadLettered":
      return event.failure.error;
    default:
      return "the attempt is no longer yours";
  }
}
