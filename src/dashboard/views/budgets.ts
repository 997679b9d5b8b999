// The page of budgets and rates: what is spent, reserved and left, and which limit holds tasks back now.

import { isUsedUp, mayHoldTasks } from "../../audit/health.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { commandOf } from "../command-text.ts";
import { defined } from "../defined.ts";
import type { Budgets, BudgetView, RateView } from "../wire.ts";

type Budget = NonNullable<StatusResponse["budget"]>;
type Rate = NonNullable<StatusResponse["rates"]>[number];

export function budgetsView({ budget, projects, rates = [], tasks, at }: StatusResponse): Budgets {
  const ofSwarm =
    budget && budgetView(budget, tasks["queued"] ?? 0, commandOf("policy", "set", "--budget", "N"));
  const ofProjects = projects.flatMap(({ project, budget: own, tasks: { queued = 0 } }) => {
    if (own === undefined) return [];
    const command = commandOf("project", "set", project, "--budget", "N");
    return [[project, budgetView(own, queued, command)] as const];
  });
  return {
    ...defined({ swarm: ofSwarm }),
    projects: Object.fromEntries(ofProjects),
    rates: Object.fromEntries(rates.map((rate) => [`${rate.type} ${rate.window}`, rateView(rate, at)])),
  };
}

function budgetView(budget: Budget, queued: number, command: string): BudgetView {
  const { tokens, spent, reserved, windowMs, mode } = budget;
  const usedUp = isUsedUp(budget);
  return {
    ...{ tokens, spent, reserved, windowMs, mode, queued, command },
    isUsedUp: usedUp,
    isBinding: usedUp && mayHoldTasks(budget) && queued > 0,
  };
}

function rateView(
  { type, window, sliding, tokensMax, used, reserved = 0, opensAt }: Rate,
  at: number,
): RateView {
  return {
    ...{ type, window, isSliding: sliding, tokensMax, used, reserved },
    ...defined({ opensAt: opensAt !== undefined && opensAt > at ? opensAt : undefined }),
    command: commandOf("rate", "set", type, "--window", window, "--tokens", "N"),
  };
}
