// The page of fairness at one moment of the past, from a replay of the journal in this process.

import { describeReceipt } from "../../audit/describe.ts";
import type { PastAssignment, PastMoment, PastTurns } from "../../audit/past-turns.ts";
import type { Swarm } from "../../client/swarm.ts";
import { defined, type Widened } from "../../defined.ts";
import { InvalidValueError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { taskCommand } from "../command-text.ts";
import type { FairnessPast, PastQuery, WaterfallRow } from "../wire.ts";
import { standingViews } from "./task.ts";

export interface PastDeps {
  readonly swarm: Pick<Swarm, "story" | "events">;
  readonly pastTurns: (moment: PastMoment) => Promise<PastTurns>;
}

/** @throws InvalidValueError: which moment does not exist; AuditTrimmedError; as `story` */
export async function fairnessPast(deps: PastDeps, query: Widened<PastQuery>): Promise<FairnessPast> {
  const moment = await momentOf(deps, query);
  const bounds = { most: limits.dashboardAssignmentsShown, before: limits.dashboardPastBatches };
  return viewOf(await deps.pastTurns({ ...moment, ...bounds }));
}

type Moment = Pick<PastMoment, "idx" | "task">;

async function momentOf({ swarm }: PastDeps, query: Widened<PastQuery>): Promise<Moment> {
  const { idx, task, project, attempt, at } = query;
  if (idx !== undefined) {
    const named = task === undefined || project === undefined ? {} : { task: { task, project } };
    return { idx, ...named };
  }
  if (task !== undefined) {
    const { status, attempts } = await swarm.story(task, {
      ...defined({ project }),
      timeoutMs: limits.dashboardActionMs,
    });
    const found = attempt === undefined ? attempts.at(-1) : attempts.find((each) => each.attempt === attempt);
    if (found !== undefined)
      return { idx: found.assignedIdx, task: { task: status.task, project: status.project } };
    const what = attempt === undefined ? "was not assigned yet" : `has no attempt ${attempt} that is kept`;
    throw new InvalidValueError(`task: ${status.task} ${what}`, { field: "task" });
  }
  if (at === undefined) throw new InvalidValueError("name a moment: idx, task, or at", { field: "idx" });
  for await (const event of swarm.events({ from: new Date(at), types: ["TaskAssigned"] }))
    return { idx: event.idx };
  throw new InvalidValueError("at: nothing was assigned from then on: choose an earlier time", {
    field: "at",
  });
}

function viewOf({ idx, at, firstIdx, assignments, projects, users, decision }: PastTurns): FairnessPast {
  const [first] = assignments;
  const chosen = assignments.at(-1);
  const hasEarlier = first !== undefined && first.idx > firstIdx && first.idx < idx;
  return {
    ...{ idx, at, firstIdx, users },
    projects: projects.map(({ share, target, ...row }) => ({
      ...row,
      share: rounded(share),
      ...(target === undefined ? {} : { target: rounded(target) }),
    })),
    waterfall: assignments.map(rowOf),
    ...(hasEarlier ? { earlierIdx: first.idx } : {}),
    ...(decision === undefined
      ? {}
      : {
          decision: {
            ...{ project: decision.project, user: chosen?.user ?? "", task: decision.task },
            ...{ attempt: decision.attempt, agent: decision.agent, kind: decision.kind },
            why: describeReceipt(decision.receipt),
            agrees: decision.agrees,
            agents: standingViews(decision.agents),
            command: taskCommand("explain", decision, "--attempt", String(decision.attempt)),
          },
        }),
  };
}

function rowOf({ at, user, event }: PastAssignment): WaterfallRow {
  const { project, task, agent, receipt } = event;
  const { turn = { project: "rule", user: "rule" } } = receipt;
  return {
    ...{ at, project, user, task, agent, waitedMs: receipt.waitedMs },
    ...{ projectBy: turn.project, userBy: turn.user },
  };
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
