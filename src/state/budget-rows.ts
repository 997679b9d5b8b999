// Tokens that attempts reserve and use: the only code that changes a ledger. An assignment reserves its estimate. The
// attempt's end settles the estimate, which returns the reservation and spends:
//
//   the report's tokens, whatever the outcome · without a report, the reservation ·
//   nothing where infrastructure refused the attempt, or its agent was lost
//
// A revoked attempt keeps its reservation until it is released, because it may still use tokens. A lost attempt is
// charged once, if its report comes after all. Not here: whether a task fits (scheduling/gates.ts), when to record that
// a budget is exceeded (decide-budget.ts).

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

/** Counts an attempt that was just opened, and reserves its estimate. */
export function reserve(state: SwarmState, projectRow: ProjectRow, attempt: OpenAttempt, at: Instant): void {
  for (const owner of [state, projectRow]) {
    owner.openAttempts += 1;
    owner.ledger.reserved += attempt.tokensReserved;
    if (owner.ledger.spent !== undefined) roll(owner.ledger.spent, at);
  }
  reserveOfType(state, attempt, attempt.tokensReserved);
}

/** Ends an attempt's reservation; the attempt occupies no capacity any more. @param used tokens, a whole number ≥ 0 */
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

/**
 * The tokens charged at an attempt's end.
 *
 * @param verdict how the attempt ended
 * @param reported tokens the agent named, if any
 */
export function usedTokens(
  { tokensReserved }: { readonly tokensReserved: number },
  verdict: FailureClass | "completed" | "revoked",
  reported: number | undefined,
): number {
  if (verdict === "lost") return 0;
  if (verdict === "infrastructure" || verdict === "refused") return reported ?? 0;
  return reported ?? tokensReserved;
}

/** Remembers a lost attempt in case its report comes after all. */
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

/** Spends the tokens of a late report; the next report of the same attempt finds nothing to charge. */
export function chargeLate(state: SwarmState, event: EventOf<"TokensCharged">, at: Instant): void {
  const key = unchargedKey(event);
  const uncharged = state.uncharged.get(key);
  assert(uncharged !== undefined, `attempt ${event.task}#${event.attempt} is charged once`);
  state.uncharged.delete(key);
  spend(state, state.projectById.get(uncharged.project), uncharged.agentType, event.tokens, at);
}

/** The key of a lost attempt: a token is granted once in a session. */
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

/**
 * Follows a change of an owner's budget. A window that is new, or of another length, begins with the tokens spent
 * within that length, with or without a budget then.
 */
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

/** Records that a budget is exceeded: the named project's, or else the swarm's. */
export function noteExceeded(state: SwarmState, event: EventOf<"BudgetExceeded">, at: Instant): void {
  const owner = event.project === undefined ? state : state.projectById.get(event.project);
  assert(owner !== undefined, `project ${event.project} has a budget`);
  owner.ledger.exceededAt = at;
}

/** Follows a change of the window that compares shares. @param windowMs the new `policy.guaranteeMs` */
export function adoptGuarantee(state: SwarmState, windowMs: number, at: Instant): void {
  for (const { ledger } of [state, ...state.projectById.values()])
    ledger.usage = windowFrom(ledger.history, windowMs, at);
}

/** By value: a replay makes new objects where the leader kept the same object. */
function isSameBudget(a: BudgetSettings | undefined, b: BudgetSettings | undefined): boolean {
  return a?.tokens === b?.tokens && a?.windowMs === b?.windowMs && a?.mode === b?.mode;
}

function windowOf({ spent, history }: TokenLedger, windowMs: number, at: Instant): RollingWindow {
  return spent?.windowMs === windowMs ? spent : windowFrom(history, windowMs, at);
}

/** Counts the tokens reserved by agents of a type. The map holds no zeros, so its size is bounded by open attempts. */
function reserveOfType(state: SwarmState, { agentType }: OpenAttempt, tokens: number): void {
  if (agentType === undefined) return;
  const reserved = (state.reservedByType.get(agentType) ?? 0) + tokens;
  assert(reserved >= 0, "no more is returned of a type than was reserved");
  if (reserved === 0) state.reservedByType.delete(agentType);
  else state.reservedByType.set(agentType, reserved);
}

/** A project that was evicted meanwhile has no ledger; the swarm's ledger counts the tokens. */
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
