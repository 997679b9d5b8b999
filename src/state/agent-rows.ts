// How an agent's row changes: sessions, attempts in its capacity, and learned success rates.

import { assert } from "../assert.ts";
import {
  type AgentId,
  type AssignmentNumber,
  type Instant,
  type Kind,
  NO_GROUP,
  type TaskRef,
} from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "./event.ts";
import { closeProbes, forgetTarget, openProbes } from "./hold-rows.ts";
import { kindRowOf, noteKind } from "./kind-rows.ts";
import {
  type AgentRow,
  cameForSlots,
  capacityOf,
  type OpenAttempt,
  type SuccessRecord,
  type SwarmState,
} from "./state.ts";
import { emptyRecord, recordOutcome } from "./success-rate.ts";
import { type EventContext, startTimer, stopTimer } from "./task-rows.ts";

export function joinRow(state: SwarmState, event: EventOf<"AgentJoined">, context: EventContext): void {
  const known = state.agentById.get(event.agent);
  const row = known ?? newAgentRow(event, context.at);
  const servedBefore = row.kindRows;
  if (row.online && row.incarnation === event.incarnation) removeFromKinds(state, row);
  else beginIncarnation(state, row, event, context.at);
  state.joins += 1;
  row.joinedOrder = state.joins;
  row.kinds = new Set(event.kinds);
  row.kindRows = Array.from(row.kinds, (kind) => kindRowOf(state, kind));
  row.group = event.group ?? NO_GROUP;
  row.role = event.role;
  row.agentType = event.agentType;
  row.labels = event.labels ?? {};
  row.maxConcurrent = event.maxConcurrent;
  row.prefetch = event.prefetch ?? 0;
  state.agentById.set(event.agent, row);
  for (const kind of row.kinds) onlineAgentsOf(state, kind).set(row.id, row);
  for (const kindRow of [...row.kindRows, ...servedBefore]) noteKind(state, kindRow);
}

export function leaveRow(state: SwarmState, event: EventOf<"AgentLeft">, context: EventContext): void {
  const row = agentOf(state, event.agent);
  assert(row.online && row.incarnation === event.incarnation, `agent ${row.id} leaves the session it is in`);
  assert(row.open.size === 0, `agent ${row.id} leaves with every attempt closed`);
  assert(!state.slotsByAgent.has(row.id), `agent ${row.id} leaves without slots`);
  row.online = false;
  row.draining = false;
  row.unresponsive = false;
  row.leftAt = context.at;
  if (event.reason === "fenced") {
    const fenced = [...row.fencedIncarnations, row.incarnation];
    row.fencedIncarnations = fenced.slice(-limits.fencedIncarnationsMax);
    row.fencedAt = context.at;
  }
  removeFromKinds(state, row);
  for (const kindRow of row.kindRows) noteKind(state, kindRow);
  row.kindRows = [];
  const forgottenMs = cameForSlots(row) ? limits.slotAgentForgottenMs : limits.agentForgottenMs;
  row.forgetTimer = startTimer(state, (context.at + forgottenMs) as Instant, {
    kind: "forget",
    agent: row.id,
  });
}

/** The next assignment gets the number after `upTo`. */
export function passOver(row: AgentRow, upTo: AssignmentNumber): void {
  assert(row.online && upTo > row.lastNumber, `agent ${row.id} is ahead of its assignments`);
  row.lastNumber = upTo;
}

export function forgetRow(state: SwarmState, id: AgentId): void {
  const row = agentOf(state, id);
  assert(!row.online, `agent ${id} is forgotten only after it left`);
  if (row.forgetTimer !== undefined) stopTimer(state, row.forgetTimer);
  forgetTarget(state, { on: "agent", name: id });
  state.agentById.delete(id);
}

export function agentOf(state: SwarmState, id: AgentId): AgentRow {
  const row = state.agentById.get(id);
  assert(row !== undefined, `agent ${id} is known`);
  return row;
}

/** Puts an attempt into the agent's capacity. */
export function openAttempt(state: SwarmState, agent: AgentRow, attempt: OpenAttempt): void {
  assert(
    agent.online && agent.incarnation === attempt.incarnation,
    `agent ${agent.id} is in the session of the assignment`,
  );
  assert(attempt.number === agent.lastNumber + 1, `assignments to ${agent.id} are numbered without gaps`);
  assert(agent.open.size < capacityOf(agent), `agent ${agent.id} has free capacity`);
  agent.lastNumber = attempt.number;
  agent.open.set(attempt.number, attempt);
  openProbes(state, attempt);
  state.assignments += 1;
  agent.lastAssignedOrder = state.assignments;
}

/** Counts an attempt's end as a unit of work; a revoked attempt occupies capacity until `releaseAttempt`. */
export function closeAttempt(state: SwarmState, attempt: OpenAttempt, isRevoked: boolean): void {
  state.tick += 1;
  if (attempt.timeoutTimer !== undefined) stopTimer(state, attempt.timeoutTimer);
  attempt.timeoutTimer = undefined;
  closeProbes(state, attempt);
  const agent = agentOf(state, attempt.agent);
  if (isRevoked) attempt.state = "revoked";
  else freeCapacity(agent, attempt);
}

/** Frees the capacity of a revoked attempt. */
export function releaseAttempt(state: SwarmState, event: EventOf<"AttemptReleased">): OpenAttempt {
  const agent = agentOf(state, event.agent);
  const attempt = findRevoked(agent, event);
  assert(attempt !== undefined, `attempt ${event.task}#${event.attempt} is released after it was revoked`);
  freeCapacity(agent, attempt);
  return attempt;
}

/** Freed capacity is a tick of every kind served by the agent. */
function freeCapacity(agent: AgentRow, attempt: OpenAttempt): void {
  agent.open.delete(attempt.number);
  for (const row of agent.kindRows) row.tick += 1;
}

export interface AttemptRef extends TaskRef {
  readonly attempt: number;
}

/**
 * The agent's open attempt of the given name, if any. A live task knows its own attempt; only a revoked attempt needs a
 * search.
 */
export function findOpen(state: SwarmState, agent: AgentRow, named: AttemptRef): OpenAttempt | undefined {
  const current = state.taskById.get(named)?.open;
  if (current !== undefined && current.attempt === named.attempt && current.agent === agent.id)
    return current;
  return findRevoked(agent, named);
}

/**
 * The revoked attempt of the given name still in the agent's capacity. A live attempt of the same name is skipped: a
 * forgotten task may have been submitted again.
 */
function findRevoked(agent: AgentRow, { project, task, attempt }: AttemptRef): OpenAttempt | undefined {
  for (const open of agent.open.values()) {
    const isNamed = open.task === task && open.project === project && open.attempt === attempt;
    if (open.state === "revoked" && isNamed) return open;
  }
  return undefined;
}

export function learn(
  state: SwarmState,
  attempt: OpenAttempt,
  outcome: "success" | "failure",
  at: Instant,
  latencyMs?: number,
): void {
  const agent = agentOf(state, attempt.agent);
  const { recordByKind } = agent;
  if (recordByKind.size >= limits.recordsPerAgentMax && !recordByKind.has(attempt.kind)) forgetOldest(agent);
  const records = {
    agent: recordIn(recordByKind, attempt.kind, at),
    swarm: recordIn(state.recordByKind, attempt.kind, at),
  };
  recordOutcome(records, outcome, at, latencyMs);
  noteKind(state, kindRowOf(state, attempt.kind));
}

/**
 * Makes room for the record of one more kind. Among kinds not served by the agent, drops the record with the oldest
 * outcome, and the suspension for the same kind.
 */
function forgetOldest({ kinds, recordByKind, suspensionByKind }: AgentRow): void {
  let oldest: readonly [kind: Kind, record: SuccessRecord] | undefined;
  for (const entry of recordByKind) {
    if (!kinds.has(entry[0]) && (oldest === undefined || entry[1].updatedAt < oldest[1].updatedAt))
      oldest = entry;
  }
  assert(oldest !== undefined, "an agent serves fewer kinds than it may remember");
  recordByKind.delete(oldest[0]);
  suspensionByKind.delete(oldest[0]);
}

function recordIn(recordByKind: Map<Kind, SuccessRecord>, kind: Kind, at: Instant): SuccessRecord {
  const known = recordByKind.get(kind);
  if (known !== undefined) return known;
  const record = emptyRecord(at);
  recordByKind.set(kind, record);
  return record;
}

function newAgentRow(event: EventOf<"AgentJoined">, at: Instant): AgentRow {
  return {
    id: event.agent,
    group: NO_GROUP,
    incarnation: event.incarnation,
    online: false,
    draining: false,
    unresponsive: false,
    kinds: new Set(),
    kindRows: [],
    joinedOrder: 0,
    role: undefined,
    agentType: undefined,
    labels: {},
    maxConcurrent: event.maxConcurrent,
    prefetch: 0,
    open: new Map(),
    lastNumber: 0,
    confirmedNumber: 0,
    lastAssignedOrder: 0,
    completed: 0,
    joinedAt: at,
    leftAt: undefined,
    fencedIncarnations: [],
    fencedAt: undefined,
    recordByKind: new Map(),
    suspensionByKind: new Map(),
    forgetTimer: undefined,
  };
}

function beginIncarnation(
  state: SwarmState,
  row: AgentRow,
  event: EventOf<"AgentJoined">,
  at: Instant,
): void {
  assert(!row.online, `agent ${row.id} begins a session after the previous one ended`);
  if (row.forgetTimer !== undefined) stopTimer(state, row.forgetTimer);
  row.forgetTimer = undefined;
  row.incarnation = event.incarnation;
  row.online = true;
  row.lastNumber = 0;
  row.confirmedNumber = 0;
  row.joinedAt = at;
  row.leftAt = undefined;
}

function onlineAgentsOf(state: SwarmState, kind: Kind): Map<AgentId, AgentRow> {
  const known = state.onlineByKind.get(kind);
  if (known !== undefined) return known;
  const agents = new Map<AgentId, AgentRow>();
  state.onlineByKind.set(kind, agents);
  return agents;
}

function removeFromKinds(state: SwarmState, row: AgentRow): void {
  for (const kind of row.kinds) {
    const agents = state.onlineByKind.get(kind);
    agents?.delete(row.id);
    if (agents?.size === 0) state.onlineByKind.delete(kind);
  }
}
