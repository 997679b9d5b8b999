// Values that several rows share: accounts, ledgers, windows, counts, records, timers.

import type { Instant } from "../../ids.ts";
import type { Account } from "../../state/account.ts";
import type { EndedTaskState } from "../../state/ended-task.ts";
import { type Needs, needsOf } from "../../state/needs.ts";
import type { RollingWindow, WindowBucket } from "../../state/rolling-window.ts";
import { emptyWindow } from "../../state/rolling-window.ts";
import type { SuccessRecord, TaskCounts, Timer, TokenLedger } from "../../state/state.ts";
import { historyAmiss } from "../../state/use-history.ts";
import { allOf, type Fields, refuse } from "./checked-fields.ts";

export const endedStates = allOf<EndedTaskState>({
  completed: true,
  failed: true,
  cancelled: true,
  expired: true,
  "dead-lettered": true,
});

/** The counts of ended tasks. Live tasks are counted as they are read. */
export function endedCountFields(counts: TaskCounts): object {
  return Object.fromEntries(endedStates.map((state) => [state, counts[state]]));
}

export function readEndedCounts(fields: Fields, counts: TaskCounts): void {
  for (const state of endedStates) counts[state] = fields.whole(state);
}

/** Undefined without needs; any written form but the one of equal needs is refused. */
export function readNeeds(fields: Fields): Needs | undefined {
  const needs = fields.optionalLists("needs");
  if (needs !== undefined && JSON.stringify(needsOf(needs)) !== JSON.stringify(needs))
    refuse("needs are not in their order");
  return needs;
}

export function readAccount(fields: Fields): Account {
  return {
    clock: fields.amount("clock"),
    servedOrder: fields.whole("servedOrder"),
    servedAt: fields.whole("servedAt"),
    arrivedOrder: fields.whole("arrivedOrder"),
    carried: fields.amount("carried", { min: -Number.MAX_VALUE }),
  };
}

export function readRecord(fields: Fields): SuccessRecord {
  return {
    successes: fields.amount("successes"),
    failures: fields.amount("failures"),
    completed: fields.whole("completed"),
    attempts: fields.whole("attempts"),
    timed: fields.amount("timed"),
    logLatency: fields.amount("logLatency"),
    spread: fields.amount("spread"),
    probeStep: fields.whole("probeStep"),
    probeFrom: fields.whole("probeFrom"),
    updatedAt: fields.whole("updatedAt"),
    epochAt: fields.whole("epochAt"),
    epochRate: fields.amount("epochRate", { max: 1 }),
    epochAttempts: fields.whole("epochAttempts"),
    epochLogLatency: fields.optionalAmount("epochLogLatency"),
  };
}

export function windowFields({ windowMs, buckets }: RollingWindow): object {
  return { windowMs, buckets: buckets.map(({ step, tokens }) => [step, tokens]) };
}

export function readWindow(fields: Fields): RollingWindow {
  const window = emptyWindow(fields.whole("windowMs", { min: 1 }));
  for (const item of fields.list("buckets")) {
    const bucket = bucketOf(item);
    if (bucket.step <= (window.buckets.at(-1)?.step ?? -1)) refuse("the steps of a window are out of order");
    window.buckets.push(bucket);
    window.held += bucket.tokens;
  }
  return window;
}

function bucketOf(item: unknown): WindowBucket {
  const [step, tokens] = Array.isArray(item) && item.length === 2 ? (item as unknown[]) : [];
  if (!Number.isSafeInteger(step) || !Number.isSafeInteger(tokens) || (tokens as number) < 1)
    refuse("a step of a window is not its number and its tokens");
  return { step: step as number, tokens: tokens as number };
}

/** Without reservations, which are counted again from open attempts. */
export function ledgerFields({ usage, spent, history, exceededAt }: TokenLedger): object {
  return { usage: windowFields(usage), spent: spent && windowFields(spent), history, exceededAt };
}

export interface LedgerTerms {
  /** `policy.guaranteeMs` */
  readonly usageMs: number;
  /** Window of the budget; undefined without a budget. */
  readonly budgetMs: number | undefined;
}

export function readLedger(fields: Fields, ledger: TokenLedger, { usageMs, budgetMs }: LedgerTerms): void {
  ledger.usage = fields.within("usage", readWindow);
  ledger.spent = fields.optionalWithin("spent", readWindow);
  for (const level of fields.list("history"))
    ledger.history.push(Array.isArray(level) ? (level as number[]) : [-1]);
  const amiss = historyAmiss(ledger.history, Number.POSITIVE_INFINITY);
  if (amiss !== undefined) refuse(`what is remembered of use holds ${amiss}`);
  ledger.exceededAt = fields.optionalWhole("exceededAt");
  if (ledger.usage.windowMs !== usageMs) refuse(`the window of shares is not one of ${usageMs} ms`);
  if (ledger.spent?.windowMs !== budgetMs) refuse(`the window of a budget is not one of ${budgetMs} ms`);
}

export function timerFields(timer: Timer | undefined): object | undefined {
  return timer && { dueAt: timer.dueAt, order: timer.order };
}

/** A timer in a row; the row determines the timer's owner. */
export interface TimerWords {
  readonly dueAt: Instant;
  readonly order: number;
}

export function readTimer(fields: Fields): TimerWords {
  return { dueAt: fields.whole("dueAt"), order: fields.whole("order", { min: 1 }) };
}
