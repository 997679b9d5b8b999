// A task's story for people: what was asked, where it stands, attempt by attempt with its receipt, and the
// events it is made of.

import { duration } from "../audit/describe.ts";
import type { AttemptStory } from "../audit/story.ts";
import type { TaskStory } from "../client/swarm.ts";
import type { TaskSpec } from "../core/event.ts";
import { nearMisses } from "../core/near-miss.ts";
import type { Receipt } from "../core/receipt.ts";
import { kind } from "../ids.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { eventLine } from "./event-text.ts";
import { counted, formatShare, formatTimeOfDay } from "./format.ts";
import { type Output, printable, printableText } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;
type Agent = StatusResponse["agents"][number];

const RESULT_LINES_MAX = 10;
const RESULT_CHARACTERS_MAX = 1_000;

/** @param told.agents of the swarm; looked at only where the task waits for one */
export function renderStory(
  id: string,
  { story, agents }: { readonly story: TaskStory; readonly agents: readonly Agent[] },
  view: View,
): string {
  const { colors } = view;
  const blocks = [
    headline(id, story, view),
    ...story.attempts.map((attempt) => attemptBlock(attempt, view)),
    resultBlock(story, view),
    waitingBlock(story, agents, view),
    [colors.bold("events"), ...story.events.map((event) => `  ${eventLine(event, colors)}`)].join("\n"),
  ];
  return blocks.filter((block) => block !== "").join("\n\n");
}

function headline(id: string, { status, spec, submittedAt, endedAt }: TaskStory, { colors }: View): string {
  const tone = status.state === "completed" ? "green" : endedAt === undefined ? "yellow" : "red";
  const took =
    submittedAt === undefined || endedAt === undefined ? "" : ` after ${duration(endedAt - submittedAt)}`;
  const attempts = status.attempts === 0 ? "no attempt yet" : counted(status.attempts, "attempt");
  const lines = [
    `${colors.bold(printable(id))}  ${colors[tone](status.state)}${took}, ${attempts}`,
    `${printable(status.kind)} for ${status.project}/${printable(status.user)}${spec === undefined ? "" : termsOf(spec)}`,
  ];
  if (status.stale === true) lines.push(colors.yellow("answered by a standby from what it has read so far"));
  return lines.join("\n");
}

function termsOf(spec: TaskSpec): string {
  const terms = [
    `priority ${spec.priority}`,
    `weight ${spec.weight}`,
    `at most ${counted(spec.maxAttempts, "attempt")}`,
    `${counted(spec.payload.length, "character")} of payload${spec.encoding === undefined ? "" : " in base64"}`,
  ];
  if (spec.role !== undefined) terms.push(`role ${printable(spec.role)}`);
  if (spec.tokens !== undefined) terms.push(`about ${counted(spec.tokens, "token")}`);
  if (spec.notBefore !== undefined) terms.push(`not before ${new Date(spec.notBefore).toISOString()}`);
  if (spec.deadline !== undefined) terms.push(`by ${new Date(spec.deadline).toISOString()}`);
  return ` · ${terms.join(" · ")}`;
}

const receiptColumns: readonly Column[] = [
  { head: "  candidate" },
  { head: "score", align: "right" },
  { head: "success", align: "right" },
  { head: "load", align: "right" },
  { head: "backlog", align: "right" },
];

function attemptBlock(attempt: AttemptStory, view: View): string {
  const { colors } = view;
  const { receipt } = attempt;
  const rows = receipt.candidates.map((candidate, at): Cell[] => [
    `${at === 0 ? "→" : " "} ${candidate.agent}`,
    candidate.score.toFixed(3),
    formatShare(candidate.successRate),
    candidate.load.toFixed(2),
    candidate.backlog === undefined ? "" : candidate.backlog.toFixed(2),
  ]);
  return [
    `${colors.bold(`attempt ${attempt.attempt}`)} at ${attempt.agent}, ${formatTimeOfDay(attempt.assignedAt)}: ${ending(attempt)}`,
    `  ${colors.dim(reasons(receipt))}`,
    renderTable(view, receiptColumns, rows),
  ].join("\n");
}

function ending({ ended, latencyMs, error, tokens, runningAt }: AttemptStory): string {
  if (ended === undefined) return runningAt === undefined ? "sent to the agent" : "runs";
  const took = latencyMs === undefined ? "" : ` after ${duration(latencyMs)}`;
  const why = error === undefined || error === "" ? "" : `: ${printable(error)}`;
  const spent = tokens === undefined ? "" : `, ${counted(tokens, "token")}`;
  return `${ended}${took}${spent}${why}`;
}

const decisions: Readonly<Record<Receipt["decidedBy"], string>> = {
  only: "the only one that could",
  score: "chosen by score",
  "in-flight": "equal scores; chosen for fewer in flight",
  "longest-idle": "equal scores; chosen as the longest idle",
  joined: "chosen as the first that joined",
  id: "equal scores; chosen by id",
  probe: "chosen to probe it after a suspension",
};

function reasons({ decidedBy, feasible, ineligible, waiting, waitedMs }: Receipt): string {
  const out = Object.entries(ineligible).map(([reason, count]) => `${count} ${reason}`);
  return [
    `${decisions[decidedBy]} of ${feasible}`,
    out.length === 0 ? "" : `not considered: ${out.join(", ")}`,
    `waited ${duration(waitedMs)}, with ${waiting - 1} others in its lane`,
  ]
    .filter((part) => part !== "")
    .join("; ");
}

function resultBlock({ events }: TaskStory, { colors }: View): string {
  const completed = events.map(({ event }) => event).find((event) => event.type === "TaskCompleted");
  if (completed === undefined) return "";
  const { result, encoding } = completed;
  const whole = `${counted(result.length, "character")}${encoding === undefined ? "" : " in base64"}`;
  if (result === "") return `${colors.bold("result")}  empty`;
  const shown = result
    .slice(0, RESULT_CHARACTERS_MAX)
    .replace(/\n$/, "")
    .split("\n")
    .slice(0, RESULT_LINES_MAX)
    .join("\n");
  const isCut = shown.length < result.replace(/\n$/, "").length;
  const lines = printableText(shown).replace(/^/gm, "  ");
  const rest = isCut ? `\n  ${colors.dim("… the whole result: --json")}` : "";
  return `${colors.bold("result")}  ${colors.dim(whole)}\n${lines}${rest}`;
}

function waitingBlock({ status, waits }: TaskStory, agents: readonly Agent[], view: View): string {
  const wait = waits.at(-1);
  if (wait === undefined || wait.to !== undefined) return "";
  const since = `since ${formatTimeOfDay(wait.from)}`;
  if (status.position === undefined) return `${view.colors.bold(wait.state)} ${since}`;
  const place = `${view.colors.bold(wait.state)} ${since}, number ${status.position} in its lane`;
  return `${place}\n${obstacles(status, agents, view)}`;
}

/** What keeps each agent that serves the kind from the task. */
function obstacles(
  { kind: wanted, ineligible = [] }: TaskStory["status"],
  agents: readonly Agent[],
  view: View,
) {
  const kindsOf = ({ kinds }: Agent) => kinds.map(({ kind }) => kind);
  const servants = new Set(agents.filter((agent) => kindsOf(agent).includes(wanted)).map(({ id }) => id));
  const serving = ineligible.filter(({ agent }) => servants.has(agent));
  const online = serving.filter(({ reason }) => reason !== "offline");
  const rows = online.map(({ agent, reason }): Cell[] => [`  ${agent}`, reason]);
  const offline = serving.length - online.length;
  const lines = offline === 0 ? [] : [`  ${counted(offline, "agent")} of this kind offline`];
  if (rows.length > 0)
    return [renderTable(view, [{ head: "  agent" }, { head: "why not" }], rows), ...lines].join("\n");
  const known = agents.filter((agent) => agent.status !== "offline").flatMap(kindsOf);
  const near = nearMisses(kind(wanted), new Set(known.map(kind)));
  const hint = near.length === 0 ? "" : `; did you mean ${near.map((name) => printable(name)).join(" or ")}?`;
  return [`  no agent serves ${printable(wanted)}${hint}`, ...lines].join("\n");
}
