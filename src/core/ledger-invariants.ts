// Numbered checks of budgets, rates and counts of open attempts (docs/invariants.md), for states between two events and
// from one batch to the next. Recounts, as in invariants.ts.

import type { ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import { budgetRoom } from "../scheduling/gates.ts";
import { unchargedKey } from "../state/budget-rows.ts";
import { rateWindowMs } from "../state/rate.ts";
import { rateOf } from "../state/rate-rows.ts";
import type { RollingWindow } from "../state/rolling-window.ts";
import { type BudgetSettings, isHard, rateWindows } from "../state/settings.ts";
import { ratesOf } from "../state/slot-tokens.ts";
import type { OpenAttempt, RateRow, SlotLeaseRow, SwarmState, TokenLedger } from "../state/state.ts";
import { historyAmiss } from "../state/use-history.ts";
import type { Invariant, Violation } from "./invariant.ts";

export const ledgerInvariants: readonly Invariant[] = [
  { number: 33, name: "reservations-equal-a-recount", find: reservationsEqualARecount },
  { number: 34, name: "open-attempts-equal-a-recount", find: openAttemptsEqualARecount },
  { number: 35, name: "windows-equal-their-buckets", find: windowsEqualTheirBuckets },
];

/** Checks one state after each batch, in order: no assignment exceeds a hard budget. */
export class LedgerSuccession {
  #open: ReadonlySet<OpenAttempt> = new Set();

  check(state: SwarmState): readonly Violation[] {
    const violations = [...this.#overspent(state)].map((sentence) => ({
      number: 36,
      name: "budgets-are-kept",
      sentence,
    }));
    this.#open = new Set(openAttempts(state));
    return violations;
  }

  /** Assignments are the last events of a batch: their reservations add to all that the batch spent. */
  *#overspent(state: SwarmState): Generator<string> {
    for (const attempt of openAttempts(state)) {
      if (this.#open.has(attempt) || attempt.tokensReserved === 0) continue;
      for (const { name, ledger, budget, owns } of owners(state)) {
        if (!isHard(budget) || !owns(attempt)) continue;
        const room = budgetRoom(ledger, budget, state.at);
        if (room < 0)
          yield `attempt ${attempt.task}#${attempt.attempt} exceeds the budget of ${name} by ${-room}`;
      }
    }
  }
}

interface Owner {
  readonly name: string;
  readonly ledger: TokenLedger;
  readonly openAttempts: number;
  readonly budget: BudgetSettings | undefined;
  readonly owns: (user: { readonly project: ProjectId | undefined }) => boolean;
}

/** Reserved tokens equal the sum over open attempts and held slots. */
function* reservationsEqualARecount(state: SwarmState): Generator<string> {
  const attempts = openAttempts(state);
  const slotLeases = heldWithTokens(state);
  for (const { name, ledger, owns } of owners(state)) {
    let reserved = 0;
    for (const attempt of attempts) if (owns(attempt)) reserved += attempt.tokensReserved;
    for (const slotLease of slotLeases) if (owns(slotLease)) reserved += slotLease.tokens;
    if (ledger.reserved !== reserved)
      yield `${name} has ${ledger.reserved} tokens reserved, its attempts and slots ${reserved}`;
  }
  const types = new Map<string, number>();
  for (const { agentType, tokensReserved } of attempts)
    if (agentType !== undefined && tokensReserved > 0)
      types.set(agentType, (types.get(agentType) ?? 0) + tokensReserved);
  for (const slotLease of slotLeases)
    for (const type of ratesOf(slotLease)) types.set(type, (types.get(type) ?? 0) + slotLease.tokens);
  for (const type of new Set([...types.keys(), ...state.reservedByType.keys()])) {
    const counted = state.reservedByType.get(type);
    if (counted !== types.get(type))
      yield `type ${type} has ${counted} tokens reserved, its attempts and slots ${types.get(type)}`;
  }
}

function* openAttemptsEqualARecount(state: SwarmState): Generator<string> {
  const attempts = openAttempts(state);
  for (const { name, openAttempts: counted, owns } of owners(state)) {
    let open = 0;
    for (const attempt of attempts) if (owns(attempt)) open += 1;
    if (counted !== open) yield `${name} counts ${counted} open attempts, not ${open}`;
  }
  for (const { project, task, attempt } of attempts) {
    if (!state.projectById.has(project))
      yield `project ${project} of the open attempt ${task}#${attempt} is gone`;
  }
}

/**
 * Each window's total equals the sum of its buckets, its buckets are in order and in the past, and its length equals
 * the settings'.
 */
function* windowsEqualTheirBuckets(state: SwarmState): Generator<string> {
  for (const { name, ledger, budget } of owners(state)) {
    yield* windowAmiss(`the usage of ${name}`, ledger.usage, state.policy.guaranteeMs, state.at);
    const amiss = historyAmiss(ledger.history, state.at);
    if (amiss !== undefined) yield `the history of ${name} holds ${amiss}`;
    if ((ledger.spent === undefined) !== (budget === undefined))
      yield `${name} has a budget: ${budget !== undefined}, a window: ${ledger.spent !== undefined}`;
    if (ledger.spent !== undefined && budget !== undefined)
      yield* windowAmiss(`the budget of ${name}`, ledger.spent, budget.windowMs, state.at);
  }
  for (const rates of [state.ratesByType, state.removedRatesByType])
    for (const [type, rows] of rates) for (const row of rows) yield* rateAmiss(type, row, state.at);
  yield* tablesOfBudgets(state);
}

function* rateAmiss(type: string, { agentType, use, settings }: RateRow, at: number): Generator<string> {
  const name = `the rate of ${type} ${settings.window}`;
  if (agentType !== type) yield `${name} is one of ${agentType}`;
  yield* windowAmiss(name, use.sliding, rateWindowMs[settings.window], at);
  const { tokens, startedAt } = use.restarting;
  if (tokens < 0 || startedAt > at) yield `the window of ${name} began at ${startedAt} with ${tokens} tokens`;
}

function* windowAmiss(name: string, window: RollingWindow, windowMs: number, at: number): Generator<string> {
  const { held, buckets } = window;
  let sum = 0;
  for (const { tokens } of buckets) sum += tokens;
  const stepMs = Math.ceil(window.windowMs / limits.windowBuckets);
  if (window.windowMs !== windowMs) yield `${name} rolls over ${window.windowMs} ms, not ${windowMs}`;
  if (held !== sum) yield `${name} holds ${held} tokens, its buckets ${sum}`;
  if (buckets.length > limits.windowBuckets + 1) yield `${name} has ${buckets.length} buckets`;
  let before: number | undefined;
  for (const { step, tokens } of buckets) {
    const isInOrder = before === undefined || step > before;
    before = step;
    if (!isInOrder || step * stepMs > at || !(Number.isSafeInteger(tokens) && tokens > 0))
      yield `${name} has a bucket of ${tokens} tokens at step ${step} amiss`;
  }
}

function* tablesOfBudgets(state: SwarmState): Generator<string> {
  for (const { project, settings } of state.projectById.values()) {
    if (state.budgetedProjects.has(project) !== (settings?.budget !== undefined))
      yield `project ${project} is listed wrongly among those with a budget`;
  }
  if (state.removedRatesByType.size > limits.ratesMax)
    yield `removed rates of ${state.removedRatesByType.size} types are remembered`;
  for (const [type, rows] of [...state.ratesByType, ...state.removedRatesByType]) {
    const windows = rows.map(({ settings }) => settings.window);
    const isInOrder = windows.every(
      (window, n) => n === 0 || rateWindows.indexOf(window) > rateWindows.indexOf(windows[n - 1] ?? window),
    );
    if (rows.length === 0 || !isInOrder) yield `the rates of ${type} are those of ${windows.join(", ")}`;
  }
  for (const [type, rows] of state.removedRatesByType)
    for (const { settings } of rows)
      if (rateOf(state, type, settings.window) !== undefined)
        yield `the rate of ${type} ${settings.window} is set and removed at once`;
  if (state.uncharged.size > limits.unchargedAttemptsMax)
    yield `${state.uncharged.size} lost attempts wait for their report`;
  for (const attempt of openAttempts(state)) {
    const lost = state.uncharged.get(unchargedKey(attempt));
    if (lost?.task === attempt.task && lost.attempt === attempt.attempt)
      yield `attempt ${attempt.task}#${attempt.attempt} is open and waits to be charged as lost`;
  }
}

function* owners(state: SwarmState): Generator<Owner> {
  const { ledger: global, openAttempts: ofAll } = state;
  yield {
    name: "the swarm",
    ledger: global,
    openAttempts: ofAll,
    budget: state.policy.budget,
    owns: () => true,
  };
  for (const { project, ledger, openAttempts: counted, settings } of state.projectById.values()) {
    yield {
      name: `project ${project}`,
      ledger,
      openAttempts: counted,
      budget: settings?.budget,
      owns: (user) => user.project === project,
    };
  }
}

function heldWithTokens(state: SwarmState): readonly SlotLeaseRow[] {
  return [...state.slotsByAgent.values()].flatMap((slotLeases) =>
    [...slotLeases.values()].filter((slotLease) => slotLease.state === "held" && slotLease.tokens > 0),
  );
}

function openAttempts(state: SwarmState): readonly OpenAttempt[] {
  const attempts: OpenAttempt[] = [];
  for (const { open } of state.agentById.values())
    for (const attempt of open.values()) attempts.push(attempt);
  return attempts;
}
