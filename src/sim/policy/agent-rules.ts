// The rules that decide who does a task, by the name they have on the command line, as dispatchers. Tasks wait
// first in, first out under all but ours.

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

/** Ours, then each rival bound early, then each bound late. */
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
