// The rates of agent types as rows: one row for each pair of type and window (budget document, section 4). A removed
// rate is remembered while any of its use counts, so that a later rate for the pair continues from that use. Not here:
// whether a rate is used up (scheduling/gates.ts), how a window counts (state/rate.ts).

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "./event.ts";
import { emptyUse, rateWindowMs, recordUse, usedOf } from "./rate.ts";
import type { RateWindow } from "./settings.ts";
import type { RateRow, RatesByType, SwarmState } from "./state.ts";

/** The rate of a type for one window, if any. */
export function rateOf(state: SwarmState, agentType: string, window: RateWindow): RateRow | undefined {
  return rowOf(state.ratesByType, agentType, window);
}

export function configureRate(
  state: SwarmState,
  { agentType, settings }: EventOf<"RateConfigured">,
  at: Instant,
): void {
  const { window } = settings;
  const known = rateOf(state, agentType, window) ?? rowOf(state.removedRatesByType, agentType, window);
  const row = known ?? { agentType, settings, use: emptyUse(window, at) };
  row.settings = settings;
  drop(state.removedRatesByType, row);
  put(state.ratesByType, row);
}

export function removeRate(
  state: SwarmState,
  { agentType, window }: EventOf<"RateRemoved">,
  at: Instant,
): void {
  const row = rateOf(state, agentType, window);
  assert(row !== undefined, `the rate of ${agentType} ${window} is removed while it is set`);
  drop(state.ratesByType, row);
  const removed = state.removedRatesByType;
  for (const rows of removed.values()) for (const each of rows) if (!counts(each, at)) drop(removed, each);
  for (const type of removed.keys()) {
    if (removed.has(agentType) || removed.size < limits.ratesMax) break;
    removed.delete(type);
  }
  put(removed, row);
}

/** Counts an agent's tokens in each window of its type, removed rates included. */
export function recordRates(
  { ratesByType, removedRatesByType }: SwarmState,
  agentType: string,
  tokens: number,
  at: Instant,
): void {
  for (const { use } of ratesByType.get(agentType) ?? []) recordUse(use, tokens, at);
  for (const { use } of removedRatesByType.get(agentType) ?? []) recordUse(use, tokens, at);
}

/** Adds a row in the order of window lengths; replaces a row for the same window. */
export function put(rates: RatesByType, row: RateRow): void {
  const others = (rates.get(row.agentType) ?? []).filter(
    ({ settings }) => settings.window !== row.settings.window,
  );
  const rows = [...others, row];
  rates.set(
    row.agentType,
    rows.sort((a, b) => lengthOf(a) - lengthOf(b)),
  );
}

function drop(rates: RatesByType, row: RateRow): void {
  const others = (rates.get(row.agentType) ?? []).filter((other) => other !== row);
  if (others.length === 0) rates.delete(row.agentType);
  else rates.set(row.agentType, others);
}

function rowOf(rates: RatesByType, agentType: string, window: RateWindow): RateRow | undefined {
  return rates.get(agentType)?.find(({ settings }) => settings.window === window);
}

function lengthOf({ settings }: RateRow): number {
  return rateWindowMs[settings.window];
}

function counts({ use }: RateRow, at: Instant): boolean {
  return usedOf(use, { sliding: true }, at) > 0 || usedOf(use, { sliding: false }, at) > 0;
}
