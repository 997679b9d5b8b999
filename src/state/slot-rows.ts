// How slot leases change the state: waiters, holders, each resource's clock and use. Every change of `inUse` goes
// through `take` or `giveBack`, so that counters equal a recount. Not here: the order of grants
// (scheduling/slot-planner.ts), refusals (decide-slot.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, ResourceName, SlotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import { agentOf } from "./agent-rows.ts";
import { depthsWith } from "./alpha.ts";
import type { EventOf, SlotLease, SlotTerms } from "./event.ts";
import { attemptOf, closeLeaseProbes, openLeaseProbes } from "./hold-rows.ts";
import { judgeRelease } from "./refusal-rows.ts";
import type { ResourceSettings } from "./settings.ts";
import { slotLeaseKey } from "./slot-key.ts";
import { reserveOfSlots, settleSlots } from "./slot-tokens.ts";
import type { OpenAttempt, ResourceRow, SlotEnding, SlotLeaseRow, SwarmState } from "./state.ts";
import { noteKept, projectRowOf, startTimer, stopTimer } from "./task-rows.ts";

/** The optional terms in the form of events: absent terms are left out, and so are 0 tokens. */
export function slotTermsOf({
  holder,
  as,
  label,
  project,
  user,
  tokens = 0,
  idleTimeoutMs,
}: { readonly [Name in keyof SlotTerms]: SlotTerms[Name] | undefined }): SlotTerms {
  return {
    ...(holder === undefined ? {} : { holder }),
    ...(as === undefined ? {} : { as }),
    ...(label === undefined ? {} : { label }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(tokens === 0 ? {} : { tokens }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
  };
}

export function findSlotLease(
  state: SwarmState,
  agent: AgentId,
  handle: SlotHandle,
): SlotLeaseRow | undefined {
  return state.slotsByAgent.get(agent)?.get(handle);
}

/** An agent's slot leases, held and waiting, in order of asking. */
export function slotLeasesOf(state: SwarmState, agent: AgentId): SlotLeaseRow[] {
  return [...(state.slotsByAgent.get(agent)?.values() ?? [])];
}

/** The requests for slots that an attempt waits for, in order of asking. */
export function slotsAwaitedBy(state: SwarmState, attempt: OpenAttempt): SlotLeaseRow[] {
  return slotLeasesOf(state, attempt.agent).filter(
    (slotLease) => slotLease.state === "waiting" && attemptOf(state, slotLease) === attempt,
  );
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

/** Brings the integrals of use up to `at`. Must run before a change of `inUse` or of the number of slots. */
export function measure(row: ResourceRow, at: Instant): void {
  const elapsedMs = at - row.measuredAt;
  row.heldSlotMs += row.inUse * elapsedMs;
  row.slotMs += row.settings.slots * elapsedMs;
  row.measuredAt = at;
}

/**
 * The held share of a resource's slots, over the time since it was first configured. [0, 1], or more where an operator
 * removed slots that were held. 0 for a resource configured just now.
 */
export function utilisationOf(row: ResourceRow, at: Instant): number {
  const elapsedMs = at - row.measuredAt;
  const slotMs = row.slotMs + row.settings.slots * elapsedMs;
  return slotMs === 0 ? 0 : (row.heldSlotMs + row.inUse * elapsedMs) / slotMs;
}

export function awaitSlot(state: SwarmState, event: EventOf<"SlotAwaited">, at: Instant): void {
  const slotLease = newSlotLease(state, event, at, event.deadline);
  for (const resource of slotLease.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.set(slotLeaseKey(slotLease), slotLease);
    row.waitingWeightThousandths += slotLease.weightThousandths;
    state.contendedByName.set(resource, row);
  }
  if (slotLease.tokens > 0) state.waitsWithTokens += 1;
  if (event.deadline !== undefined)
    slotLease.timeoutTimer = startTimer(state, event.deadline, {
      kind: "acquire-timeout",
      slot: slotLease,
    });
}

export function grantSlot(state: SwarmState, event: EventOf<"SlotGranted">, at: Instant): void {
  const waiting = findSlotLease(state, event.agent, event.handle);
  assert(
    (waiting === undefined) === (event.receipt.by === "free"),
    `slot lease ${slotLeaseKey(event)} is granted ${event.receipt.by}`,
  );
  const slotLease = waiting ?? newSlotLease(state, event, at, undefined);
  if (waiting !== undefined) stopWaiting(state, waiting);
  for (const [resource, wanted] of slotLease.needs)
    take(resourceRowOf(state, resource), slotLease, wanted, at);
  slotLease.state = "held";
  slotLease.grantedAt = at;
  reserveOfSlots(state, slotLease, at);
  startIdleTime(state, slotLease, at);
  openLeaseProbes(state, slotLease, at);
  const attempt = slotLease.holder === undefined ? undefined : attemptOf(state, slotLease);
  if (attempt !== undefined) attempt.hasHeldSlots = true;
}

export function touchSlot(state: SwarmState, event: EventOf<"SlotTouched">, at: Instant): void {
  const slotLease = liveSlotLease(state, event);
  assert(slotLease.idleTimer !== undefined, `slot lease ${slotLeaseKey(event)} is held, with an idle time`);
  startIdleTime(state, slotLease, at);
}

/** A new term: no leader could be notified of touches for a while, so all idle times start anew. */
export function restartIdleTimes(state: SwarmState, at: Instant): void {
  for (const slotLeases of state.slotsByAgent.values())
    for (const slotLease of slotLeases.values())
      if (slotLease.idleTimer !== undefined) startIdleTime(state, slotLease, at);
}

function startIdleTime(state: SwarmState, slotLease: SlotLeaseRow, at: Instant): void {
  const { idleTimeoutMs, idleTimer } = slotLease;
  if (idleTimeoutMs === undefined) return;
  if (idleTimer !== undefined) stopTimer(state, idleTimer);
  const dueAt = (at + idleTimeoutMs) as Instant;
  slotLease.idleTimer = startTimer(state, dueAt, { kind: "slot-idle", slot: slotLease });
}

export function releaseSlot(state: SwarmState, event: EventOf<"SlotReleased">, at: Instant): void {
  const slotLease = liveSlotLease(state, event);
  assert(slotLease.state === "held", `slot lease ${slotLeaseKey(event)} is released after it was granted`);
  for (const [resource, count] of slotLease.needs) {
    const row = resourceRowOf(state, resource);
    giveBack(row, slotLease, count, at);
    row.tick += 1;
    row.depths = depthsWith(row.depths, row.waitingWeightThousandths);
  }
  if (slotLease.idleTimer !== undefined) stopTimer(state, slotLease.idleTimer);
  slotLease.idleTimer = undefined;
  closeLeaseProbes(state, slotLease);
  judgeRelease(state, slotLease, event);
  settleSlots(state, slotLease, event, at);
  forget(state, slotLease, event.reason);
}

export function endWaits(state: SwarmState, event: EventOf<"SlotWaitEnded">): void {
  for (const handle of event.handles) {
    const slotLease = liveSlotLease(state, { ...event, handle });
    stopWaiting(state, slotLease);
    forget(state, slotLease, event.reason);
  }
}

export function tuneAlpha(state: SwarmState, event: EventOf<"AlphaTuned">): void {
  const row = resourceRowOf(state, event.resource);
  assert(row.tick === event.tick, `α of ${event.resource} moves at a release`);
  row.tunedAlpha = event.to;
}

/**
 * Restarts α where an operator changes the policy's α or ends automatic tuning. A resource with an α of its own keeps
 * its value.
 */
export function forgetTunedAlpha(state: SwarmState): void {
  for (const row of state.resourceByName.values())
    if (row.settings.ownAlpha === undefined) row.tunedAlpha = undefined;
}

function newSlotLease(
  state: SwarmState,
  of: SlotLease,
  at: Instant,
  deadline: Instant | undefined,
): SlotLeaseRow {
  const agent = agentOf(state, of.agent);
  const key = slotLeaseKey(of);
  assert(agent.online && agent.incarnation === of.incarnation, `agent ${of.agent} acquires while online`);
  assert(findSlotLease(state, of.agent, of.handle) === undefined, `slot lease ${key} is begun once`);
  assert(!state.endedSlotByKey.has(key), `slot lease ${key} does not begin again`);
  const needs = needsOf(of.resources);
  state.slotLeases += 1;
  const slotLease: SlotLeaseRow = {
    handle: of.handle,
    agent: of.agent,
    incarnation: of.incarnation,
    holder: of.holder,
    needs,
    weightThousandths: of.weightThousandths,
    as: of.as,
    label: of.label,
    project: of.project,
    user: of.user,
    tokens: of.tokens ?? 0,
    agentType: agent.agentType,
    idleTimeoutMs: of.idleTimeoutMs,
    order: state.slotLeases,
    requestedAt: at,
    requestedTicks: new Map([...needs.keys()].map((name) => [name, resourceRowOf(state, name).tick])),
    state: "waiting",
    grantedAt: undefined,
    deadline,
    timeoutTimer: undefined,
    idleTimer: undefined,
  };
  countAtProject(state, slotLease, 1);
  const own = state.slotsByAgent.get(of.agent);
  if (own === undefined) state.slotsByAgent.set(of.agent, new Map([[of.handle, slotLease]]));
  else own.set(of.handle, slotLease);
  return slotLease;
}

/** A project's row is kept while a slot lease names the project: the lease's tokens are charged to it. */
function countAtProject(state: SwarmState, { project }: SlotLeaseRow, change: 1 | -1): void {
  if (project === undefined) return;
  const row = projectRowOf(state, project);
  row.slotLeases += change;
  noteKept(state, row);
}

/** The name of a lease's queue in L: its agent, or a queue of its own within the agent. */
export function slotQueueOf({ agent, as }: Pick<SlotLeaseRow, "agent" | "as">): string {
  return as === undefined ? agent : `${agent}/${as}`;
}

/** Slots by resource, in name order. */
export function needsOf(resources: readonly ResourceName[]): ReadonlyMap<ResourceName, number> {
  const needs = new Map<ResourceName, number>();
  for (const resource of resources.toSorted()) needs.set(resource, (needs.get(resource) ?? 0) + 1);
  return needs;
}

/** The inverse of `needsOf`: one mention per slot. */
export function mentionsOf(needs: ReadonlyMap<ResourceName, number>): ResourceName[] {
  return [...needs].flatMap(([resource, count]) => Array<ResourceName>(count).fill(resource));
}

function stopWaiting(state: SwarmState, slotLease: SlotLeaseRow): void {
  assert(slotLease.state === "waiting", `slot lease ${slotLeaseKey(slotLease)} waits`);
  if (slotLease.timeoutTimer !== undefined) stopTimer(state, slotLease.timeoutTimer);
  slotLease.timeoutTimer = undefined;
  if (slotLease.tokens > 0) state.waitsWithTokens -= 1;
  for (const resource of slotLease.needs.keys()) {
    const row = resourceRowOf(state, resource);
    row.waiting.delete(slotLeaseKey(slotLease));
    row.waitingWeightThousandths -= slotLease.weightThousandths;
    if (row.waiting.size === 0) state.contendedByName.delete(resource);
  }
}

function take(row: ResourceRow, slotLease: SlotLeaseRow, count: number, at: Instant): void {
  assert(row.inUse + count <= row.settings.slots, `${row.resource} has ${count} slots free`);
  measure(row, at);
  row.inUse += count;
  row.grants += 1;
  row.holdings.set(slotLeaseKey(slotLease), slotLease);
}

function giveBack(row: ResourceRow, slotLease: SlotLeaseRow, count: number, at: Instant): void {
  measure(row, at);
  row.inUse -= count;
  row.holdings.delete(slotLeaseKey(slotLease));
}

function forget(state: SwarmState, slotLease: SlotLeaseRow, ending: SlotEnding): void {
  const own = state.slotsByAgent.get(slotLease.agent);
  own?.delete(slotLease.handle);
  if (own?.size === 0) state.slotsByAgent.delete(slotLease.agent);
  countAtProject(state, slotLease, -1);
  state.endedSlotByKey.set(slotLeaseKey(slotLease), ending);
  const { oldestKey } = state.endedSlotByKey;
  if (state.endedSlotByKey.size > limits.endedHandlesMax && oldestKey !== undefined)
    state.endedSlotByKey.delete(oldestKey);
}

function liveSlotLease(
  state: SwarmState,
  event: Pick<EventOf<"SlotReleased">, "agent" | "handle" | "incarnation">,
): SlotLeaseRow {
  const slotLease = findSlotLease(state, event.agent, event.handle);
  assert(slotLease?.incarnation === event.incarnation, `slot lease ${slotLeaseKey(event)} is under way`);
  return slotLease;
}
