// The inverse of `decide`: the command behind the events of a batch. A journal holds events and no commands, but what a
// command brought from outside is in its events: a submitted task, a report, the assignments that reached an agent.
// Several commands may give the same events, and then any of them will do.
//
// Not inputs: due timers, assignments, grants to waiters, and reactions. The step decides those, and a replay compares
// them (reproduction.ts).

import { unreachable } from "../assert.ts";
import type { AgentId, Incarnation, Instant, ResourceName } from "../ids.ts";
import { type AssignmentNumber, attemptKey } from "../ids.ts";
import { limits } from "../limits.ts";
import { findOpen } from "../state/agent-rows.ts";
import { unchargedKey } from "../state/budget-rows.ts";
import type { Event, EventOf, LeaveReason, SlotUse } from "../state/event.ts";
import type { SlotRefusal } from "../state/hold.ts";
import { findSlotLease, slotLeasesOf } from "../state/slot-rows.ts";
import type { AgentRow, SwarmState } from "../state/state.ts";
import type { Writable } from "../state/writable.ts";
import type {
  Command,
  CommandOf,
  CompletedOutcome,
  HeldAttempt,
  ListedSlots,
  ReportedOutcome,
} from "./command.ts";
import { departureErrors } from "./decide-agent.ts";
import { jitterOf } from "./retry.ts";
import type { PolicyPatch, ResourcePatch } from "./settings-patch.ts";

/** The cause of an event: a command, the timers that were due, or the planner. */
export type Cause = Command | "due" | "plan";

/**
 * The cause of the event at `from` in a batch, by the state before the event.
 * @returns undefined if the event can only be a reaction, or contradicts the state
 */
export function causeOf(
  state: SwarmState,
  events: readonly Event[],
  { from, at }: { readonly from: number; readonly at: Instant },
): Cause | undefined {
  const event = events[from];
  if (event === undefined) return undefined;
  switch (event.type) {
    case "TaskAssigned":
      return "plan";
    case "TaskReleased":
    case "TaskExpired":
      return "due";
    case "AgentForgotten":
      return joinBehind(state, events, from + 1) ?? "due";
    case "TermStarted":
      return { ...event, type: "StartTerm" };
    case "TermRenewed":
      return { type: "RenewTerm" };
    case "TasksRefused":
      return { ...event, type: "SummarizeRefusals" };
    case "AuditTrimmed":
      return { ...event, type: "TrimAudit" };
    case "TaskSubmitted":
      return { type: "SubmitTask", task: event.task, hash: event.hash };
    case "TaskRetried":
      return retryOf(event);
    case "TaskCancelled":
      return cancelOf(state, event);
    case "TaskRescheduled":
      return rescheduleOf(state, event);
    case "TaskCompleted":
    case "AttemptFailed":
    case "TaskFailed":
    case "TaskDeadLettered":
      return causeOfEnd(state, event, events, from);
    case "AttemptReleased":
      return causeOfRelease(state, event, events, from);
    case "TokensCharged":
      return lateReportOf(state, event);
    case "AgentJoined":
      return joinOf(state, event, events, from);
    case "AgentLeft":
    case "AssignmentsConfirmed":
    case "AgentFoundAhead":
    case "AgentResponsive":
      return event.type === "AgentLeft"
        ? departureOf(state, event.agent, events, from)
        : heartbeatOf(state, event.agent, events, from);
    case "AgentDrained":
      return { type: "DrainAgent", agent: event.agent };
    case "AgentUndrained":
      return { type: "UndrainAgent", agent: event.agent };
    case "AgentUnresponsive":
      return ofAgent(state, event.agent, ({ incarnation }) => ({
        type: "MarkUnresponsive",
        agent: event.agent,
        incarnation,
      }));
    case "SlotAwaited":
    case "SlotGranted":
      return causeOfSlots(event, at);
    case "SlotTouched":
      return { ...event, type: "TouchSlots" };
    case "SlotCharged":
      return releaseAfterEnd(state, event);
    case "SlotRefused": {
      const { agent, handle, resource, reason } = event;
      return lateRefusalOf(state, { agent, handle }, { resource, ...said(reason) }, events[from + 1]);
    }
    case "SlotReleased":
    case "SlotWaitEnded":
      return causeOfSlotEnd(state, event, events, from);
    case "PolicyChanged":
      return { type: "SetPolicy", patch: policyPatch(state, event) };
    case "ProjectConfigured": {
      const { maxConcurrent = null, budget = null, results = "whole" } = event.settings;
      const { priorityRange = null, weightRange = null, user = null, inboxUsers = null } = event.settings;
      const ofSubmitters = { priorityRange, weightRange, user, inboxUsers };
      return {
        type: "SetProject",
        project: event.project,
        patch: { ...event.settings, maxConcurrent, budget, results, ...ofSubmitters },
      };
    }
    case "ProjectRemoved":
      return { type: "RemoveProject", project: event.project };
    case "KindConfigured": {
      const { cheaper = null, cheaperType = null } = event.settings;
      return { type: "SetKind", kind: event.kind, patch: { ...event.settings, cheaper, cheaperType } };
    }
    case "ResourceConfigured":
      return { type: "SetResource", resource: event.resource, patch: resourcePatch(state, event) };
    case "ResourceRemoved":
      return { type: "RemoveResource", resource: event.resource };
    case "RateConfigured":
      return { type: "SetRate", agentType: event.agentType, patch: event.settings };
    case "RateRemoved":
      return { type: "RemoveRate", agentType: event.agentType, window: event.window };
    case "GrantConfigured":
      return { type: "SetGrant", group: event.group, grant: event.grant };
    case "GrantRemoved":
      return { type: "RemoveGrant", group: event.group };
    case "ProjectPaused":
      return { type: "Pause", project: event.project };
    case "ProjectResumed":
      return { type: "Resume", project: event.project };
    case "SwarmPaused":
      return { type: "Pause" };
    case "SwarmResumed":
      return { type: "Resume" };
    case "HoldPlaced":
      if (event.by === "operator") return placeHoldOf(event);
      if (event.handle !== undefined) return causeOfLateHold(state, event, events[next(events, from)]);
      // A report places its holds before the attempt ends, or the slots are released.
      return causeOf(state, events, { from: next(events, from), at });
    case "HoldElapsed":
      return "due";
    case "HoldEnded":
      if (event.reason === "trusted") return "due";
      if (event.reason === "operator") return { type: "EndHold", on: event.on, name: event.name };
      return event.reason === "displaced" ? causeOf(state, events, { from: from + 1, at }) : undefined;
    case "AlphaTuned":
    case "BudgetExceeded":
    case "AgentSuspended":
    case "AgentReinstated":
      return undefined; // only ever reactions
    default:
      return unreachable(event);
  }
}

/** Where the next event stands that is no reaction. */
function next(events: readonly Event[], from: number): number {
  let at = from + 1;
  for (let event = events[at]; event !== undefined && isReaction(event); event = events[at]) at += 1;
  return at;
}

/** Whether an event follows another event of its batch by rule, be it of the same decision. */
function isReaction(event: Event): boolean {
  switch (event.type) {
    case "SlotGranted":
      return event.receipt.by !== "free";
    case "SlotWaitEnded":
      return event.reason === "on-hold";
    case "AttemptFailed":
      // A revoked attempt whose time ended in the wait for a resource names the resource.
      return event.failure.class === "refused" && event.revoked === true && event.refusal === undefined;
    case "AlphaTuned":
    case "BudgetExceeded":
    case "AgentSuspended":
    case "AgentReinstated":
      return true;
    default:
      return false;
  }
}

// --- holds ------------------------------------------------------------------------------------------

function placeHoldOf({ on, name, until }: EventOf<"HoldPlaced">): Command {
  return { type: "PlaceHold", on, name, until };
}

// --- tasks ------------------------------------------------------------------------------------------

function retryOf({ task, round }: EventOf<"TaskRetried">): Command {
  return { type: "RetryTask", project: task.project, task: task.id, round, spec: task };
}

function cancelOf(state: SwarmState, event: EventOf<"TaskCancelled">): Command | undefined {
  const row = state.taskById.get(event);
  const { project, task } = event;
  return row === undefined ? undefined : { type: "CancelTask", project, task, round: row.round };
}

function rescheduleOf(state: SwarmState, event: EventOf<"TaskRescheduled">): Command | undefined {
  const row = state.taskById.get(event);
  const { project, task, notBefore } = event;
  return row === undefined
    ? undefined
    : { type: "RescheduleTask", project, task, round: row.round, notBefore };
}

type AttemptEnd = EventOf<"TaskCompleted" | "AttemptFailed" | "TaskFailed" | "TaskDeadLettered">;

function causeOfEnd(
  state: SwarmState,
  event: AttemptEnd,
  events: readonly Event[],
  from: number,
): Cause | undefined {
  if (event.type === "TaskCompleted") {
    const { result = "", resultDigest, encoding } = event;
    const outcome: Writable<CompletedOutcome> = { kind: "completed", result };
    if (resultDigest !== undefined) outcome.digest = resultDigest;
    if (encoding !== undefined) outcome.encoding = encoding;
    return reportOf(state, event, outcome, 0);
  }
  const { failure } = event;
  switch (failure.class) {
    case "timed-out":
      return "due";
    case "lost":
      return isDeparture(failure.error)
        ? departureOf(state, event.agent, events, from)
        : heartbeatOf(state, event.agent, events, from);
    case "stalled": {
      const { project, task, attempt } = event;
      return { type: "StallAttempt", project, task, attempt, jitter: retryJitter(state, event) };
    }
    case "revoked": {
      const { project, task, attempt } = event;
      return { type: "RevokeAttempt", project, task, attempt };
    }
    case "aborted":
      return reportOf(state, event, { kind: "revoked" }, retryJitter(state, event));
    case "infrastructure":
    case "refused": {
      if (event.type !== "TaskFailed" && event.revoked === true) return isReaction(event) ? undefined : "due";
      const { error } = failure;
      const refusal = "refusal" in event ? event.refusal : undefined;
      const outcome = {
        kind: "infrastructure",
        error,
        ...(refusal === undefined ? {} : { refusal }),
      } as const;
      return reportOf(state, event, outcome, retryJitter(state, event));
    }
    default:
      return reportOf(state, event, { kind: failure.class, error: failure.error }, retryJitter(state, event));
  }
}

function reportOf(
  state: SwarmState,
  event: AttemptEnd | EventOf<"AttemptReleased">,
  outcome: ReportedOutcome,
  jitter: number,
): Command | undefined {
  const row = state.agentById.get(event.agent);
  const open = row === undefined ? undefined : findOpen(state, row, event);
  if (open === undefined) return undefined;
  const { project, task, attempt, agent, tokens } = event;
  return {
    type: "ReportResult",
    agent,
    incarnation: open.incarnation,
    project,
    task,
    attempt,
    token: open.token,
    outcome: tokens === undefined ? outcome : { ...outcome, tokens },
    jitter,
  };
}

function causeOfRelease(
  state: SwarmState,
  event: EventOf<"AttemptReleased">,
  events: readonly Event[],
  from: number,
): Command | undefined {
  if (event.reason === "confirmed") return reportOf(state, event, { kind: "revoked" }, 0);
  const { agent } = event;
  const isLeaving = events.slice(from).some((later) => isDepartureOf(agent, later));
  return isLeaving ? departureOf(state, agent, events, from) : heartbeatOf(state, agent, events, from);
}

/** A report without tokens is charged what was reserved, which no grant bounds. */
function lateReportOf(state: SwarmState, { tokens, ...event }: EventOf<"TokensCharged">): Command {
  const isReserved = state.uncharged.get(unchargedKey(event))?.tokensReserved === tokens;
  const outcome = { kind: "completed", result: "", ...(isReserved ? {} : { tokens }) } as const;
  return { ...event, type: "ReportResult", outcome, jitter: 0 };
}

/**
 * The jitter of the next timer, if it is the time-out of an attempt. Any jitter will do for other timers.
 * @param event the next event of the batch
 */
export function retryJitter(state: SwarmState, event: Event | undefined): number {
  if (event?.type !== "AttemptFailed" || event.retryAt === undefined) return 0;
  if (event.failure.class === "refused") return 0; // the hold gives the instant
  const row = state.taskById.get(event);
  if (row?.open === undefined) return 0;
  const failedAt = (row.open.assignedAt + event.latencyMs) as Instant;
  return jitterOf(row, event.failure.class, { failedAt, retryAt: event.retryAt });
}

// --- agents -----------------------------------------------------------------------------------------

function ofAgent(
  state: SwarmState,
  agent: AgentId,
  command: (row: AgentRow) => Command,
): Command | undefined {
  const row = state.agentById.get(agent);
  return row === undefined ? undefined : command(row);
}

function joinBehind(state: SwarmState, events: readonly Event[], from: number): Command | undefined {
  const event = events[from];
  return event?.type === "AgentJoined" ? newJoin(state, event) : undefined;
}

function newJoin(state: SwarmState, event: EventOf<"AgentJoined">): CommandOf<"JoinAgent"> {
  const row = state.agentById.get(event.agent);
  return { ...event, type: "JoinAgent", ...afterNewest(row), held: [], seen: 0 as AssignmentNumber };
}

/** Names the agent's newest session, as every accepted join does. */
export function afterNewest(row: AgentRow | undefined): Pick<CommandOf<"JoinAgent">, "after"> {
  return row === undefined ? {} : { after: row.incarnation };
}

/** A new session, or a session that is known and names what it holds. */
function joinOf(
  state: SwarmState,
  event: EventOf<"AgentJoined">,
  events: readonly Event[],
  from: number,
): Command {
  const row = state.agentById.get(event.agent);
  if (row?.online !== true || row.incarnation !== event.incarnation) return newJoin(state, event);
  const { held, seen } = claimsOf(state, row, events, from + 1);
  return { ...newJoin(state, event), held, seen };
}

const errorsOfDeparture: ReadonlySet<string> = new Set(Object.values(departureErrors));

function isDeparture(error: string): boolean {
  return errorsOfDeparture.has(error);
}

function isDepartureOf(agent: AgentId, event: Event): boolean {
  if (!("agent" in event) || event.agent !== agent) return false;
  if (event.type === "AgentLeft") return true;
  return "failure" in event && event.failure.class === "lost" && isDeparture(event.failure.error);
}

/** The end of a session, closed at once or over several batches. */
function departureOf(
  state: SwarmState,
  agent: AgentId,
  events: readonly Event[],
  from: number,
): Command | undefined {
  const row = state.agentById.get(agent);
  if (row === undefined) return undefined;
  const { incarnation } = row;
  const place = events.findIndex(
    (event, at) => at >= from && event.type === "AgentLeft" && event.agent === agent,
  );
  const left = events[place];
  const reason = left?.type === "AgentLeft" ? left.reason : reasonIn(agent, events, from);
  if (reason === "left") return { type: "LeaveAgent", agent, incarnation };
  if (reason === "forbidden") return grantInForce(state, row);
  if (reason === "lapsed") return { type: "LapseAgent", agent, incarnation };
  const join = place === -1 ? undefined : joinBehind(state, events, place + 1);
  return join ?? unknownJoin(row);
}

/** Goes on with the sessions that a changed grant or policy ended in the batch before. */
function grantInForce({ grants }: SwarmState, { group }: AgentRow): Command {
  const grant = grants.of(group);
  // A removed grant ends sessions only where agents are declared, and then the policy in force ends the same sessions.
  return grant === undefined
    ? { type: "SetPolicy", patch: { agents: "declared" } }
    : { type: "SetGrant", group, grant };
}

/** Only slots were ended so far: any reason will do. */
function reasonIn(agent: AgentId, events: readonly Event[], from: number): LeaveReason {
  const lost = events.find((event, at) => at >= from && isDepartureOf(agent, event));
  if (lost === undefined || !("failure" in lost)) return "lapsed";
  const reasons = Object.entries(departureErrors) as [LeaveReason, string][];
  return reasons.find(([, error]) => error === lost.failure.error)?.[0] ?? "lapsed";
}

/** A join whose agent is known only from a later batch: the session before ends over several batches. */
function unknownJoin(row: AgentRow): Command {
  const { id, group, kinds, maxConcurrent } = row;
  const incarnation = "not-yet-joined" as Incarnation;
  const profile = { agent: id, group, incarnation, ...afterNewest(row), kinds: [...kinds], maxConcurrent };
  return { type: "JoinAgent", ...profile, held: [], seen: 0 as AssignmentNumber };
}

// --- heartbeats -------------------------------------------------------------------------------------

function heartbeatOf(
  state: SwarmState,
  agent: AgentId,
  events: readonly Event[],
  from: number,
): Command | undefined {
  return ofAgent(state, agent, (row) => {
    const { held, seen, slots } = claimsOf(state, row, events, from);
    return { type: "ReconcileAgent", agent, incarnation: row.incarnation, held, seen, slots };
  });
}

interface Claims {
  readonly held: readonly HeldAttempt[];
  readonly seen: AssignmentNumber;
  readonly slots: ListedSlots;
}

/** What an agent claimed, by the events that its claim differed from the state. */
function claimsOf(state: SwarmState, row: AgentRow, events: readonly Event[], from: number): Claims {
  const lost = new Map<string, number>();
  const gone = new Set<string>();
  let confirmed: number | undefined;
  let isResponsive = false;
  const slots = slotLeasesOf(state, row.id);
  const numberOf = (event: LostEvent) => findOpen(state, row, event)?.number ?? 0;
  const held = slots.filter(({ state: of }) => of === "held");
  const placeOf = (event: LostEvent | EventOf<"SlotReleased">) =>
    event.type === "SlotReleased" ? held.findIndex(({ handle }) => handle === event.handle) : numberOf(event);
  for (const event of claimed(row.id, { events, from, placeOf })) {
    // A claim ends only attempts that the agent has seen: a departure in the same batch ended this one.
    if (isLoss(event) && numberOf(event) > (confirmed ?? row.confirmedNumber)) break;
    switch (event.type) {
      case "AgentFoundAhead":
      case "AssignmentsConfirmed":
        confirmed = event.upTo;
        break;
      case "AgentResponsive":
        isResponsive = true;
        break;
      case "SlotWaitEnded":
        for (const handle of event.handles) gone.add(handle);
        break;
      case "SlotReleased":
        gone.add(event.handle);
        break;
      default:
        lost.set(attemptKey(event), numberOf(event));
    }
  }
  const leases = slots.filter(({ handle }) => !gone.has(handle));
  const handlesOf = (wanted: "held" | "waiting") =>
    leases.filter((lease) => lease.state === wanted).map(({ handle }) => handle);
  return {
    held: [...row.open.values()].filter((open) => !lost.has(attemptKey(open))),
    seen: (confirmed ?? seenBy(row, isResponsive, lost.values())) as AssignmentNumber,
    slots: { held: handlesOf("held"), waiting: handlesOf("waiting") },
  };
}

/** Without a confirmation: as much as was confirmed before, or less if more would have made the agent responsive. */
function seenBy(row: AgentRow, isResponsive: boolean, lost: Iterable<number>): number {
  if (isResponsive) return row.lastNumber;
  return row.unresponsive ? Math.max(0, ...lost) : row.confirmedNumber;
}

type LostEvent = EventOf<"AttemptFailed" | "TaskDeadLettered" | "AttemptReleased">;

type ClaimedEvent =
  | EventOf<"AgentFoundAhead" | "AssignmentsConfirmed" | "AgentResponsive">
  | EventOf<"SlotWaitEnded" | "SlotReleased">
  | LostEvent;

function isLoss(event: ClaimedEvent): event is LostEvent {
  return (
    event.type === "AttemptFailed" || event.type === "TaskDeadLettered" || event.type === "AttemptReleased"
  );
}

interface ClaimSource {
  readonly events: readonly Event[];
  readonly from: number;
  /** Place of an attempt among the agent's attempts, or of a lease among the leases held before the claim. −1: no lease
   *  was held before. */
  readonly placeOf: (event: LostEvent | EventOf<"SlotReleased">) => number;
}

/**
 * The events of one claim, in the order of the decision about it. One claim ends attempts in the agent's order, and so
 * slot leases. What breaks the order, or was granted after the claim, belongs to a later input of the same batch.
 */
function* claimed(agent: AgentId, { events, from, placeOf }: ClaimSource): Generator<ClaimedEvent> {
  let last = 0;
  let lost = 0;
  let lastPlace = 0;
  for (const event of events.slice(from)) {
    if (isReaction(event)) continue;
    const part = partOfClaim(agent, event);
    const isNext = part !== undefined && (part.number > last || (part.number === last && part.isRepeated));
    if (!isNext || part === undefined) return;
    if (part.isRepeated) {
      const place = placeOf(part.event as LostEvent | EventOf<"SlotReleased">);
      if (place < (part.number === last ? lastPlace : 0)) return;
      lastPlace = place;
    }
    last = part.number;
    lost += part.number === LOST_PART ? 1 : 0;
    if (lost > limits.closuresPerCommandMax) return;
    yield part.event;
  }
}

const LOST_PART = 3;

function partOfClaim(
  agent: AgentId,
  event: Event,
): { readonly event: ClaimedEvent; readonly number: number; readonly isRepeated: boolean } | undefined {
  if (!("agent" in event) || event.agent !== agent) return undefined;
  const part = (number: number, isRepeated = false) => ({ event: event as ClaimedEvent, number, isRepeated });
  switch (event.type) {
    case "AgentFoundAhead":
      return part(1);
    case "AssignmentsConfirmed":
      return part(2);
    case "AttemptFailed":
    case "TaskDeadLettered":
      return event.failure.class === "lost" && !isDeparture(event.failure.error)
        ? part(LOST_PART, true)
        : undefined;
    case "AttemptReleased":
      return event.reason === "agent-gone" ? part(LOST_PART, true) : undefined;
    case "SlotWaitEnded":
      return event.reason === "lost" ? part(4) : undefined;
    case "SlotReleased":
      return event.reason === "lost" ? part(5, true) : undefined;
    case "AgentResponsive":
      return part(6);
    default:
      return undefined;
  }
}

// --- slots ------------------------------------------------------------------------------------------

/** A grant that no event of the batch led to is one to a request that waited for tokens. */
function causeOfSlots(event: EventOf<"SlotAwaited" | "SlotGranted">, at: Instant): Cause | undefined {
  if (isReaction(event)) return "due";
  const { agent, incarnation, handle, resources, weightThousandths } = event;
  const { holder, as, label, project, user, tokens, idleTimeoutMs } = event;
  const deadline = event.type === "SlotAwaited" ? event.deadline : undefined;
  return {
    type: "AcquireSlots",
    agent,
    incarnation,
    handle,
    resources,
    weightThousandths,
    ...(holder === undefined ? {} : { holder }),
    ...(as === undefined ? {} : { as }),
    ...(label === undefined ? {} : { label }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(deadline === undefined ? {} : { timeoutMs: deadline - at }),
  };
}

function causeOfSlotEnd(
  state: SwarmState,
  event: EventOf<"SlotReleased" | "SlotWaitEnded">,
  events: readonly Event[],
  from: number,
): Cause | undefined {
  const { agent, incarnation } = event;
  switch (event.reason) {
    case "timed-out":
    case "idle":
      return "due";
    case "lost":
      return heartbeatOf(state, agent, events, from);
    case "agent-gone":
      return departureOf(state, agent, events, from);
    case "on-hold":
      return undefined; // only ever a reaction
    case "above-capacity":
      return shrunkResource(state, event);
    default: {
      const [handle] = event.type === "SlotReleased" ? [event.handle] : event.handles;
      const { usage, refusal, unanswered } = event.type === "SlotReleased" ? event : {};
      if (handle === undefined) return undefined;
      return {
        type: "ReleaseSlots",
        agent,
        incarnation,
        handle,
        ...(usage === undefined ? {} : { usage }),
        ...(refusal === undefined ? {} : { refusal }),
        ...(unanswered === undefined ? {} : { unanswered }),
      };
    }
  }
}

/** Any session of the agent may report. */
function releaseAfterEnd(
  state: SwarmState,
  {
    agent,
    handle,
    usage,
  }: Pick<EventOf<"SlotCharged">, "agent" | "handle"> & { usage?: SlotUse | undefined },
): CommandOf<"ReleaseSlots"> {
  const incarnation = state.agentById.get(agent)?.incarnation ?? ("gone" as Incarnation);
  return { type: "ReleaseSlots", agent, incarnation, handle, ...(usage === undefined ? {} : { usage }) };
}

function causeOfLateHold(
  state: SwarmState,
  { reportedBy: agent, handle, name, until, by, reason }: EventOf<"HoldPlaced">,
  next: Event | undefined,
): Command | undefined {
  if (agent === undefined || handle === undefined) return undefined;
  const time = by === "refusals" ? {} : { until };
  const refusal = { resource: name as ResourceName, ...time, ...said(reason) };
  return lateRefusalOf(state, { agent, handle }, refusal, next);
}

/** Without a charge behind it, the report named no tokens that were left to charge. */
function lateRefusalOf(
  state: SwarmState,
  { agent, handle }: Pick<EventOf<"SlotRefused">, "agent" | "handle">,
  refusal: SlotRefusal,
  next: Event | undefined,
): Command {
  const isCharged = next?.type === "SlotCharged" && next.agent === agent && next.handle === handle;
  const usage = isCharged ? next.usage : { tokens: 0 };
  return { ...releaseAfterEnd(state, { agent, handle, usage }), refusal };
}

function said(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

/** Goes on with the waits that a resource of fewer slots ended in the batch before. */
function shrunkResource(
  state: SwarmState,
  { agent, handles }: EventOf<"SlotWaitEnded">,
): Command | undefined {
  const [handle] = handles;
  const lease = handle === undefined ? undefined : findSlotLease(state, agent, handle);
  for (const [resource, wanted] of lease?.needs ?? []) {
    const slots = state.resourceByName.get(resource)?.settings.slots;
    if (slots !== undefined && wanted > slots) return { type: "SetResource", resource, patch: { slots } };
  }
  return undefined;
}

// --- settings ---------------------------------------------------------------------------------------

/** Naming α resets tuned values, so a patch names it only if the event says so, or α is another. */
function policyPatch(
  { policy: now }: SwarmState,
  { policy, alphaSaid }: EventOf<"PolicyChanged">,
): PolicyPatch {
  const { alpha, topN = null, budget = null, ...others } = policy;
  const isSaid = alphaSaid === true || alpha !== now.alpha;
  return { ...others, topN, budget, ...(isSaid ? { alpha } : {}) };
}

function resourcePatch(
  state: SwarmState,
  { resource, settings, alphaSaid }: EventOf<"ResourceConfigured">,
): ResourcePatch {
  const now = state.resourceByName.get(resource)?.settings.ownAlpha;
  const { slots, maxWaiters, ownAlpha } = settings;
  if (ownAlpha === undefined) {
    const returns = alphaSaid === true || now !== undefined;
    return { slots, maxWaiters, ...(returns ? { alpha: null } : {}) };
  }
  const isOther = ownAlpha.value !== now?.value;
  const isSaid = alphaSaid === true || isOther;
  return { slots, maxWaiters, autoTune: ownAlpha.autoTune, ...(isSaid ? { alpha: ownAlpha.value } : {}) };
}
