// Refusals without a time, in a row: of an agent, of the agents of a type, and of a resource. The next refusal after a
// full row places a hold (scheduling/hold.ts), and a success empties the row. While its target is on hold, no refusal
// counts: the probe decides. Rows follow from journaled events alone. Not here: holds (hold-rows.ts).

import type { ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "./event.ts";
import type { CountedRefusal, HoldTarget, Refusal, RefusalRow, SlotRefusal } from "./hold.ts";
import { acquirerOf, attemptHolder, attemptOf, findHold, isOfAttempt } from "./hold-rows.ts";
import type { OpenAttempt, SlotLeaseRow, SwarmState } from "./state.ts";

/** Where a refusal of an attempt counts. The type comes first: when several of its agents are refused, it is held. */
export function countingTargets(
  state: SwarmState,
  { agent, agentType }: OpenAttempt,
  on: Refusal["on"],
): readonly HoldTarget[] {
  if (typeof on === "object" && state.resourceByName.has(on.resource))
    return [{ on: "resource", name: on.resource }];
  const own = { on: "agent", name: agent } as const;
  const isOfType = on === undefined || on === "type";
  return agentType === undefined || !isOfType ? [own] : [{ on: "type", name: agentType }, own];
}

export function refusalOfAttempt(attempt: OpenAttempt): CountedRefusal {
  return { agent: attempt.agent, holder: attemptHolder(attempt) };
}

export function refusalOfLease(lease: SlotLeaseRow): CountedRefusal {
  const { agent, handle } = lease;
  const holder = acquirerOf(lease);
  return { agent, ...(holder === undefined ? {} : { holder }), handle };
}

/** The resources of a slot lease that refused the work. */
export function refusedOf({ needs }: SlotLeaseRow, { resource }: SlotRefusal): ResourceName[] {
  return [...needs.keys()].filter((name) => resource === undefined || name === resource);
}

/** Whether a refusal is the next in the row of a target. */
export function isCountedAt(state: SwarmState, target: HoldTarget, refusal: CountedRefusal): boolean {
  if (findHold(state, target) !== undefined) return false;
  return !rowAt(state, target).some((before) => isSame(before, refusal));
}

/** Whether a refusal exceeds the row of a target. Refusals of one agent alone do not fill the row of its type: one
 *  broken agent must not stop the others. */
export function exceedsRow(state: SwarmState, target: HoldTarget, refusal: CountedRefusal): boolean {
  if (!isCountedAt(state, target, refusal)) return false;
  const row = rowAt(state, target);
  if (target.on === "type" && row.every(({ agent }) => agent === refusal.agent)) return false;
  return row.length + 1 >= limits.refusalsBeforeHold;
}

/** Counts a refusal that placed no hold. */
export function countRefusal(state: SwarmState, target: HoldTarget, refusal: CountedRefusal): void {
  if (!isCountedAt(state, target, refusal)) return;
  const rows = state.refusalsInARow[target.on];
  rows.set(target.name, [...rowAt(state, target), refusal].slice(1 - limits.refusalsBeforeHold));
  const [oldest] = rows.keys();
  // Agents and resources are bounded; types are free.
  if (target.on === "type" && rows.size > limits.holdsMax && oldest !== undefined) rows.delete(oldest);
}

/** What a release says about its resources. Slots that were lost, taken back or cut off say nothing. */
export function judgeRelease(
  state: SwarmState,
  lease: SlotLeaseRow,
  { reason, refusal, unanswered }: EventOf<"SlotReleased">,
): void {
  if (reason !== "released" || unanswered === true) return;
  if (refusal === undefined) return noteSuccess(state, lease);
  if (refusal.until !== undefined) return;
  for (const name of refusedOf(lease, refusal))
    countRefusal(state, { on: "resource", name }, refusalOfLease(lease));
}

/** A lease that an attempt acquired is judged by the attempt's end, every other lease by its release. */
function noteSuccess(state: SwarmState, lease: SlotLeaseRow): void {
  const { resource: rows } = state.refusalsInARow;
  if (rows.size === 0) return;
  const refused = [...lease.needs.keys()].filter((name) => rows.has(name));
  if (!isOfAttempt(lease)) for (const name of refused) rows.delete(name);
  else {
    const attempt = attemptOf(state, lease);
    if (attempt !== undefined) attempt.clears = [...new Set([...attempt.clears, ...refused])];
  }
}

/** A completed attempt empties the rows of its agent and of the agent's type. It also empties the row of each resource
 *  whose slots the attempt released, or that refused attempts of the agent without slots. */
export function forgetRefusals(state: SwarmState, { agent, agentType, clears }: OpenAttempt): void {
  const rows = state.refusalsInARow;
  if (rows.agent.size > 0) rows.agent.delete(agent);
  if (agentType !== undefined && rows.type.size > 0) rows.type.delete(agentType);
  if (rows.resource.size === 0) return;
  for (const [name, row] of rows.resource) {
    const isOfAgent = row.some((refusal) => refusal.agent === agent && refusal.handle === undefined);
    if (isOfAgent || clears.includes(name as ResourceName)) rows.resource.delete(name);
  }
}

function rowAt(state: SwarmState, { on, name }: HoldTarget): RefusalRow {
  return state.refusalsInARow[on].get(name) ?? none;
}

const none: RefusalRow = [];

/** Whether both report one refusal. */
function isSame(a: CountedRefusal, b: CountedRefusal): boolean {
  if (a.agent !== b.agent) return false;
  if (a.handle !== undefined && b.handle !== undefined) return a.handle === b.handle;
  return a.holder !== undefined && a.holder === b.holder;
}
