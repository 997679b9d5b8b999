// How acquisitions of slots change the state: who waits, who holds, each resource's clock and use. Every change
// of what is in use goes through `take` or `giveBack`, so that counters equal a recount.
// Not here: who is granted next (scheduling/slot-planner.ts), what is refused (decide-slot.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, ResourceName, SlotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import { depthsWith } from "../scheduling/alpha.ts";
import { agentOf } from "./agent-rows.ts";
import type { Acquisition, EventOf } from "./event.ts";
import type { ResourceSettings } from "./settings.ts";
import type { AcquisitionRow, ResourceRow, SlotEnding, SwarmState } from "./state.ts";
import { startTimer, stopTimer } from "./task-rows.ts";

/** The key under which maps keep an acquisition. */
export function slotKey({ agent, handle }: { readonly agent: AgentId; readonly handle: SlotHandle }): string {
  return `${agent} ${handle}`;
}

export function findSlot(state: SwarmState, agent: AgentId, handle: SlotHandle): AcquisitionRow | undefined {
  return state.slotsByAgent.get(agent)?.get(handle);
}

/** What an agent holds and waits for, in order of asking. */
export function slotsOf(state: SwarmState, agent: AgentId): AcquisitionRow[] {
  return [...(state.slotsByAgent.get(agent)?.values() ?? [])];
}

export function resourceRowOf(state: SwarmState, resource: ResourceName): ResourceRow {
  const row = state.resourceByName.get(resource);
  assert(row !== undefined, `resource ${resource} is known`);
  return row;
}

export function newResourceRow(resource: ResourceName, settings: ResourceSettings, at: Instant): ResourceRow {
  return {
    resource,
    settings,
    tick: 0,
    inUse: 0,
    holdings: new Map(),
    waiting: new Map(),
    waitingWeightThousandths: 0,
    tunedAlpha: undefined,
    depths: [],
    grants: 0,
    heldSlotMs: 0,
    slotMs: 0,
    measuredAt: at,
  };
}

/** Brings the integrals of use up to `at`: to be called before `inUse` or the number of slots changes. */
export function measure(row: ResourceRow, at: Instant): void {
  const elapsedMs = at - row.measuredAt;
  row.heldSlotMs += row.inUse * elapsedMs;
  row.slotMs += row.settings.slots * elapsedMs;
  row.measuredAt = at;
}

/** Share of its slots that was held, over the time since it was first set; [0, 1], more where slots were taken
 *  away that were held. 0 for a resource that was set just now. */
export function utilisationOf(row: ResourceRow, at: Instant): number {
  const elapsedMs = at - row.measuredAt;
  const slotMs = row.slotMs + row.settings.slots * elapsedMs;
  return slotMs === 0 ? 0 : (row.heldSlotMs + row.inUse * elapsedMs) / slotMs;
}

export function awaitSlot(state: SwarmState, event: EventOf<"SlotAwaited">, at: Instant): void {
  const slot = newSlot(state, event, at, event.deadline);
  for (const resource of slot.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.set(slotKey(slot), slot);
    row.waitingWeightThousandths += slot.weightThousandths;
    state.contendedByName.set(resource, row);
  }
  if (event.deadline !== undefined)
    slot.timeoutTimer = startTimer(state, event.deadline, { kind: "acquire-timeout", slot });
}

/** Whether it waited before or not. */
export function grantSlot(state: SwarmState, event: EventOf<"SlotGranted">, at: Instant): void {
  const waiting = findSlot(state, event.agent, event.handle);
  assert(
    (waiting === undefined) === (event.receipt.by === "free"),
    `acquisition ${slotKey(event)} is granted ${event.receipt.by}`,
  );
  const slot = waiting ?? newSlot(state, event, at, undefined);
  if (waiting !== undefined) stopWaiting(state, waiting);
  for (const [resource, wanted] of slot.needs) take(resourceRowOf(state, resource), slot, wanted, at);
  slot.state = "held";
  slot.grantedAt = at;
}

export function releaseSlot(state: SwarmState, event: EventOf<"SlotReleased">, at: Instant): void {
  const slot = liveSlot(state, event);
  assert(slot.state === "held", `acquisition ${slotKey(event)} is released after it was granted`);
  for (const [resource, count] of slot.needs) {
    const row = resourceRowOf(state, resource);
    giveBack(row, slot, count, at);
    row.tick += 1;
    row.depths = depthsWith(row.depths, row.waitingWeightThousandths);
  }
  forget(state, slot, event.reason);
}

export function endWaits(state: SwarmState, event: EventOf<"SlotWaitEnded">): void {
  for (const handle of event.handles) {
    const slot = liveSlot(state, { ...event, handle });
    stopWaiting(state, slot);
    forget(state, slot, event.reason);
  }
}

export function tuneAlpha(state: SwarmState, event: EventOf<"AlphaTuned">): void {
  const row = resourceRowOf(state, event.resource);
  assert(row.tick === event.tick, `α of ${event.resource} moves at a release`);
  row.tunedAlpha = event.to;
}

/** α begins anew where an operator sets another, or no longer lets it move. */
export function forgetTunedAlpha(state: SwarmState): void {
  for (const row of state.resourceByName.values()) row.tunedAlpha = undefined;
}

function newSlot(
  state: SwarmState,
  of: Acquisition,
  at: Instant,
  deadline: Instant | undefined,
): AcquisitionRow {
  const agent = agentOf(state, of.agent);
  const key = slotKey(of);
  assert(agent.online && agent.incarnation === of.incarnation, `agent ${of.agent} acquires while it lives`);
  assert(findSlot(state, of.agent, of.handle) === undefined, `acquisition ${key} is begun once`);
  assert(!state.endedSlotByKey.has(key), `acquisition ${key} does not begin again`);
  const needs = needsOf(of.resources);
  state.acquisitions += 1;
  const slot: AcquisitionRow = {
    handle: of.handle,
    agent: of.agent,
    incarnation: of.incarnation,
    holder: of.holder,
    needs,
    weightThousandths: of.weightThousandths,
    order: state.acquisitions,
    requestedAt: at,
    requestedTicks: new Map([...needs.keys()].map((name) => [name, resourceRowOf(state, name).tick])),
    state: "waiting",
    grantedAt: undefined,
    deadline,
    timeoutTimer: undefined,
  };
  const own = state.slotsByAgent.get(of.agent);
  if (own === undefined) state.slotsByAgent.set(of.agent, new Map([[of.handle, slot]]));
  else own.set(of.handle, slot);
  return slot;
}

/** Slots by resource, in name order. */
export function needsOf(resources: readonly ResourceName[]): ReadonlyMap<ResourceName, number> {
  const needs = new Map<ResourceName, number>();
  for (const resource of resources.toSorted()) needs.set(resource, (needs.get(resource) ?? 0) + 1);
  return needs;
}

/** The other way round: one mention for each slot. */
export function mentionsOf(needs: ReadonlyMap<ResourceName, number>): ResourceName[] {
  return [...needs].flatMap(([resource, count]) => Array<ResourceName>(count).fill(resource));
}

function stopWaiting(state: SwarmState, slot: AcquisitionRow): void {
  assert(slot.state === "waiting", `acquisition ${slotKey(slot)} waits`);
  if (slot.timeoutTimer !== undefined) stopTimer(state, slot.timeoutTimer);
  slot.timeoutTimer = undefined;
  for (const resource of slot.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.delete(slotKey(slot));
    row.waitingWeightThousandths -= slot.weightThousandths;
    if (row.waiting.size === 0) state.contendedByName.delete(resource);
  }
}

function take(row: ResourceRow, slot: AcquisitionRow, count: number, at: Instant): void {
  assert(row.inUse + count <= row.settings.slots, `${row.resource} has ${count} slots free`);
  measure(row, at);
  row.inUse += count;
  row.grants += 1;
  row.holdings.set(slotKey(slot), slot);
}

function giveBack(row: ResourceRow, slot: AcquisitionRow, count: number, at: Instant): void {
  measure(row, at);
  row.inUse -= count;
  row.holdings.delete(slotKey(slot));
}

function forget(state: SwarmState, slot: AcquisitionRow, ending: SlotEnding): void {
  const own = state.slotsByAgent.get(slot.agent);
  own?.delete(slot.handle);
  if (own?.size === 0) state.slotsByAgent.delete(slot.agent);
  state.endedSlotByKey.set(slotKey(slot), ending);
  const oldest = state.endedSlotByKey.keys().next();
  if (state.endedSlotByKey.size > limits.endedHandlesMax && oldest.done === false)
    state.endedSlotByKey.delete(oldest.value);
}

function liveSlot(
  state: SwarmState,
  event: Pick<EventOf<"SlotReleased">, "agent" | "handle" | "incarnation">,
): AcquisitionRow {
  const slot = findSlot(state, event.agent, event.handle);
  assert(slot?.incarnation === event.incarnation, `acquisition ${slotKey(event)} is under way`);
  return slot;
}
