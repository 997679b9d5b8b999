// The page of budgets and rates: what is spent, reserved and left, and which limit holds tasks back now.

import { isUsedUp, mayHoldTasks } from "../../audit/health.ts";
import type { Swarm } from "../../client/swarm.ts";
import { defined } from "../../defined.ts";
import { limits } from "../../limits.ts";
import type { TaskWait } from "../../protocol/explain-schemas.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ListedTask } from "../../protocol/task-list-schemas.ts";
import { commandOf } from "../command-text.ts";
import type { Budgets, BudgetView, RateView } from "../wire.ts";

type Budget = NonNullable<StatusResponse["budget"]>;
type Rate = NonNullable<StatusResponse["rates"]>[number];

export interface BudgetDeps {
  readonly swarm: Pick<Swarm, "taskPage">;
  /** Why a queued task waits; undefined without an answer. */
  readonly waitOf: (task: ListedTask) => Promise<TaskWait | undefined>;
}

/** Asks why the oldest tasks wait, where little of a budget is left. */
export async function budgetsView(
  { budget, projects, rates = [], tasks, at }: StatusResponse,
  deps: BudgetDeps,
): Promise<Budgets> {
  const command = commandOf("policy", "set", "--budget", "N");
  const ofSwarm: Owned[] = budget === undefined ? [] : [{ budget, queued: tasks["queued"] ?? 0, command }];
  const ofProjects = projects.flatMap(({ project, budget: own, tasks: { queued = 0 } }): Owned[] => {
    if (own === undefined) return [];
    return [{ project, budget: own, queued, command: commandOf("project", "set", project, "--budget", "N") }];
  });
  const owned = [...ofSwarm, ...ofProjects];
  const asked = owned.filter(isNearlyUsedUp).slice(0, limits.dashboardAskedBudgets);
  const held = new Map(
    await Promise.all(asked.map(async (each) => [each, await heldUp(each, deps)] as const)),
  );
  const views = owned.map((each) => [each.project, budgetView(each, held.get(each))] as const);
  const [swarm] = views.flatMap(([project, view]) => (project === undefined ? [view] : []));
  return {
    ...defined({ swarm }),
    projects: Object.fromEntries(views.flatMap(([project, view]) => (project ? [[project, view]] : []))),
    rates: Object.fromEntries(rates.map((rate) => [`${rate.type} ${rate.window}`, rateView(rate, at)])),
  };
}

/** A budget of a project, or of the swarm. */
interface Owned {
  readonly project?: string;
  readonly budget: Budget;
  readonly queued: number;
  readonly command: string;
}

function isNearlyUsedUp({ budget, queued }: Owned): boolean {
  const { tokens, spent, reserved } = budget;
  const left = tokens - spent - reserved;
  return mayHoldTasks(budget) && queued > 0 && left < tokens * limits.dashboardBudgetLeftMax;
}

type Held = Pick<BudgetView, "needed" | "opensAt">;

/** The first of the oldest tasks that waits for the budget. */
async function heldUp({ project }: Owned, { swarm, waitOf }: BudgetDeps): Promise<Held | undefined> {
  const reason = project === undefined ? "global-budget" : "project-budget";
  const query = { state: ["queued"], sort: "oldest", limit: OLDEST, ...defined({ project }) } as const;
  try {
    const { tasks } = await swarm.taskPage({ ...query, timeoutMs: limits.dashboardAskMs });
    for (const task of tasks)
      for (const obstacle of (await waitOf(task))?.obstacles ?? [])
        if (obstacle.reason === reason)
          return { needed: obstacle.needed, ...defined({ opensAt: obstacle.opensAt }) };
  } catch {
    return undefined; // no answer now: the figures of the status are shown
  }
  return undefined;
}

/** The very oldest may wait for something else, such as an agent. */
const OLDEST = 3;

function budgetView({ budget, queued, command }: Owned, held: Held | undefined): BudgetView {
  const { tokens, spent, reserved, windowMs, mode, freesAt, emptyAt } = budget;
  const usedUp = isUsedUp(budget);
  return {
    ...{ tokens, spent, reserved, windowMs, mode, queued, command },
    ...defined({ freesAt, emptyAt }),
    isUsedUp: usedUp,
    isBinding: held !== undefined || (usedUp && mayHoldTasks(budget) && queued > 0),
    ...held,
  };
}

function rateView(
  { type, window, sliding, tokensMax, used, reserved = 0, opensAt, freesAt, emptyAt }: Rate,
  at: number,
): RateView {
  return {
    ...{ type, window, isSliding: sliding, tokensMax, used, reserved },
    ...defined({ opensAt: opensAt !== undefined && opensAt > at ? opensAt : undefined, freesAt, emptyAt }),
    command: commandOf("rate", "set", type, "--window", window, "--tokens", "N"),
  };
}
