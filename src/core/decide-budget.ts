// When the journal records a budget as exceeded, and the charge of a report that comes too late. Not here: how ledgers
// change (budget-rows.ts), whether a task may run (scheduling/gates.ts).

import type { Instant, ProjectId } from "../ids.ts";
import { budgetRoom } from "../scheduling/gates.ts";
import { unchargedKey, usedTokens } from "../state/budget-rows.ts";
import type { Event } from "../state/event.ts";
import { totalAt } from "../state/rolling-window.ts";
import type { BudgetSettings } from "../state/settings.ts";
import type { SwarmState, TokenLedger } from "../state/state.ts";
import type { Command } from "./command.ts";

/** The charge for a report about a lost attempt; none when it was charged before, or used nothing. */
export function decideLateCharge(
  state: SwarmState,
  { agent, incarnation, token, project, task, attempt, outcome }: Extract<Command, { type: "ReportResult" }>,
): readonly Event[] {
  const uncharged = state.uncharged.get(unchargedKey({ agent, incarnation, token }));
  if (uncharged?.project !== project || uncharged.task !== task || uncharged.attempt !== attempt) return [];
  const tokens = usedTokens(uncharged, outcome.kind, outcome.tokens);
  if (tokens === 0) return [];
  return [{ type: "TokensCharged", project, task, attempt, agent, incarnation, token, tokens }];
}

/**
 * The budgets that an assignment or a settlement left exceeded, without those recorded within the budget's window
 * already. In every mode: a report may name more tokens than were reserved.
 */
export function budgetsExceeded(state: SwarmState, event: Event, at: Instant): readonly Event[] {
  if (!changesTokens(event)) return [];
  const { project } = event;
  const row = project === undefined ? undefined : state.projectById.get(project);
  const own = row?.settings?.budget;
  const global = state.policy.budget;
  if (own === undefined && global === undefined) return [];
  const events: Event[] = [];
  if (project !== undefined && row !== undefined && own !== undefined && isNews(row.ledger, own, at))
    events.push({ type: "BudgetExceeded", project, ...levels(row.ledger, own, at) });
  if (global !== undefined && isNews(state.ledger, global, at))
    events.push({ type: "BudgetExceeded", ...levels(state.ledger, global, at) });
  return events;
}

/** Whether an event reserved or spent tokens, of a project or of the swarm alone. */
function changesTokens(event: Event): event is Event & { readonly project?: ProjectId } {
  switch (event.type) {
    case "TokensCharged":
    case "TaskAssigned":
    case "TaskCompleted":
    case "AttemptFailed":
    case "TaskFailed":
    case "TaskDeadLettered":
    case "AttemptReleased":
      return true;
    case "SlotGranted":
    case "SlotReleased":
    case "SlotCharged":
      return event.tokens !== undefined;
    default:
      return false;
  }
}

function isNews(ledger: TokenLedger, budget: BudgetSettings, at: Instant): boolean {
  const { exceededAt } = ledger;
  const isSaid = exceededAt !== undefined && at - exceededAt < budget.windowMs;
  return !isSaid && budgetRoom(ledger, budget, at) < 0;
}

function levels(ledger: TokenLedger, budget: BudgetSettings, at: Instant) {
  const spent = ledger.spent === undefined ? 0 : totalAt(ledger.spent, at);
  return { spent, reserved: ledger.reserved, budget };
}
