// One attempt for people: agent, ending, and the receipt with the reason of the assignment.

import { duration } from "../audit/describe.ts";
import type { AttemptStory } from "../audit/story.ts";
import { counted, formatCount } from "../count-text.ts";
import type { CandidateTerms, Receipt, TurnBases } from "../state/receipt.ts";
import { formatShare, formatTime, hanging, indented } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;

/** @param nowAt journal time of the story, ms since the Unix epoch */
export function attemptBlock(attempt: AttemptStory, nowAt: number, view: View): string {
  const { colors } = view;
  const { receipt } = attempt;
  const title = `attempt ${attempt.attempt}`;
  const line = `${title} at ${attempt.agent}, ${formatTime(attempt.assignedAt)}: ${ending(attempt, nowAt)}`;
  const [first = "", ...further] = hanging(line, view.columns);
  const rows = receipt.candidates.map((candidate, at): Cell[] => [
    `${at === 0 ? "→" : " "} ${candidate.agent}`,
    ...termCells(candidate),
  ]);
  return [
    `${colors.bold(title)}${first.slice(title.length)}`,
    ...further,
    ...budgetTexts(attempt).map((text) => indented(text, view.columns)),
    colors.dim(indented(reasons(receipt), view.columns)),
    renderTable(view, [{ head: "  candidate", whenNarrow: "whole" }, ...termColumns], rows),
  ].join("\n");
}

/** The budgets that the attempt exceeded, and their effect; or that all agents of the task's kind were on hold. */
function budgetTexts(attempt: AttemptStory): string[] {
  const { ended, receipt } = attempt;
  const verb = ended === undefined ? "runs" : "ran";
  const cheaper = cheaperText(attempt);
  const usedUp = budgetsIn("downgrade", receipt);
  const noted = budgetsIn("alert", receipt);
  const short = "had too little left";
  const asItIs = `${verb} though ${usedUp} ${short}: its kind has no cheaper kind or type`;
  return [
    ...(cheaper === "" ? [] : [`${verb} ${cheaper}: ${usedUp === "" ? allOnHold : `${usedUp} ${short}`}`]),
    ...(cheaper !== "" || usedUp === "" ? [] : [asItIs]),
    ...(noted === ""
      ? []
      : [`${verb} though ${noted} ${short} (mode alert: budget exceeded, task not held)`]),
  ];
}

const allOnHold = "all agents of its kind were on hold";

/** Empty if the attempt runs as its own kind, at agents of any type. */
function cheaperText({ runsAs, cheaperType }: AttemptStory): string {
  const parts = [
    runsAs !== undefined && `as ${printable(runsAs)}, the cheaper kind`,
    cheaperType !== undefined && `only by the cheaper type ${printable(cheaperType)}`,
  ];
  return parts.filter((part) => part !== false).join(", and ");
}

/** The exceeded budgets in `mode`; empty if the attempt fits all budgets. */
function budgetsIn(mode: "alert" | "downgrade", { budget }: Receipt): string {
  const parts = [
    budget?.project === mode && "its project's budget",
    budget?.global === mode && "the swarm's budget",
  ];
  return parts.filter((part) => part !== false).join(" and ");
}

/** Number of attempts. Without attempts: whether one may still come. */
export function attemptsText(attempts: number, isOver: boolean): string {
  if (attempts > 0) return counted(attempts, "attempt");
  return isOver ? "never assigned" : "no attempt yet";
}

/** The terms of a score. */
export const termColumns: readonly Column[] = [
  { head: "score", align: "right" },
  { head: "success", align: "right", whenNarrow: "drop" },
  { head: "load", align: "right", whenNarrow: "drop" },
  { head: "backlog", align: "right", whenNarrow: "drop" },
  { head: "speed", align: "right", whenNarrow: "drop" },
];

/** Empty cells without terms. */
export function termCells(terms: CandidateTerms | undefined): Cell[] {
  if (terms === undefined) return termColumns.map(() => "");
  return [
    terms.score.toFixed(3),
    formatShare(terms.successRate),
    terms.load.toFixed(2),
    terms.backlog === undefined ? "" : terms.backlog.toFixed(2),
    terms.speed === undefined ? "" : terms.speed.toFixed(2),
  ];
}

function ending(attempt: AttemptStory, nowAt: number): string {
  const { ended, assignedAt, endedAt, error, runningAt } = attempt;
  const sinceMs = Math.max(0, nowAt - (runningAt ?? assignedAt));
  const state = runningAt === undefined ? "sent to the agent" : `runs for ${duration(sinceMs)} so far`;
  if (ended === undefined) return `${state}${tokensText(attempt)}`;
  const tookMs = attempt.latencyMs ?? (endedAt === undefined ? undefined : endedAt - assignedAt);
  const took = tookMs === undefined ? "" : ` after ${duration(tookMs)}`;
  const why = error === undefined || error === "" ? "" : `: ${printable(error)}`;
  return `${ended}${took}${tokensText(attempt)}${why}`;
}

/** Tokens used; with a budget also tokens reserved and charged. */
function tokensText({ tokens, tokensReserved, tokensCharged }: AttemptStory): string {
  if (tokensReserved === undefined) return tokens === undefined ? "" : `, ${counted(tokens, "token")}`;
  const parts = [`${counted(tokensReserved, "token")} reserved`];
  if (tokens !== undefined) parts.push(`${formatCount(tokens)} reported`);
  else if (tokensCharged !== undefined) parts.push("none reported");
  if (tokensCharged !== undefined) parts.push(`${formatCount(tokensCharged)} charged`);
  return `, ${parts.join(", ")}`;
}

const decisions: Readonly<Record<Receipt["decidedBy"], string>> = {
  only: "only eligible agent",
  affinity: "ran the last task with its affinity",
  score: "best score",
  "in-flight": "equal scores, fewest in flight",
  "longest-idle": "equal scores, longest idle",
  joined: "first idle agent in order of joining",
  id: "equal scores, first by id",
  probe: "the probe after a suspension or a hold",
};

function reasons({ turn, decidedBy, feasible, ineligible, waiting, waitedMs }: Receipt): string {
  const others = Object.entries(ineligible);
  const total = others.reduce((sum, [, count]) => sum + count, feasible);
  const eligible = `${formatCount(feasible)} of ${formatCount(total)}${decidedBy === "only" ? "" : " eligible"}`;
  const counts = [eligible, others.map(([reason, count]) => `${formatCount(count)} ${reason}`).join(", ")];
  return [
    `${decisions[decidedBy]} (${counts.filter((part) => part !== "").join("; ")})`,
    turnText(turn),
    `waited ${duration(waitedMs)}`,
    `${counted(waiting - 1, "other")} queued`,
  ]
    .filter((part) => part !== "")
    .join("; ");
}

/** By the rule goes without saying. */
function turnText(turn: TurnBases | undefined): string {
  if (turn === undefined) return "";
  const levels = (["project", "user"] as const).filter((level) => turn[level] !== "rule");
  return levels.map((level) => `its ${level}'s turn by ${turn[level]}`).join(", ");
}
