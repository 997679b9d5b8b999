// Gates between a waiting task and all agents (docs/scheduling.md): the swarm, its project, the budgets; and between an
// agent and all tasks: the rate of its type. Each gate reads the state's counters in constant time. Reads only:
// state/budget-rows.ts and settings-rows.ts open and close gates.

import type { Instant, Kind, ProjectId } from "../ids.ts";
import { tokensEstimate } from "../state/estimate.ts";
import type { TaskSpec } from "../state/event.ts";
import { opensAt, usedOf, usedReturns } from "../state/rate.ts";
import type { ExceededBudgets, WaitingReason } from "../state/receipt.ts";
import { fallsTo, nextChangeAt, totalAt } from "../state/rolling-window.ts";
import { type BudgetMode, type BudgetSettings, isHard } from "../state/settings.ts";
import type { ProjectRow, RateRow, SwarmState, TokenLedger } from "../state/state.ts";
import type { Writable } from "../state/writable.ts";

type ReasonOf<Reason extends WaitingReason> = Reason | undefined;
export type BudgetReason = "project-budget" | "global-budget";

/** The gate that keeps the whole swarm from any assignment. */
export function swarmGate(state: SwarmState): ReasonOf<"swarm-paused" | "swarm-limit"> {
  if (state.isPaused) return "swarm-paused";
  const { topN } = state.policy;
  return topN !== undefined && state.openAttempts >= topN ? "swarm-limit" : undefined;
}

/** The gate that keeps a project from any assignment, its budget apart. */
export function projectGate(row: ProjectRow): ReasonOf<"project-paused" | "project-concurrency"> {
  if (row.isPaused) return "project-paused";
  const maxConcurrent = row.settings?.maxConcurrent;
  return maxConcurrent !== undefined && row.openAttempts >= maxConcurrent ? "project-concurrency" : undefined;
}

/** Whether a budget may hold up the project's tasks, or downgrade them. */
export function isBudgeted(state: SwarmState, { settings }: ProjectRow): boolean {
  return settings?.budget !== undefined || state.policy.budget !== undefined;
}

interface BudgetTerms {
  /** Tokens that an assignment reserves, or would reserve. */
  readonly tokens: number;
  /** The downgrade; absent: the task's own kind, and agents of any type. */
  readonly runsAs?: Kind;
  readonly cheaperType?: string;
  /** Budgets exceeded without a hold-up; absent without any. */
  readonly budget?: ExceededBudgets;
}

export type BudgetVerdict =
  | ({ readonly kind: "waits"; readonly reason: BudgetReason } & BudgetTerms)
  | ({ readonly kind: "runs" } & BudgetTerms);

/**
 * Whether the budgets let a task run now, and as which kind and at which agent type. Where a budget in mode `downgrade`
 * is used up, the task runs as the cheaper kind, and at agents of the cheaper type, as its kind's settings say. A kind
 * without such settings runs unchanged, because nothing cheaper exists. A budget in mode `alert` holds nothing up.
 *
 * @param isDowngraded whatever the budgets say: all agents of the task's kind are on hold
 */
export function budgetVerdict(
  state: SwarmState,
  row: ProjectRow,
  spec: TaskSpec,
  at: Instant,
  isDowngraded = false,
): BudgetVerdict {
  const own = row.settings?.budget;
  const global = state.policy.budget;
  const tokens = tokensEstimate(state, spec);
  const downgradedBy = {
    own: isClosed(row.ledger, own, "downgrade", tokens, at),
    global: isClosed(state.ledger, global, "downgrade", tokens, at),
  };
  const isCheaper = isDowngraded || downgradedBy.own || downgradedBy.global;
  const settings = isCheaper ? state.kindByName.get(spec.kind)?.settings : undefined;
  const runsAs = settings?.cheaper;
  const cheaperType = settings?.cheaperType;
  const needed = runsAs === undefined ? tokens : tokensEstimate(state, spec, runsAs);
  const exceeded: Writable<ExceededBudgets> = {};
  if (downgradedBy.own) exceeded.project = "downgrade";
  else if (isClosed(row.ledger, own, "alert", needed, at)) exceeded.project = "alert";
  if (downgradedBy.global) exceeded.global = "downgrade";
  else if (isClosed(state.ledger, global, "alert", needed, at)) exceeded.global = "alert";
  const terms: BudgetTerms = {
    tokens: needed,
    ...(runsAs === undefined ? {} : { runsAs }),
    ...(cheaperType === undefined ? {} : { cheaperType }),
    ...(exceeded.project === undefined && exceeded.global === undefined ? {} : { budget: exceeded }),
  };
  const reason = usedUpBudget(state, row, needed, at);
  return reason === undefined ? { kind: "runs", ...terms } : { kind: "waits", reason, ...terms };
}

/** What a request for slots would reserve. */
export interface TokenRequest {
  readonly tokens: number;
  readonly project: ProjectId | undefined;
  /** Types whose rates count the tokens. */
  readonly rates: readonly string[];
}

export type TokensReason = BudgetReason | "rate";

/**
 * What has too little left for the tokens of a request for slots. Without tokens, nothing. A budget in mode `alert` or
 * `downgrade` holds nothing up: nothing cheaper is known.
 */
export function tokensGate(
  state: SwarmState,
  { tokens, project, rates }: TokenRequest,
  at: Instant,
): TokensReason | undefined {
  if (tokens === 0) return undefined;
  const row = project === undefined ? undefined : state.projectById.get(project);
  const budget = row === undefined ? usedUpGlobal(state, tokens, at) : usedUpBudget(state, row, tokens, at);
  return budget ?? (rates.some((type) => !fitsRates(state, type, tokens, at)) ? "rate" : undefined);
}

/** Whether so many tokens fit the rates of a type, beside all that are used or reserved. */
function fitsRates(state: SwarmState, agentType: string, tokens: number, at: Instant): boolean {
  return (state.ratesByType.get(agentType) ?? []).every(
    (row) => usedOf(row.use, row.settings, at) + rateReserved(state, row) + tokens <= row.settings.tokensMax,
  );
}

/** A rate that the tokens of a request for slots could never fit. */
export function rateBelow(state: SwarmState, { tokens, rates }: TokenRequest): RateRow | undefined {
  if (tokens === 0) return undefined;
  for (const type of rates)
    for (const row of state.ratesByType.get(type) ?? []) if (tokens > row.settings.tokensMax) return row;
  return undefined;
}

/** The hard budget that a task could never fit, even when all tokens are returned. */
export function neverFits(
  state: SwarmState,
  row: ProjectRow | undefined,
  tokens: number,
): { readonly reason: BudgetReason; readonly tokensMax: number } | undefined {
  const own = row?.settings?.budget;
  if (isHard(own) && tokens > own.tokens) return { reason: "project-budget", tokensMax: own.tokens };
  const global = state.policy.budget;
  if (isHard(global) && tokens > global.tokens) return { reason: "global-budget", tokensMax: global.tokens };
  return undefined;
}

/** A budget in mode `reject` that has too little left for a new task. */
export interface RejectingBudget {
  readonly reason: BudgetReason;
  readonly budget: BudgetSettings;
  /** Tokens in the budget's window. */
  readonly spent: number;
  /** Reserved by open attempts. */
  readonly reserved: number;
  /** When the task's tokens fit by time alone; absent where open attempts reserve too much. */
  readonly opensAt?: Instant;
}

/**
 * The budget in mode `reject` that refuses a new task of so many tokens; where two refuse, the one that opens last.
 * @param row the row of its project; absent before its first task
 */
export function rejectingBudget(
  state: SwarmState,
  row: ProjectRow | undefined,
  tokens: number,
  at: Instant,
): RejectingBudget | undefined {
  const own = row && rejection("project-budget", row.ledger, row.settings?.budget, tokens, at);
  const global = rejection("global-budget", state.ledger, state.policy.budget, tokens, at);
  if (own === undefined || global === undefined) return own ?? global;
  const opening = ({ opensAt }: RejectingBudget): number => opensAt ?? Number.POSITIVE_INFINITY;
  return opening(own) >= opening(global) ? own : global;
}

function rejection(
  reason: BudgetReason,
  ledger: TokenLedger,
  budget: BudgetSettings | undefined,
  tokens: number,
  at: Instant,
): RejectingBudget | undefined {
  if (budget === undefined || !isClosed(ledger, budget, "reject", tokens, at)) return undefined;
  const opensAt = budgetOpensAt(ledger, budget, tokens, at);
  return {
    reason,
    budget,
    spent: ledger.spent === undefined ? 0 : totalAt(ledger.spent, at),
    reserved: ledger.reserved,
    ...(opensAt === undefined ? {} : { opensAt }),
  };
}

/**
 * Whether agents of a type have used up one of their rates. Tokens reserved by open attempts count as well, or all free
 * capacity would start tasks before the first report. A type without rates is never limited.
 */
export function rateGate(state: SwarmState, agentType: string | undefined, at: Instant): boolean {
  const rows = agentType === undefined ? undefined : state.ratesByType.get(agentType);
  return rows?.some((row) => isRateClosed(state, row, at)) ?? false;
}

function isRateClosed(state: SwarmState, row: RateRow, at: Instant): boolean {
  return usedOf(row.use, row.settings, at) + rateReserved(state, row) >= row.settings.tokensMax;
}

/** When, by time alone, a rate is no longer used up. `at` when so now; undefined when time alone is not enough. */
export function rateOpensAt(state: SwarmState, row: RateRow, at: Instant): Instant | undefined {
  return opensAt(row.use, row.settings, at, rateReserved(state, row));
}

/**
 * The rate that keeps a type's agents from tasks, and when time alone opens it. Of several used-up rates, the one that
 * opens last, because all must be open. Undefined while none is used up.
 */
export function closedRate(
  state: SwarmState,
  agentType: string,
  at: Instant,
): { readonly row: RateRow; readonly opensAt: Instant | undefined } | undefined {
  let last: { readonly row: RateRow; readonly opensAt: Instant | undefined } | undefined;
  for (const row of state.ratesByType.get(agentType) ?? []) {
    if (!isRateClosed(state, row, at)) continue;
    const opens = rateOpensAt(state, row, at);
    if (last === undefined || opens === undefined || (last.opensAt !== undefined && opens > last.opensAt))
      last = { row, opensAt: opens };
    if (opens === undefined) return last;
  }
  return last;
}

/** Tokens that open attempts of the type's agents are expected to use. */
export function rateReserved(state: SwarmState, { agentType }: RateRow): number {
  return state.reservedByType.get(agentType) ?? 0;
}

/**
 * The earliest instant after `at` at which a closed gate may open by time alone; undefined when time alone opens none.
 * Tokens leave the window of a budget with waiting tasks or requests for slots, or a rate is no longer used up. While
 * requests with tokens wait, tokens that leave a rate's window count as well.
 */
export function nextOpeningAt(state: SwarmState, at: Instant): Instant | undefined {
  const slotsWait = state.waitsWithTokens > 0;
  if (state.counts.queued === 0 && !slotsWait) return undefined;
  let earliest: Instant | undefined;
  const note = (opening: Instant | undefined) => {
    if (opening !== undefined && opening > at && (earliest === undefined || opening < earliest))
      earliest = opening;
  };
  if (holdsBack(state.policy.budget)) note(nextLeaving(state.ledger, at));
  for (const project of state.budgetedProjects) {
    const row = state.projectById.get(project);
    if (row !== undefined && (slotsWait || row.counts.queued > 0) && holdsBack(row.settings?.budget))
      note(nextLeaving(row.ledger, at));
  }
  for (const [type, rows] of state.ratesByType) {
    note(closedRate(state, type, at)?.opensAt);
    if (slotsWait) for (const { use, settings } of rows) note(usedReturns(use, settings, at)?.freesAt);
  }
  return earliest;
}

/** The tokens left of a budget at an instant; below 0 when exceeded. */
export function budgetRoom(ledger: TokenLedger, { tokens }: BudgetSettings, at: Instant): number {
  const spent = ledger.spent === undefined ? 0 : totalAt(ledger.spent, at);
  return tokens - spent - ledger.reserved;
}

/**
 * The first instant at which so many more tokens fit a budget by time alone, if none are added or returned; undefined
 * when they never fit.
 */
export function budgetOpensAt(
  { spent, reserved }: TokenLedger,
  budget: BudgetSettings,
  tokens: number,
  at: Instant,
): Instant | undefined {
  const spentMax = budget.tokens - reserved - tokens;
  if (spentMax < 0) return undefined;
  return spent === undefined ? at : fallsTo(spent, spentMax, at);
}

/** The hard budget that has too little left. */
function usedUpBudget(
  state: SwarmState,
  row: ProjectRow,
  tokens: number,
  at: Instant,
): BudgetReason | undefined {
  const own = row.settings?.budget;
  if (isHard(own) && budgetRoom(row.ledger, own, at) < tokens) return "project-budget";
  return usedUpGlobal(state, tokens, at);
}

function usedUpGlobal({ ledger, policy }: SwarmState, tokens: number, at: Instant): BudgetReason | undefined {
  const { budget } = policy;
  return isHard(budget) && budgetRoom(ledger, budget, at) < tokens ? "global-budget" : undefined;
}

function isClosed(
  ledger: TokenLedger,
  budget: BudgetSettings | undefined,
  mode: BudgetMode,
  tokens: number,
  at: Instant,
): boolean {
  return budget?.mode === mode && budgetRoom(ledger, budget, at) < tokens;
}

function holdsBack(budget: BudgetSettings | undefined): boolean {
  return budget !== undefined && budget.mode !== "alert";
}

function nextLeaving({ spent }: TokenLedger, at: Instant): Instant | undefined {
  return spent === undefined ? undefined : nextChangeAt(spent, at);
}
