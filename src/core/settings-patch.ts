// What an operator says of settings: only what changes. A field that is absent stays as it is; `null` takes an
// optional one away. Not here: what comes of it (next-settings.ts), what holds then (settings.ts).

import type { Kind } from "../ids.ts";
import type { AlphaPreset } from "../state/alpha.ts";
import type { AgentRule, Policy, ProjectTurnRule, RulesName, UserTurnRule } from "../state/policy.ts";
import type { BudgetMode, RateWindow } from "../state/settings.ts";

/** A limit of tokens in a rolling window. A task that gives no `tokens` counts with the mean of its kind so far; before
 *  the first attempt of the kind with the policy's `tokensDefault`, 1,000. */
export interface BudgetPatch {
  /** Tokens in a window, a whole number ≥ 1. Required while there is no budget. */
  readonly tokens?: number | undefined;
  /** Length of the window, whole ms, from 1,000 (a second) to 366 days. Required while there is no budget. */
  readonly windowMs?: number | undefined;
  /** What happens while the budget is used up. `wait` (default): tasks wait. `reject`: a submission is refused with
   *  BudgetExceededError. `alert`: tasks run, and an event `BudgetExceeded` says so. `downgrade`: tasks run as the kind
   *  that `cheaper` of their kind names. */
  readonly mode?: BudgetMode | undefined;
}

export interface ProjectPatch {
  /** Its share when others wait too, > 0; at first 1. */
  readonly creditWeight?: number | undefined;
  /** Attempts open at once, ≥ 1; null: no limit. */
  readonly maxConcurrent?: number | null | undefined;
  /** null: none. */
  readonly budget?: BudgetPatch | null | undefined;
  /** Tasks that may wait, ≥ 1; null: `limits.queuedTasksPerProjectMax`. */
  readonly queueMax?: number | null | undefined;
}

export interface KindPatch {
  /** How fast its tasks rise, > 0; at first 1. */
  readonly importance?: number | undefined;
  /** Runs in its place where a budget in mode `downgrade` is used up; null: nothing does. */
  readonly cheaper?: Kind | null | undefined;
  /** The type of agents that alone get it there; null: any may. */
  readonly cheaperType?: string | null | undefined;
}

export interface ResourcePatch {
  /** ≥ 1. Said at first. */
  readonly slots?: number | undefined;
  /** Requests that may wait, ≥ 0; at first `limits.waitersPerResourceMax`. */
  readonly maxWaiters?: number | undefined;
  /** α of its own in [0, 1], not together with `optimizeFor`; null: the policy's α and auto-tune hold again. */
  readonly alpha?: number | null | undefined;
  /** A preset of α: latency 0, balanced 0.25, throughput 0.5. */
  readonly optimizeFor?: AlphaPreset | undefined;
  /** Whether its own α moves by itself; it must lie within 0.5 then. */
  readonly autoTune?: boolean | undefined;
}

export interface RatePatch {
  /** Which rate of the type: a type has at most one for each window, and all of them hold. Required. */
  readonly window: RateWindow;
  /** Tokens in a window, ≥ 1. Required with the first patch of this window. */
  readonly tokensMax?: number | undefined;
  /** Whether the window truly slides. Default false: it restarts with the first use after it ended. */
  readonly sliding?: boolean | undefined;
}

export interface PolicyPatch {
  /** Expands to its rule set; single settings beside it win. */
  readonly rules?: RulesName | undefined;
  readonly projectTurn?: ProjectTurnRule | undefined;
  /** Not `deficit`: users have no credit weight. */
  readonly userTurn?: UserTurnRule | undefined;
  readonly agentRule?: AgentRule | undefined;
  /** λ ≥ 0: what an agent's own backlog costs it. */
  readonly lambda?: number | undefined;
  readonly speedExponent?: Policy["speedExponent"] | undefined;
  /** α in [0, 1]; not together with `optimizeFor`. */
  readonly alpha?: number | undefined;
  /** A preset of α: latency 0, balanced 0.25, throughput 0.5. */
  readonly optimizeFor?: AlphaPreset | undefined;
  /** Whether α moves by itself; it must lie within 0.5 then. */
  readonly autoTune?: boolean | undefined;
  /** Ticks of waiting, for each one that waits beside it; 0 is off. */
  readonly starvationLimit?: number | undefined;
  /** A project granted nothing for so long goes first, once; ms. */
  readonly guaranteeMs?: number | undefined;
  /** Attempts open at once in the whole swarm, ≥ 1; null: no limit. */
  readonly topN?: number | null | undefined;
  /** Of the swarm; null: none. */
  readonly budget?: BudgetPatch | null | undefined;
  /** What a first attempt of a kind is taken to use, ≥ 1, at most `limits.tokensPerAttemptMax`. */
  readonly tokensDefault?: number | undefined;
  /** How long ended tasks are remembered; ms in which somebody led. */
  readonly rememberMs?: number | undefined;
  /** How many ended tasks are remembered. */
  readonly rememberedTasks?: number | undefined;
  readonly projects?: Policy["projects"] | undefined;
}
