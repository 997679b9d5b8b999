// Rates of agent types in a snapshot, those that were removed while something of their use counts, and the order of
// the types that hold tokens back. How many they hold back is counted anew with the open attempts.

import type { RateUse } from "../../scheduling/rate.ts";
import type { RateRow, SwarmState } from "../state.ts";
import { addNew, type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { readRateSettings } from "./settings.ts";
import { readWindow, windowFields } from "./values.ts";

export function* rateRows({ rateByType, removedRateByType }: SwarmState): Generator<Row> {
  for (const row of rateByType.values()) yield ["rate", rateFields(row)];
  for (const row of removedRateByType.values()) yield ["removed-rate", rateFields(row)];
}

export function* reservedTypeRows({ reservedByType }: SwarmState): Generator<Row> {
  for (const agentType of reservedByType.keys()) yield ["reserved-type", { agentType }];
}

function rateFields({ agentType, settings, use }: RateRow): object {
  const used =
    use.kind === "sliding" ? { sliding: windowFields(use.window) } : { restarting: { ...use.window } };
  return { agentType, settings, ...used };
}

export class RateReader {
  readonly #state: SwarmState;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readRate(fields: Fields): void {
    this.#read(fields, this.#state.rateByType);
  }

  readRemoved(fields: Fields): void {
    this.#read(fields, this.#state.removedRateByType);
  }

  readReservedType(fields: Fields): void {
    addNew(this.#state.reservedByType, fields.text("agentType"), 0, "type that holds tokens back");
  }

  #read(fields: Fields, rateByType: Map<string, RateRow>): void {
    const agentType = fields.text("agentType");
    const settings = readRateSettings(fields);
    if (this.#state.rateByType.has(agentType)) refuse(`type ${agentType} has two rates`);
    addNew(rateByType, agentType, { agentType, settings, use: readUse(fields, settings.sliding) }, "rate of");
  }

  /** After the open attempts were read. */
  checkReserved(): void {
    for (const [agentType, tokens] of this.#state.reservedByType)
      if (tokens === 0) refuse(`type ${agentType} holds no tokens back`);
  }
}

function readUse(fields: Fields, isSliding: boolean): RateUse {
  if (isSliding) return { kind: "sliding", window: fields.within("sliding", readWindow) };
  const window = fields.within("restarting", (restarting) => ({
    tokens: restarting.whole("tokens"),
    startedAt: restarting.whole<RestartedAt>("startedAt"),
  }));
  return { kind: "restarting", window };
}

type RestartedAt = Extract<RateUse, { kind: "restarting" }>["window"]["startedAt"];
