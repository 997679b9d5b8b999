// What an operator sets for one project, kind, resource or agent type. Journaled whole at each change, so that a
// row's settings are those of the last event. What is set for the swarm is state/policy.ts.

import type { Kind } from "../ids.ts";

/** What happens to a task that does not fit what is left of a budget. `wait` (default): it waits until it fits ·
 *  `reject`: its submission is refused, and a task that was accepted before waits · `alert`: it runs, and the record
 *  says that the budget is exceeded · `downgrade`: it runs as the kind, and at agents of the type, named cheaper. */
export const budgetModes = ["wait", "reject", "alert", "downgrade"] as const;
export type BudgetMode = (typeof budgetModes)[number];

/** Whether no assignment may exceed the budget: modes `wait` and `reject`. A task whose estimate is above the whole
 *  budget is refused at submission there. */
export function isHard(budget: BudgetSettings | undefined): budget is BudgetSettings {
  return budget?.mode === "wait" || budget?.mode === "reject";
}

/** Tokens in a window that rolls in `limits.windowBuckets` steps. */
export interface BudgetSettings {
  readonly tokens: number;
  readonly windowMs: number;
  readonly mode: BudgetMode;
}

export interface ProjectSettings {
  /** Its share when others wait too, > 0; default 1. */
  readonly creditWeight: number;
  /** Attempts open at once, ≥ 1; absent is no limit. */
  readonly maxConcurrent?: number;
  readonly budget?: BudgetSettings;
  /** Tasks that may wait; default and most `limits.queuedTasksPerProjectMax`. */
  readonly queueMax: number;
}

export interface KindSettings {
  /** How fast its tasks rise (Lucio's task weight), > 0; default 1. */
  readonly importance: number;
  /** Runs in its place where a budget in mode `downgrade` is used up. */
  readonly cheaper?: Kind;
  /** The only type of agents that it goes to there. With both, those of this type run the cheaper kind. */
  readonly cheaperType?: string;
}

export interface ResourceSettings {
  readonly slots: number;
  /** Requests that may wait; one more is refused. */
  readonly maxWaiters: number;
  /** Absent: the policy's α holds, and whether that moves by itself. */
  readonly ownAlpha?: OwnAlpha;
}

/** α that one resource has for itself, as each of LOCO's schedulers does. */
export interface OwnAlpha {
  /** [0, 1]; with `autoTune` where it starts, at most 0.5. */
  readonly value: number;
  /** Whether it moves by itself. */
  readonly autoTune: boolean;
}

/** As in the budget document: a minute, an hour, a day. */
export const rateWindows = ["per_minute", "per_hour", "per_day"] as const;
export type RateWindow = (typeof rateWindows)[number];

/** Tokens that agents of one type may use in one window. A type may have a rate for each window: all of them hold. */
export interface RateSettings {
  readonly window: RateWindow;
  readonly tokensMax: number;
  /** Whether the window truly slides; else it restarts with the first use after it ended, as the document's does. */
  readonly sliding: boolean;
}
