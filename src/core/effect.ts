// Effects outside the state because of an event: messages to agents and clients. An effect is read from the state right
// after the event was applied, held back until its batch is committed, and safe to repeat.

import { InvariantError } from "../errors.ts";
import type { AgentId, Incarnation, ProjectId, SlotHandle, TaskId, TaskRef } from "../ids.ts";
import { NO_PROJECT } from "../ids.ts";
import type { BareEvent, Event, SlotWaitEndReason, TaskSpec } from "../state/event.ts";
import type { OpenAttempt, SwarmState } from "../state/state.ts";
import { type BeyondGrant, refusalOfReturn } from "./grant-rules.ts";

export type Effect =
  /** Without a specification, the attempt was revoked before the arrival: only the number still counts. */
  | {
      readonly kind: "assign";
      readonly attempt: OpenAttempt;
      readonly spec: TaskSpec | undefined;
      /** From the entry into the queue to the assignment. */
      readonly waitedMs: number;
    }
  | { readonly kind: "revoke"; readonly attempt: OpenAttempt; readonly reason: string }
  | {
      readonly kind: "notify";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly what: "drain" | "undrain" | "fenced" | "rejoin";
      /** With `rejoin`: the agent may not join again as it is. */
      readonly refusal?: BeyondGrant;
    }
  /** Slots requested by the agent are granted. */
  | {
      readonly kind: "slots-granted";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
    }
  /** Slots were taken back from the agent. */
  | {
      readonly kind: "slots-revoked";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
      readonly reason: "idle";
    }
  /** The agent's waits have ended without slots. */
  | {
      readonly kind: "slot-waits-ended";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
      readonly reason: SlotWaitEndReason;
    }
  /** Clients awaiting the task are notified of the end. */
  | {
      readonly kind: "ended";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly event: Event;
      readonly attempts: number;
      readonly round: number;
      /** The result that `event` leaves out. In memory only: a new leader does not have it. */
      readonly unkeptResult?: string;
    };

/**
 * Adds the messages to agents and clients after `event`, just applied to `state`.
 * @param revokedOpen the attempt revoked by the event, known only to the state before
 * @param unkeptResult the decision's result, if the journal does not keep it
 */
export function addEffects(
  effects: Effect[],
  state: SwarmState,
  event: Event,
  {
    revokedOpen,
    unkeptResult,
  }: { readonly revokedOpen?: OpenAttempt | undefined; readonly unkeptResult?: string | undefined },
): void {
  switch (event.type) {
    case "TaskAssigned":
      effects.push(assignEffect(state, event));
      return;
    case "TaskCompleted": {
      const ended = endedEffect(state, event);
      effects.push(unkeptResult === undefined ? ended : { ...ended, unkeptResult });
      return;
    }
    case "TaskFailed":
      effects.push(endedEffect(state, event));
      return;
    case "TaskDeadLettered":
    case "TaskCancelled":
    case "TaskExpired":
      if (revokedOpen !== undefined) effects.push(revokeEffect(revokedOpen, reasonOf(event)));
      effects.push(endedEffect(state, event));
      return;
    case "AttemptFailed":
      if (revokedOpen !== undefined) effects.push(revokeEffect(revokedOpen, reasonOf(event)));
      return;
    case "AgentDrained":
    case "AgentUndrained": {
      const { agent } = event;
      const row = state.agentById.get(agent);
      if (row === undefined) return;
      const what = event.type === "AgentDrained" ? "drain" : "undrain";
      effects.push({ kind: "notify", agent, incarnation: row.incarnation, what });
      return;
    }
    case "SlotGranted": {
      if (event.receipt.by === "free") return; // the reply to the request reports the grant
      const { agent, incarnation, handle } = event;
      effects.push({ kind: "slots-granted", agent, incarnation, handles: [handle] });
      return;
    }
    case "SlotReleased": {
      const { agent, incarnation, handle, reason } = event;
      if (reason === "idle")
        effects.push({ kind: "slots-revoked", agent, incarnation, handles: [handle], reason });
      return;
    }
    case "SlotWaitEnded": {
      const { agent, incarnation, handles, reason } = event;
      if (reason !== "timed-out" && reason !== "above-capacity" && reason !== "on-hold") return; // the agent ended it, or is gone
      effects.push({ kind: "slot-waits-ended", agent, incarnation, handles, reason });
      return;
    }
    case "AgentLeft": {
      const { agent, incarnation, reason } = event;
      if (reason === "left") return;
      const refusal = reason === "forbidden" ? refusalOfReturn(state, event) : undefined;
      effects.push({
        kind: "notify",
        agent,
        incarnation,
        what: reason === "fenced" ? "fenced" : "rejoin",
        ...(refusal === undefined ? {} : { refusal }),
      });
      return;
    }
    default:
  }
}

/** The attempt to be revoked by `event`; read before the event is applied. */
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

/** Every assignment without a confirmed arrival, to be repeated by a new leader. */
export function unconfirmedAssignments(state: SwarmState): Effect[] {
  const effects: Effect[] = [];
  for (const agent of state.agentById.values()) {
    for (const attempt of agent.open.values()) {
      if (attempt.state !== "running") effects.push(...sentAgain(state, attempt));
    }
  }
  return effects;
}

/** Every held slot, by agent: a new leader repeats all grants, because it cannot know which arrived. */
export function standingGrants(state: SwarmState): Effect[] {
  return [...state.slotsByAgent].flatMap(([agent, slots]): Effect[] => {
    const held = [...slots.values()].filter((slot) => slot.state === "held");
    const [first] = held;
    if (first === undefined) return [];
    const { incarnation } = first;
    return [{ kind: "slots-granted", agent, incarnation, handles: held.map(({ handle }) => handle) }];
  });
}

/**
 * Messages about an attempt possibly unknown to the agent. A revoked attempt is assigned once more, as revoked. So no
 * number is missing, and the agent can confirm that the attempt does not run.
 */
export function sentAgain(state: SwarmState, attempt: OpenAttempt): Effect[] {
  if (attempt.state !== "revoked") return [assignEffect(state, attempt)];
  const reason = "the attempt is no longer yours";
  return [
    { kind: "revoke", attempt, reason },
    { kind: "assign", attempt, spec: undefined, waitedMs: 0 },
  ];
}

/** The project of an event, or `_`. */
export function projectOf(event: BareEvent): ProjectId | typeof NO_PROJECT {
  if (event.type === "TaskSubmitted" || event.type === "TaskRetried") return event.task.project;
  return ("project" in event ? event.project : undefined) ?? NO_PROJECT;
}

export function assignEffect(state: SwarmState, ref: TaskRef): Effect {
  const row = state.taskById.get(ref);
  if (row?.open === undefined) throw new InvariantError(`task ${ref.task} has no open attempt`);
  const { open: attempt, spec, queuedAt } = row;
  return { kind: "assign", attempt, spec, waitedMs: attempt.assignedAt - queuedAt };
}

function endedEffect(state: SwarmState, event: Event & TaskRef): Extract<Effect, { kind: "ended" }> {
  const { project, task } = event;
  const ended = state.endedById.viewOf(event);
  if (ended === undefined) throw new InvariantError(`task ${task} has not ended`);
  return { kind: "ended", project, task, event, attempts: ended.attempts, round: ended.round };
}

function revokeEffect(attempt: OpenAttempt, reason: string): Effect {
  return { kind: "revoke", attempt, reason };
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
