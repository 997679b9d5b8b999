// Resources and slot leases in a snapshot. Slots in use and waiters are counted and listed again from the slot leases,
// which stand by agent and in order of asking.

import type { AgentId, Instant, ProjectId, ResourceName, SlotHandle } from "../../ids.ts";
import { slotLeaseKey } from "../../state/slot-key.ts";
import { newResourceRow } from "../../state/slot-rows.ts";
import { ratesOf } from "../../state/slot-tokens.ts";
import type { ResourceRow, SlotEnding, SlotLeaseRow, SwarmState, Timer } from "../../state/state.ts";
import { addNew, allOf, Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { Places, placesIn } from "./places.ts";
import { readResourceSettings } from "./settings.ts";
import type { TimerReader } from "./timers.ts";
import { readTimer, type TimerWords } from "./values.ts";

export function* resourceRows({ resourceByName, contendedByName }: SwarmState): Generator<Row> {
  const contended = placesIn(contendedByName.keys());
  for (const row of resourceByName.values()) {
    const { inUse: _, holdings: __, waiting: ___, waitingWeightThousandths: ____, ...fields } = row;
    yield ["resource", { ...fields, contended: contended.get(row.resource) }];
  }
}

export function* slotLeaseRows(state: SwarmState): Generator<Row> {
  const holdings = new Map<ResourceName, ReadonlyMap<string, number>>();
  for (const row of state.resourceByName.values()) holdings.set(row.resource, placesIn(row.holdings.keys()));
  for (const slots of state.slotsByAgent.values()) {
    for (const slot of slots.values()) {
      const { incarnation: _, requestedTicks, timeoutTimer, idleTimer, ...fields } = slot;
      const needs = Array.from(slot.needs, ([resource, count]) => {
        const place = holdings.get(resource)?.get(slotLeaseKey(slot));
        return { resource, slots: count, requestedTick: requestedTicks.get(resource), place };
      });
      yield [
        "slot-lease",
        { ...fields, needs, timerOrder: timeoutTimer?.order, idle: timerFields(idleTimer) },
      ];
    }
  }
  for (const [key, ending] of state.endedSlotByKey) yield ["ended-slot-lease", { key, ending }];
  for (const [key, uncharged] of state.unchargedSlots) yield ["uncharged-slot-lease", { key, ...uncharged }];
}

function timerFields(timer: Timer | undefined): TimerWords | undefined {
  return timer === undefined ? undefined : { dueAt: timer.dueAt, order: timer.order };
}

const endings = allOf<SlotEnding>({
  released: true,
  lost: true,
  "agent-gone": true,
  aborted: true,
  "timed-out": true,
  "above-capacity": true,
  "on-hold": true,
  idle: true,
});
const states = allOf<SlotLeaseRow["state"]>({ waiting: true, held: true });

interface Need {
  readonly resource: ResourceRow;
  readonly slots: number;
  readonly requestedTick: number;
  /** Position among the holdings of the resource. */
  readonly place: number | undefined;
}

interface ReadResource {
  readonly row: ResourceRow;
  readonly holdings: Places<SlotLeaseRow>;
  held: number;
}

export class SlotLeaseReader {
  readonly #state: SwarmState;
  readonly #timers: TimerReader;
  readonly #resources = new Map<ResourceRow, ReadResource>();
  readonly #contended = new Places<ResourceRow>("contended resources");
  readonly #slots: SlotLeaseRow[] = [];
  readonly #liveKeys = new Set<string>();

  constructor(state: SwarmState, timers: TimerReader) {
    this.#state = state;
    this.#timers = timers;
  }

  readResource(fields: Fields): void {
    const resource = fields.text<ResourceName>("resource");
    const row = newResourceRow(resource, readResourceSettings(fields), fields.whole("measuredAt"));
    row.tick = fields.whole("tick");
    row.tunedAlpha = fields.optionalAmount("tunedAlpha", { max: 1 });
    row.depths = depthsOf(fields);
    row.grants = fields.whole("grants");
    row.heldSlotMs = fields.amount("heldSlotMs");
    row.slotMs = fields.amount("slotMs");
    this.#contended.put(fields.optionalWhole("contended"), row);
    addNew(this.#state.resourceByName, resource, row, "resource");
    this.#resources.set(row, { row, holdings: new Places(`holdings of ${resource}`), held: 0 });
  }

  readSlotLease(fields: Fields): void {
    const agent = known(this.#state.agentById, fields.text<AgentId>("agent"), "agent");
    if (!agent.online) refuse(`agent ${agent.id} is offline and has a slot lease`);
    const needs = fields.list("needs").map((item) => this.#need(item));
    const slot: SlotLeaseRow = {
      handle: fields.text("handle"),
      agent: agent.id,
      incarnation: agent.incarnation,
      holder: fields.optionalText("holder"),
      needs: new Map(needs.map(({ resource, slots }) => [resource.resource, slots])),
      weightThousandths: fields.whole("weightThousandths"),
      as: fields.optionalText("as"),
      label: fields.optionalText("label"),
      project: fields.optionalText<ProjectId>("project"),
      user: fields.optionalText("user"),
      tokens: fields.whole("tokens"),
      agentType: fields.optionalText("agentType"),
      idleTimeoutMs: fields.optionalWhole("idleTimeoutMs", { min: 1 }),
      order: fields.whole("order", { min: 1, max: this.#state.slotLeases }),
      requestedAt: fields.whole("requestedAt"),
      requestedTicks: new Map(needs.map(({ resource, requestedTick }) => [resource.resource, requestedTick])),
      state: fields.oneOf("state", states),
      grantedAt: fields.optionalWhole<Instant>("grantedAt"),
      deadline: fields.optionalWhole<Instant>("deadline"),
      timeoutTimer: undefined,
      idleTimer: undefined,
    };
    if (slot.needs.size === 0 || slot.needs.size !== needs.length)
      refuse(`slot lease ${slotLeaseKey(slot)} needs nothing, or the same twice`);
    if ((slot.state === "held") !== (slot.grantedAt !== undefined))
      refuse(`slot lease ${slotLeaseKey(slot)} is ${slot.state}, granted: ${slot.grantedAt !== undefined}`);
    this.#start(slot, fields.optionalWhole("timerOrder", { min: 1 }));
    this.#startIdle(slot, fields.optionalWithin("idle", readTimer));
    for (const need of needs) this.#use(slot, need);
    this.#count(slot);
    this.#keep(slot);
  }

  readEnded(fields: Fields): void {
    const key = fields.text("key");
    if (this.#liveKeys.has(key)) refuse(`slot lease ${key} is live and has ended`);
    addNew(this.#state.endedSlotByKey, key, fields.oneOf("ending", endings), "ended slot lease");
  }

  readUncharged(fields: Fields): void {
    const uncharged = {
      project: fields.optionalText<ProjectId>("project"),
      rates: fields.names<string>("rates"),
      tokens: fields.whole("tokens"),
      charged: fields.whole("charged"),
      lostAt: fields.whole<Instant>("lostAt"),
    };
    const key = fields.text("key");
    if (this.#liveKeys.has(key)) refuse(`slot lease ${key} is live and lost`);
    addNew(this.#state.unchargedSlots, key, uncharged, "lost slot lease");
  }

  /** After all slot leases were read. */
  list(): void {
    this.#slots.sort((a, b) => a.order - b.order);
    for (const [at, slot] of this.#slots.entries()) {
      if (this.#slots[at - 1]?.order === slot.order) refuse(`there are two slot leases ${slot.order}`);
      if (slot.state === "held") continue;
      for (const name of slot.needs.keys()) {
        const row = known(this.#state.resourceByName, name, "resource");
        row.waiting.set(slotLeaseKey(slot), slot);
        row.waitingWeightThousandths += slot.weightThousandths;
      }
    }
    const isContended = (row: ResourceRow) => row.waiting.size > 0;
    const contended = [...this.#resources.keys()].filter(isContended).length;
    for (const row of this.#contended.inOrder(contended, isContended))
      this.#state.contendedByName.set(row.resource, row);
    for (const { row, holdings, held } of this.#resources.values())
      for (const slot of holdings.inOrder(held, ({ state }) => state === "held"))
        row.holdings.set(slotLeaseKey(slot), slot);
  }

  #need(item: unknown): Need {
    const fields = new Fields(item, "slot-lease.needs");
    const need = {
      resource: known(this.#state.resourceByName, fields.text<ResourceName>("resource"), "resource"),
      slots: fields.whole("slots", { min: 1 }),
      requestedTick: fields.whole("requestedTick"),
      place: fields.optionalWhole("place"),
    };
    fields.end();
    return need;
  }

  #start(slot: SlotLeaseRow, order: number | undefined): void {
    const dueAt = slot.state === "waiting" ? slot.deadline : undefined;
    if ((dueAt === undefined) !== (order === undefined))
      refuse(`slot lease ${slotLeaseKey(slot)} is ${slot.state} with a wrong timer`);
    if (dueAt !== undefined && order !== undefined)
      slot.timeoutTimer = this.#timers.start({ dueAt, order }, { kind: "acquire-timeout", slot });
  }

  #startIdle(slot: SlotLeaseRow, timer: TimerWords | undefined): void {
    const isTimed = slot.state === "held" && slot.idleTimeoutMs !== undefined;
    if (isTimed !== (timer !== undefined))
      refuse(`slot lease ${slotLeaseKey(slot)} is ${slot.state} with a wrong idle time`);
    if (timer !== undefined) slot.idleTimer = this.#timers.start(timer, { kind: "slot-idle", slot });
  }

  /** Project, reserved tokens, and waits with tokens. */
  #count(slot: SlotLeaseRow): void {
    const { project, tokens } = slot;
    const projectRow = project === undefined ? undefined : known(this.#state.projectById, project, "project");
    if (projectRow !== undefined) projectRow.slotLeases += 1;
    if (tokens === 0) return;
    if (slot.state === "waiting") {
      this.#state.waitsWithTokens += 1;
      return;
    }
    const { reservedByType, ledger } = this.#state;
    for (const each of projectRow === undefined ? [ledger] : [ledger, projectRow.ledger])
      each.reserved += tokens;
    for (const type of ratesOf(slot))
      reservedByType.set(type, known(reservedByType, type, "type with reserved tokens") + tokens);
  }

  #use(slot: SlotLeaseRow, { resource, slots, place }: Need): void {
    const read = known(this.#resources, resource, "resource");
    read.holdings.put(place, slot);
    if (slot.state !== "held") return;
    resource.inUse += slots;
    read.held += 1;
  }

  /** An agent's slot leases stand together, in order of asking. */
  #keep(slot: SlotLeaseRow): void {
    const { slotsByAgent } = this.#state;
    const before = this.#slots.at(-1);
    const isFirst = before?.agent !== slot.agent;
    if (isFirst ? slotsByAgent.has(slot.agent) : before.order >= slot.order)
      refuse(`slot lease ${slotLeaseKey(slot)} is out of order`);
    const own = slotsByAgent.get(slot.agent) ?? new Map<SlotHandle, SlotLeaseRow>();
    addNew(own, slot.handle, slot, `slot lease of ${slot.agent}`);
    slotsByAgent.set(slot.agent, own);
    this.#slots.push(slot);
    this.#liveKeys.add(slotLeaseKey(slot));
  }
}

function depthsOf(fields: Fields): readonly number[] {
  const depths = fields.list("depths");
  const isFine = depths.every((depth) => Number.isSafeInteger(depth) && (depth as number) >= 0);
  if (!isFine) refuse("resource.depths are no weights", "resource.depths");
  return depths as readonly number[];
}
