// Budgets and rates as `status` answers them: what counts against each at one instant. Nothing here is a decision.

import type { Instant } from "../../ids.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { rateOpensAt, rateReserved } from "../../scheduling/gates.ts";
import { usedOf } from "../../state/rate.ts";
import { totalAt } from "../../state/rolling-window.ts";
import type { BudgetSettings } from "../../state/settings.ts";
import type { SwarmState, TokenLedger } from "../../state/state.ts";

type BudgetStatus = NonNullable<StatusResponse["budget"]>;
type RateStatus = NonNullable<StatusResponse["rates"]>[number];

/** @param at no earlier than the newest event of the state */
export function budgetStatusOf(ledger: TokenLedger, budget: BudgetSettings, at: Instant): BudgetStatus {
  const spent = ledger.spent === undefined ? 0 : totalAt(ledger.spent, at);
  return { spent, reserved: ledger.reserved, ...budget };
}

export function* rateStatusesOf(state: SwarmState, at: Instant): Generator<RateStatus> {
  for (const row of [...state.ratesByType.values()].flat()) {
    const { agentType, settings, use } = row;
    const opens = rateOpensAt(state, row, at);
    yield {
      type: agentType,
      used: usedOf(use, settings, at),
      reserved: rateReserved(state, row),
      ...settings,
      ...(opens !== undefined && opens > at ? { opensAt: opens } : {}),
    };
  }
}
