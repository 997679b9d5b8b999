// Whether a task may come in (design section 7, "Admission"): bounds on what waits, per swarm, project and user, and
// budgets that it could never fit. Counters only: what it costs does not grow with what waits.

import { limits } from "../limits.ts";
import { tokensEstimate } from "../scheduling/estimate.ts";
import { neverFits } from "../scheduling/gates.ts";
import type { Reply } from "./command.ts";
import type { RefusalReason, TaskSpec } from "./event.ts";
import { defaultProjectSettings, type ProjectRow, type SwarmState, waitingCount } from "./state.ts";
import { hasRoomFor } from "./task-rows.ts";

/** Why a task that is not known yet does not come in, or undefined. */
export function refusalOf(state: SwarmState, task: TaskSpec): Reply | undefined {
  const row = state.projectById.get(task.project);
  if (!isDeclared(state, row)) return { kind: "unknown-project", project: task.project };
  const tokens = tokensEstimate(state, task);
  const tooSmall = neverFits(state, row, tokens);
  if (tooSmall !== undefined) return { kind: "over-budget", tokens, ...tooSmall };

  if (waitingCount(state.counts) >= limits.queuedTasksMax) return refused("swarm-queue-full");
  if (row !== undefined && waitingCount(row.counts) >= queueMaxOf(row)) return refused("project-queue-full");
  if (row !== undefined && holdsMoreThanItsShare(row, task)) return refused("user-queue-full");
  if (!hasRoomFor(state, task.project, task.user)) return refused("too-many-users");
  return undefined;
}

function isDeclared(state: SwarmState, row: ProjectRow | undefined): boolean {
  return state.policy.projects === "open" || row?.settings !== undefined;
}

function refused(reason: RefusalReason): Reply {
  return { kind: "refused", reason, retryAfterMs: limits.retryAfterMs };
}

function queueMaxOf({ settings = defaultProjectSettings }: ProjectRow): number {
  return settings.queueMax;
}

/** Beyond half of the project's bound, one more must not lift a user above the mean of the others that wait. Whoever
 *  has nothing waiting yet is below any mean. Who waits alone has no others, and leaves some places to those that may
 *  come. */
function holdsMoreThanItsShare(row: ProjectRow, { user }: TaskSpec): boolean {
  const waiting = waitingCount(row.counts);
  if (2 * (waiting + 1) <= queueMaxOf(row)) return false;
  const userRow = row.userByName.get(user);
  const own = userRow === undefined ? 0 : waitingCount(userRow.counts);
  if (own === 0) return false;
  const others = row.usersWaiting - 1;
  if (others === 0) return waiting + 1 > Math.ceil(queueMaxOf(row) * (1 - limits.queueShareForOthers));
  return (own + 1) * others > waiting - own;
}
