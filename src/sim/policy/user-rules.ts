// The rules that order users, by their names on the command line, as dispatchers. Under all rules but the
// production planner, the first free agent takes the task.

import { limits } from "../../limits.ts";
import { ruleSets } from "../../state/policy.ts";
import { firstAgent, vaporaAgent } from "./agent-choices.ts";
import { LateBinding } from "./binding.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { BudgetDispatcher, LucioDispatcher } from "./exact-dispatchers.ts";
import { Production } from "./production.ts";
import type { Workload } from "./run-tasks.ts";
import type { RunInit } from "./scenario.ts";
import {
  FifoTurns,
  LocoTurns,
  RandomTurns,
  RoundRobinTurns,
  StandingClockTurns,
  type TurnRule,
  TwoQueueTurns,
  WindowUsageTurns,
} from "./turn-rules.ts";

/** Descriptions for users. */
export const userRules = {
  waggle: "ours: the production planner with its default policy",
  loco: "LOCO's load function over the users' queues, to the letter",
  "loco-starvation-limit":
    "the production planner with the rules `loco`: the load function, and our ageing starvation limit alone",
  lucio: "Lucio's priority score with TopN, to the letter",
  budget: "the budget document's guarantee and deficits, each user a project, to the letter",
  vapora: "VAPORA's choice of the agent, to the letter; it has no order of users, so first in, first out",
  fifo: "first in, first out over all users",
  "round-robin": "the users in a circle",
  random: "any user that waits, by lot",
  "two-queues": "large tasks in a second queue, served when the first is empty",
  "window-usage": "who used least in the last 1,000 ticks first",
  "standing-clock": "virtual clocks that count those as waiting whom nobody can serve",
} as const;
export type UserRule = keyof typeof userRules;

/** Waggle's rule, the four published rules, and the given rivals, in this order. */
export function someUserRules(...rivals: readonly UserRule[]): Readonly<Record<string, string>> {
  const names: readonly UserRule[] = ["waggle", "loco", "lucio", "budget", "vapora", ...rivals];
  return Object.fromEntries(names.map((name) => [name, userRules[name]]));
}

const USAGE_WINDOW_TICKS = 1_000;

/** @param tickMs the scenario's unit of time */
export function dispatcherOf(workload: Workload, init: RunInit, tickMs: number): Dispatcher {
  const { agents, attemptsMax } = workload;
  const { alpha, random } = init;
  const rule = init.rule as UserRule;
  if (rule === "waggle" || rule === "loco-starvation-limit") {
    const name = rule === "waggle" ? "waggle" : "loco";
    const starvationLimit = limits.starvationLimitTicksPerWaiting;
    const policy = { ...ruleSets[name], rules: name, alpha, starvationLimit } as const;
    return new Production({ agents, attemptsMax, policy, jitter: random.split("jitter") });
  }
  if (rule === "lucio") return new LucioDispatcher(agents);
  if (rule === "budget") return new BudgetDispatcher(agents);
  if (rule === "vapora") return new LateBinding({ agents, attemptsMax, choose: vaporaAgent });
  const turns = turnsOf(rule, { alpha, lot: random.split("ties"), tickMs });
  return new LateBinding({ agents, attemptsMax, choose: firstAgent, turns });
}

interface TurnOptions {
  readonly alpha: number;
  readonly lot: RunInit["random"];
  readonly tickMs: number;
}

function turnsOf(
  rule: Exclude<UserRule, "waggle" | "loco-starvation-limit" | "lucio" | "budget" | "vapora">,
  { alpha, lot, tickMs }: TurnOptions,
): TurnRule {
  switch (rule) {
    case "loco":
      return new LocoTurns({ alpha, random: lot });
    case "fifo":
      return new FifoTurns();
    case "round-robin":
      return new RoundRobinTurns();
    case "random":
      return new RandomTurns(lot);
    case "two-queues":
      return new TwoQueueTurns(({ size }) => size > 1);
    case "window-usage":
      return new WindowUsageTurns(USAGE_WINDOW_TICKS * tickMs);
    case "standing-clock":
      return new StandingClockTurns();
  }
}
