// What must be true of slots and of those who wait for them, as numbered checks (docs/invariants.md). As in
// invariants.ts, whose lists these belong to, they recount what the core only counts.

import type { ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import { alphaAt, alphaSettingsAt, slotCeilingTicks } from "../scheduling/slot-planner.ts";
import { alphaByPreset } from "../state/alpha.ts";
import type { ResourceSettings } from "../state/settings.ts";
import { acquisitionKey, findAcquisition } from "../state/slot-rows.ts";
import type { AcquisitionRow, ResourceRow, SwarmState } from "../state/state.ts";
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

/** Looks at one state after each of its batches, in order. */
export class SlotSuccession {
  #before: ReadonlyMap<string, SlotsBefore> = new Map();

  /** What changed since the last call in a way in which it never may. */
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

  /** Beyond its slots only a resource whose slots were lowered, and then with fewer and fewer held; the same of
   *  those that wait. A batch that set the resource anew may have granted before it did: there only `apply`, which
   *  asserts it at each grant, can tell. One that was removed and set anew has nothing before it. */
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
      yield `${name} counts a weight of ${row.waitingWeightThousandths} that waits, it is ${weight}`;
    if (state.contendedByName.has(name) !== row.waiting.size > 0)
      yield `that ${name} is waited for is ${state.contendedByName.has(name)}`;
    yield* strangers(state, row);
  }
  for (const name of state.contendedByName.keys())
    if (!state.resourceByName.has(name)) yield `${name} is waited for and is not set`;
}

/** Whoever holds or waits somewhere is known to its agent, and needs what it holds or waits for. */
function* strangers(state: SwarmState, row: ResourceRow): Generator<string> {
  for (const [expected, list] of [
    ["held", row.holdings],
    ["waiting", row.waiting],
  ] as const) {
    for (const [key, acquisition] of list) {
      if (
        acquisitionKey(acquisition) !== key ||
        findAcquisition(state, acquisition.agent, acquisition.handle) !== acquisition
      )
        yield `${row.resource} lists ${key}, which nobody asked for`;
      if (acquisition.state !== expected || !acquisition.needs.has(row.resource))
        yield `${row.resource} lists ${key} as ${expected}, it is ${acquisition.state}`;
    }
  }
}

/** Held whole or waiting whole, in every resource it needs, and not ended. */
function* oneStateAHandle(state: SwarmState): Generator<string> {
  for (const [agent, acquisitions] of state.slotsByAgent) {
    if (acquisitions.size === 0) yield `agent ${agent} is listed without slots`;
    if (acquisitions.size > limits.acquisitionsPerAgentMax)
      yield `agent ${agent} has ${acquisitions.size} acquisitions`;
    for (const [handle, acquisition] of acquisitions) {
      const key = acquisitionKey({ agent, handle });
      if (acquisition.handle !== handle || acquisition.agent !== agent)
        yield `acquisition ${acquisitionKey(acquisition)} is kept as ${key}`;
      if (state.endedSlotByKey.has(key)) yield `acquisition ${key} is ${acquisition.state} and has ended`;
      for (const resource of acquisition.needs.keys()) {
        const row = state.resourceByName.get(resource);
        const isHeld = row?.holdings.get(key) === acquisition;
        const isWaiting = row?.waiting.get(key) === acquisition;
        if (isHeld !== (acquisition.state === "held") || isWaiting !== (acquisition.state === "waiting"))
          yield `acquisition ${key} is ${acquisition.state}, ${resource} knows it as held: ${isHeld}, waiting: ${isWaiting}`;
      }
      const isTimed = acquisition.state === "waiting" && acquisition.deadline !== undefined;
      if (isTimed !== (acquisition.timeoutTimer !== undefined))
        yield `that acquisition ${key} ends by time is ${!isTimed}`;
    }
  }
  if (state.endedSlotByKey.size > limits.endedHandlesMax)
    yield `${state.endedSlotByKey.size} ended handles, at most ${limits.endedHandlesMax}`;
}

function* slotsBelongToTheLiving(state: SwarmState): Generator<string> {
  for (const [id, acquisitions] of state.slotsByAgent) {
    const agent = state.agentById.get(id);
    for (const acquisition of acquisitions.values()) {
      if (agent?.online !== true || agent.incarnation !== acquisition.incarnation)
        yield `acquisition ${acquisitionKey(acquisition)} is ${acquisition.state} by a life that is over`;
    }
  }
}

/** Where auto-tune is off, nothing of a move is left; where it is on, α lies in LOCO's safe range. */
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

/** Walks all that wait, those past the ceiling first and each in order of asking, with nothing but what is free:
 *  whoever all it needs is left for should have been granted; who is past the ceiling keeps what it finds. */
function* noIdleSlot(state: SwarmState): Generator<string> {
  const waiting = whoMayBeGranted(state);
  if (waiting.length === 0) return;
  const left = new Map<ResourceName, number>();
  for (const [name, row] of state.resourceByName) {
    const held = sum(row.holdings.values(), ({ needs }) => needs.get(name) ?? 0);
    left.set(name, row.settings.slots - held);
  }
  const isLate = new Set(waiting.filter((acquisition) => hasWaitedTooLong(state, acquisition)));
  const inOrder = [...isLate, ...waiting.filter((acquisition) => !isLate.has(acquisition))];
  for (const acquisition of inOrder) {
    const missing = [...acquisition.needs].findIndex(([name, wanted]) => wanted > (left.get(name) ?? 0));
    if (missing === -1)
      yield `${acquisitionKey(acquisition)} waits for ${[...acquisition.needs.keys()].join(" and ")} though it is free`;
    if (isLate.has(acquisition))
      for (const [name, wanted] of [...acquisition.needs].slice(0, missing + 1))
        left.set(name, (left.get(name) ?? 0) - wanted);
  }
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

/** All that wait, in order of asking, but those of agents that may be dead. */
function whoMayBeGranted(state: SwarmState): AcquisitionRow[] {
  const waiting: AcquisitionRow[] = [];
  for (const [id, acquisitions] of state.slotsByAgent) {
    if (state.agentById.get(id)?.unresponsive === true) continue;
    for (const acquisition of acquisitions.values())
      if (acquisition.state === "waiting") waiting.push(acquisition);
  }
  return waiting.sort((a, b) => a.order - b.order);
}

/** Past the ceiling at one of its resources. */
function hasWaitedTooLong({ policy, resourceByName }: SwarmState, acquisition: AcquisitionRow): boolean {
  let isLate = false;
  for (const name of acquisition.needs.keys()) {
    const row = resourceByName.get(name);
    if (row === undefined) return false;
    const age = row.tick - (acquisition.requestedTicks.get(name) ?? row.tick);
    isLate ||= age > slotCeilingTicks(policy, acquisition) * row.waiting.size;
  }
  return isLate;
}

function sum(acquisitions: Iterable<AcquisitionRow>, of: (acquisition: AcquisitionRow) => number): number {
  let total = 0;
  for (const acquisition of acquisitions) total += of(acquisition);
  return total;
}
