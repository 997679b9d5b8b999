// What a replay changes against the record: rules, single settings of the policy, the agents' capacity, their number.
// Also the rule sets by name, as `waggle policy set --rules` has them, and `fifo` as a plain queue to compare with.

import type { PolicyPatch } from "../../core/settings-patch.ts";
import { type RuleSet, ruleSets } from "../../state/policy.ts";

export interface Variation {
  /** Holds from the beginning on, and over every recorded change of the policy. */
  readonly policy?: PolicyPatch;
  /** Maximum concurrent attempts of each agent that serves the kind; the largest where an agent serves several. */
  readonly capacityByKind?: ReadonlyMap<string, number>;
  /** So many more agents from the beginning on: copies of the recorded agents, in order of joining. */
  readonly agentsAdded?: number;
}

/** A queue in order of submission over all projects and users, and the first idle agent. */
const fifo: RuleSet = {
  projectTurn: "none",
  userTurn: "fifo",
  agentRule: "first-idle",
  lambda: 0,
  speedExponent: 0,
  starvationLimit: 0,
};

const replayRules: Readonly<Record<string, RuleSet>> = { ...ruleSets, fifo };

/** Names of the rule sets that a replay knows. */
export const replayRuleNames: readonly string[] = Object.keys(replayRules);

/** The settings of a rule set. @returns undefined for an unknown name */
export function rulesPatch(name: string): PolicyPatch | undefined {
  const rules = Object.hasOwn(replayRules, name) ? replayRules[name] : undefined;
  // `userTurn` of a patch names the same rules as a policy.
  return rules === undefined ? undefined : { ...rules };
}
