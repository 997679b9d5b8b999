// Flags of `set` verbs, as values of a patch. `none` removes a limit; an absent flag leaves the setting unchanged.
// Not here: valid combinations of settings (the coordinator checks them).

import { type Command, InvalidArgumentError, Option } from "commander";
import type { BudgetPatch } from "../core/settings-patch.ts";
import { formatCount } from "../count-text.ts";
import { limits } from "../limits.ts";
import { budgetModes } from "../state/settings.ts";
import { UsageError } from "./usage-error.ts";
import { parseDuration, wholeNumber } from "./values.ts";

export interface BudgetFlags {
  readonly budget?: OrNone<number>;
  readonly budgetWindow?: number;
  readonly budgetMode?: BudgetPatch["mode"];
}

/** `none` as typed, because a parser cannot return null. */
export type OrNone<Value> = Value | "none";

/** A parser that also accepts `none`. */
export function orNone<Value>(parse: (text: string) => Value): (text: string) => OrNone<Value> {
  return orWord("none", parse);
}

/** A parser that also accepts a word. */
export function orWord<Word extends string, Value>(
  word: Word,
  parse: (text: string) => Value,
): (text: string) => Value | Word {
  return (text) => {
    if (text === word) return word;
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof InvalidArgumentError)
        error.message = error.message.replace(/^must be /, `must be ${word}, or `);
      throw error;
    }
  };
}

/** The value for a patch: null removes the setting. */
export function noneAsNull<Value>(flag: OrNone<Value> | undefined): Value | null | undefined {
  return flag === "none" ? null : flag;
}

/** A parser of durations within bounds. */
export function durationBetween(minMs: number, maxMs: number): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms >= minMs && ms <= maxMs) return ms;
    throw new InvalidArgumentError(
      `must be a duration from ${plainDuration(minMs)} to ${plainDuration(maxMs)}`,
    );
  };
}

/** In the form of a flag: `90s`, `1h30m`, `7d`. */
export function plainDuration(ms: number): string {
  const units = [
    ["d", 24 * 3_600_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
    ["ms", 1],
  ] as const;
  let left = ms;
  let text = "";
  for (const [unit, unitMs] of units) {
    const count = Math.floor(left / unitMs);
    if (count > 0) text += `${count}${unit}`;
    left -= count * unitMs;
  }
  return text === "" ? "0s" : text;
}

export const tokenCount = wholeNumber(1, limits.tokensMax);
const tokensDefault = formatCount(limits.tokensPerAttemptDefault);
export const openAttempts = wholeNumber(1, limits.openAttemptsMax);

export function addBudgetFlags(command: Command): Command {
  const { budgetWindowMsMin, budgetWindowMsMax } = limits;
  return command
    .option(
      "--budget <tokens>",
      "maximum number of tokens in a rolling window; none: no budget. A task submitted without --tokens is estimated at " +
        `the mean of its kind so far, or ${tokensDefault} tokens if there is none yet`,
      orNone(tokenCount),
    )
    .option(
      "--budget-window <duration>",
      "length of the window: 15m, 1h, 7d. Required with a new budget",
      durationBetween(budgetWindowMsMin, budgetWindowMsMax),
    )
    .addOption(
      new Option(
        "--budget-mode <mode>",
        "effect of a used up budget. wait: tasks wait until they fit (default). reject: submissions are refused, accepted " +
          "tasks wait. alert: tasks run, and the journal says so. downgrade: tasks run as a cheaper kind or at agents of " +
          "a cheaper type",
      ).choices(budgetModes),
    );
}

/** @throws UsageError when a budget is taken away and described at once */
export function budgetPatch({ budget, budgetWindow, budgetMode }: BudgetFlags): {
  readonly budget?: BudgetPatch | null;
} {
  if (budget === undefined && budgetWindow === undefined && budgetMode === undefined) return {};
  if (budget === "none") {
    if (budgetWindow === undefined && budgetMode === undefined) return { budget: null };
    throw new UsageError("--budget none removes the budget: leave out --budget-window and --budget-mode");
  }
  return { budget: { tokens: budget, windowMs: budgetWindow, mode: budgetMode } };
}

/** @throws UsageError if no flag gives a setting */
export function requireSome(patch: object, verb: string): void {
  if (Object.values(patch).some((value) => value !== undefined)) return;
  throw new UsageError(`no setting given: add a flag; see waggle ${verb} --help`);
}
