// What attempts hold back and use of the budgets: the only code that changes a ledger. An assignment reserves its
// estimate; the attempt's end settles it, which returns the reservation and spends what was used:
//
//   the report's tokens, whatever the outcome · without any, the reservation, for nobody knows better ·
//   nothing where infrastructure refused the attempt, or its agent was lost
//
// A revoked attempt keeps its reservation until it is released: until then it may still be using tokens. What a
// lost one used all the same is charged if its report comes after all, once.
// Not here: whether something fits (scheduling/gates.ts), when to say that a budget is exceeded (decide-budget.ts).

import { assert } from "../assert.ts";
import type { AgentId, Incarnation, Instant, Token } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf, FailureClass } from "./event.ts";
import { recordRates } from "./rate-rows.ts";
import { addTokens, type RollingWindow, roll } from "./rolling-window.ts";
import type { BudgetSettings } from "./settings.ts";
import type { OpenAttempt, ProjectRow, SwarmState, TokenLedger } from "./state.ts";
import { noteKept } from "./task-rows.ts";
import { addUse, windowFrom } from "./use-history.ts";

/** Counts an attempt that was just opened, and holds back its estimate. */
export function reserve(state: SwarmState, projectRow: ProjectRow, attempt: OpenAttempt, at: Instant): void {
  for (const owner of [state, projectRow]) {
    owner.openAttempts += 1;
    owner.ledger.reserved += attempt.tokensReserved;
    if (owner.ledger.spent !== undefined) roll(owner.ledger.spent, at);
  }
  reserveOfType(state, attempt, attempt.tokensReserved);
}

/** Ends what an attempt holds back: it occupies no place any more. @param used tokens, a whole number ≥ 0 */
export function settle(state: SwarmState, attempt: OpenAttempt, used: number, at: Instant): void {
  const projectRow = state.projectById.get(attempt.project);
  assert(projectRow !== undefined, `project ${attempt.project} is kept while it has open attempts`);
  for (const owner of [state, projectRow]) {
    owner.openAttempts -= 1;
    owner.ledger.reserved -= attempt.tokensReserved;
    assert(owner.openAttempts >= 0 && owner.ledger.reserved >= 0, "no more is returned than was reserved");
  }
  reserveOfType(state, attempt, -attempt.tokensReserved);
  spend(state, projectRow, attempt.agentType, used, at);
  noteKept(state, projectRow);
}

/** What an attempt's end costs. @param verdict how it ended @param reported tokens the agent named, if any */
export function usedTokens(
  { tokensReserved }: { readonly tokensReserved: number },
  verdict: FailureClass | "completed" | "revoked",
  reported: number | undefined,
): number {
  if (verdict === "lost") return 0;
  if (verdict === "infrastructure") return reported ?? 0;
  return reported ?? tokensReserved;
}

/** Remembers a lost attempt for the case that its report comes after all. */
export function awaitCharge(state: SwarmState, attempt: OpenAttempt, at: Instant): void {
  const { task, attempt: ordinal, project, agentType, tokensReserved } = attempt;
  const { uncharged } = state;
  for (let key = uncharged.oldestKey; key !== undefined; key = uncharged.oldestKey) {
    const hasRoom = uncharged.size < limits.unchargedAttemptsMax;
    if (hasRoom && (uncharged.oldest?.lostAt ?? 0) >= state.horizonAt) break;
    uncharged.delete(key);
  }
  uncharged.set(unchargedKey(attempt), {
    task,
    attempt: ordinal,
    project,
    agentType,
    tokensReserved,
    lostAt: at,
  });
}

/** Spends what a late report named; the next report of the same attempt finds nothing to charge. */
export function chargeLate(state: SwarmState, event: EventOf<"TokensCharged">, at: Instant): void {
  const key = unchargedKey(event);
  const uncharged = state.uncharged.get(key);
  assert(uncharged !== undefined, `attempt ${event.task}#${event.attempt} is charged once`);
  state.uncharged.delete(key);
  spend(state, state.projectById.get(uncharged.project), uncharged.agentType, event.tokens, at);
}

/** Under what a lost attempt is remembered: a token is granted once in a life. */
export function unchargedKey({
  agent,
  incarnation,
  token,
}: {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly token: Token;
}): string {
  return `${agent} ${incarnation} ${token}`;
}

/** Follows a change of an owner's budget. A window that is new, or of another length, begins with
 *  what was spent within that length, with or without a budget then. */
export function adoptBudget(
  ledger: TokenLedger,
  {
    before,
    after,
  }: { readonly before: BudgetSettings | undefined; readonly after: BudgetSettings | undefined },
  at: Instant,
): void {
  if (!isSameBudget(before, after)) ledger.exceededAt = undefined;
  ledger.spent = after === undefined ? undefined : windowOf(ledger, after.windowMs, at);
}

/** Puts on record that a budget is exceeded: a project's, or the swarm's where none is named. */
export function noteExceeded(state: SwarmState, event: EventOf<"BudgetExceeded">, at: Instant): void {
  const owner = event.project === undefined ? state : state.projectById.get(event.project);
  assert(owner !== undefined, `project ${event.project} has a budget`);
  owner.ledger.exceededAt = at;
}

/** Follows a change of what shares are compared by. @param windowMs `policy.guaranteeMs` as it is now */
export function adoptGuarantee(state: SwarmState, windowMs: number, at: Instant): void {
  for (const { ledger } of [state, ...state.projectById.values()])
    ledger.usage = windowFrom(ledger.history, windowMs, at);
}

/** By value: a replay reads anew what life handed on. */
function isSameBudget(a: BudgetSettings | undefined, b: BudgetSettings | undefined): boolean {
  return a?.tokens === b?.tokens && a?.windowMs === b?.windowMs && a?.mode === b?.mode;
}

function windowOf({ spent, history }: TokenLedger, windowMs: number, at: Instant): RollingWindow {
  return spent?.windowMs === windowMs ? spent : windowFrom(history, windowMs, at);
}

/** Counts what a type's agents hold back. The map holds no zeros: it grows with what is open, not with names. */
function reserveOfType(state: SwarmState, { agentType }: OpenAttempt, tokens: number): void {
  if (agentType === undefined) return;
  const reserved = (state.reservedByType.get(agentType) ?? 0) + tokens;
  assert(reserved >= 0, "no more is returned of a type than was reserved");
  if (reserved === 0) state.reservedByType.delete(agentType);
  else state.reservedByType.set(agentType, reserved);
}

/** A project that gave way to others meanwhile has no ledger: the swarm's remembers. */
function spend(
  state: SwarmState,
  projectRow: ProjectRow | undefined,
  agentType: string | undefined,
  tokens: number,
  at: Instant,
): void {
  for (const owner of projectRow === undefined ? [state] : [state, projectRow]) {
    addUse(owner.ledger.history, tokens, at);
    addTokens(owner.ledger.usage, tokens, at);
    if (owner.ledger.spent !== undefined) addTokens(owner.ledger.spent, tokens, at);
  }
  if (agentType !== undefined) recordRates(state, agentType, tokens, at);
}
