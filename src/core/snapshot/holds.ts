// Holds in a snapshot, below the agents and slot leases that probe them, and refusals in a row.

import type {
  AgentId,
  AssignmentNumber,
  Instant,
  Kind,
  ProjectId,
  ResourceName,
  SlotHandle,
  TaskId,
} from "../../ids.ts";
import { limits } from "../../limits.ts";
import {
  type CountedRefusal,
  type HoldBasis,
  type HoldProbe,
  type HoldScope,
  type HoldTarget,
  holdScopes,
} from "../../state/hold.ts";
import { addUser } from "../../state/hold-rows.ts";
import { findSlotLease } from "../../state/slot-rows.ts";
import type { HoldRow, SwarmState } from "../../state/state.ts";
import { addNew, allOf, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import type { TimerReader } from "./timers.ts";

export function* holdRows({ holds, refusalsInARow }: SwarmState): Generator<Row> {
  for (const on of holdScopes)
    for (const hold of holds[on].values()) {
      const { name, placedAt, until, by, step, reason, setBack, probe, timer } = hold;
      const users = usersOf(hold);
      const timerOrder = timer?.order;
      yield ["hold", { on, name, placedAt, until, by, step, reason, users, setBack, probe, timerOrder }];
    }
  for (const on of holdScopes)
    for (const [name, row] of refusalsInARow[on])
      for (const refusal of row) yield ["refusal", { on, name, ...refusal }];
}

function usersOf({ users }: HoldRow): Readonly<Record<string, readonly string[]>> | undefined {
  if (users.size === 0) return undefined;
  return Object.fromEntries([...users].map(([agent, kinds]) => [agent, [...kinds]]));
}

const bases = allOf<HoldBasis>({ agent: true, refusals: true, operator: true });

export class HoldReader {
  readonly #state: SwarmState;
  readonly #timers: TimerReader;
  #scope = 0;
  #refusalScope = 0;

  constructor(state: SwarmState, timers: TimerReader) {
    this.#state = state;
    this.#timers = timers;
  }

  readHold(fields: Fields): void {
    const on = fields.oneOf("on", holdScopes);
    const name = fields.text("name");
    this.#scope = inOrder("hold", on, this.#scope);
    const hold: HoldRow = {
      on,
      name,
      placedAt: fields.whole("placedAt"),
      until: fields.whole<Instant>("until"),
      by: fields.oneOf("by", bases),
      step: fields.optionalWhole("step", { min: 1 }),
      reason: fields.optionalText("reason"),
      users: new Map(),
      setBack: fields.optionalWithin("setBack", (task) => ({
        project: task.text<ProjectId>("project"),
        task: task.text<TaskId>("task"),
      })),
      timer: undefined,
      probe: fields.optionalWithin("probe", (probe) => this.#probe(on, probe)),
      changedAt: 0,
    };
    this.#checkTarget(hold);
    this.#users(hold, fields.optionalLists("users"));
    if (holdScopes.slice(holdScopes.indexOf(on) + 1).some((later) => this.#state.holds[later].size > 0))
      refuse(`the hold on ${on} ${name} stands too late`);
    const order = fields.optionalWhole("timerOrder", { min: 1 });
    const trustedAt = hold.probe?.trustedAt;
    if (hold.probe !== undefined && (order === undefined) !== (trustedAt === undefined))
      refuse(`the probe of ${on} ${name} has a timer, or an instant, alone`);
    if (order !== undefined)
      hold.timer = this.#timers.start({ dueAt: trustedAt ?? hold.until, order }, { kind: "hold", hold });
    addNew(this.#state.holds[on], name, hold, `hold on ${on}`);
  }

  readRefusal(fields: Fields): void {
    const target = { on: fields.oneOf("on", holdScopes), name: fields.text("name") };
    this.#refusalScope = inOrder("refusal", target.on, this.#refusalScope);
    this.#checkTarget(target);
    const holder = fields.optionalText("holder");
    const handle = fields.optionalText<SlotHandle>("handle");
    const refusal: CountedRefusal = {
      agent: fields.text("agent"),
      ...(holder === undefined ? {} : { holder }),
      ...(handle === undefined ? {} : { handle }),
    };
    const rows = this.#state.refusalsInARow[target.on];
    const { size } = rows;
    const row = rows.get(target.name);
    rows.set(target.name, [...(row ?? []), refusal]);
    const isLast = rows.size > size || [...rows.keys()].at(-1) === target.name;
    if (!isLast || (row?.length ?? 0) + 1 >= limits.refusalsBeforeHold)
      refuse(`a refusal of ${target.on} ${target.name} stands too late`);
  }

  #checkTarget({ on, name }: HoldTarget): void {
    if (on === "agent") known(this.#state.agentById, name as AgentId, "agent");
    if (on === "resource") known(this.#state.resourceByName, name as ResourceName, "resource");
  }

  #users(hold: HoldRow, kindsByAgent: Readonly<Record<string, readonly string[]>> | undefined): void {
    if (kindsByAgent === undefined) return;
    const users = Object.entries(kindsByAgent);
    if (users.length === 0 || hold.on !== "resource") refuse(`${hold.on} ${hold.name} has users in vain`);
    for (const [id, kinds] of users) {
      const agent = known(this.#state.agentById, id as AgentId, "agent");
      if (new Set(kinds).size !== kinds.length) refuse(`${agent.id} uses ${hold.name} for one kind twice`);
      for (const kind of kinds as readonly Kind[]) addUser(this.#state, hold, { agent: agent.id, kind });
    }
  }

  #probe(on: HoldScope, fields: Fields): HoldProbe {
    const agent = known(this.#state.agentById, fields.text<AgentId>("agent"), "agent");
    const number = fields.optionalWhole<AssignmentNumber>("number", { min: 1 });
    const handle = fields.optionalText<SlotHandle>("handle");
    if (handle !== undefined && on !== "resource") refuse(`the probe of a hold on ${on} is of another sort`);
    if (number !== undefined) known(agent.open, number, `attempt of ${agent.id}`);
    else if (handle === undefined || findSlotLease(this.#state, agent.id, handle)?.state !== "held")
      refuse(`a hold on ${on} is probed by nothing that runs`);
    const trustedAt = fields.optionalWhole<Instant>("trustedAt");
    return {
      agent: agent.id,
      ...(handle === undefined ? {} : { handle }),
      ...(number === undefined ? {} : { number }),
      ...(trustedAt === undefined ? {} : { trustedAt }),
    };
  }
}

/** Scopes have one order: otherwise one state would have several snapshots. @returns the place of the scope */
function inOrder(row: string, on: HoldScope, before: number): number {
  const scope = holdScopes.indexOf(on);
  if (scope < before) refuse(`a ${row} on ${on} follows one on ${holdScopes[before]}`);
  return scope;
}
