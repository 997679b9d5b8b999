// An operator's settings for the whole swarm: the rule for each decision, and the constants of the rules. Not bounds
// (src/limits.ts). Settings of a project, kind, resource or agent type: state/settings.ts.

import { limits } from "../limits.ts";
import { alphaByPreset, alphaPresetDefault } from "./alpha.ts";
import type { BudgetSettings } from "./settings.ts";

/** The published rule sets, and ours. Each rule set chooses the settings of `RuleSet`. */
export type RulesName = "waggle" | "budget" | "loco" | "vapora" | "lucio";

/**
 * The order of the waiting projects.
 *
 * - `clock`: virtual clocks on cost, with the starvation limit
 * - `recency`: Lucio's score
 * - `deficit`: the budget document's key
 * - `load`: LOCO's L over the queues that compete
 * - `fifo`: (priority, submission)
 * - `none`: no such level; users of all projects compete with each other
 */
export const projectTurnRules = ["clock", "recency", "deficit", "load", "fifo", "none"] as const;
export type ProjectTurnRule = (typeof projectTurnRules)[number];

/** The order of a project's users. No `deficit`: deficits need credit weights, which users do not have. */
export const userTurnRules = ["clock", "recency", "load", "fifo"] as const;
export type UserTurnRule = (typeof userTurnRules)[number];

/** `score`: success rate over load · `first-idle`: idle agents first, in order of joining, then the busy agents. */
export type AgentRule = "score" | "first-idle";

export interface Policy {
  /** The rule set chosen last; single settings may have changed since. */
  readonly rules: RulesName;
  readonly projectTurn: ProjectTurnRule;
  readonly userTurn: UserTurnRule;
  readonly agentRule: AgentRule;
  /** λ: the cost of an agent's own backlog, as a share of the cost of being full. 0 gives VAPORA's formula. */
  readonly lambda: number;
  /**
   * Exponent e of the factor for speed, (swarm's latency / agent's)^e; 0 is off. Only 0, 0.5, 1 or 2: any further value
   * needs a power function, and engines disagree on its last digits.
   */
  readonly speedExponent: number;
  /** α of LOCO's load function, [0, 1]. */
  readonly alpha: number;
  /** Whether α is tuned automatically, at each release (alpha.ts). */
  readonly autoTune: boolean;
  /**
   * Maximum wait per waiter at the same level, after which a waiter goes next. In ticks of its kind (a project), turns
   * of its project (a user) or turns of its user (a task). 0 is off.
   */
  readonly starvationLimit: number;
  /** A project without a grant for so long goes first, once; ms. */
  readonly guaranteeMs: number;
  /** TopN: maximum attempts open at once in the swarm; absent is no limit. */
  readonly topN?: number;
  /** The token budget of the swarm; absent: no limit. */
  readonly budget?: BudgetSettings;
  /** Default estimate of an attempt in tokens, without a submitter's estimate or a learned mean. */
  readonly tokensDefault: number;
  /** The horizon of idempotency: how long, in ms of led time, and how many ended tasks are remembered. */
  readonly rememberMs: number;
  readonly rememberedTasks: number;
  /** `declared`: only projects that an operator has configured exist. */
  readonly projects: "open" | "declared";
  /** `open`: the first request for slots of an unknown resource makes it, with `slotsDefault` slots. */
  readonly resources: "open" | "declared";
  readonly slotsDefault: number;
  /** `declared`: agents join only in groups that have a grant (state/grant.ts). */
  readonly agents: "open" | "declared";
  /** `strict`: answers and pushes go only to inboxes of the asker's group, or of the users set for the project. */
  readonly security: "open" | "strict";
}

/** The settings that a rule set chooses. */
export type RuleSet = Pick<
  Policy,
  "projectTurn" | "userTurn" | "agentRule" | "lambda" | "speedExponent" | "starvationLimit"
>;

/** The published sources have no term for the agent's backlog or speed, and no starvation limit. */
const published = { lambda: 0, speedExponent: 0, starvationLimit: 0 } as const;

export const ruleSets: Readonly<Record<RulesName, RuleSet>> = {
  // The load already counts prefetched tasks. A quarter more breaks ties between equally full agents: the agent with
  // less backlog wins. A quarter never outweighs a clearly better success rate.
  waggle: {
    projectTurn: "clock",
    userTurn: "clock",
    agentRule: "score",
    lambda: 0.25,
    speedExponent: 1,
    starvationLimit: limits.starvationLimitTicksPerWaiting,
  },
  budget: {
    projectTurn: "deficit",
    userTurn: "fifo",
    agentRule: "first-idle",
    ...published,
  },
  loco: { projectTurn: "none", userTurn: "load", agentRule: "score", ...published },
  vapora: { projectTurn: "none", userTurn: "fifo", agentRule: "score", ...published },
  lucio: { projectTurn: "none", userTurn: "recency", agentRule: "score", ...published },
};

export const defaultPolicy: Policy = {
  rules: "waggle",
  ...ruleSets.waggle,
  alpha: alphaByPreset[alphaPresetDefault],
  autoTune: false,
  guaranteeMs: limits.guaranteeMs,
  tokensDefault: limits.tokensPerAttemptDefault,
  rememberMs: limits.rememberMsDefault,
  rememberedTasks: limits.rememberedTasksDefault,
  projects: "open",
  resources: "declared",
  slotsDefault: limits.slotsDefault,
  agents: "open",
  security: "open",
};
