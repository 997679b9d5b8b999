// Rates of agent types in a snapshot, one line for each pair of type and window. Removed rates are included while some
// of their use counts. Also the order of the types with reserved tokens; the tokens are counted again with the open
// attempts.

import type { Instant } from "../../ids.ts";
import { type RateUse, rateWindowMs } from "../../state/rate.ts";
import { put } from "../../state/rate-rows.ts";
import type { RateSettings } from "../../state/settings.ts";
import type { RateRow, RatesByType, SwarmState } from "../../state/state.ts";
import { addNew, type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { readRateSettings } from "./settings.ts";
import { readWindow, windowFields } from "./values.ts";

export function* rateRows({ ratesByType, removedRatesByType }: SwarmState): Generator<Row> {
  for (const rows of ratesByType.values()) for (const row of rows) yield ["rate", rateFields(row)];
  for (const rows of removedRatesByType.values())
    for (const row of rows) yield ["removed-rate", rateFields(row)];
}

export function* reservedTypeRows({ reservedByType }: SwarmState): Generator<Row> {
  for (const agentType of reservedByType.keys()) yield ["reserved-type", { agentType }];
}

function rateFields({ agentType, settings, use }: RateRow): object {
  const { sliding, restarting } = use;
  return { agentType, settings, sliding: windowFields(sliding), restarting: { ...restarting } };
}

export class RateReader {
  readonly #state: SwarmState;
  /** The type read last, of the present rates and of the removed rates. */
  readonly #lastType = new Map<RatesByType, string>();

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readRate(fields: Fields): void {
    this.#read(fields, this.#state.ratesByType);
  }

  readRemoved(fields: Fields): void {
    this.#read(fields, this.#state.removedRatesByType);
  }

  readReservedType(fields: Fields): void {
    addNew(this.#state.reservedByType, fields.text("agentType"), 0, "type with reserved tokens");
  }

  #read(fields: Fields, rates: RatesByType): void {
    const agentType = fields.text("agentType");
    const settings = readRateSettings(fields);
    const { ratesByType, removedRatesByType } = this.#state;
    for (const known of [ratesByType, removedRatesByType])
      if (known.get(agentType)?.some((row) => row.settings.window === settings.window))
        refuse(`type ${agentType} has two rates ${settings.window}`);
    const newest = rates.get(agentType)?.at(-1);
    const isInOrder =
      newest === undefined ||
      (this.#lastType.get(rates) === agentType &&
        rateWindowMs[newest.settings.window] < rateWindowMs[settings.window]);
    if (!isInOrder) refuse(`the rates of type ${agentType} stand together, the shortest window first`);
    this.#lastType.set(rates, agentType);
    put(rates, { agentType, settings, use: readUse(fields, settings) });
  }

  /** After the open attempts were read. */
  checkReserved(): void {
    for (const [agentType, tokens] of this.#state.reservedByType)
      if (tokens === 0) refuse(`type ${agentType} has no reserved tokens`);
  }
}

function readUse(fields: Fields, settings: RateSettings): RateUse {
  const sliding = fields.within("sliding", readWindow);
  if (sliding.windowMs !== rateWindowMs[settings.window])
    refuse(`the window of a rate ${settings.window} is one of ${sliding.windowMs} ms`);
  const restarting = fields.within("restarting", (read) => ({
    tokens: read.whole("tokens"),
    startedAt: read.whole<Instant>("startedAt"),
  }));
  return { sliding, restarting };
}
