// The head of `waggle status`: agents, waiting tasks, and why tasks do not run; then leader and journal. Not here:
// the tables (status-view.ts).

import { duration, targetText, untilProbed, whyOnHold } from "../audit/describe.ts";
import { isSuspended, isUsedUp, mayHoldTasks, servesKind } from "../audit/health.ts";
import { presentHolds } from "../audit/present-holds.ts";
import { counted, formatCount } from "../count-text.ts";
import { headOf } from "../cut-text.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { meetsNeeds, needsText } from "../state/needs.ts";
import { durabilityText } from "./durability-text.ts";
import { brokenAt, formatBytes, formatShare, formatTime } from "./format.ts";
import { isCalledFull } from "./journal-full.ts";
import { type Output, printable } from "./output.ts";

type View = Pick<Output, "columns" | "colors" | "asStarted"> & {
  /** The project of the answer, which then holds no agents. */
  readonly project?: string | undefined;
};
type Agent = StatusResponse["agents"][number];

const LABEL_WIDTH = 9;

export function statusSummary(status: StatusResponse, view: View): string {
  const { swarm, leader, standbys, term, idx, at, tasks, journal } = status;
  const { bold, dim, yellow } = view.colors;
  const size = journal.bytesMax === undefined ? "" : ` of ${formatBytes(journal.bytesMax)}`;
  const foreignRecords = recentForeign(journal, at);
  const lines: (readonly [label: string, text: string, tone?: ((text: string) => string) | undefined])[] = [
    ["swarm", `${printable(swarm)}, batch ${formatCount(idx)} at ${formatTime(at)}`, bold],
    view.project === undefined
      ? ["agents", onlineText(status), agentsOnline(status) === 0 ? yellow : undefined]
      : ["project", printable(view.project)],
    ["tasks", countsText(tasks)],
    ...waitingLines(status).map((text) => ["", text, yellow] as const),
    [
      "leader",
      leader === "" ? "none" : `${printable(leader)}, term ${term}`,
      leader === "" ? yellow : undefined,
    ],
    ...(standbys === undefined ? [] : [["standbys", printable(standbys.join(", ")) || "none"] as const]),
    ["journal", `${formatBytes(journal.bytes)}${size}; ${printable(durabilityText(journal.durability))}`],
  ];
  if (journal.auditFirstIdx > 1 || journal.base !== undefined)
    lines.push(["", keptText(journal, status.stale === true)]);
  const shortage = shortageText(journal);
  if (shortage !== undefined) lines.push(["", `${shortage}: run \`waggle doctor\``, yellow]);
  if (foreignRecords !== undefined) lines.push(["", foreignText(foreignRecords), yellow]);
  if (journal.verified !== undefined) lines.push(["", ...auditText(journal.verified, view)]);
  if (journal.baseFailure !== undefined) lines.push(["", `base: ${printable(journal.baseFailure)}`, yellow]);
  if (status.stale === true) lines.push(["", "answered by a standby; the leader may know more", yellow]);
  return lines
    .map(([label, text, tone]) => paragraph(dim(label.padEnd(LABEL_WIDTH)), text, view, tone))
    .join("\n");
}

function paragraph(
  label: string,
  words: string,
  { columns, asStarted }: View,
  tone = (part: string) => part,
) {
  const text = asStarted(words);
  const parts = columns === undefined ? [text] : brokenAt(text, columns - LABEL_WIDTH);
  return parts.map((part, at) => `${at === 0 ? label : " ".repeat(LABEL_WIDTH)}${tone(part)}`).join("\n");
}

/** Agents able to run tasks. Processes used only to acquire slots are left out. */
function runningAgents({ agents }: StatusResponse): readonly Agent[] {
  return agents.filter(({ kinds }) => kinds.length > 0);
}

function agentsOnline(status: StatusResponse): number {
  const { metrics } = status;
  if (metrics !== undefined) return metrics.totalAgents - metrics.offlineAgents;
  return runningAgents(status).filter((agent) => agent.status !== "offline").length;
}

/** `3 agents online: 2 ready, 1 busy; 1 offline`. */
export function onlineText(status: StatusResponse): string {
  const online = agentsOnline(status);
  const agents = runningAgents(status);
  const offline = status.metrics?.offlineAgents ?? agents.length - online;
  const ready = status.metrics === undefined ? countOf(agents, "ready") : status.metrics.idleAgents - offline;
  const states =
    online === 0 ? "" : `: ${countsText({ ready: Math.max(0, ready), busy: online - ready }, ", ")}`;
  return `${counted(online, "agent")} online${states}${offline === 0 ? "" : `; ${formatCount(offline)} offline`}`;
}

function countOf(agents: readonly Agent[], state: Agent["status"]): number {
  return agents.filter(({ status }) => status === state).length;
}

export function countsText(counts: Readonly<Record<string, number>>, between = " · "): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.length === 0
    ? "none"
    : parts.map(([state, count]) => `${formatCount(count)} ${state}`).join(between);
}

// --- why tasks wait ---------------------------------------------------------------------------------

/** One line per reason known without a query about a single task. */
function waitingLines(status: StatusResponse): string[] {
  const queued = status.tasks["queued"] ?? 0;
  const paused = status.projects.filter((row) => row.paused === true).map(({ project }) => project);
  const lines = [
    status.paused === true ? "paused: nothing is assigned until `waggle resume`" : "",
    paused.length === 0
      ? ""
      : `paused projects: ${printable(paused.join(", "))}; see \`waggle resume --help\``,
    ...holdLines(status),
    ...budgetLines(status),
    ...queueLines(status),
  ].filter((line) => line !== "");
  if (queued > 0) lines.push("why a task waits: `waggle explain ID`");
  return lines;
}

/** `all claude agents on hold until 14:30:00 (set by an operator): …`. */
function holdLines(status: StatusResponse): string[] {
  const lasting = presentHolds(status);
  const lines = lasting.slice(0, limits.statusReasonsMax).map(({ on, name, until, phase, by, reason }) => {
    const end = phase === "held" ? `until ${formatTime(until)}` : untilProbed;
    const why = headOf(whyOnHold({ by, reason }), limits.statusReasonCharactersMax);
    return `${printable(targetText({ on, name }))} on hold ${end} (${printable(why)}): \`waggle unhold ${on} ${printable(name)}\` ends the hold now`;
  });
  const more = lasting.length - lines.length;
  return more > 0 ? [...lines, `and ${counted(more, "hold")} more`] : lines;
}

function budgetLines({ projects }: StatusResponse): string[] {
  const used = projects.filter(
    ({ budget, tasks }) =>
      budget !== undefined && mayHoldTasks(budget) && (tasks["queued"] ?? 0) > 0 && isUsedUp(budget),
  );
  if (used.length === 0) return [];
  return [
    `budget used up: ${printable(used.map(({ project }) => project).join(", "))}; their tasks may wait`,
  ];
}

/** The queues with the longest waits; the table has all queues. */
function queueLines({ queues, agents, omitted }: StatusResponse): string[] {
  const waiting = queues.filter((queue) => queue.waiting > 0).sort(longestWaitFirst);
  const lines = waiting.slice(0, limits.statusReasonsMax).map((queue) => {
    const { needs } = queue;
    const kind = `${printable(queueName(queue))}: ${formatCount(queue.waiting)} waiting for up to ${duration(queue.oldestMs)}`;
    const serving = agents.filter(
      (agent) =>
        agent.status !== "offline" && servesKind(agent, queue.kind) && meetsNeeds(agent.labels, needs),
    );
    return `${kind}, ${queue.agents === 0 ? "no agent online serves it" : obstacleText(serving, queue.kind, omitted !== undefined)}`;
  });
  const more = waiting.length - lines.length;
  return more > 0 ? [...lines, `and ${counted(more, "queue")} more with waiting tasks`] : lines;
}

/** `train with gpu=a100`: the kind, and the labels that its agents must have. */
export function queueName({ kind, needs }: StatusResponse["queues"][number]): string {
  return needs === undefined ? kind : `${kind} with ${needsText(needs)}`;
}

/** The reason why no agent of a kind takes tasks. */
function obstacleText(serving: readonly Agent[], kind: string, isCut: boolean): string {
  const isFull = (agent: Agent) => agent.inFlight >= agent.maxConcurrent + agent.prefetch;
  const counts = countsText(
    {
      full: serving.filter(isFull).length,
      draining: serving.filter((agent) => agent.draining).length,
      unresponsive: serving.filter((agent) => agent.unresponsive).length,
      suspended: serving.filter((agent) => isSuspended(agent, kind)).length,
      "on hold": serving.filter((agent) => agent.onHold !== undefined).length,
    },
    ", ",
  );
  const listed = isCut ? "of those listed " : "";
  return `${counted(serving.length, "agent")} ${serving.length === 1 ? "serves" : "serve"} it: ${listed}${counts === "none" ? "none full" : counts}`;
}

/** Kinds without agents first, then by the longest wait. */
export function longestWaitFirst(
  one: StatusResponse["queues"][number],
  other: StatusResponse["queues"][number],
): number {
  const isUnserved = ({ agents, waiting }: typeof one) => Number(agents === 0 && waiting > 0);
  return isUnserved(other) - isUnserved(one) || other.oldestMs - one.oldestMs;
}

// --- the journal ------------------------------------------------------------------------------------

/** The age of the kept journal, and the beginning of a restart. A standby does not know the latter. */
function keptText({ auditFirstIdx, base }: StatusResponse["journal"], isStale: boolean): string {
  const from = auditFirstIdx === 1 ? "from its start" : `from batch ${formatCount(auditFirstIdx)}`;
  if (base === undefined) return isStale ? `kept ${from}` : `kept ${from}; no base yet`;
  const { idx, at, bytes } = base;
  return `kept ${from}; base of batch ${formatCount(idx)} at ${formatTime(at)}, ${formatBytes(bytes)}`;
}

/** Recent records of foreign writers; the writers may still be active. */
function auditText(
  { idx, at, fault }: NonNullable<StatusResponse["journal"]["verified"]>,
  { colors }: View,
): readonly [text: string, tone?: (text: string) => string] {
  if (fault !== undefined) return [`${printable(fault.text)}: run \`waggle verify\``, colors.red];
  const when = at === undefined ? "so far" : `at ${formatTime(at)}`;
  return [`verified up to batch ${formatCount(idx)} ${when}`];
}

function recentForeign({ foreignRecords }: StatusResponse["journal"], at: number) {
  const isRecent = at - (foreignRecords?.lastAt ?? 0) <= limits.foreignRecordShownMs;
  return isRecent ? foreignRecords : undefined;
}

function foreignText({ count, lastAt }: NonNullable<StatusResponse["journal"]["foreignRecords"]>): string {
  const records = `${counted(count, "foreign record")}`;
  return `${records} in the journal, the last at ${formatTime(lastAt)}: run \`waggle doctor\``;
}

/** Effect of a nearly full journal on callers. */
function shortageText({ bytes, bytesMax }: StatusResponse["journal"]): string | undefined {
  if (bytesMax === undefined || bytes <= bytesMax * limits.journalFullShare) return undefined;
  return isCalledFull({ bytes, bytesMax })
    ? "the journal is full: tasks are refused, and requests that need room are not answered"
    : `tasks are refused: the journal is ${formatShare(bytes / bytesMax)} full`;
}
