// The tables of the live view: of each answer the rows, their cells, and the values that sort them. Rows come in the
// order of `waggle status`, the most important first. Not here: selection, sorting and drawing (status-model.ts,
// status-frame.ts).

import { duration } from "../../audit/describe.ts";
import { formatCount } from "../../count-text.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { formatShare } from "../format.ts";
import {
  inTrouble,
  longestWaitingUserFirst,
  mostLoadedFirst,
  mostSpentFirst,
  mostUsedFirst,
  mostWaitedForFirst,
} from "../status-order.ts";
import { longestWaitFirst, queueName } from "../status-summary.ts";
import { agentState, alphaText, holdersText, kindsText } from "../status-view.ts";
import type { Cell, Column } from "../table.ts";

export interface LiveRow {
  readonly cells: readonly Cell[];
  /** One per column: numbers sort by size, texts by name. */
  readonly sortBy: readonly (number | string)[];
  readonly tone?: "warning" | "dim";
}

export interface LiveTable {
  readonly name: string;
  /** The columns that a narrow terminal drops come last. */
  readonly columns: readonly Column[];
  rows(status: StatusResponse, view: { readonly showsAll: boolean }): readonly LiveRow[];
  /** Rows that did not fit the answer. */
  omitted(status: StatusResponse): number;
}

const right = { align: "right" } as const;
const drop = { whenNarrow: "drop" } as const;

const agents: LiveTable = {
  name: "agents",
  columns: [
    { head: "agent", whenNarrow: "whole" },
    { head: "state" },
    { head: "in flight", ...right },
    { head: "success", ...right },
    { head: "done", ...right, ...drop },
    { head: "latency", ...right, ...drop },
    { head: "silent", ...right, ...drop },
    { head: "kinds (success, typical latency)", ...drop },
  ],
  omitted: ({ omitted }) => omitted?.agents ?? 0,
  rows: ({ agents: all, at }, { showsAll }) => {
    const shown = showsAll ? all : all.filter(({ status }) => status !== "offline");
    return [...shown].sort(mostLoadedFirst).map((agent) => {
      const { id, inFlight, maxConcurrent, prefetch, load, completed, silentMs } = agent;
      const { attempts, rate, latencyMs } = meansOf(agent);
      return {
        ...toneOf(inTrouble(agent) ? "warning" : agent.status === "offline" ? "dim" : undefined),
        cells: [
          id,
          agentState(agent),
          `${inFlight}/${maxConcurrent}${prefetch > 0 ? `+${prefetch}` : ""}`,
          attempts === 0 ? "–" : formatShare(rate),
          formatCount(completed),
          latencyMs === 0 ? "–" : duration(latencyMs),
          silentMs === undefined ? "–" : duration(silentMs),
          kindsText(agent, at, { showsAll: false }),
        ],
        sortBy: [id, agentState(agent), load, rate, completed, latencyMs, silentMs ?? -1, kindNames(agent)],
      };
    });
  },
};

type Agent = StatusResponse["agents"][number];

/** Over the kinds of an agent, weighted by attempts. */
function meansOf({ kinds }: Agent) {
  const attempts = kinds.reduce((sum, kind) => sum + kind.attempts, 0);
  const completed = kinds.reduce((sum, kind) => sum + kind.completed, 0);
  const over = (weight: number, of: (kind: Agent["kinds"][number]) => number) =>
    weight === 0 ? 0 : kinds.reduce((sum, kind) => sum + of(kind), 0) / weight;
  return {
    attempts,
    rate: over(attempts, (kind) => kind.successRate * kind.attempts),
    latencyMs: over(completed, (kind) => kind.latencyMs * kind.completed),
  };
}

function kindNames({ kinds }: Agent): string {
  return kinds.map(({ kind }) => kind).join(", ");
}

const queues: LiveTable = {
  name: "queues",
  columns: [
    { head: "kind" },
    { head: "role" },
    { head: "waiting", ...right },
    { head: "oldest", ...right },
    { head: "agents", ...right },
  ],
  omitted: ({ omitted }) => omitted?.queues ?? 0,
  rows: ({ queues: all }) =>
    [...all].sort(longestWaitFirst).map((queue) => {
      const { role = "any", waiting, oldestMs, agents: serving } = queue;
      const name = queueName(queue);
      const isUnserved = waiting > 0 && serving === 0;
      return {
        ...toneOf(isUnserved ? "warning" : undefined),
        cells: [name, role, formatCount(waiting), duration(oldestMs), isUnserved ? "none" : serving],
        sortBy: [name, role, waiting, oldestMs, serving],
      };
    }),
};

const users: LiveTable = {
  name: "users",
  columns: [
    { head: "project" },
    { head: "user" },
    { head: "waiting", ...right },
    { head: "running", ...right },
    { head: "worst wait", ...right },
    { head: "mean wait", ...right, ...drop },
    { head: "failed", ...right, ...drop },
    { head: "completed", ...right, ...drop },
  ],
  omitted: ({ omitted }) => omitted?.users ?? 0,
  rows: ({ projects }) =>
    projects
      .flatMap(({ project, users: of }) => of.map((user) => ({ project, ...user })))
      .sort(longestWaitingUserFirst)
      .map(({ project, user, tasks, started, waitMsMean, waitMsMax }) => {
        const sum = (...states: readonly string[]) =>
          states.reduce((total, state) => total + (tasks[state] ?? 0), 0);
        const waiting = sum("queued", "delayed");
        const running = sum("assigned", "running");
        const failed = sum("failed", "expired", "dead-lettered");
        const completed = sum("completed");
        return {
          cells: [
            project,
            user,
            formatCount(waiting),
            formatCount(running),
            duration(waitMsMax),
            started === 0 ? "–" : duration(waitMsMean),
            formatCount(failed),
            formatCount(completed),
          ],
          sortBy: [project, user, waiting, running, waitMsMax, waitMsMean, failed, completed],
        };
      }),
};

const slots: LiveTable = {
  name: "slots",
  columns: [
    { head: "resource" },
    { head: "in use", ...right },
    { head: "waiting", ...right },
    { head: "utilisation", ...right },
    { head: "α", ...right, ...drop },
    { head: "held by", ...drop },
  ],
  omitted: ({ omitted }) => omitted?.resources ?? 0,
  rows: ({ resources }) =>
    [...resources].sort(mostWaitedForFirst).map((row) => ({
      ...toneOf(row.waiting > 0 ? "warning" : undefined),
      cells: [
        row.resource,
        `${formatCount(row.inUse)}/${formatCount(row.slots)}`,
        formatCount(row.waiting),
        formatShare(row.utilisation),
        alphaText(row),
        holdersText(row),
      ],
      sortBy: [row.resource, row.inUse, row.waiting, row.utilisation, row.alpha, holdersText(row)],
    })),
};

const budgets: LiveTable = {
  name: "budgets",
  columns: [
    { head: "budget or rate of" },
    { head: "used", ...right },
    { head: "spent", ...right },
    { head: "limit", ...right },
    { head: "window", ...right, ...drop },
    { head: "reserved", ...right, ...drop },
    { head: "when used up", ...drop },
  ],
  omitted: ({ omitted }) => (omitted?.projects ?? 0) + (omitted?.rates ?? 0),
  rows: (status) => {
    const { budget: ofSwarm, projects, rates = [] } = status;
    const owners = [
      { name: "the swarm", budget: ofSwarm },
      ...[...projects]
        .sort(mostSpentFirst)
        .map(({ project, budget }) => ({ name: `project ${project}`, budget })),
    ];
    const ofOwners = owners.flatMap(({ name, budget }) =>
      budget === undefined
        ? []
        : [limitRow({ ...budget, name, window: duration(budget.windowMs), whenUsedUp: budget.mode })],
    );
    const ofTypes = [...rates].sort(mostUsedFirst).map((rate) =>
      limitRow({
        name: `type ${rate.type}`,
        spent: rate.used,
        reserved: rate.reserved ?? 0,
        tokens: rate.tokensMax,
        window: rate.window.replace("_", " "),
        whenUsedUp: "wait",
      }),
    );
    return [...ofOwners, ...ofTypes];
  },
};

function limitRow(limit: {
  readonly name: string;
  readonly spent: number;
  readonly reserved: number;
  readonly tokens: number;
  readonly window: string;
  readonly whenUsedUp: string;
}): LiveRow {
  const { name, spent, reserved, tokens, window, whenUsedUp } = limit;
  const used = (spent + reserved) / tokens;
  return {
    ...toneOf(used >= 1 ? "warning" : undefined),
    cells: [
      name,
      formatShare(used),
      formatCount(spent),
      formatCount(tokens),
      window,
      formatCount(reserved),
      whenUsedUp,
    ],
    sortBy: [name, used, spent, tokens, window, reserved, whenUsedUp],
  };
}

function toneOf(tone: LiveRow["tone"]): Pick<LiveRow, "tone"> {
  return tone === undefined ? {} : { tone };
}

/** In the order of their keys, from `1`. */
export const liveTables = [agents, queues, users, slots, budgets] as const satisfies readonly LiveTable[];
/** An answer about one project holds no rows of the whole swarm. */
export const projectTables = [users, budgets] as const satisfies readonly LiveTable[];
