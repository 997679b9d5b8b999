// Holds in a snapshot, below the agents and slot leases that probe them, and refusals in a row by type.

import type { AgentId, AssignmentNumber, Instant, ResourceName, SlotHandle } from "../../ids.ts";
import { type HoldBasis, type HoldProbe, type HoldScope, holdScopes } from "../../state/hold.ts";
import { findSlotLease } from "../../state/slot-rows.ts";
import type { HoldRow, SwarmState } from "../../state/state.ts";
import { addNew, allOf, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import type { TimerReader } from "./timers.ts";

export function* holdRows({ holds, refusalsByType }: SwarmState): Generator<Row> {
  for (const on of holdScopes)
    for (const { timer, changedAt: _, ...fields } of holds[on].values())
      yield ["hold", { ...fields, timerOrder: timer?.order }];
  for (const [agentType, streak] of refusalsByType) yield ["refusal-streak", { agentType, ...streak }];
}

const bases = allOf<HoldBasis>({ agent: true, refusals: true, operator: true });

export class HoldReader {
  readonly #state: SwarmState;
  readonly #timers: TimerReader;
  #scope = 0;

  constructor(state: SwarmState, timers: TimerReader) {
    this.#state = state;
    this.#timers = timers;
  }

  readHold(fields: Fields): void {
    const on = fields.oneOf("on", holdScopes);
    const name = fields.text("name");
    this.#checkOrder(on);
    const hold: HoldRow = {
      on,
      name,
      placedAt: fields.whole("placedAt"),
      until: fields.whole<Instant>("until"),
      by: fields.oneOf("by", bases),
      step: fields.optionalWhole("step", { min: 1 }),
      reason: fields.optionalText("reason"),
      timer: undefined,
      probe: fields.optionalWithin("probe", (probe) => this.#probe(on, probe)),
      changedAt: 0,
    };
    this.#checkTarget(hold);
    if (holdScopes.slice(holdScopes.indexOf(on) + 1).some((later) => this.#state.holds[later].size > 0))
      refuse(`the hold on ${on} ${name} stands too late`);
    const order = fields.optionalWhole("timerOrder", { min: 1 });
    if (order !== undefined && hold.probe !== undefined)
      refuse(`${on} ${name} is probed before its hold ends`);
    if (order !== undefined)
      hold.timer = this.#timers.start({ dueAt: hold.until, order }, { kind: "hold", hold });
    addNew(this.#state.holds[on], name, hold, `hold on ${on}`);
  }

  readStreak(fields: Fields): void {
    const agent = fields.optionalText<AgentId>("agent");
    const streak = { count: fields.whole("count", { min: 1 }), ...(agent === undefined ? {} : { agent }) };
    addNew(this.#state.refusalsByType, fields.text("agentType"), streak, "refusals of type");
  }

  /** Scopes have one order: otherwise one state would have several snapshots. */
  #checkOrder(on: HoldScope): void {
    const scope = holdScopes.indexOf(on);
    if (scope < this.#scope) refuse(`a hold on ${on} follows one on ${holdScopes[this.#scope]}`);
    this.#scope = scope;
  }

  #checkTarget({ on, name }: HoldRow): void {
    if (on === "agent") known(this.#state.agentById, name as AgentId, "agent");
    if (on === "resource") known(this.#state.resourceByName, name as ResourceName, "resource");
  }

  #probe(on: HoldScope, fields: Fields): HoldProbe {
    const agent = known(this.#state.agentById, fields.text<AgentId>("agent"), "agent");
    const number = fields.optionalWhole<AssignmentNumber>("number", { min: 1 });
    const handle = fields.optionalText<SlotHandle>("handle");
    if ((handle === undefined) !== (on !== "resource"))
      refuse(`the probe of a hold on ${on} is of another sort`);
    if (number !== undefined) known(agent.open, number, `attempt of ${agent.id}`);
    else if (handle === undefined || findSlotLease(this.#state, agent.id, handle)?.state !== "held")
      refuse(`a hold on ${on} is probed by nothing that runs`);
    return {
      agent: agent.id,
      ...(handle === undefined ? {} : { handle }),
      ...(number === undefined ? {} : { number }),
    };
  }
}
