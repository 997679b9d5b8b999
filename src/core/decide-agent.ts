// How agents join and leave, and how the journal's view of their attempts is reconciled with heartbeats. The one thing
// to know: an agent holds an attempt until its result is acknowledged. So an attempt that reached the agent (its number
// ≤ `seen`) and is not held is lost. An attempt that the agent has not seen yet is sent again.

import {
  type AgentId,
  assignmentNumber,
  attemptKey,
  type Incarnation,
  type Instant,
  NO_GROUP,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { findOpen } from "../state/agent-rows.ts";
import type { Event, LeaveReason } from "../state/event.ts";
import { type AgentRow, cameForSlots, type OpenAttempt, type SwarmState } from "../state/state.ts";
import type { Command, HeldAttempt, ListedSlots, Reply } from "./command.ts";
import { closeAsLost } from "./decide-attempt.ts";
import { endSlotsOf, reconcileSlots } from "./decide-slot.ts";
import { answered, type Decision } from "./decision.ts";
import { grantOf, refusalOfJoin } from "./grant-rules.ts";

/** Errors of attempts that end with their agent's session. */
export const departureErrors: Readonly<Record<LeaveReason, string>> = {
  left: "the agent left before the attempt ended",
  lapsed: "nothing was heard from the agent for too long",
  fenced: "the agent was started again under the same id",
  forbidden: "the grant of the agent's group no longer permits the agent or its work",
};

const noSlots: ListedSlots = { held: [], waiting: [] };

type JoinAgent = Extract<Command, { type: "JoinAgent" }>;

/**
 * A join. While an agent is online, the id belongs to one group, so a credential of another group cannot end the
 * session. A known incarnation resumes. A new incarnation ends the previous session, and names it
 * (docs/adr/0032-a-join-names-the-session-before.md). An agent with too many attempts for one batch is closed over
 * several: the reply `again` asks for the same command in the next batch. Meanwhile the agent drains, or the lost tasks
 * would come back.
 */
export function decideJoin(state: SwarmState, command: JoinAgent, at: Instant): Decision {
  const row = state.agentById.get(command.agent);
  const refusal = refusalOfJoin(state, command);
  if (refusal !== undefined) return answered(refusal);
  if (row === undefined && state.agentById.size >= limits.agentsMax)
    return joinInPlaceOfAnother(state, command);
  if (row?.online === true && row.group !== (command.group ?? NO_GROUP))
    return answered({ kind: "other-group", agent: row.id });
  if (row?.incarnation === command.incarnation)
    return row.online ? resume(state, row, command, at) : notNewest(row);
  // A session may lose the reply to its join before a later session joins: the repeated join must not fence the later
  // session.
  if (row?.fencedIncarnations.includes(command.incarnation) === true)
    return answered({ kind: "fenced", agent: row.id });
  // A late copy of a join names an earlier session, and must not end the newest.
  if (row !== undefined && row.incarnation !== command.after) return notNewest(row);
  if (row?.online !== true) return { events: [joined(command)], reply: newSession(command) };
  const closures = endSession(state, row, "fenced", at);
  if (!closures.isComplete) return { events: closures.events, reply: { kind: "again" } };
  return { events: [...closures.events, joined(command)], reply: newSession(command) };
}

export function decideLeave(
  state: SwarmState,
  command: Extract<Command, { type: "LeaveAgent" }>,
  at: Instant,
): Decision {
  const row = online(state, command.agent, command.incarnation);
  if (row === undefined) return answered({ kind: "ok" });
  const closures = endSession(state, row, "left", at);
  return { events: closures.events, reply: closures.isComplete ? { kind: "ok" } : { kind: "again" } };
}

export function decideLapse(
  state: SwarmState,
  command: Extract<Command, { type: "LapseAgent" }>,
  at: Instant,
): Decision {
  const row = online(state, command.agent, command.incarnation);
  if (row === undefined) return answered({ kind: "none" });
  const closures = endSession(state, row, "lapsed", at);
  return { events: closures.events, reply: closures.isComplete ? { kind: "none" } : { kind: "again" } };
}

export function decideReconcile(
  state: SwarmState,
  command: Extract<Command, { type: "ReconcileAgent" }>,
  at: Instant,
): Decision {
  const row = online(state, command.agent, command.incarnation);
  if (row === undefined) return answered({ kind: "none" });
  const events: Event[] = [...arrivals(row, command.seen), ...lostAttempts(state, row, command, at)];
  // Before the agent is responsive again, or released slots could be granted back.
  const slots = reconcileSlots(state, row.id, command.slots ?? noSlots, at);
  events.push(...slots.events);
  if (row.unresponsive && command.seen >= row.lastNumber)
    events.push({ type: "AgentResponsive", agent: row.id });
  if (command.draining === true && !row.draining) events.push({ type: "AgentDrained", agent: row.id });
  const maxConcurrent = permitted(state, row, command.maxConcurrent);
  if (maxConcurrent !== row.maxConcurrent) events.push(joined({ ...profileOf(row), maxConcurrent }));
  return {
    events,
    reply: {
      kind: "reconciled",
      unknown: unknownAttempts(state, row, command.held),
      ...(slots.corrections === undefined ? {} : { slots: slots.corrections }),
    },
  };
}

export function decideUnresponsive(state: SwarmState, agent: AgentId, incarnation: Incarnation): Decision {
  const row = online(state, agent, incarnation);
  if (row === undefined || row.unresponsive) return answered({ kind: "none" });
  return { events: [{ type: "AgentUnresponsive", agent }], reply: { kind: "none" } };
}

export function decideDrain(state: SwarmState, agent: AgentId): Decision {
  const row = state.agentById.get(agent);
  if (row?.online !== true) return answered({ kind: "agent-not-online", agent });
  return { events: row.draining ? [] : [{ type: "AgentDrained", agent }], reply: { kind: "ok" } };
}

export function decideUndrain(state: SwarmState, agent: AgentId): Decision {
  const row = state.agentById.get(agent);
  if (row?.online !== true) return answered({ kind: "agent-not-online", agent });
  return { events: row.draining ? [{ type: "AgentUndrained", agent }] : [], reply: { kind: "ok" } };
}

/**
 * Joins a new agent when the maximum of agents is reached: forgets the offline agent that left longest ago. Agents that
 * came for slots alone are forgotten first.
 */
function joinInPlaceOfAnother(state: SwarmState, command: JoinAgent): Decision {
  let least: AgentRow | undefined;
  for (const row of state.agentById.values())
    if (!row.online && (least === undefined || isForgottenBefore(row, least))) least = row;
  if (least === undefined) return answered({ kind: "too-many-agents", retryAfterMs: limits.retryAfterMs });
  return {
    events: [{ type: "AgentForgotten", agent: least.id }, joined(command)],
    reply: newSession(command),
  };
}

function isForgottenBefore(one: AgentRow, other: AgentRow): boolean {
  const isForSlots = cameForSlots(one);
  if (isForSlots !== cameForSlots(other)) return isForSlots;
  return (one.leftAt ?? 0) < (other.leftAt ?? 0);
}

/** The agent, if it is online in this session. */
function online(state: SwarmState, agent: AgentId, incarnation: Incarnation): AgentRow | undefined {
  const row = state.agentById.get(agent);
  return row?.online === true && row.incarnation === incarnation ? row : undefined;
}

/** The agent's declarations at its join. */
function profileOf({ id, group, incarnation, kinds, role, agentType, labels, prefetch }: AgentRow) {
  return {
    agent: id,
    ...(group === NO_GROUP ? {} : { group }),
    incarnation,
    kinds: [...kinds],
    ...(role === undefined ? {} : { role }),
    ...(agentType === undefined ? {} : { agentType }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(prefetch === 0 ? {} : { prefetch }),
  };
}

function joined({
  agent,
  group,
  incarnation,
  kinds,
  role,
  agentType,
  labels,
  maxConcurrent,
  prefetch,
}: Omit<JoinAgent, "type" | "after" | "held" | "seen">): Event {
  return {
    type: "AgentJoined",
    agent,
    ...(group === undefined ? {} : { group }),
    incarnation,
    kinds,
    ...(role === undefined ? {} : { role }),
    ...(agentType === undefined ? {} : { agentType }),
    ...(labels === undefined ? {} : { labels }),
    maxConcurrent,
    ...(prefetch === undefined ? {} : { prefetch }),
  };
}

function notNewest({ id, incarnation }: AgentRow): Decision {
  return answered({ kind: "not-newest", agent: id, newest: incarnation });
}

function newSession(command: JoinAgent): Reply {
  return { kind: "joined", resumed: false, unknownAttempts: command.held };
}

function resume(state: SwarmState, row: AgentRow, command: JoinAgent, at: Instant): Decision {
  return {
    events: [joined(command), ...arrivals(row, command.seen), ...lostAttempts(state, row, command, at)],
    reply: { kind: "joined", resumed: true, unknownAttempts: unknownAttempts(state, row, command.held) },
  };
}

/** The new maximum of a heartbeat, unless the grant of the agent's group permits less. */
function permitted(state: SwarmState, row: AgentRow, wanted = row.maxConcurrent): number {
  const max = grantOf(state, row)?.maxConcurrent;
  return max !== undefined && wanted + row.prefetch > max ? row.maxConcurrent : wanted;
}

/** @param closuresMax maximum of attempts and slot leases to end */
export function endSession(
  state: SwarmState,
  row: AgentRow,
  reason: LeaveReason,
  at: Instant,
  closuresMax: number = limits.closuresPerCommandMax,
): { events: Event[]; isComplete: boolean } {
  const slots = endSlotsOf(state, row.id, Math.max(0, closuresMax));
  const room = Math.max(0, closuresMax - slots.events.length);
  const closing = [...row.open.values()].slice(0, room);
  const closures = closing.map((attempt) => closeAsLost(state, attempt, departureErrors[reason], at));
  const events = [...slots.events, ...closures];
  const isComplete = slots.isComplete && closing.length === row.open.size;
  if (isComplete) events.push({ type: "AgentLeft", agent: row.id, incarnation: row.incarnation, reason });
  else if (!row.draining) events.push({ type: "AgentDrained", agent: row.id });
  return { events, isComplete };
}

/**
 * Whether an agent has seen assignments that were lost with the journal's end. A claim of more than could have been
 * under way is not believed.
 */
export function isAheadOfJournal({ lastNumber }: AgentRow, seen: number): boolean {
  return seen > lastNumber && seen - lastNumber <= limits.assignmentsAheadMax;
}

/**
 * Confirms the assignments that reached the agent. Skips numbers that the agent knows and the journal lost: the agent
 * would take a reused number for an old assignment.
 */
function arrivals(row: AgentRow, seen: AgentRow["lastNumber"]): Event[] {
  if (seen <= row.confirmedNumber) return [];
  const isAhead = isAheadOfJournal(row, seen);
  const upTo = assignmentNumber(isAhead ? seen : Math.min(seen, row.lastNumber));
  return [
    ...(isAhead ? [{ type: "AgentFoundAhead", agent: row.id, upTo } as const] : []),
    ...(upTo > row.confirmedNumber ? [{ type: "AssignmentsConfirmed", agent: row.id, upTo } as const] : []),
  ];
}

function lostAttempts(
  state: SwarmState,
  row: AgentRow,
  { held, seen }: { readonly held: readonly HeldAttempt[]; readonly seen: number },
  at: Instant,
): Event[] {
  const events: Event[] = [];
  let next = 0;
  let holds: Set<string> | undefined;
  for (const attempt of row.open.values()) {
    if (attempt.number > seen || events.length >= limits.closuresPerCommandMax) break;
    // Agents list attempts in the order of their numbers, so the next in the list is nearly always the one.
    if (isNamed(attempt, held[next])) {
      next += 1;
      continue;
    }
    holds ??= new Set(held.map(attemptKey));
    if (!holds.has(attemptKey(attempt)))
      events.push(closeAsLost(state, attempt, "the agent no longer holds the attempt", at));
  }
  return events;
}

function isNamed({ project, task, attempt }: OpenAttempt, named: HeldAttempt | undefined): boolean {
  return named?.task === task && named.attempt === attempt && named.project === project;
}

/** Attempts that the agent wrongly holds: never assigned to the agent, closed before, or revoked. */
function unknownAttempts(state: SwarmState, row: AgentRow, held: readonly HeldAttempt[]): HeldAttempt[] {
  return held.filter((named) => {
    const open = findOpen(state, row, named);
    return open === undefined || open.state === "revoked";
  });
}
