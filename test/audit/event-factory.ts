// Events for tests of readers: an example of each type, complete, with overrides.

import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  type GroupId,
  incarnation,
  instant,
  kind,
  projectId,
  resourceName,
  slotHandle,
  taskId,
  term,
  token,
  userId,
} from "../../src/ids.ts";
import type { Event, EventOf, EventType, TaskSpec } from "../../src/state/event.ts";
import { defaultPolicy } from "../../src/state/policy.ts";
import type { Receipt } from "../../src/state/receipt.ts";

export function aSpec(overrides: Partial<TaskSpec> = {}): TaskSpec {
  return {
    id: taskId("t1"),
    kind: kind("count"),
    project: projectId("acme"),
    user: userId("ann"),
    weight: 1,
    priority: 100,
    payload: "hello",
    maxAttempts: 3,
    timeoutMs: 60_000,
    ...overrides,
  };
}

export function aReceipt(overrides: Partial<Receipt> = {}): Receipt {
  return {
    feasible: 2,
    candidates: [
      { agent: agentId("a1"), score: 0.9, successRate: 0.9, load: 0 },
      { agent: agentId("a2"), score: 0.4, successRate: 0.8, load: 1 },
    ],
    ineligible: { offline: 1 },
    decidedBy: "score",
    queue: "count",
    waiting: 3,
    waitedMs: 12,
    ...overrides,
  };
}

const named = { project: projectId("acme"), task: taskId("t1") };
const attempt = { ...named, attempt: attemptNumber(1), agent: agentId("a1") };
const failure = { class: "failed", error: "exit 1" } as const;
const session = { agent: agentId("a1"), incarnation: incarnation("i1") };
const slotLease = {
  ...session,
  handle: slotHandle("h1"),
  resources: [resourceName("gpt-4o")],
  weightThousandths: 2_500,
};

/** An example of each type: the compiler ensures that none is missing. */
export const samples: { readonly [Type in EventType]: EventOf<Type> } = {
  TermStarted: { type: "TermStarted", term: term(2), leader: "c1", opened: "o1", timeoutMs: 3_000 },
  TermRenewed: { type: "TermRenewed" },
  TaskSubmitted: { type: "TaskSubmitted", task: aSpec(), hash: "h" },
  TaskRetried: { type: "TaskRetried", task: aSpec(), hash: "h", round: 2 },
  TaskReleased: { type: "TaskReleased", ...named },
  TaskRescheduled: { type: "TaskRescheduled", ...named, notBefore: instant(60_000) },
  TaskAssigned: {
    type: "TaskAssigned",
    ...attempt,
    ...session,
    number: assignmentNumber(7),
    token: token("1.7"),
    receipt: aReceipt(),
  },
  TaskCompleted: { type: "TaskCompleted", ...attempt, result: "5", latencyMs: 1_234, tokens: 9 },
  AttemptFailed: { type: "AttemptFailed", ...attempt, failure, latencyMs: 5, retryAt: instant(60_000) },
  TaskFailed: { type: "TaskFailed", ...attempt, failure: { ...failure, class: "invalid" }, latencyMs: 5 },
  TaskDeadLettered: {
    type: "TaskDeadLettered",
    ...attempt,
    reason: "attempts-exhausted",
    failure,
    latencyMs: 5,
  },
  TaskCancelled: { type: "TaskCancelled", ...named, reason: "requested" },
  TaskExpired: { type: "TaskExpired", ...named },
  AttemptReleased: { type: "AttemptReleased", ...attempt, reason: "confirmed" },
  AgentJoined: { type: "AgentJoined", ...session, kinds: [kind("count"), kind("digest")], maxConcurrent: 4 },
  AssignmentsConfirmed: { type: "AssignmentsConfirmed", agent: agentId("a1"), upTo: assignmentNumber(7) },
  AgentFoundAhead: { type: "AgentFoundAhead", agent: agentId("a1"), upTo: assignmentNumber(9) },
  AgentLeft: { type: "AgentLeft", ...session, reason: "lapsed" },
  AgentDrained: { type: "AgentDrained", agent: agentId("a1") },
  AgentUndrained: { type: "AgentUndrained", agent: agentId("a1") },
  AgentUnresponsive: { type: "AgentUnresponsive", agent: agentId("a1") },
  AgentResponsive: { type: "AgentResponsive", agent: agentId("a1") },
  AgentSuspended: {
    type: "AgentSuspended",
    agent: agentId("a1"),
    kind: kind("count"),
    until: instant(60_000),
    step: 1,
  },
  AgentReinstated: { type: "AgentReinstated", agent: agentId("a1"), kind: kind("count") },
  AgentForgotten: { type: "AgentForgotten", agent: agentId("a1") },
  HoldPlaced: { type: "HoldPlaced", on: "type", name: "claude", until: instant(60_000), by: "operator" },
  HoldElapsed: { type: "HoldElapsed", on: "type", name: "claude" },
  HoldEnded: { type: "HoldEnded", on: "type", name: "claude", reason: "probed" },
  PolicyChanged: { type: "PolicyChanged", policy: defaultPolicy },
  ProjectConfigured: {
    type: "ProjectConfigured",
    project: projectId("acme"),
    settings: {
      creditWeight: 2,
      budget: { tokens: 1_000, windowMs: 60_000, mode: "wait" },
      queueMax: 10,
    },
  },
  ProjectRemoved: { type: "ProjectRemoved", project: projectId("acme") },
  KindConfigured: {
    type: "KindConfigured",
    kind: kind("count"),
    settings: { importance: 2, cheaper: kind("guess") },
  },
  ResourceConfigured: {
    type: "ResourceConfigured",
    resource: resourceName("gpt-4o"),
    settings: { slots: 3, maxWaiters: 100 },
  },
  ResourceRemoved: { type: "ResourceRemoved", resource: resourceName("gpt-4o") },
  RateConfigured: {
    type: "RateConfigured",
    agentType: "claude",
    settings: { window: "per_minute", tokensMax: 1_000, sliding: true },
  },
  RateRemoved: { type: "RateRemoved", agentType: "claude", window: "per_minute" },
  GrantConfigured: {
    type: "GrantConfigured",
    group: "gpu" as GroupId,
    grant: { kinds: [kind("count")], projects: [projectId("acme")], maxConcurrent: 4 },
  },
  GrantRemoved: { type: "GrantRemoved", group: "gpu" as GroupId },
  ProjectPaused: { type: "ProjectPaused", project: projectId("acme") },
  ProjectResumed: { type: "ProjectResumed", project: projectId("acme") },
  SwarmPaused: { type: "SwarmPaused" },
  SwarmResumed: { type: "SwarmResumed" },
  TokensCharged: {
    type: "TokensCharged",
    ...attempt,
    incarnation: session.incarnation,
    token: token("2.1"),
    project: projectId("acme"),
    tokens: 700,
  },
  BudgetExceeded: {
    type: "BudgetExceeded",
    project: projectId("acme"),
    spent: 900,
    reserved: 200,
    budget: { tokens: 1_000, windowMs: 3_600_000, mode: "alert" },
  },
  SlotAwaited: { type: "SlotAwaited", ...slotLease, deadline: instant(60_000) },
  SlotGranted: {
    type: "SlotGranted",
    ...slotLease,
    receipt: {
      by: "load",
      waiting: 3,
      waitedMs: 12,
      resource: resourceName("gpt-4o"),
      tick: 7,
      load: 0.9,
      runnerUp: { agent: agentId("a2"), load: 0.4 },
    },
  },
  SlotReleased: {
    type: "SlotReleased",
    ...session,
    handle: slotHandle("h1"),
    resources: [resourceName("gpt-4o")],
    reason: "released",
  },
  SlotTouched: { type: "SlotTouched", ...session, handle: slotHandle("h1") },
  SlotRefused: {
    type: "SlotRefused",
    agent: session.agent,
    handle: slotHandle("h1"),
    resource: resourceName("gpt-4o"),
    reason: "429",
  },
  SlotCharged: {
    type: "SlotCharged",
    agent: session.agent,
    handle: slotHandle("h1"),
    project: projectId("acme"),
    tokens: 900,
    usage: { tokens: 900, inputTokens: 700, outputTokens: 200, partial: true },
  },
  SlotWaitEnded: { type: "SlotWaitEnded", ...session, handles: [slotHandle("h1")], reason: "timed-out" },
  AlphaTuned: {
    type: "AlphaTuned",
    resource: resourceName("gpt-4o"),
    tick: 7,
    from: 0.25,
    to: 0.24,
    reason: "uneven-waits",
    measured: 0.71,
  },
  AuditTrimmed: { type: "AuditTrimmed", firstIdx: batchIndex(40), reason: "retention" },
  TasksRefused: { type: "TasksRefused", project: projectId("acme"), reason: "project-queue-full", count: 3 },
};

/** A batch per event, 1 ms apart. */
export function journaled(...events: readonly Event[]): JournaledEvent<Event>[] {
  return events.map((event, at) => ({ idx: at + 1, term: 1, at: (at + 1) * 1_000, event }));
}
