// Why a task waits, or why it got its agent, for people: the main reason first, then further obstacles, the task's
// turn, and the agents. For a past assignment: the table as replayed.

import type { ReplayedAssignment } from "../audit/assignment-replay.ts";
import { duration, untilProbed } from "../audit/describe.ts";
import { describeObstacle } from "../audit/describe-wait.ts";
import type { TaskExplanation } from "../client/task-stories.ts";
import { counted, formatCount } from "../count-text.ts";
import type { AgentStanding, AwaitedSlots, TaskWait } from "../protocol/explain-schemas.ts";
import { needsWords } from "../state/needs.ts";
import { attemptBlock, attemptsText, termCells, termColumns } from "./attempt-view.ts";
import { formatTime, hanging, labelled } from "./format.ts";
import { unkeptText } from "./kept-record.ts";
import { type Output, printable } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;

export interface ShownExplanation {
  readonly explanation: TaskExplanation;
  /** Shows every agent; false: only agents that serve the kind. */
  readonly showsAll: boolean;
  /** First batch that the journal still has. */
  readonly firstIdx: number;
}

export function renderExplanation({ explanation, showsAll, firstIdx }: ShownExplanation, view: View): string {
  const { waiting, attempts } = explanation;
  const blocks = [headline(explanation, view)];
  blocks.push((explanation.slots ?? []).map((slots) => awaitedText(slots, view)).join("\n"));
  if (waiting !== undefined) {
    blocks.push(obstacles(waiting, view));
    if (waiting.position !== undefined) blocks.push(turnBlock(explanation, waiting.position, view));
    blocks.push(agentBlock(explanation, waiting, showsAll, view));
  }
  blocks.push(unassignedText(explanation, view), unkeptText(explanation, firstIdx) ?? "");
  blocks.push(...attempts.map((attempt) => attemptBlock(attempt, explanation.at, view)));
  if (attempts.length > 0 && firstIdx === 1) {
    const hint = `waggle explain ${printable(explanation.task)} --attempt ${attempts.length} shows every agent at that moment`;
    blocks.push(hanging(hint, view.columns).map(view.colors.dim).join("\n"));
  }
  return blocks.filter((block) => block !== "").join("\n\n");
}

/** What the running attempt waits for. */
function awaitedText({ resources, sinceMs, onHold }: AwaitedSlots, { columns }: View): string {
  const names = resources.map((name) => printable(name)).join(" and ");
  const waits = `The running attempt has waited for a slot of ${names} for ${duration(sinceMs)}`;
  if (onHold === undefined)
    return labelled(
      "why",
      `${waits}; \`waggle explain --resource ${resources[0]}\` ranks the requests`,
      columns,
    );
  const resource = printable(onHold.resource);
  const end = onHold.until === undefined ? untilProbed : `until ${formatTime(onHold.until)}`;
  const text = `${waits}: resource ${resource} is on hold ${end}; \`waggle unhold resource ${resource}\` ends the hold now`;
  return labelled("why", text, columns);
}

/** The table of one replayed assignment. */
export function renderReplayed(replayed: ReplayedAssignment, view: View): string {
  const { task, attempt, agent, kind, cheaperType, at, idx, receipt, agents, agrees } = replayed;
  const { colors } = view;
  const only = cheaperType === undefined ? "" : `, by type ${printable(cheaperType)} only`;
  const moment = `batch ${formatCount(idx)}, ${formatTime(at)}`;
  const table = agentTable(agents, agent, view);
  const verdict = agrees
    ? colors.dim(
        `the receipt says the same; replayed from batch ${formatCount(replayed.replayed.from)} to ${formatCount(replayed.replayed.to)}`,
      )
    : colors.red(`the receipt differs: it names ${receipt.candidates.map((each) => each.agent).join(", ")}`);
  return [
    `${colors.bold(`${printable(task)} attempt ${attempt}`)} went to ${agent} as ${printable(kind)}${only} (${moment})`,
    table,
    verdict,
  ].join("\n\n");
}

function headline(explanation: TaskExplanation, { colors, columns }: View): string {
  const { task, kind, role, needs, affinity, project, user, state, at, stale, waiting, agent } = explanation;
  const since = waiting === undefined || state === "delayed" ? "" : ` for ${duration(waiting.ageMs)}`;
  const place = agent === undefined ? "" : ` at ${agent}`;
  const lines = [
    `${colors.bold(printable(task))}  ${colors.yellow(state)}${since}${place}`,
    ...hanging(
      `${printable(kind)}${role === undefined ? "" : ` in role ${printable(role)}`}${needs === undefined ? "" : ` with ${printable(needsWords(needs))}`} for ${project}/${printable(user)}, ${attemptsText(explanation.attemptCount, explanation.endedIdx !== undefined)}, as of ${formatTime(at)}`,
      columns,
    ),
  ];
  if (affinity !== undefined) {
    const prefers = affinity.agent === undefined ? "no agent yet" : affinity.agent;
    lines.push(`affinity ${printable(affinity.key)}: prefers ${prefers}`);
  }
  if (stale === true) lines.push(colors.yellow("answered by a standby; the leader may know more"));
  return lines.join("\n");
}

/** Empty unless the task ended without an attempt. */
function unassignedText({ state, attemptCount, waits, endedAt }: TaskExplanation, { columns }: View): string {
  if (endedAt === undefined || attemptCount > 0) return "";
  const from = waits[0]?.from;
  const after = from === undefined ? "" : `, ${duration(endedAt - from)} after it was submitted`;
  const how = state === "expired" ? "Its deadline passed" : `It was ${state}`;
  return labelled("why", `${how} at ${formatTime(endedAt)}${after}: the task was never assigned`, columns);
}

/** The main obstacle, and the further obstacles below. */
function obstacles(waiting: TaskWait, { colors, columns }: View): string {
  const [first, ...others] = waiting.obstacles.map((obstacle) =>
    printable(describeObstacle(obstacle, waiting, formatTime)),
  );
  return [
    colors.bold(labelled("why", first ?? "", columns)),
    ...[...others, ...cheaperTexts(waiting)].map((text) => labelled("besides", text, columns)),
  ].join("\n");
}

function cheaperTexts({ runsAs, cheaperType }: TaskWait): string[] {
  const parts = [
    runsAs !== undefined && `as ${printable(runsAs)}`,
    cheaperType !== undefined && `at agents of type ${printable(cheaperType)} only`,
  ].filter((part) => part !== false);
  return parts.length === 0
    ? []
    : [`Because of a budget, or a hold on all agents of its kind, the task runs ${parts.join(", ")}`];
}

const turnColumns: readonly Column[] = [
  { head: "turn of" },
  { head: "place" },
  { head: "waited", align: "right" },
  { head: "starvation limit", align: "right" },
  { head: "basis" },
  { head: "clock", align: "right", whenNarrow: "drop" },
  { head: "virtual time", align: "right", whenNarrow: "drop" },
];

/** The turn of the project in its queue, of the user in the project, and of the task among the user's tasks. */
function turnBlock(
  { project, user, task: id }: TaskExplanation,
  position: NonNullable<TaskWait["position"]>,
  view: View,
): string {
  const turn = (name: string, it: typeof position.project, countedIn: string): Cell[] => [
    name,
    ...placeCells(it, countedIn),
    it.basis,
    clockText(it.clock),
    clockText(it.virtualTime),
  ];
  const task = [`task ${id}`, ...placeCells(position.task, "turns"), "", "", ""];
  const rows = [
    turn(`project ${project}`, position.project, "ticks"),
    turn(`user ${user}`, position.user, "turns"),
    task,
  ];
  return renderTable(view, turnColumns, rows);
}

function placeCells(
  { place, of, waited, starvationLimit }: NonNullable<TaskWait["position"]>["task"],
  countedIn: string,
): Cell[] {
  const after = starvationLimit === undefined ? "none" : formatCount(starvationLimit);
  return [`${formatCount(place)} of ${formatCount(of)}`, `${formatCount(waited)} ${countedIn}`, after];
}

/** From thousandths. */
function clockText(clock: number): string {
  return (clock / 1_000).toFixed(1);
}

function agentBlock(
  { kind, omitted }: TaskExplanation,
  { agents, runsAs = kind }: TaskWait,
  showsAll: boolean,
  view: View,
): string {
  const shown = showsAll ? agents : agents.filter(({ servesKind }) => servesKind);
  const left = agents.length - shown.length + (omitted?.agents ?? 0);
  const rest =
    left === 0
      ? ""
      : `${counted(left, "agent")} that ${left === 1 ? "does" : "do"} not serve ${printable(runsAs)} (--full lists them)`;
  const table = shown.length === 0 ? "" : agentTable(shown, undefined, view);
  return [table, rest === "" ? "" : view.colors.dim(rest)].filter((part) => part !== "").join("\n");
}

const agentColumns: readonly Column[] = [
  { head: "  agent", whenNarrow: "whole" },
  { head: "eligible" },
  { head: "free", align: "right", whenNarrow: "whole" },
  ...termColumns,
];

function agentTable(agents: readonly AgentStanding[], chosen: string | undefined, view: View): string {
  const rows = agents.map((row): Cell[] => [
    `${row.agent === chosen ? "→" : " "} ${row.agent}`,
    standingText(row),
    `${row.free} of ${row.capacity}`,
    ...termCells(row.terms as Parameters<typeof termCells>[0]),
  ]);
  return renderTable(view, agentColumns, rows);
}

function standingText({ standing, until }: AgentStanding): string {
  if (standing === "feasible") return "yes";
  if (standing === "probe") return "yes, as a probe";
  return until === undefined ? standing : `${standing} until ${formatTime(until)}`;
}
