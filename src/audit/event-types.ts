// The types of events there are, for filters and help. The compiler holds the list to state/event.ts.

import { shown } from "../protocol/sentence.ts";
import type { EventType } from "../state/event.ts";
import { nearMisses } from "../state/near-miss.ts";

const known: Readonly<Record<EventType, true>> = {
  TermStarted: true,
  TermRenewed: true,
  TaskSubmitted: true,
  TaskRetried: true,
  TaskReleased: true,
  TaskRescheduled: true,
  TaskAssigned: true,
  TaskCompleted: true,
  AttemptFailed: true,
  TaskFailed: true,
  TaskDeadLettered: true,
  TaskCancelled: true,
  TaskExpired: true,
  AttemptReleased: true,
  TokensCharged: true,
  BudgetExceeded: true,
  AgentJoined: true,
  AssignmentsConfirmed: true,
  AgentFoundAhead: true,
  AgentLeft: true,
  AgentDrained: true,
  AgentUndrained: true,
  AgentUnresponsive: true,
  AgentResponsive: true,
  AgentSuspended: true,
  AgentReinstated: true,
  AgentForgotten: true,
  HoldPlaced: true,
  HoldElapsed: true,
  HoldEnded: true,
  PolicyChanged: true,
  ProjectConfigured: true,
  ProjectRemoved: true,
  KindConfigured: true,
  ResourceConfigured: true,
  ResourceRemoved: true,
  RateConfigured: true,
  RateRemoved: true,
  GrantConfigured: true,
  GrantRemoved: true,
  ProjectPaused: true,
  ProjectResumed: true,
  SwarmPaused: true,
  SwarmResumed: true,
  SlotAwaited: true,
  SlotGranted: true,
  SlotTouched: true,
  SlotReleased: true,
  SlotRefused: true,
  SlotCharged: true,
  SlotWaitEnded: true,
  AlphaTuned: true,
  TasksRefused: true,
  AuditTrimmed: true,
};

export const eventTypes = Object.keys(known) as readonly EventType[];

/** Error text for an unknown type, with the nearest known type; undefined for a known type. */
export function unknownEventType(type: string): string | undefined {
  if (Object.hasOwn(known, type)) return undefined;
  const near = nearMisses<string>(type, eventTypes);
  const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : `there are ${eventTypes.join(", ")}`;
  return `unknown event type ${shown(type)}; ${hint}`;
}
