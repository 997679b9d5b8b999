// Numbered checks of slots and their waiters (docs/invariants.md). Like all checks of invariants.ts, the checks recount
// every counter of the core.

import type { ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  alphaAt,
  alphaSettingsAt,
  slotStarvationLimitTicks,
  tokensReasonOf,
} from "../scheduling/slot-planner.ts";
import { alphaByPreset } from "../state/alpha.ts";
import { phaseOf } from "../state/hold-rows.ts";
import type { ResourceSettings } from "../state/settings.ts";
import { slotLeaseKey } from "../state/slot-key.ts";
import { findSlotLease } from "../state/slot-rows.ts";
import { ratesOf } from "../state/slot-tokens.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../state/state.ts";
import type { Invariant, Violation } from "./invariant.ts";

export const slotInvariants: readonly Invariant[] = [
  { number: 28, name: "slots-equal-a-recount", find: slotsEqualARecount },
  { number: 29, name: "one-state-a-handle", find: oneStateAHandle },
  { number: 30, name: "slots-belong-to-the-living", find: slotsBelongToTheLiving },
  { number: 50, name: "alpha-moves-where-it-may", find: alphaMovesWhereItMay },
];

export const slotInvariantsAfterTurns: readonly Invariant[] = [
  { number: 31, name: "no-idle-slot", find: noIdleSlot },
  { number: 42, name: "no-wait-in-vain", find: noWaitInVain },
];

interface SlotsBefore {
  readonly row: ResourceRow | undefined;
  readonly inUse: number;
  readonly waiting: number;
  readonly tick: number;
  readonly settings: ResourceSettings | undefined;
}

const unset: SlotsBefore = { row: undefined, inUse: 0, waiting: 0, tick: 0, settings: undefined };

/** Checks the state after each batch, in order. */
export class SlotSuccession {
  #before: ReadonlyMap<string, SlotsBefore> = new Map();

  /** Forbidden changes since the last call. */
  check(state: SwarmState): readonly Violation[] {
    const violations = [...this.#overfilled(state)].map((sentence) => ({
      number: 32,
      name: "slot-capacity",
      sentence,
    }));
    this.#before = new Map(
      [...state.resourceByName.values()].map((row) => {
        const { resource, inUse, waiting, tick, settings } = row;
        return [resource, { row, inUse, waiting: waiting.size, tick, settings }];
      }),
    );
    return violations;
  }

  /**
   * Only a lowered resource may hold more slots than its size, and never more than before. The same holds for waiters.
   * A batch with a change of a resource's settings is skipped, because slots may have been granted before the change.
   * Only the assertion in `apply`, at each grant, covers such a batch. A resource removed and set again starts without
   * a past.
   */
  *#overfilled(state: SwarmState): Generator<string> {
    for (const row of state.resourceByName.values()) {
      const { resource, settings, inUse, waiting, tick } = row;
      const known = this.#before.get(resource);
      const before = known?.row === row ? known : unset;
      const isSame = settings === before.settings;
      if (isSame && inUse > settings.slots && inUse > before.inUse)
        yield `${resource} has ${inUse} of ${settings.slots} slots in use, ${before.inUse} before`;
      if (isSame && waiting.size > settings.maxWaiters && waiting.size > before.waiting)
        yield `${waiting.size} wait for ${resource}, at most ${settings.maxWaiters}`;
      if (tick < before.tick) yield `the clock of ${resource} went from ${before.tick} to ${tick}`;
    }
  }
}

function* slotsEqualARecount(state: SwarmState): Generator<string> {
  for (const [name, row] of state.resourceByName) {
    if (row.resource !== name) yield `resource ${row.resource} is kept as ${name}`;
    const held = sum(row.holdings.values(), ({ needs }) => needs.get(name) ?? 0);
    if (row.inUse !== held) yield `${name} counts ${row.inUse} slots in use, ${held} are held`;
    const weight = sum(row.waiting.values(), ({ weightThousandths }) => weightThousandths);
    if (row.waitingWeightThousandths !== weight)
      yield `${name} counts a weight of ${row.waitingWeightThousandths} waiting, not ${weight}`;
    if (state.contendedByName.has(name) !== row.waiting.size > 0)
      yield `${name} has ${row.waiting.size} waiters, listed as contended: ${state.contendedByName.has(name)}`;
    yield* strangers(state, row);
  }
  for (const name of state.contendedByName.keys())
    if (!state.resourceByName.has(name)) yield `${name} is listed as contended and is not set`;
  yield* accountsEqualARecount(state);
}

/** Slot leases per project, and waits with tokens. */
function* accountsEqualARecount(state: SwarmState): Generator<string> {
  const leasesByProject = new Map<string, number>();
  let waits = 0;
  for (const slotLeases of state.slotsByAgent.values()) {
    for (const { project, tokens, state: leaseState } of slotLeases.values()) {
      if (project !== undefined) leasesByProject.set(project, (leasesByProject.get(project) ?? 0) + 1);
      if (leaseState === "waiting" && tokens > 0) waits += 1;
    }
  }
  for (const { project, slotLeases } of state.projectById.values()) {
    const leases = leasesByProject.get(project) ?? 0;
    if (slotLeases !== leases) yield `project ${project} counts ${slotLeases} slot leases, not ${leases}`;
    leasesByProject.delete(project);
  }
  for (const project of leasesByProject.keys()) yield `project ${project} of a slot lease is gone`;
  if (state.waitsWithTokens !== waits)
    yield `${state.waitsWithTokens} requests with tokens are counted as waiting, not ${waits}`;
}

/** Each listed slot lease is known to its agent, in the listed state, and needs the resource. */
function* strangers(state: SwarmState, row: ResourceRow): Generator<string> {
  for (const [expected, list] of [
    ["held", row.holdings],
    ["waiting", row.waiting],
  ] as const) {
    for (const [key, slotLease] of list) {
      if (
        slotLeaseKey(slotLease) !== key ||
        findSlotLease(state, slotLease.agent, slotLease.handle) !== slotLease
      )
        yield `${row.resource} lists ${key}, which its agent does not have`;
      if (slotLease.state !== expected || !slotLease.needs.has(row.resource))
        yield `${row.resource} lists ${key} as ${expected}, it is ${slotLease.state}`;
    }
  }
}

/** Each slot lease is wholly held or wholly waiting, in every needed resource, and has not ended. */
function* oneStateAHandle(state: SwarmState): Generator<string> {
  for (const [agent, slotLeases] of state.slotsByAgent) {
    if (slotLeases.size === 0) yield `agent ${agent} is listed without slots`;
    if (slotLeases.size > limits.slotLeasesPerAgentMax)
      yield `agent ${agent} has ${slotLeases.size} slot leases`;
    for (const [handle, slotLease] of slotLeases) {
      const key = slotLeaseKey({ agent, handle });
      if (slotLease.handle !== handle || slotLease.agent !== agent)
        yield `slot lease ${slotLeaseKey(slotLease)} is kept as ${key}`;
      if (state.endedSlotByKey.has(key)) yield `slot lease ${key} is ${slotLease.state} and has ended`;
      for (const resource of slotLease.needs.keys()) {
        const row = state.resourceByName.get(resource);
        const isHeld = row?.holdings.get(key) === slotLease;
        const isWaiting = row?.waiting.get(key) === slotLease;
        if (isHeld !== (slotLease.state === "held") || isWaiting !== (slotLease.state === "waiting"))
          yield `slot lease ${key} is ${slotLease.state}, ${resource} knows it as held: ${isHeld}, waiting: ${isWaiting}`;
      }
      const isTimed = slotLease.state === "waiting" && slotLease.deadline !== undefined;
      if (isTimed !== (slotLease.timeoutTimer !== undefined))
        yield `slot lease ${key} should have a timer: ${isTimed}`;
      const mayIdle = slotLease.state === "held" && slotLease.idleTimeoutMs !== undefined;
      if (mayIdle !== (slotLease.idleTimer !== undefined))
        yield `slot lease ${key} should have an idle time: ${mayIdle}`;
      if (state.unchargedSlots.has(key))
        yield `slot lease ${key} is ${slotLease.state} and waits to be charged`;
    }
  }
  if (state.unchargedSlots.size > limits.unchargedAttemptsMax)
    yield `${state.unchargedSlots.size} lost slot leases wait for their report`;
  if (state.endedSlotByKey.size > limits.endedHandlesMax)
    yield `${state.endedSlotByKey.size} ended handles, at most ${limits.endedHandlesMax}`;
}

function* slotsBelongToTheLiving(state: SwarmState): Generator<string> {
  for (const [id, slotLeases] of state.slotsByAgent) {
    const agent = state.agentById.get(id);
    for (const slotLease of slotLeases.values()) {
      if (agent?.online !== true || agent.incarnation !== slotLease.incarnation)
        yield `slot lease ${slotLeaseKey(slotLease)} is ${slotLease.state} by a session that has ended`;
    }
  }
}

/** With auto-tune off, no tuned value is left; with auto-tune on, α lies in LOCO's safe range. */
function* alphaMovesWhereItMay(state: SwarmState): Generator<string> {
  for (const row of state.resourceByName.values()) {
    const { value, autoTune, from } = alphaSettingsAt(state, row);
    if (row.tunedAlpha !== undefined && !autoTune)
      yield `α of ${row.resource} moved to ${row.tunedAlpha}, though its ${from} keeps it at ${value}`;
    const alpha = alphaAt(state, row);
    const highest = autoTune ? alphaByPreset.throughput : 1;
    if (!(alpha >= 0 && alpha <= highest)) yield `α of ${row.resource} is ${alpha}, outside 0 to ${highest}`;
  }
}

/**
 * No request waits for free slots. Walks the waiters, first all waiters past the starvation limit, each group in order
 * of asking. A waiter past the starvation limit reserves free slots in name order, until a resource lacks slots.
 */
function* noIdleSlot(state: SwarmState): Generator<string> {
  const waiting = whoMayBeGranted(state);
  if (waiting.length === 0) return;
  const left = new Map<ResourceName, number>();
  for (const [name, row] of state.resourceByName) {
    const held = sum(row.holdings.values(), ({ needs }) => needs.get(name) ?? 0);
    left.set(name, row.settings.slots - held);
  }
  const isLate = new Set(waiting.filter((slotLease) => hasWaitedTooLong(state, slotLease)));
  const inOrder = [...isLate, ...waiting.filter((slotLease) => !isLate.has(slotLease))];
  for (const slotLease of inOrder) {
    const missing = [...slotLease.needs].findIndex(([name, wanted]) => wanted > (left.get(name) ?? 0));
    if (missing === -1 && !waitsForTokens(state, slotLease, waiting))
      yield `${slotLeaseKey(slotLease)} waits for ${[...slotLease.needs.keys()].join(" and ")} although the slots are free`;
    if (isLate.has(slotLease) && !waitsForTokens(state, slotLease, waiting))
      for (const [name, wanted] of [...slotLease.needs].slice(0, missing + 1))
        left.set(name, (left.get(name) ?? 0) - wanted);
  }
}

/** Whether the request's tokens do not fit, or would take room kept for a request past the starvation limit. */
function waitsForTokens(
  state: SwarmState,
  slotLease: SlotLeaseRow,
  waiting: readonly SlotLeaseRow[],
): boolean {
  if (slotLease.tokens === 0) return false;
  if (tokensReasonOf(state, slotLease, state.at) !== undefined) return true;
  return waiting.some((other) => {
    if (!hasWaitedTooLong(state, other)) return false;
    const reason = tokensReasonOf(state, other, state.at);
    if (reason === "rate") return keepsRateFrom(state, other, slotLease);
    return reason === "global-budget" || (reason === "project-budget" && other.project === slotLease.project);
  });
}

/** Whether a request past the starvation limit keeps a rate from another. Above a lowered rate it keeps none. */
function keepsRateFrom({ ratesByType }: SwarmState, late: SlotLeaseRow, other: SlotLeaseRow): boolean {
  const types = ratesOf(late).filter((type) => ratesByType.has(type));
  const fitsWhole = types.every((type) =>
    ratesByType.get(type)?.every(({ settings }) => late.tokens <= settings.tokensMax),
  );
  return fitsWhole && ratesOf(other).some((type) => types.includes(type));
}

function* noWaitInVain({ resourceByName }: SwarmState): Generator<string> {
  for (const { resource, settings, waiting } of resourceByName.values()) {
    for (const [key, { needs }] of waiting) {
      const wanted = needs.get(resource) ?? 0;
      if (wanted > settings.slots)
        yield `${key} waits for ${wanted} slots of ${resource}, which has ${settings.slots}`;
    }
  }
}

/** A resource on hold is granted again as the one probe, once the hold's time is over. */
function needsWhatIsOnHold({ holds }: SwarmState, { needs }: SlotLeaseRow): boolean {
  return [...needs.keys()].some((resource) => {
    const hold = holds.resource.get(resource);
    return hold !== undefined && (phaseOf(hold) === "held" || hold.probe?.handle !== undefined);
  });
}

/** Waiters in order of asking, without waiters of unresponsive agents and of resources on hold. */
function whoMayBeGranted(state: SwarmState): SlotLeaseRow[] {
  const waiting: SlotLeaseRow[] = [];
  for (const [id, slotLeases] of state.slotsByAgent) {
    if (state.agentById.get(id)?.unresponsive === true) continue;
    for (const slotLease of slotLeases.values())
      if (slotLease.state === "waiting" && !needsWhatIsOnHold(state, slotLease)) waiting.push(slotLease);
  }
  return waiting.sort((a, b) => a.order - b.order);
}

/** True if the request waits past the starvation limit at any of its resources. */
function hasWaitedTooLong({ policy, resourceByName }: SwarmState, slotLease: SlotLeaseRow): boolean {
  let isLate = false;
  for (const name of slotLease.needs.keys()) {
    const row = resourceByName.get(name);
    if (row === undefined) return false;
    const age = row.tick - (slotLease.requestedTicks.get(name) ?? row.tick);
    isLate ||= age > slotStarvationLimitTicks(policy, slotLease) * row.waiting.size;
  }
  return isLate;
}

function sum(slotLeases: Iterable<SlotLeaseRow>, of: (slotLease: SlotLeaseRow) => number): number {
  let total = 0;
  for (const slotLease of slotLeases) total += of(slotLease);
  return total;
}
