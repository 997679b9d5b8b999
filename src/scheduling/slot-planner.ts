// Who gets the slot that became free (docs/scheduling.md): the live form of LOCO's contention, over the journaled
// rows of resources. The score and the pick are those of the exact model (contention.ts); what is added is sets of
// resources, granted whole, and the starvation limit, so that a set does not wait for ever for two slots to be free at
// once.
//
// The rule, for as long as a slot is free that somebody could use:
//   1. Who waits past the starvation limit comes first, in order of asking: it reserves free slots in name order, until
//   one is missing; if none is missing, it is granted. The starvation limit: older, in ticks of one of its resources,
//   than policy.starvation limit × the number that waits there. Where the policy has none, only sets have one.
//   2. Among the others that what is left suffices for: the highest L, by pickWaiter.
// Who is unresponsive is passed over, and reserves nothing. Nobody else may take what is reserved. A reservation is not
// kept anywhere: it follows from the state, anew each time. Bound: a waiter past the starvation limit is overtaken only
// by those past it that asked before; each slot it lacks is the next of its resource to be free that those do not take.

import type { AgentId, Instant, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import { nextAlpha } from "../state/alpha.ts";
import type { Event, EventOf } from "../state/event.ts";
import type { Policy } from "../state/policy.ts";
import type { SlotReceipt } from "../state/receipt.ts";
import { mentionsOf, resourceRowOf } from "../state/slot-rows.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../state/state.ts";
import { pickWaiter } from "./contention.ts";
import type { Queue } from "./load.ts";
import { rounded } from "./rounded.ts";

type SlotGranted = EventOf<"SlotGranted">;

/** What follows from an event that may have made a slot available to somebody. Each is to be applied before the
 *  next is asked for: the order at a release is tick and ageing (in the event itself), α, scores, grant. */
export function* slotReactions(state: SwarmState, event: Event, at: Instant): Generator<Event> {
  switch (event.type) {
    case "SlotReleased":
      yield* tunings(state, new Set(event.resources));
      return yield* grants(state, at);
    case "SlotGranted":
      // Others are granted in the middle of what follows from something else, which goes on.
      if (event.receipt.by === "free") yield* grants(state, at);
      return;
    case "SlotAwaited":
    case "SlotWaitEnded":
    case "ResourceConfigured":
    case "PolicyChanged":
    case "AgentUnresponsive":
    case "AgentResponsive":
      return yield* grants(state, at);
    default:
  }
}

/** The next grant, or undefined when no free slot is of use to anybody that waits. */
export function nextGrant(state: SwarmState, at: Instant): SlotGranted | undefined {
  const left = vacancies(state);
  if (left.size === 0) return undefined;
  const overdue = overdueAt(state, left);
  for (const slot of overdue)
    if (reserveSlots(left, slot)) return granted(state, slot, at, "starvation-limit");
  const isOverdue = new Set(overdue);
  for (const resource of [...left.keys()].toSorted()) {
    const row = resourceRowOf(state, resource);
    const able = [...row.waiting.values()].filter(
      (slot) => !isOverdue.has(slot) && isReachable(state, slot) && fits(left, slot),
    );
    const grant = able.length === 0 ? undefined : highest(state, row, able, at);
    if (grant !== undefined) return grant;
  }
  return undefined;
}

/** Whether somebody who asks now is to wait for nobody: enough slots are free that nobody reserved. Whoever
 *  waits at that moment could not use them. */
export function isVacant(state: SwarmState, needs: ReadonlyMap<ResourceName, number>): boolean {
  const left = vacancies(state);
  for (const slot of overdueAt(state, left)) reserveSlots(left, slot);
  for (const [resource, wanted] of needs) {
    const row = resourceRowOf(state, resource);
    if (wanted > (row.waiting.size > 0 ? (left.get(resource) ?? 0) : freeSlots(row))) return false;
  }
  return true;
}

/** What is set of α at a resource: its own, or the policy's. */
export function alphaSettingsAt(
  { policy }: SwarmState,
  { settings: { ownAlpha } }: ResourceRow,
): { readonly value: number; readonly autoTune: boolean; readonly from: AlphaOrigin } {
  if (ownAlpha !== undefined) return { ...ownAlpha, from: "resource" };
  return { value: policy.alpha, autoTune: policy.autoTune, from: "policy" };
}

/** Whose α holds at a resource. */
export type AlphaOrigin = "resource" | "policy";

/** α at a resource: what is set, or what it has moved to since. [0, 1] */
export function alphaAt(state: SwarmState, row: ResourceRow): number {
  const { value, autoTune } = alphaSettingsAt(state, row);
  return autoTune ? (row.tunedAlpha ?? value) : value;
}

/** After how many ticks a request comes first, for each one that waits beside it: the policy's starvation limit. Where
 *  that is off (0), Infinity for one slot; a set has one all the same, for L alone might never find it two free. */
export function slotStarvationLimitTicks(
  { starvationLimit }: Policy,
  { needs }: Pick<SlotLeaseRow, "needs">,
): number {
  if (starvationLimit > 0) return starvationLimit;
  return needs.size > 1 ? limits.setStarvationLimitTicksPerWaiting : Number.POSITIVE_INFINITY;
}

const nothingWaits: Queue = { queueDepth: 0, oldestAge: 0 };

function* grants(state: SwarmState, at: Instant): Generator<SlotGranted> {
  for (let grant = nextGrant(state, at); grant !== undefined; grant = nextGrant(state, at)) yield grant;
}

function* tunings(state: SwarmState, released: ReadonlySet<ResourceName>): Generator<EventOf<"AlphaTuned">> {
  for (const resource of released) {
    const row = resourceRowOf(state, resource);
    if (!alphaSettingsAt(state, row).autoTune) continue;
    const oldestAges = [...queuesAt(row).values()].map(({ oldestAge }) => oldestAge);
    const change = nextAlpha({ alpha: alphaAt(state, row), oldestAges, depths: row.depths });
    if (change !== undefined) yield { type: "AlphaTuned", resource, tick: row.tick, ...change };
  }
}

function freeSlots({ settings, inUse }: ResourceRow): number {
  return Math.max(0, settings.slots - inUse);
}

/** Free slots of the resources that somebody waits for, where there are any. */
function vacancies(state: SwarmState): Map<ResourceName, number> {
  const free = new Map<ResourceName, number>();
  for (const [resource, row] of state.contendedByName) {
    const slots = freeSlots(row);
    if (slots > 0) free.set(resource, slots);
  }
  return free;
}

/** Those past the starvation limit who wait for one of these resources, in order of asking. Others have nothing to
 *  reserve. */
function overdueAt(state: SwarmState, resources: ReadonlyMap<ResourceName, number>): SlotLeaseRow[] {
  const overdue = new Set<SlotLeaseRow>();
  for (const resource of resources.keys()) {
    for (const slot of resourceRowOf(state, resource).waiting.values())
      if (isPastStarvationLimit(state, slot) && isReachable(state, slot)) overdue.add(slot);
  }
  return [...overdue].sort((a, b) => a.order - b.order);
}

/** An agent that is silent may be dead, and a slot of its own would wait for H to be anybody's. */
function isReachable(state: SwarmState, { agent }: SlotLeaseRow): boolean {
  return state.agentById.get(agent)?.unresponsive !== true;
}

function isPastStarvationLimit(state: SwarmState, slot: SlotLeaseRow): boolean {
  for (const resource of slot.needs.keys())
    if (isPastStarvationLimitAt(state, resourceRowOf(state, resource), slot)) return true;
  return false;
}

function isPastStarvationLimitAt({ policy }: SwarmState, row: ResourceRow, slot: SlotLeaseRow): boolean {
  return ageAt(row, slot) > slotStarvationLimitTicks(policy, slot) * row.waiting.size;
}

/** Takes what it needs out of `left`, in name order until something is missing. @returns whether nothing was */
function reserveSlots(left: Map<ResourceName, number>, { needs }: SlotLeaseRow): boolean {
  for (const [resource, wanted] of needs) {
    const free = left.get(resource) ?? 0;
    left.set(resource, Math.max(0, free - wanted));
    if (free < wanted) return false;
  }
  return true;
}

function fits(left: ReadonlyMap<ResourceName, number>, { needs }: SlotLeaseRow): boolean {
  for (const [resource, wanted] of needs) if (wanted > (left.get(resource) ?? 0)) return false;
  return true;
}

function highest(
  state: SwarmState,
  row: ResourceRow,
  able: readonly SlotLeaseRow[],
  at: Instant,
): SlotGranted | undefined {
  const queues = queuesAt(row);
  const alpha = alphaAt(state, row);
  const pickAmong = (waiters: readonly SlotLeaseRow[]) =>
    pickWaiter({
      waiters,
      queueOf: ({ agent }) => queues.get(agent) ?? nothingWaits,
      queues: queues.values(),
      alpha,
    });
  const winner = pickAmong(able);
  if (winner === undefined) return undefined;
  const next = pickAmong(able.filter(({ agent }) => agent !== winner.waiter.agent));
  return granted(state, winner.waiter, at, "load", {
    resource: row.resource,
    tick: row.tick,
    waiting: row.waiting.size,
    load: rounded(winner.load),
    alpha: rounded(alpha),
    ...(next === undefined ? {} : { runnerUp: { agent: next.waiter.agent, load: rounded(next.load) } }),
  });
}

function granted(
  state: SwarmState,
  slot: SlotLeaseRow,
  at: Instant,
  by: SlotReceipt["by"],
  decided: Omit<SlotReceipt, "by" | "waitedMs"> = atFirst(state, slot),
): SlotGranted {
  return {
    type: "SlotGranted",
    agent: slot.agent,
    incarnation: slot.incarnation,
    handle: slot.handle,
    resources: mentionsOf(slot.needs),
    weightThousandths: slot.weightThousandths,
    ...(slot.holder === undefined ? {} : { holder: slot.holder }),
    receipt: { by, waitedMs: at - slot.requestedAt, ...decided },
  };
}

/** Past the starvation limit it is one of several resources that counts; the first in name order stands for them. */
function atFirst(state: SwarmState, slot: SlotLeaseRow): Omit<SlotReceipt, "by" | "waitedMs"> {
  const rows = [...slot.needs.keys()].map((resource) => resourceRowOf(state, resource));
  const row = rows.find((each) => isPastStarvationLimitAt(state, each, slot)) ?? rows[0];
  return row === undefined
    ? { waiting: 0 }
    : { resource: row.resource, tick: row.tick, waiting: row.waiting.size };
}

/** Q and D of every agent that waits for a resource, at its present tick. */
function queuesAt(row: ResourceRow): Map<AgentId, Queue> {
  const queues = new Map<AgentId, Queue>();
  for (const slot of row.waiting.values()) {
    const { queueDepth, oldestAge } = queues.get(slot.agent) ?? nothingWaits;
    queues.set(slot.agent, {
      queueDepth: queueDepth + slot.weightThousandths,
      oldestAge: Math.max(oldestAge, ageAt(row, slot)),
    });
  }
  return queues;
}

function ageAt(row: ResourceRow, slot: SlotLeaseRow): number {
  return row.tick - (slot.requestedTicks.get(row.resource) ?? row.tick);
}
