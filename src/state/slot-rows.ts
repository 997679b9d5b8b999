// How acquisitions of slots change the state: who waits, who holds, each resource's clock and use. Every change
// of what is in use goes through `take` or `giveBack`, so that counters equal a recount.
// Not here: who is granted next (scheduling/slot-planner.ts), what is refused (decide-slot.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, ResourceName, SlotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import { agentOf } from "./agent-rows.ts";
import { depthsWith } from "./alpha.ts";
import type { Acquisition, EventOf } from "./event.ts";
import type { ResourceSettings } from "./settings.ts";
import type { AcquisitionRow, ResourceRow, SlotEnding, SwarmState } from "./state.ts";
import { startTimer, stopTimer } from "./task-rows.ts";

/** The key under which maps keep an acquisition. */
export function acquisitionKey({
  agent,
  handle,
}: {
  readonly agent: AgentId;
  readonly handle: SlotHandle;
}): string {
  return `${agent} ${handle}`;
}

export function findAcquisition(
  state: SwarmState,
  agent: AgentId,
  handle: SlotHandle,
): AcquisitionRow | undefined {
  return state.slotsByAgent.get(agent)?.get(handle);
}

/** What an agent holds and waits for, in order of asking. */
export function acquisitionsOf(state: SwarmState, agent: AgentId): AcquisitionRow[] {
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
  const acquisition = newAcquisition(state, event, at, event.deadline);
  for (const resource of acquisition.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.set(acquisitionKey(acquisition), acquisition);
    row.waitingWeightThousandths += acquisition.weightThousandths;
    state.contendedByName.set(resource, row);
  }
  if (event.deadline !== undefined)
    acquisition.timeoutTimer = startTimer(state, event.deadline, {
      kind: "acquire-timeout",
      slot: acquisition,
    });
}

/** Whether it waited before or not. */
export function grantSlot(state: SwarmState, event: EventOf<"SlotGranted">, at: Instant): void {
  const waiting = findAcquisition(state, event.agent, event.handle);
  assert(
    (waiting === undefined) === (event.receipt.by === "free"),
    `acquisition ${acquisitionKey(event)} is granted ${event.receipt.by}`,
  );
  const acquisition = waiting ?? newAcquisition(state, event, at, undefined);
  if (waiting !== undefined) stopWaiting(state, waiting);
  for (const [resource, wanted] of acquisition.needs)
    take(resourceRowOf(state, resource), acquisition, wanted, at);
  acquisition.state = "held";
  acquisition.grantedAt = at;
}

export function releaseSlot(state: SwarmState, event: EventOf<"SlotReleased">, at: Instant): void {
  const acquisition = liveAcquisition(state, event);
  assert(
    acquisition.state === "held",
    `acquisition ${acquisitionKey(event)} is released after it was granted`,
  );
  for (const [resource, count] of acquisition.needs) {
    const row = resourceRowOf(state, resource);
    giveBack(row, acquisition, count, at);
    row.tick += 1;
    row.depths = depthsWith(row.depths, row.waitingWeightThousandths);
  }
  forget(state, acquisition, event.reason);
}

export function endWaits(state: SwarmState, event: EventOf<"SlotWaitEnded">): void {
  for (const handle of event.handles) {
    const acquisition = liveAcquisition(state, { ...event, handle });
    stopWaiting(state, acquisition);
    forget(state, acquisition, event.reason);
  }
}

export function tuneAlpha(state: SwarmState, event: EventOf<"AlphaTuned">): void {
  const row = resourceRowOf(state, event.resource);
  assert(row.tick === event.tick, `α of ${event.resource} moves at a release`);
  row.tunedAlpha = event.to;
}

/** α begins anew where an operator sets another in the policy, or no longer lets it move there. Resources that have
 *  their own keep it. */
export function forgetTunedAlpha(state: SwarmState): void {
  for (const row of state.resourceByName.values())
    if (row.settings.ownAlpha === undefined) row.tunedAlpha = undefined;
}

function newAcquisition(
  state: SwarmState,
  of: Acquisition,
  at: Instant,
  deadline: Instant | undefined,
): AcquisitionRow {
  const agent = agentOf(state, of.agent);
  const key = acquisitionKey(of);
  assert(agent.online && agent.incarnation === of.incarnation, `agent ${of.agent} acquires while it lives`);
  assert(findAcquisition(state, of.agent, of.handle) === undefined, `acquisition ${key} is begun once`);
  assert(!state.endedSlotByKey.has(key), `acquisition ${key} does not begin again`);
  const needs = needsOf(of.resources);
  state.acquisitions += 1;
  const acquisition: AcquisitionRow = {
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
  if (own === undefined) state.slotsByAgent.set(of.agent, new Map([[of.handle, acquisition]]));
  else own.set(of.handle, acquisition);
  return acquisition;
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

function stopWaiting(state: SwarmState, acquisition: AcquisitionRow): void {
  assert(acquisition.state === "waiting", `acquisition ${acquisitionKey(acquisition)} waits`);
  if (acquisition.timeoutTimer !== undefined) stopTimer(state, acquisition.timeoutTimer);
  acquisition.timeoutTimer = undefined;
  for (const resource of acquisition.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.delete(acquisitionKey(acquisition));
    row.waitingWeightThousandths -= acquisition.weightThousandths;
    if (row.waiting.size === 0) state.contendedByName.delete(resource);
  }
}

function take(row: ResourceRow, acquisition: AcquisitionRow, count: number, at: Instant): void {
  assert(row.inUse + count <= row.settings.slots, `${row.resource} has ${count} slots free`);
  measure(row, at);
  row.inUse += count;
  row.grants += 1;
  row.holdings.set(acquisitionKey(acquisition), acquisition);
}

function giveBack(row: ResourceRow, acquisition: AcquisitionRow, count: number, at: Instant): void {
  measure(row, at);
  row.inUse -= count;
  row.holdings.delete(acquisitionKey(acquisition));
}

function forget(state: SwarmState, acquisition: AcquisitionRow, ending: SlotEnding): void {
  const own = state.slotsByAgent.get(acquisition.agent);
  own?.delete(acquisition.handle);
  if (own?.size === 0) state.slotsByAgent.delete(acquisition.agent);
  state.endedSlotByKey.set(acquisitionKey(acquisition), ending);
  const { oldestKey } = state.endedSlotByKey;
  if (state.endedSlotByKey.size > limits.endedHandlesMax && oldestKey !== undefined)
    state.endedSlotByKey.delete(oldestKey);
}

function liveAcquisition(
  state: SwarmState,
  event: Pick<EventOf<"SlotReleased">, "agent" | "handle" | "incarnation">,
): AcquisitionRow {
  const acquisition = findAcquisition(state, event.agent, event.handle);
  assert(acquisition?.incarnation === event.incarnation, `acquisition ${acquisitionKey(event)} is under way`);
  return acquisition;
}
