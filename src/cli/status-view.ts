// The state of a swarm for people. Not here: asking for it (status.ts). With --json the answer is printed
// whole, so nothing is shown here that is not in it.

import { duration } from "../audit/describe.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { budgetTable, rateTable } from "./budget-view.ts";
import { counted, formatBytes, formatCount, formatShare, formatTimeOfDay } from "./format.ts";
import { isCalledFull } from "./journal-full.ts";
import { type Output, printable } from "./output.ts";
import { swarmSection } from "./swarm-view.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type Agent = StatusResponse["agents"][number];
type View = Pick<Output, "columns" | "colors">;

export interface StatusView extends View {
  /** Whether agents that are offline are listed, or only counted. */
  readonly showsOffline: boolean;
}

export function renderStatus(status: StatusResponse, view: StatusView): string {
  const swarm = swarmSection(status, view);
  const blocks = [
    summary(status, view),
    ...(swarm === undefined ? [] : [swarm]),
    agentSection(status, view),
    ...(status.resources.length === 0
      ? []
      : [section("resources", resourceTable(status, view), status.resources.length, view)]),
    section("queues", queueTable(status, view), status.queues.length, view),
    section("projects and users", userTable(status, view), status.projects.length, view),
    ...shown("budgets", budgetTable(status, view), view),
    ...shown("rates", rateTable(status, view), view),
    ...shown("left out", omittedText(status), view),
  ];
  return blocks.join("\n\n");
}

function section(title: string, table: string, rows: number, { colors }: View): string {
  return rows === 0 ? `${colors.bold(title)}  none` : `${colors.bold(title)}\n${table}`;
}

/** A section only where there is something to show. */
function shown(title: string, table: string | undefined, { colors }: View): string[] {
  return table === undefined ? [] : [`${colors.bold(title)}\n${table}`];
}

/** Rows that did not fit the answer. */
function omittedText({ omitted }: Pick<StatusResponse, "omitted">): string | undefined {
  if (omitted === undefined) return undefined;
  const left = Object.entries(omitted).filter(([, count]) => count > 0);
  const parts = left.map(([table, count]) => `${formatCount(count)} ${table}`);
  return `${parts.join(" · ")}: there is no room for more in one answer`;
}

function summary(
  { swarm, leader, standbys, term, idx, at, stale, paused, projects, tasks, journal }: StatusResponse,
  { colors }: View,
): string {
  const size = journal.bytesMax === undefined ? "" : ` of ${formatBytes(journal.bytesMax)}`;
  const alienRecords = recentAliens(journal, at);
  const leftBehind = journal.deadRecords - (alienRecords?.count ?? 0);
  const dead = leftBehind === 0 ? "" : `, ${counted(leftBehind, "dead record")}`;
  const lines = [
    ["swarm", `${colors.bold(swarm)}, batch ${formatCount(idx)} at ${formatTimeOfDay(at)}`],
    ["leader", `${leader === "" ? colors.yellow("none") : printable(leader)}, term ${term}`],
    ...(standbys === undefined ? [] : [["standbys", printable(standbys.join(", ")) || "none"]]),
    ["journal", `${journal.durability}, ${formatBytes(journal.bytes)}${size}${dead}`],
    ["tasks", countsText(tasks)],
  ];
  if (journal.auditFirstIdx > 1 || journal.snapshot !== undefined)
    lines.splice(lines.length - 1, 0, ["", keptText(journal, stale === true)]);
  const shortage = shortageText(journal);
  if (shortage !== undefined)
    lines.push(["", colors.yellow(`${shortage}: \`waggle doctor\` says what to do`)]);
  if (alienRecords !== undefined) lines.push(["", colors.yellow(alienText(alienRecords))]);
  if (paused === true) lines.push(["", colors.yellow("paused: nothing is assigned until `waggle resume`")]);
  const pausedProjects = projects.filter((row) => row.paused === true).map(({ project }) => project);
  if (pausedProjects.length > 0)
    lines.push(["", colors.yellow(`paused projects: ${printable(pausedProjects.join(", "))}`)]);
  if (journal.snapshotFailure !== undefined)
    lines.push(["", colors.yellow(`snapshots: ${printable(journal.snapshotFailure)}`)]);
  if (stale === true) lines.push(["", colors.yellow("answered by a standby from what it has read so far")]);
  return lines.map(([name = "", text = ""]) => `${colors.dim(name.padEnd(8))} ${text}`).join("\n");
}

/** Since when the journal is kept, and from where a restart would begin, which a standby does not know. */
function keptText({ auditFirstIdx, snapshot }: StatusResponse["journal"], isStale: boolean): string {
  const from = auditFirstIdx === 1 ? "from its start" : `from batch ${formatCount(auditFirstIdx)}`;
  if (snapshot === undefined) return isStale ? `kept ${from}` : `kept ${from}; no snapshot yet`;
  const { idx, at, bytes } = snapshot;
  return `kept ${from}; snapshot of batch ${formatCount(idx)} at ${formatTimeOfDay(at)}, ${formatBytes(bytes)}`;
}

/** Those of somebody who may well write more. */
function recentAliens({ alienRecords }: StatusResponse["journal"], at: number) {
  const isRecent = at - (alienRecords?.lastAt ?? 0) <= limits.alienRecordShownMs;
  return isRecent ? alienRecords : undefined;
}

function alienText({ count, lastAt }: NonNullable<StatusResponse["journal"]["alienRecords"]>): string {
  const records = `${counted(count, "record")} of somebody else`;
  return `${records} in the journal, the last at ${formatTimeOfDay(lastAt)}: \`waggle doctor\` says what to do`;
}

/** What a journal that has little room left means for who asks. */
function shortageText({ bytes, bytesMax }: StatusResponse["journal"]): string | undefined {
  if (bytesMax === undefined || bytes <= bytesMax * limits.journalFullShare) return undefined;
  return isCalledFull({ bytes, bytesMax })
    ? "the journal is full: tasks are refused, and nothing is answered that it has no room for"
    : `tasks are refused: the journal is ${formatShare(bytes / bytesMax)} full`;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.length === 0
    ? "none"
    : parts.map(([state, count]) => `${formatCount(count)} ${state}`).join(" · ");
}

const agentColumns: readonly Column[] = [
  { head: "agent" },
  { head: "state" },
  { head: "in flight", align: "right" },
  { head: "done", align: "right" },
  { head: "kinds (success, mean latency)" },
];

/** Offline ones without kinds are processes that acquired a slot and ended: nobody misses them. */
function agentSection({ agents, at }: StatusResponse, view: StatusView): string {
  const shown = view.showsOffline ? agents : agents.filter(({ status }) => status !== "offline");
  const missed = agents.filter(({ status, kinds }) => status === "offline" && kinds.length > 0);
  const left = view.showsOffline ? 0 : missed.length;
  const hidden = left === 0 ? "" : `${counted(left, "agent")} offline (--all lists them)`;
  const table = [agentTable({ agents: shown, at }, view), ...startedTwice(agents, view)].join("\n");
  const listed = section("agents", table, shown.length, view);
  if (hidden === "") return listed;
  return shown.length === 0
    ? `${view.colors.bold("agents")}  ${hidden}`
    : `${listed}\n${view.colors.dim(hidden)}`;
}

/** What to do about ids that two processes use. */
function startedTwice(agents: readonly Agent[], { colors }: View): string[] {
  return agents.flatMap(({ id, outlivedMs }) => {
    if (outlivedMs === undefined) return [];
    const when = `${duration(outlivedMs)} ago`;
    return colors.yellow(
      `two processes were started as ${id}: the earlier was fenced, and heard ${when}. Give each its own --id`,
    );
  });
}

function agentTable({ agents, at }: Pick<StatusResponse, "agents" | "at">, view: View): string {
  const rows = [...agents]
    .sort(onlineFirst)
    .map((agent): Cell[] => [
      agent.id,
      agentState(agent),
      `${agent.inFlight}/${agent.maxConcurrent}${agent.prefetch > 0 ? `+${agent.prefetch}` : ""}`,
      formatCount(agent.completed),
      agent.kinds.map((kind) => kindText(kind, at)).join(", "),
    ]);
  return renderTable(view, agentColumns, rows);
}

function onlineFirst(one: Agent, other: Agent): number {
  const isOffline = (agent: Agent) => Number(agent.status === "offline");
  return isOffline(one) - isOffline(other) || one.id.localeCompare(other.id, "en", { numeric: true });
}

function agentState(agent: Agent): string {
  const remarks = [
    agent.draining ? "draining" : "",
    agent.unresponsive ? "unresponsive" : "",
    agent.outlivedMs === undefined ? "" : "started twice",
  ].filter(Boolean);
  return [agent.status, ...remarks].join(", ");
}

function kindText(
  { kind, attempts, successRate, latencyMs, suspendedUntil }: Agent["kinds"][number],
  at: number,
): string {
  const learnt = attempts === 0 ? "" : ` (${formatShare(successRate)}, ${duration(latencyMs)})`;
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
  { head: "held by" },
];

function resourceTable({ resources }: StatusResponse, view: View): string {
  const rows = resources.map((row): Cell[] => [
    row.resource,
    `${formatCount(row.inUse)}/${formatCount(row.slots)}`,
    `${formatCount(row.waiting)}/${formatCount(row.maxWaiters)}`,
    formatShare(row.utilisation),
    String(row.alpha),
    holdersText(row),
  ]);
  return renderTable(view, resourceColumns, rows);
}

/** `a1 ×2 (3 s), a2 (40 ms)`: how long ago the oldest of each was granted. */
function holdersText({ holders, inUse }: StatusResponse["resources"][number]): string {
  const byAgent = new Map<string, { count: number; forMs: number }>();
  for (const { agent, forMs } of holders) {
    const known = byAgent.get(agent);
    byAgent.set(agent, { count: (known?.count ?? 0) + 1, forMs: Math.max(known?.forMs ?? 0, forMs) });
  }
  const named = [...byAgent].map(
    ([agent, { count, forMs }]) => `${agent}${count > 1 ? ` ×${count}` : ""} (${duration(forMs)})`,
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

function queueTable({ queues }: StatusResponse, view: View): string {
  const rows = queues.map((queue): Cell[] => [
    queue.kind,
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
  { head: "tasks" },
  { head: "mean wait", align: "right" },
  { head: "worst wait", align: "right" },
];

function userTable({ projects }: StatusResponse, view: View): string {
  const rows = projects.flatMap(({ project, users }) =>
    users.map((user): Cell[] => [
      project,
      user.user,
      countsText(user.tasks),
      user.started === 0 ? "–" : duration(user.waitMsMean),
      duration(user.waitMsMax),
    ]),
  );
  return renderTable(view, userColumns, rows);
}
