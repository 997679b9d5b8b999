// The types of events there are, for flags and help. The compiler holds the list to core/event.ts.

import type { EventType } from "../core/event.ts";

const known: Readonly<Record<EventType, true>> = {
  TermStarted: true,
  TermRenewed: true,
  TermEnded: true,
  TaskSubmitted: true,
  TaskReleased: true,
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
  AgentLeft: true,
  AgentDrained: true,
  AgentUndrained: true,
  AgentUnresponsive: true,
  AgentResponsive: true,
  AgentSuspended: true,
  AgentReinstated: true,
  AgentForgotten: true,
  PolicyChanged: true,
  ProjectConfigured: true,
  KindConfigured: true,
  ResourceConfigured: true,
  RateConfigured: true,
  RateRemoved: true,
  ProjectPaused: true,
  ProjectResumed: true,
  SwarmPaused: true,
  SwarmResumed: true,
  TasksRefused: true,
};

export const eventTypes = Object.keys(known) as readonly EventType[];
