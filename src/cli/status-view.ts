// The state of a swarm for people: a summary, then tables with the most important rows. With --json the whole answer
// is printed; the tables hold only data of the answer. Not here: the request (status.ts), the summary
// (status-summary.ts).

import { duration } from "../audit/describe.ts";
import { formatCount } from "../count-text.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { valuesText } from "../state/needs.ts";
import { budgetTable, rateTable } from "./budget-view.ts";
import { formatShare } from "./format.ts";
import type { Output } from "./output.ts";
import { slotLeaseName } from "./slot-leases-view.ts";
import {
  longestWaitingUserFirst,
  mostLoadedFirst,
  mostSpentFirst,
  mostUsedFirst,
  mostWaitedForFirst,
} from "./status-order.ts";
import { countsText, longestWaitFirst, queueName, statusSummary } from "./status-summary.ts";
import { swarmSection } from "./swarm-view.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type Agent = StatusResponse["agents"][number];
type Project = StatusResponse["projects"][number];
type User = Project["users"][number];
type View = Pick<Output, "columns" | "colors" | "asStarted">;

export interface StatusView extends View {
  /** Shows every row, offline agents included; false: `limits.statusRowsShown` rows per table. */
  readonly showsAll: boolean;
  /** The project of the answer: tables of the whole swarm are left out. */
  readonly project?: string | undefined;
}

export function renderStatus(status: StatusResponse, view: StatusView): string {
  const { queues, resources, projects, rates = [], omitted } = status;
  const shownAgents = agentsToShow(status, view);
  const users = projects.flatMap(({ project, users: of }) => of.map((user) => ({ project, ...user })));
  const userBlock = tableBlock(
    "projects and users",
    users.sort(longestWaitingUserFirst),
    omitted?.users,
    view,
    (rows) => userTable(rows, view),
  );
  if (view.project !== undefined)
    return [statusSummary(status, view), userBlock, ...budgetBlock(status, view)].join("\n\n");
  const blocks = [
    statusSummary(status, view),
    tableBlock("queues", [...queues].sort(longestWaitFirst), omitted?.queues, view, (rows) =>
      queueTable(rows, view),
    ),
    agentBlock(status, shownAgents, view),
    ...(resources.length === 0
      ? []
      : [
          tableBlock("resources", [...resources].sort(mostWaitedForFirst), omitted?.resources, view, (rows) =>
            resourceTable(rows, view),
          ),
        ]),
    userBlock,
    ...budgetBlock(status, view),
    ...(rates.length === 0 && !omitted?.rates
      ? []
      : [
          tableBlock(
            "rates",
            [...rates].sort(mostUsedFirst),
            omitted?.rates,
            view,
            (rows) => rateTable({ ...status, rates: [...rows] }, view) ?? "",
          ),
        ]),
    ...swarmBlock(status, view),
  ];
  return blocks.join("\n\n");
}

/** The most important rows, and the number of further rows. @param omitted rows that did not fit the answer */
function tableBlock<Row>(
  title: string,
  rows: readonly Row[],
  omitted: number | undefined,
  { showsAll, colors }: StatusView,
  render: (rows: readonly Row[]) => string,
): string {
  const shown = showsAll ? rows : rows.slice(0, limits.statusRowsShown);
  const more = rows.length - shown.length + (omitted ?? 0);
  const rest =
    more === 0 ? [] : [colors.dim(`and ${formatCount(more)} more${showsAll ? "" : " (--all lists them)"}`)];
  if (shown.length === 0 && more === 0) return `${colors.bold(title)}  none`;
  return [colors.bold(title), render(shown), ...rest].join("\n");
}

function swarmBlock(status: StatusResponse, view: View): string[] {
  const swarm = swarmSection(status, view);
  return swarm === undefined ? [] : [swarm];
}

function budgetBlock(status: StatusResponse, view: StatusView): string[] {
  const of = status.projects.filter(({ budget }) => budget !== undefined).sort(mostSpentFirst);
  if (status.budget === undefined && of.length === 0) return [];
  return [
    tableBlock(
      "budgets",
      of,
      undefined,
      view,
      (rows) => budgetTable({ ...status, projects: [...rows] }, view) ?? "",
    ),
  ];
}

// --- agents -----------------------------------------------------------------------------------------

const agentColumns: readonly Column[] = [
  { head: "agent", whenNarrow: "whole" },
  { head: "state" },
  { head: "in flight", align: "right" },
  { head: "done", align: "right" },
  { head: "kinds (success, typical latency)", whenNarrow: "below" },
];

const labelColumn: Column = { head: "labels", whenNarrow: "below" };

/** Leaves out offline agents without kinds: processes that acquired a slot and ended. */
function agentsToShow({ agents }: StatusResponse, { showsAll }: StatusView): Agent[] {
  const shown = showsAll ? agents : agents.filter(({ status }) => status !== "offline");
  return [...shown].sort(mostLoadedFirst);
}

function agentBlock(status: StatusResponse, agents: readonly Agent[], view: StatusView): string {
  const { colors, showsAll } = view;
  const offline = status.agents.filter(({ status: state, kinds }) => state === "offline" && kinds.length > 0);
  const hidden =
    showsAll || offline.length === 0 ? "" : `${formatCount(offline.length)} offline (--all lists them)`;
  const twice = startedTwice(agents, view);
  const title = agents.length === 0 && hidden !== "" ? `${colors.bold("agents")}  ${hidden}` : undefined;
  if (title !== undefined) return title;
  const table = tableBlock("agents", agents, status.omitted?.agents, view, (rows) =>
    agentTable(rows, status.at, view),
  );
  return [table, ...(hidden === "" ? [] : [colors.dim(hidden)]), ...twice].join("\n");
}

/** Advice for ids that two processes use. */
function startedTwice(agents: readonly Agent[], { colors }: View): string[] {
  return agents.flatMap(({ id, outlivedMs }) => {
    if (outlivedMs === undefined) return [];
    const when = `${duration(outlivedMs)} ago`;
    return colors.yellow(
      `two processes use the id ${id}: the earlier was fenced and was last heard ${when}. Give each process its own --id`,
    );
  });
}

function agentTable(agents: readonly Agent[], at: number, view: StatusView): string {
  const hasLabels = agents.some(({ labels }) => Object.keys(labels).length > 0);
  const rows = agents.map((agent): Cell[] => [
    agent.id,
    agentState(agent),
    `${agent.inFlight}/${agent.maxConcurrent}${agent.prefetch > 0 ? `+${agent.prefetch}` : ""}`,
    formatCount(agent.completed),
    kindsText(agent, at, view),
    ...(hasLabels ? [valuesText(agent.labels)] : []),
  ]);
  return renderTable(view, hasLabels ? [...agentColumns, labelColumn] : agentColumns, rows);
}

/** The kinds with the most attempts; suspended kinds first. */
export function kindsText({ kinds }: Agent, at: number, { showsAll }: Pick<StatusView, "showsAll">): string {
  const rank = ({ suspendedUntil }: Agent["kinds"][number]) => Number(suspendedUntil !== undefined);
  const sorted = [...kinds].sort((one, other) => rank(other) - rank(one) || other.attempts - one.attempts);
  const shown = showsAll ? sorted : sorted.slice(0, limits.statusKindsShown);
  const more = sorted.length - shown.length;
  return [...shown.map((kind) => kindText(kind, at)), ...(more === 0 ? [] : [`+${formatCount(more)}`])].join(
    ", ",
  );
}

export function agentState(agent: Agent): string {
  const remarks = [
    agent.draining ? "draining" : "",
    holdState(agent),
    agent.unresponsive ? "unresponsive" : "",
    agent.outlivedMs === undefined ? "" : "started twice",
  ].filter(Boolean);
  return [agent.status, ...remarks].join(", ");
}

/** Once a hold has elapsed the agent waits for a task to probe with. */
function holdState({ onHold }: Agent): string {
  if (onHold === undefined) return "";
  return onHold.phase === "due" ? "next task probes" : "on hold";
}

function kindText(
  { kind, completed, attempts, successRate, latencyMs, suspendedUntil }: Agent["kinds"][number],
  at: number,
): string {
  const ratio = `${formatShare(successRate)}, ${formatCount(completed)} of ${formatCount(attempts)}`;
  const learnt = attempts === 0 ? "" : ` (${ratio}${completed === 0 ? "" : `, ${duration(latencyMs)}`})`;
  const suspended =
    suspendedUntil === undefined ? "" : ` suspended for ${duration(Math.max(0, suspendedUntil - at))}`;
  return `${kind}${learnt}${suspended}`;
}

const resourceColumns: readonly Column[] = [
  { head: "resource" },
  { head: "in use", align: "right" },
  { head: "waiting", align: "right" },
  { head: "utilisation", align: "right" },
  { head: "α", align: "right" },
  { head: "held by", whenNarrow: "below" },
];

function resourceTable(resources: readonly StatusResponse["resources"][number][], view: View): string {
  const rows = resources.map((row): Cell[] => [
    row.onHold === undefined || row.onHold.phase === "due" ? row.resource : `${row.resource}, on hold`,
    `${formatCount(row.inUse)}/${formatCount(row.slots)}`,
    `${formatCount(row.waiting)}/${formatCount(row.maxWaiters)}`,
    formatShare(row.utilisation),
    alphaText(row),
    holdersText(row),
  ]);
  return renderTable(view, resourceColumns, rows);
}

/** `0.25 policy`, `0.31 own, moving`. */
export function alphaText({ alpha, autoTune, alphaFrom }: StatusResponse["resources"][number]): string {
  return `${alpha} ${alphaFrom === "resource" ? "own" : "policy"}${autoTune ? ", moving" : ""}`;
}

/** `a1 ×2 (3 s), desk/analyst "report" (40 ms)`: how long ago the oldest of each was granted. */
export function holdersText({ holders, inUse }: StatusResponse["resources"][number]): string {
  const byName = new Map<string, { count: number; forMs: number }>();
  for (const { forMs, ...slotLease } of holders) {
    const name = slotLeaseName(slotLease);
    const known = byName.get(name);
    byName.set(name, { count: (known?.count ?? 0) + 1, forMs: Math.max(known?.forMs ?? 0, forMs) });
  }
  const named = [...byName].map(
    ([name, { count, forMs }]) => `${name}${count > 1 ? ` ×${count}` : ""} (${duration(forMs)})`,
  );
  return [...named, ...(inUse > holders.length ? ["…"] : [])].join(", ");
}

const queueColumns: readonly Column[] = [
  { head: "kind" },
  { head: "role" },
  { head: "waiting", align: "right" },
  { head: "oldest", align: "right" },
  { head: "agents", align: "right" },
];

function queueTable(queues: readonly StatusResponse["queues"][number][], view: View): string {
  const rows = queues.map((queue): Cell[] => [
    queueName(queue),
    queue.role ?? "any",
    formatCount(queue.waiting),
    duration(queue.oldestMs),
    queue.agents === 0 && queue.waiting > 0 ? "none" : queue.agents,
  ]);
  return renderTable(view, queueColumns, rows);
}

const userColumns: readonly Column[] = [
  { head: "project" },
  { head: "user" },
  { head: "tasks", whenNarrow: "below" },
  { head: "mean wait", align: "right" },
  { head: "worst wait", align: "right" },
];

function userTable(users: readonly ({ readonly project: string } & User)[], view: View): string {
  const rows = users.map((user): Cell[] => [
    user.project,
    user.user,
    countsText(user.tasks),
    user.started === 0 ? "–" : duration(user.waitMsMean),
    duration(user.waitMsMax),
  ]);
  return renderTable(view, userColumns, rows);
}
