// Grants free slots (docs/scheduling.md): the live form of LOCO's contention, over the journaled rows of resources.
// Score and pick are those of the exact model (contention.ts). New are sets of resources, granted whole, and the
// starvation limit. Without the limit, a set might wait for ever for two slots to be free at once.
//
// The rule, while a free slot is of use to a waiter:
//   1. Requests past the starvation limit come first, in order of asking. Each reserves free slots in name order, up to
//      a missing slot; a request that misses none is granted. A request is past the limit when its age, in ticks of
//      one of its resources, exceeds policy.starvationLimit × the number of waiters there. Where the policy has no
//      limit, only sets have one.
//   2. Among the other requests that fit the rest: the highest L, by pickWaiter.
// Requests of unresponsive agents are skipped, and reserve nothing. So are requests whose tokens do not fit a budget or
// a rate (gates.ts). Past the limit such a request keeps room: no other request with its budgets passes it. No other
// request may take a reserved slot. A
// reservation is stored nowhere: it is derived from the state each time. Bound: a request past the limit is overtaken
// only by earlier requests past the limit. Each slot that it lacks is the next free slot of the resource that those do
// not take.

import type { Instant, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import { nextAlpha } from "../state/alpha.ts";
import type { Event, EventOf } from "../state/event.ts";
import { isGrantable } from "../state/hold-rows.ts";
import type { Policy } from "../state/policy.ts";
import type { SlotReceipt } from "../state/receipt.ts";
import { mentionsOf, resourceRowOf, slotQueueOf, slotTermsOf } from "../state/slot-rows.ts";
import { ratesOf } from "../state/slot-tokens.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../state/state.ts";
import { pickWaiter } from "./contention.ts";
import { rateBelow, type TokenRequest, type TokensReason, tokensGate } from "./gates.ts";
import type { Queue } from "./load.ts";
import { rounded } from "./rounded.ts";

type SlotGranted = EventOf<"SlotGranted">;

/**
 * The reactions to an event that may have freed a slot. The caller must apply each before the next. The order at a
 * release is tick and ageing (in the event itself), α, scores, grant.
 */
export function slotReactions(state: SwarmState, event: Event, at: Instant): Iterable<Event> {
  switch (event.type) {
    case "SlotReleased":
      return releaseReactions(state, event, at);
    case "SlotGranted":
      // Other grants are part of a running reaction, which continues.
      return event.receipt.by === "free" ? grants(state, at) : none;
    case "SlotAwaited":
    case "SlotWaitEnded":
    case "ResourceConfigured":
    case "PolicyChanged":
    case "AgentUnresponsive":
    case "AgentResponsive":
      return grants(state, at);
    case "HoldElapsed":
    case "HoldEnded":
      return event.on === "resource" ? grants(state, at) : none;
    case "TaskCompleted":
    case "AttemptFailed":
    case "TaskFailed":
    case "TaskDeadLettered":
    case "TaskCancelled":
    case "TaskExpired":
      // The end of an attempt that probed a resource lets the next probe run.
      return state.holds.resource.size > 0 ? grants(state, at) : none;
    default:
      return none;
  }
}

const none: readonly Event[] = [];

function* releaseReactions(
  state: SwarmState,
  { resources }: EventOf<"SlotReleased">,
  at: Instant,
): Generator<Event> {
  yield* tunings(state, new Set(resources));
  yield* grants(state, at);
}

/** Grants to requests that waited for tokens: the end of any task, or time alone, may have made room. */
export function tokenGrants(state: SwarmState, at: Instant): Iterable<Event> {
  return state.waitsWithTokens === 0 ? none : grants(state, at);
}

/** The next grant, or undefined when no free slot is of use to a waiter. */
export function nextGrant(state: SwarmState, at: Instant): SlotGranted | undefined {
  const left = vacancies(state);
  if (left.size === 0) return undefined;
  const kept = keptTokens(state, at);
  const overdue = overdueAt(state, left, at);
  for (const slot of overdue)
    if (!isKeptFrom(slot, kept) && reserveSlots(left, slot))
      return granted(state, slot, at, "starvation-limit");
  const isOverdue = new Set(overdue);
  for (const resource of [...left.keys()].toSorted()) {
    const row = resourceRowOf(state, resource);
    const able = [...row.waiting.values()].filter(
      (slot) =>
        !isOverdue.has(slot) &&
        isReachable(state, slot) &&
        fits(left, slot) &&
        !isKeptFrom(slot, kept) &&
        tokensReasonOf(state, slot, at) === undefined,
    );
    const grant = able.length === 0 ? undefined : highest(state, row, able, at);
    if (grant !== undefined) return grant;
  }
  return undefined;
}

/**
 * Whether a new request need not wait: its tokens fit, and enough slots are free that no waiter reserves. The present
 * waiters could not use the slots.
 */
export function isVacant(
  state: SwarmState,
  needs: ReadonlyMap<ResourceName, number>,
  request: TokenRequest,
  at: Instant,
): boolean {
  if (request.tokens > 0) {
    if (tokensGate(state, request, at) !== undefined || passesKept(keptTokens(state, at), request))
      return false;
  }
  const left = vacancies(state);
  for (const slot of overdueAt(state, left, at)) reserveSlots(left, slot);
  for (const [resource, wanted] of needs) {
    const row = state.resourceByName.get(resource);
    if (row === undefined) continue; // a resource that the request itself creates
    if (!isGrantable(state, resource)) return false;
    if (wanted > (row.waiting.size > 0 ? (left.get(resource) ?? 0) : freeSlots(row))) return false;
  }
  return true;
}

/** The configured α of a resource: its own, or the policy's. */
export function alphaSettingsAt(
  { policy }: SwarmState,
  { settings: { ownAlpha } }: ResourceRow,
): { readonly value: number; readonly autoTune: boolean; readonly from: AlphaOrigin } {
  if (ownAlpha !== undefined) return { ...ownAlpha, from: "resource" };
  return { value: policy.alpha, autoTune: policy.autoTune, from: "policy" };
}

/** The origin of a resource's α. */
export type AlphaOrigin = "resource" | "policy";

/** The α of a resource: configured, or tuned since. [0, 1] */
export function alphaAt(state: SwarmState, row: ResourceRow): number {
  const { value, autoTune } = alphaSettingsAt(state, row);
  return autoTune ? (row.tunedAlpha ?? value) : value;
}

/**
 * The wait in ticks per waiter after which a request comes first: the policy's starvation limit. Where it is off (0),
 * Infinity for one slot. A set keeps a limit, because by L alone it might never find two slots free.
 */
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

export function freeSlots({ settings, inUse }: ResourceRow): number {
  return Math.max(0, settings.slots - inUse);
}

/** Free slots of contended resources, without resources that have none. */
function vacancies(state: SwarmState): Map<ResourceName, number> {
  const free = new Map<ResourceName, number>();
  for (const [resource, row] of state.contendedByName) {
    const slots = isGrantable(state, resource) ? freeSlots(row) : 0;
    if (slots > 0) free.set(resource, slots);
  }
  return free;
}

/**
 * Requests past the starvation limit that wait for one of these resources, in order of asking. Other requests past the
 * limit have nothing to reserve.
 */
function overdueAt(
  state: SwarmState,
  resources: ReadonlyMap<ResourceName, number>,
  at: Instant,
): SlotLeaseRow[] {
  const overdue = new Set<SlotLeaseRow>();
  for (const resource of resources.keys()) {
    for (const slot of resourceRowOf(state, resource).waiting.values()) {
      if (!isPastStarvationLimit(state, slot) || !isReachable(state, slot)) continue;
      if (tokensReasonOf(state, slot, at) === undefined) overdue.add(slot);
    }
  }
  return [...overdue].sort((a, b) => a.order - b.order);
}

/** What has too little left for the tokens of a request. */
export function tokensReasonOf(state: SwarmState, slot: SlotLeaseRow, at: Instant): TokensReason | undefined {
  return slot.tokens === 0 ? undefined : tokensGate(state, requestOf(slot), at);
}

/** The request for tokens of a slot lease with tokens. */
function requestOf(slot: SlotLeaseRow): TokenRequest {
  return { tokens: slot.tokens, project: slot.project, rates: ratesOf(slot) };
}

/** Budgets of projects and of the swarm, and rates of types, with room kept for requests past the starvation limit. */
interface KeptTokens {
  readonly projects: ReadonlySet<string>;
  readonly rates: ReadonlySet<string>;
  readonly isGlobal: boolean;
}

const nothingKept: KeptTokens = { projects: new Set(), rates: new Set(), isGlobal: false };

function keptTokens(state: SwarmState, at: Instant): KeptTokens {
  if (state.waitsWithTokens === 0) return nothingKept;
  const projects = new Set<string>();
  const rates = new Set<string>();
  let isGlobal = false;
  for (const row of state.contendedByName.values()) {
    for (const slot of row.waiting.values()) {
      if (slot.tokens === 0 || !isPastStarvationLimit(state, slot) || !isReachable(state, slot)) continue;
      const reason = tokensReasonOf(state, slot, at);
      if (reason === "project-budget" && slot.project !== undefined) projects.add(slot.project);
      if (reason === "global-budget") isGlobal = true;
      // A request above a lowered rate would keep the rate from all others.
      if (reason === "rate" && rateBelow(state, requestOf(slot)) === undefined)
        for (const type of ratesOf(slot)) if (state.ratesByType.has(type)) rates.add(type);
    }
  }
  return { projects, rates, isGlobal };
}

/** As `passesKept`, for a waiting request. */
function isKeptFrom(slot: SlotLeaseRow, kept: KeptTokens): boolean {
  return slot.tokens > 0 && passesKept(kept, requestOf(slot));
}

/** Whether a request with tokens would take room that is kept. A request that waits for the room itself does not fit
 *  anyway. */
function passesKept(kept: KeptTokens, { project, rates }: TokenRequest): boolean {
  if (kept.isGlobal || (project !== undefined && kept.projects.has(project))) return true;
  return kept.rates.size > 0 && rates.some((type) => kept.rates.has(type));
}

/**
 * Excludes unresponsive agents: such an agent may be lost, and a slot granted to it would be blocked for H. Also
 * excludes requests for a resource on hold, which would reserve slots of other resources for hours.
 */
export function isReachable(state: SwarmState, { agent, needs }: SlotLeaseRow): boolean {
  if (state.agentById.get(agent)?.unresponsive === true) return false;
  if (state.holds.resource.size === 0) return true;
  for (const resource of needs.keys()) if (!isGrantable(state, resource)) return false;
  return true;
}

export function isPastStarvationLimit(state: SwarmState, slot: SlotLeaseRow): boolean {
  for (const resource of slot.needs.keys())
    if (isPastStarvationLimitAt(state, resourceRowOf(state, resource), slot)) return true;
  return false;
}

function isPastStarvationLimitAt({ policy }: SwarmState, row: ResourceRow, slot: SlotLeaseRow): boolean {
  return ageAt(row, slot) > slotStarvationLimitTicks(policy, slot) * row.waiting.size;
}

/** Takes a request's slots out of `left`, in name order until a slot is missing. @returns whether none was missing */
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
      queueOf: (slot) => queues.get(slotQueueOf(slot)) ?? nothingWaits,
      queues: queues.values(),
      alpha,
    });
  const winner = pickAmong(able);
  if (winner === undefined) return undefined;
  const own = slotQueueOf(winner.waiter);
  const next = pickAmong(able.filter((slot) => slotQueueOf(slot) !== own));
  return granted(state, winner.waiter, at, "load", {
    resource: row.resource,
    tick: row.tick,
    waiting: row.waiting.size,
    load: rounded(winner.load),
    alpha: rounded(alpha),
    ...(next === undefined ? {} : { runnerUp: runnerUpOf(next.waiter, next.load) }),
  });
}

function runnerUpOf({ agent, as }: SlotLeaseRow, load: number): NonNullable<SlotReceipt["runnerUp"]> {
  return { agent, ...(as === undefined ? {} : { as }), load: rounded(load) };
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
    ...slotTermsOf(slot),
    receipt: { by, waitedMs: at - slot.requestedAt, ...decided },
  };
}

/** The resource of a receipt by the starvation limit: the first, in name order, where the request is past the limit. */
function atFirst(state: SwarmState, slot: SlotLeaseRow): Omit<SlotReceipt, "by" | "waitedMs"> {
  const rows = [...slot.needs.keys()].map((resource) => resourceRowOf(state, resource));
  const row = rows.find((each) => isPastStarvationLimitAt(state, each, slot)) ?? rows[0];
  return row === undefined
    ? { waiting: 0 }
    : { resource: row.resource, tick: row.tick, waiting: row.waiting.size };
}

/** Q and D of every queue that waits for a resource (`slotQueueOf`), at its present tick. */
export function queuesAt(row: ResourceRow): Map<string, Queue> {
  const queues = new Map<string, Queue>();
  for (const slot of row.waiting.values()) {
    const name = slotQueueOf(slot);
    const { queueDepth, oldestAge } = queues.get(name) ?? nothingWaits;
    queues.set(name, {
      queueDepth: queueDepth + slot.weightThousandths,
      oldestAge: Math.max(oldestAge, ageAt(row, slot)),
    });
  }
  return queues;
}

export function ageAt(row: ResourceRow, slot: SlotLeaseRow): number {
  return row.tick - (slot.requestedTicks.get(row.resource) ?? row.tick);
}
