// A task's story for people: what was asked, where it stands, attempt by attempt with its receipt, and the
// events it is made of.

import { duration } from "../audit/describe.ts";
import type { AttemptStory } from "../audit/story.ts";
import type { TaskStory } from "../client/swarm.ts";
import type { TaskSpec } from "../core/event.ts";
import type { Receipt } from "../core/receipt.ts";
import { eventLine } from "./event-text.ts";
import { counted, formatShare, formatTimeOfDay } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;

export function renderStory(id: string, story: TaskStory, view: View): string {
  const { colors } = view;
  const blocks = [
    headline(id, story, view),
    ...story.attempts.map((attempt) => attemptBlock(attempt, view)),
    waitingBlock(story, view),
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

function waitingBlock({ status, waits }: TaskStory, view: View): string {
  const wait = waits.at(-1);
  if (wait === undefined || wait.to !== undefined) return "";
  const since = `since ${formatTimeOfDay(wait.from)}`;
  if (status.position === undefined) return `${view.colors.bold(wait.state)} ${since}`;
  const agents = status.ineligible ?? [];
  const rows = agents.map(({ agent, reason }): Cell[] => [`  ${agent}`, reason]);
  const table =
    rows.length === 0
      ? "  no agent has joined"
      : renderTable(view, [{ head: "  agent" }, { head: "why not" }], rows);
  return `${view.colors.bold(wait.state)} ${since}, number ${status.position} in its lane\n${table}`;
}
