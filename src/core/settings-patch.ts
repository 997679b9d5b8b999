// An operator's changes of settings. An absent field stays unchanged; `null` removes an optional field. Not here: the
// outcome (next-settings.ts), the settings in force (settings.ts).

import type { Kind, UserId } from "../ids.ts";
import type { AlphaPreset } from "../state/alpha.ts";
import type { AgentRule, Policy, ProjectTurnRule, RulesName, UserTurnRule } from "../state/policy.ts";
import type { BudgetMode, Range, RateWindow, ResultsKept } from "../state/settings.ts";

/**
 * A limit of tokens in a rolling window. A task without `tokens` counts with the mean of its kind so far. Before the
 * first attempt of the kind, the policy's `tokensDefault` counts, by default 1,000.
 */
export interface BudgetPatch {
  /** Tokens in a window, a whole number ≥ 1. Required while there is no budget. */
  readonly tokens?: number | undefined;
  /** Length of the window, whole ms, from 1,000 (a second) to 366 days. Required while there is no budget. */
  readonly windowMs?: number | undefined;
  /**
   * Behaviour while the budget is used up. `wait` (default): tasks wait. `reject`: a submission is refused with
   * BudgetExceededError. `alert`: tasks run, and an event `BudgetExceeded` records the excess. `downgrade`: tasks run
   * as the `cheaper` kind of their kind.
   */
  readonly mode?: BudgetMode | undefined;
}

export interface ProjectPatch {
  /** The project's share while several projects wait, > 0; default 1. */
  readonly creditWeight?: number | undefined;
  /** Attempts open at once, ≥ 1; null: no limit. */
  readonly maxConcurrent?: number | null | undefined;
  /** null: none. */
  readonly budget?: BudgetPatch | null | undefined;
  /** Maximum waiting tasks, ≥ 1; null: `limits.queuedTasksPerProjectMax`. */
  readonly queueMax?: number | null | undefined;
  /** `hash`: the journal keeps SHA-256 and length of a result, and only clients that await the task get the result. */
  readonly results?: ResultsKept | undefined;
  /** Permitted priorities of submissions; null: any. */
  readonly priorityRange?: Range | null | undefined;
  /** Permitted weights of submissions; null: any. */
  readonly weightRange?: Range | null | undefined;
  /** The only user of submissions; null: any. */
  readonly user?: UserId | null | undefined;
  /** Users whose inboxes get answers where security is strict; null: none is named. */
  readonly inboxUsers?: readonly string[] | null | undefined;
}

export interface KindPatch {
  /** How fast the kind's tasks rise, > 0; default 1. */
  readonly importance?: number | undefined;
  /** The kind to run instead where a budget in mode `downgrade` is used up; null: none. */
  readonly cheaper?: Kind | null | undefined;
  /** The only agent type to use there; null: any type. */
  readonly cheaperType?: string | null | undefined;
}

export interface ResourcePatch {
  /** ≥ 1. Required for a new resource. */
  readonly slots?: number | undefined;
  /** Maximum waiting requests, ≥ 0; default `limits.waitersPerResourceMax`. */
  readonly maxWaiters?: number | undefined;
  /** The resource's own α in [0, 1], not together with `optimizeFor`; null: the policy's α and auto-tune hold again. */
  readonly alpha?: number | null | undefined;
  /** A preset of α: latency 0, balanced 0.25, throughput 0.5. */
  readonly optimizeFor?: AlphaPreset | undefined;
  /** Whether the resource's own α is tuned automatically, which requires α ≤ 0.5. */
  readonly autoTune?: boolean | undefined;
}

export interface RatePatch {
  /** The rate's window: a type has at most one rate per window, and all of them hold. Required. */
  readonly window: RateWindow;
  /** Tokens in a window, ≥ 1. Required with the first patch of this window. */
  readonly tokensMax?: number | undefined;
  /** Whether the window truly slides. Default false: a fixed window that restarts with the first use after its end. */
  readonly sliding?: boolean | undefined;
}

export interface PolicyPatch {
  /** Expands to its rule set; single settings in the same patch win. */
  readonly rules?: RulesName | undefined;
  readonly projectTurn?: ProjectTurnRule | undefined;
  /** Not `deficit`: users have no credit weight. */
  readonly userTurn?: UserTurnRule | undefined;
  readonly agentRule?: AgentRule | undefined;
  /** λ ≥ 0: the cost of an agent's own backlog. */
  readonly lambda?: number | undefined;
  readonly speedExponent?: Policy["speedExponent"] | undefined;
  /** α in [0, 1]; not together with `optimizeFor`. */
  readonly alpha?: number | undefined;
  /** A preset of α: latency 0, balanced 0.25, throughput 0.5. */
  readonly optimizeFor?: AlphaPreset | undefined;
  /** Whether α is tuned automatically, which requires α ≤ 0.5. */
  readonly autoTune?: boolean | undefined;
  /** Maximum wait in ticks per competing waiter; 0 is off. */
  readonly starvationLimit?: number | undefined;
  /** A project without a grant for so long goes first, once; ms. */
  readonly guaranteeMs?: number | undefined;
  /** Attempts open at once in the whole swarm, ≥ 1; null: no limit. */
  readonly topN?: number | null | undefined;
  /** The swarm's budget; null: none. */
  readonly budget?: BudgetPatch | null | undefined;
  /** Default estimate of an attempt in tokens, ≥ 1, at most `limits.tokensPerAttemptMax`. */
  readonly tokensDefault?: number | undefined;
  /** How long ended tasks are remembered; ms of led time. */
  readonly rememberMs?: number | undefined;
  /** How many ended tasks are remembered. */
  readonly rememberedTasks?: number | undefined;
  readonly projects?: Policy["projects"] | undefined;
  /** `open`: the first request for slots of an unknown resource makes it. Default `declared`: it is refused. */
  readonly resources?: Policy["resources"] | undefined;
  /** Slots of a resource that is made so, ≥ 1; default `limits.slotsDefault`, 4. */
  readonly slotsDefault?: number | undefined;
  /** `declared`: agents join only in groups that have a grant. */
  readonly agents?: Policy["agents"] | undefined;
  /** `strict`: answers go only to inboxes of the asker's group, or of the users set for the project. */
  readonly security?: Policy["security"] | undefined;
}
