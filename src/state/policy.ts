// What an operator may set for the swarm as a whole: which rule decides at each joint, and the
// constants of the rules. Not bounds: those stand in src/limits.ts. What is set for a project, a kind, a resource
// or an agent type stands in state/settings.ts.

import { limits } from "../limits.ts";
import { alphaByPreset, alphaPresetDefault } from "./alpha.ts";
import type { BudgetSettings } from "./settings.ts";

/** The published rule sets, and ours. Each is a choice of the five settings after it. */
export type RulesName = "waggle" | "budget" | "loco" | "vapora" | "lucio";

/** What orders the projects that wait.
 *  `clock`: virtual clocks on cost, with the starvation limit · `recency`: Lucio's score · `deficit`: the budget
 *  document's key · `load`: LOCO's L over the queues that compete · `fifo`: (priority, submission) · `none`: there is
 *  no such level, users of all projects compete with each other. */
export const projectTurnRules = ["clock", "recency", "deficit", "load", "fifo", "none"] as const;
export type ProjectTurnRule = (typeof projectTurnRules)[number];

/** The same among the users of a project. Deficits come of credit weights, which users do not have. */
export const userTurnRules = ["clock", "recency", "load", "fifo"] as const;
export type UserTurnRule = (typeof userTurnRules)[number];

/** `score`: success rate over load · `first-idle`: whoever holds nothing, in order of joining, then the others. */
export type AgentRule = "score" | "first-idle";

export interface Policy {
  /** The set last chosen; single settings may differ from it since. */
  readonly rules: RulesName;
  readonly projectTurn: ProjectTurnRule;
  readonly userTurn: UserTurnRule;
  readonly agentRule: AgentRule;
  /** λ: what an agent's own backlog costs it, as a share of what being full costs. 0 gives VAPORA's formula. */
  readonly lambda: number;
  /** Exponent of the factor for speed, (swarm's latency / agent's)^e; 0 is off. One of 0, 0.5, 1, 2: others
   *  would need a power function, whose last digits engines disagree on. */
  readonly speedExponent: number;
  /** α of LOCO's load function, [0, 1]. */
  readonly alpha: number;
  /** Whether α follows what is observed, at each release (alpha.ts). */
  readonly autoTune: boolean;
  /** After how many ticks of its kind (a project), turns of its project (a user) or of its user (a task) somebody that
   *  waits goes next, for each one that waits at its level; 0 is off. */
  readonly starvationLimit: number;
  /** A project that was granted nothing for so long goes first, once; ms. */
  readonly guaranteeMs: number;
  /** TopN: attempts open at once in the whole swarm; absent is no limit. */
  readonly topN?: number;
  /** Of the swarm's tokens; absent is no limit. */
  readonly budget?: BudgetSettings;
  /** What a first attempt of a kind is taken to use when nobody said and nothing was learnt, tokens. */
  readonly tokensDefault: number;
  /** The horizon of idempotency: how long, in ms of led time, and how many ended tasks are remembered. */
  readonly rememberMs: number;
  readonly rememberedTasks: number;
  /** `declared`: only projects that an operator has set exist. */
  readonly projects: "open" | "declared";
}

/** What choosing a rule set chooses. */
export type RuleSet = Pick<
  Policy,
  "projectTurn" | "userTurn" | "agentRule" | "lambda" | "speedExponent" | "starvationLimit"
>;

/** None of the sources has a term for the agent's backlog or speed, nor a starvation limit. */
const published = { lambda: 0, speedExponent: 0, starvationLimit: 0 } as const;

export const ruleSets: Readonly<Record<RulesName, RuleSet>> = {
  // The load already counts prefetched tasks; a quarter more breaks ties between equally full agents in favour of
  // the one that gets through its backlog, and never outweighs a clearly better success rate.
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
};
