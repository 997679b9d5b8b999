// An operator's settings of one project, kind, resource or agent type. Each change journals all settings of its
// subject, so that a row's settings equal the last event's. Settings of the swarm: state/policy.ts.

import type { Kind, UserId } from "../ids.ts";

/**
 * The treatment of a task that does not fit the tokens left in a budget.
 *
 * - `wait` (default): the task waits until it fits.
 * - `reject`: its submission is refused; a task that was accepted before waits.
 * - `alert`: the task runs, and the journal records that the budget is exceeded.
 * - `downgrade`: the task runs as the cheaper kind, or at agents of the cheaper type, as configured.
 */
export const budgetModes = ["wait", "reject", "alert", "downgrade"] as const;
export type BudgetMode = (typeof budgetModes)[number];

/**
 * Whether no assignment may exceed the budget: modes `wait` and `reject`. In both, a submission with an estimate above
 * the whole budget is refused.
 */
export function isHard(budget: BudgetSettings | undefined): budget is BudgetSettings {
  return budget?.mode === "wait" || budget?.mode === "reject";
}

/** Tokens in a window that rolls in `limits.windowBuckets` steps. */
export interface BudgetSettings {
  readonly tokens: number;
  readonly windowMs: number;
  readonly mode: BudgetMode;
}

/** What the journal keeps of a result: all of it (default), or its hash and length alone. */
export const resultsKept = ["whole", "hash"] as const;
export type ResultsKept = (typeof resultsKept)[number];

export interface ProjectSettings {
  /** The project's share while several projects wait, > 0; default 1. */
  readonly creditWeight: number;
  /** Maximum attempts open at once, ≥ 1; absent is no limit. */
  readonly maxConcurrent?: number;
  readonly budget?: BudgetSettings;
  /** Maximum waiting tasks; default and maximum `limits.queuedTasksPerProjectMax`. */
  readonly queueMax: number;
  /** Absent: the journal keeps whole results. */
  readonly results?: "hash";
  /** Permitted priorities and weights of submissions; absent: any. A default is the nearest permitted value. */
  readonly priorityRange?: Range;
  readonly weightRange?: Range;
  /** The only user of submissions, and their default; absent: any. */
  readonly user?: UserId;
  /** Users with the inboxes `_INBOX.<user>` or `_INBOX_<user>`. Where security is strict, only they get answers. */
  readonly inboxUsers?: readonly string[];
}

/** Both ends belong to the range. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

export interface KindSettings {
  /** How fast the kind's tasks rise (Lucio's task weight), > 0; default 1. */
  readonly importance: number;
  /** The kind to run instead where a budget in mode `downgrade` is used up, or all agents of the kind are on hold. */
  readonly cheaper?: Kind;
  /** The only agent type to use there. With both settings, agents of this type run the cheaper kind. */
  readonly cheaperType?: string;
}

export interface ResourceSettings {
  readonly slots: number;
  /** Maximum waiting requests; a further request is refused. */
  readonly maxWaiters: number;
  /** Absent: the policy's α and `autoTune` hold. */
  readonly ownAlpha?: OwnAlpha;
}

/** A resource's own α, as each of LOCO's schedulers has. */
export interface OwnAlpha {
  /** [0, 1]; with `autoTune` the initial value, at most 0.5. */
  readonly value: number;
  /** Whether α is tuned automatically. */
  readonly autoTune: boolean;
}

/** As in the budget document: a minute, an hour, a day. */
export const rateWindows = ["per_minute", "per_hour", "per_day"] as const;
export type RateWindow = (typeof rateWindows)[number];

/** Tokens that agents of one type may use in one window. A type may have a rate for each window: all of them hold. */
export interface RateSettings {
  readonly window: RateWindow;
  readonly tokensMax: number;
  /** Whether the window truly slides; else the window restarts with the first use after its end, as in the document. */
  readonly sliding: boolean;
}
