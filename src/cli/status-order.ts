// The order of rows in `waggle status` and its live view: what matters most comes first (docs/operations.md, "What
// status lists"). Not here: queues (status-summary.ts).

import type { StatusResponse } from "../protocol/schemas.ts";

type Agent = StatusResponse["agents"][number];
type Project = StatusResponse["projects"][number];
type User = Project["users"][number];
type Rate = NonNullable<StatusResponse["rates"]>[number];

export function inTrouble(agent: Agent): boolean {
  const isSuspended = agent.kinds.some(({ suspendedUntil }) => suspendedUntil !== undefined);
  return agent.unresponsive || agent.outlivedMs !== undefined || isSuspended || agent.onHold !== undefined;
}

export function mostLoadedFirst(one: Agent, other: Agent): number {
  const rank = (agent: Agent) => (agent.status === "offline" ? 0 : 2) + (inTrouble(agent) ? 1 : 0);
  return rank(other) - rank(one) || other.load - one.load || byId(one.id, other.id);
}

function byId(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

export function mostWaitedForFirst(
  one: StatusResponse["resources"][number],
  other: StatusResponse["resources"][number],
): number {
  return (
    other.waiting - one.waiting || other.utilisation - one.utilisation || byId(one.resource, other.resource)
  );
}

export function longestWaitingUserFirst(one: User, other: User): number {
  const rank = ({ tasks }: User) => {
    if ((tasks["queued"] ?? 0) > 0) return 2;
    return (tasks["running"] ?? 0) + (tasks["assigned"] ?? 0) + (tasks["delayed"] ?? 0) > 0 ? 1 : 0;
  };
  const failures = ({ tasks }: User) =>
    (tasks["failed"] ?? 0) + (tasks["dead-lettered"] ?? 0) + (tasks["expired"] ?? 0);
  const byRank = rank(other) - rank(one);
  if (byRank !== 0) return byRank;
  return rank(one) === 2 ? other.waitMsMax - one.waitMsMax : failures(other) - failures(one);
}

export function mostSpentFirst(one: Project, other: Project): number {
  const share = ({ budget }: Project) =>
    budget === undefined ? 0 : (budget.spent + budget.reserved) / budget.tokens;
  return share(other) - share(one);
}

export function mostUsedFirst(one: Rate, other: Rate): number {
  return other.used / other.tokensMax - one.used / one.tokensMax;
}
