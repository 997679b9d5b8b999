// Tokens that attempts reserve and use: the only code that changes a ledger. An assignment reserves its estimate. The
// attempt's end settles the estimate, which returns the reservation and spends:
//
//   the report's tokens, whatever the outcome · without a report, the reservation ·
//   nothing where infrastructure refused the attempt, or its agent was lost
//
// A revoked attempt keeps its reservation until it is released, because it may still use tokens. A lost attempt is
// charged once, if its report comes after all. Slots reserve and spend likewise (slot-tokens.ts). Not here: whether a
// task fits (scheduling/gates.ts), when to record that a budget is exceeded (decide-budget.ts).

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
  for (const owner of [state, projectRow]) owner.openAttempts += 1;
  reserveTokens(state, accountOf(projectRow, attempt), attempt.tokensReserved, at);
}

/** Ends an attempt's reservation; the attempt occupies no capacity any more. @param used tokens, a whole number ≥ 0 */
export function settle(state: SwarmState, attempt: OpenAttempt, used: number, at: Instant): void {
  const projectRow = state.projectById.get(attempt.project);
  assert(projectRow !== undefined, `project ${attempt.project} is kept while it has open attempts`);
  for (const owner of [state, projectRow]) {
    owner.openAttempts -= 1;
    assert(owner.openAttempts >= 0, "no more attempts end than were opened");
  }
  const account = accountOf(projectRow, attempt);
  returnTokens(state, account, attempt.tokensReserved);
  spendTokens(state, account, used, at);
  noteKept(state, projectRow);
}

/** What tokens are charged to, beside the swarm. */
export interface TokenAccount {
  /** Absent: none, or evicted meanwhile. Then the swarm alone counts the tokens. */
  readonly projectRow: ProjectRow | undefined;
  /** Types whose rates count the tokens, each once. */
  readonly rates: readonly string[];
}

function accountOf(
  projectRow: ProjectRow | undefined,
  { agentType }: Pick<OpenAttempt, "agentType">,
): TokenAccount {
  return { projectRow, rates: agentType === undefined ? [] : [agentType] };
}

export function reserveTokens(state: SwarmState, account: TokenAccount, tokens: number, at: Instant): void {
  for (const { ledger } of ledgersOf(state, account)) {
    ledger.reserved += tokens;
    if (ledger.spent !== undefined) roll(ledger.spent, at);
  }
  for (const type of account.rates) reserveOfType(state, type, tokens);
}

export function returnTokens(state: SwarmState, account: TokenAccount, tokens: number): void {
  for (const { ledger } of ledgersOf(state, account)) {
    ledger.reserved -= tokens;
    assert(ledger.reserved >= 0, "no more is returned than was reserved");
  }
  for (const type of account.rates) reserveOfType(state, type, -tokens);
}

export function spendTokens(state: SwarmState, account: TokenAccount, tokens: number, at: Instant): void {
  for (const { ledger } of ledgersOf(state, account)) {
    addUse(ledger.history, tokens, at);
    addTokens(ledger.usage, tokens, at);
    if (ledger.spent !== undefined) addTokens(ledger.spent, tokens, at);
  }
  for (const type of account.rates) recordRates(state, type, tokens, at);
}

function ledgersOf(
  state: SwarmState,
  { projectRow }: TokenAccount,
): readonly { readonly ledger: TokenLedger }[] {
  return projectRow === undefined ? [state] : [state, projectRow];
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
  const account = accountOf(state.projectById.get(uncharged.project), uncharged);
  spendTokens(state, account, event.tokens, at);
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

/** Counts the tokens reserved by a type. The map holds no zeros, so its size is bounded by open attempts and slots. */
function reserveOfType(state: SwarmState, type: string, tokens: number): void {
  const reserved = (state.reservedByType.get(type) ?? 0) + tokens;
  assert(reserved >= 0, "no more is returned of a type than was reserved");
  if (reserved === 0) state.reservedByType.delete(type);
  else state.reservedByType.set(type, reserved);
}
