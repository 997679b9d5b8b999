// The rules that choose an agent for a task, by their names on the command line, as dispatchers. Under all
// rules but Waggle's, tasks wait first in, first out.

import { ruleSets } from "../../state/policy.ts";
import {
  type AgentChoice,
  leastInFlight,
  randomAgent,
  roundRobinAgents,
  twoChoices,
  vaporaAgent,
} from "./agent-choices.ts";
import { EarlyBinding, LateBinding } from "./binding.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { Production } from "./production.ts";
import type { Workload } from "./run-tasks.ts";
import type { RunInit } from "./scenario.ts";

const choices = {
  random: "any agent, by lot",
  "round-robin": "the agents in a circle",
  "least-in-flight": "the agent that holds fewest",
  "two-choices": "the one that holds fewer of two drawn by lot",
  vapora: "VAPORA's success rate over load, to the letter",
} as const;
type ChoiceName = keyof typeof choices;

const LATE = "-late";
const names = Object.keys(choices) as ChoiceName[];

/** Waggle's rule, then each rival with early binding, then each with late binding. */
export const agentRules: Readonly<Record<string, string>> = {
  waggle: "ours: the production planner with its default policy, bound late",
  ...Object.fromEntries(names.map((name) => [name, `${choices[name]}, bound at once`])),
  ...Object.fromEntries(
    names.map((name) => [`${name}${LATE}`, `${choices[name]}, among those that are free`]),
  ),
};

export interface AgentRuleOptions {
  readonly backOffMs?: (failures: number) => number;
}

/** @param init.rule one of `agentRules` */
export function agentDispatcherOf(
  workload: Workload,
  init: RunInit,
  options: AgentRuleOptions = {},
): Dispatcher {
  const { agents, attemptsMax } = workload;
  const { alpha, random, rule } = init;
  if (rule === "waggle") {
    const policy = { ...ruleSets.waggle, rules: "waggle", alpha } as const;
    return new Production({ agents, attemptsMax, policy, jitter: random.split("jitter") });
  }
  const isLate = rule.endsWith(LATE);
  const name = (isLate ? rule.slice(0, -LATE.length) : rule) as ChoiceName;
  const binding = { agents, attemptsMax, choose: choiceOf(name, init), ...options };
  return isLate ? new LateBinding(binding) : new EarlyBinding(binding);
}

function choiceOf(name: ChoiceName, { random }: RunInit): AgentChoice {
  switch (name) {
    case "random":
      return randomAgent(random.split("choice"));
    case "round-robin":
      return roundRobinAgents();
    case "least-in-flight":
      return leastInFlight;
    case "two-choices":
      return twoChoices(random.split("choice"));
    case "vapora":
      return vaporaAgent;
  }
}
