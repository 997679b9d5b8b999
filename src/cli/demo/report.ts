// The demo's report: each agent's share of the work at the end of each part, and the failures, the lost share and the
// recovery of the troubled agent. All sentences come from the journal; --json prints the same figures.

import { unreachable } from "../../assert.ts";
import { duration } from "../../audit/describe.ts";
import { counted, formatCount } from "../../count-text.ts";
import { brokenAt, formatShare } from "../format.ts";
import type { Output } from "../output.ts";
import { type Cell, type Column, renderTable } from "../table.ts";
import { demoAgents, troubledAgent, type Untroubled } from "./scenario.ts";
import type { AgentTally, DemoTally, Span } from "./tally.ts";

/** Instants of breaking and repairing the troubled agent, and of the last submission; undefined if skipped. */
export interface DemoMoments {
  readonly brokenAt: number | undefined;
  readonly repairedAt: number | undefined;
  readonly submittedAt: number;
}

export const parts = ["healthy", "broken", "repaired"] as const;
export type Part = (typeof parts)[number];
export type PartShares = Readonly<Record<Part, number>>;

export interface DemoSummary {
  /** Files with a submitted task. */
  readonly files: number;
  /** Submitted tasks. */
  readonly tasks: number;
  readonly completed: number;
  /** Tasks that had not ended when the time was over. */
  readonly open: number;
  /** Tasks that were not submitted for lack of time. */
  readonly leftOut: number;
  readonly tookMs: number;
  readonly results: string;
  readonly agents: readonly (AgentTally & { readonly shares: PartShares | null })[];
  /** Null where no agent was broken. */
  readonly troubled: Troubled | null;
  /** Why the demo broke no agent; null if it did. */
  readonly untroubled: Untroubled | null;
}

export interface Troubled {
  readonly agent: string;
  /** Failed attempts between break and repair. */
  readonly failed: number;
  /** Tasks with a failed attempt, and the number of completed tasks among them. */
  readonly retried: { readonly tasks: number; readonly completed: number };
  /** At the end of each part; null where too few tasks were assigned then to say. */
  readonly shares: PartShares | null;
}

/** How long the end of a part is. */
const END_MS = 3_000;
/** Time to see the state on the screen. */
const SETTLE_MS = 1_500;
/** Minimum number of assignments of all agents for a meaningful share. */
const ASSIGNMENTS_MIN = 20;

export function agentsIn(tally: DemoTally, moments: DemoMoments): DemoSummary["agents"] {
  const spans = spansOf(moments);
  const isReported =
    spans !== undefined && parts.every((part) => tally.assignments(spans[part]) >= ASSIGNMENTS_MIN);
  return tally.agents(demoAgents.map(({ id }) => id)).map((row) => {
    if (!isReported) return { ...row, shares: null };
    const share = (part: Part) => tally.share(row.agent, spans[part]) ?? 0;
    return {
      ...row,
      shares: { healthy: share("healthy"), broken: share("broken"), repaired: share("repaired") },
    };
  });
}

export function troubledIn(tally: DemoTally, moments: DemoMoments): Troubled | null {
  const { brokenAt: from, repairedAt = Number.POSITIVE_INFINITY } = moments;
  if (from === undefined) return null;
  const own = agentsIn(tally, moments).find(({ agent }) => agent === troubledAgent);
  return {
    agent: troubledAgent,
    failed: tally.failures(troubledAgent, { from, to: repairedAt + END_MS }),
    retried: tally.retried(),
    shares: own?.shares ?? null,
  };
}

/** Whether an agent has lost most of its share since it broke. */
export function hasLostShare(
  tally: DemoTally,
  agent: string,
  { brokenAt, now }: { readonly brokenAt: number; readonly now: number },
): boolean {
  if (now < brokenAt + END_MS + SETTLE_MS) return false;
  const before = tally.share(agent, { from: brokenAt - END_MS, to: brokenAt }) ?? 0;
  return (tally.share(agent, { from: now - END_MS, to: now }) ?? 0) < before / 3;
}

function spansOf({ brokenAt, repairedAt, submittedAt }: DemoMoments): Record<Part, Span> | undefined {
  if (brokenAt === undefined || repairedAt === undefined) return undefined;
  const endOf = (to: number) => ({ from: to - END_MS, to });
  return { healthy: endOf(brokenAt), broken: endOf(repairedAt), repaired: endOf(submittedAt) };
}

export function renderSummary(summary: DemoSummary, output: Pick<Output, "columns" | "colors">): string {
  const { colors } = output;
  const isWhole = summary.completed === summary.tasks;
  const paragraphs = [
    agentTable(summary, output),
    ...sentences(summary).map((text) =>
      brokenAt(text, output.columns ?? Number.POSITIVE_INFINITY).join("\n"),
    ),
    colors[isWhole ? "green" : "red"](
      `${formatCount(summary.completed)} of ${formatCount(summary.tasks)} tasks on ${counted(summary.files, "file")} ` +
        `completed in ${duration(summary.tookMs)}.`,
    ),
    `Results: ${summary.results}`,
  ];
  return paragraphs.join("\n");
}

function agentTable({ agents }: DemoSummary, output: Pick<Output, "columns" | "colors">): string {
  const hasParts = agents.some(({ shares }) => shares !== null);
  const columns: Column[] = ["agent", ...(hasParts ? parts : ["share"]), "attempts", "failed"].map(
    (head, at) => ({
      head,
      align: at === 0 ? "left" : "right",
    }),
  );
  const rows = agents.map(({ agent, attempts, failed, share, shares }): Cell[] => [
    agent,
    ...(shares === null ? [formatShare(share)] : parts.map((part) => formatShare(shares[part]))),
    formatCount(attempts),
    formatCount(failed),
  ]);
  const title = hasParts
    ? `share of the tasks, in the last ${END_MS / 1_000} s with ${troubledAgent} healthy, broken and repaired`
    : "share of the tasks";
  return `${brokenAt(title, output.columns ?? Number.POSITIVE_INFINITY)
    .map(output.colors.bold)
    .join("\n")}\n${renderTable(output, columns, rows)}\n`;
}

function sentences(summary: DemoSummary): string[] {
  const { troubled } = summary;
  return [
    ...(troubled === null ? [untroubledSentence(summary)] : troubledSentences(troubled)),
    ...timeSentences(summary),
  ];
}

function untroubledSentence({ tasks, untroubled }: DemoSummary): string {
  switch (untroubled) {
    case "few-tasks":
      return (
        `${formatCount(tasks)} tasks are too few to show how routing reacts to an agent that breaks: no agent was broken. ` +
        "Name a folder with more text files."
      );
    case "little-time":
      return "This machine took so long to start the swarm that no time was left to break an agent. Try again when it is less busy.";
    case null:
      return `${troubledAgent} ended before the demo could break it.`;
    default:
      return unreachable(untroubled);
  }
}

function timeSentences({ open, leftOut }: DemoSummary): string[] {
  const sentences: string[] = [];
  if (leftOut > 0)
    sentences.push(
      `${counted(leftOut, "more task")} had to be left out: this machine is too busy to run all in the demo's time.`,
    );
  if (open > 0)
    sentences.push(
      `${counted(open, "task")} had not ended when the demo's time was over: this machine is busy.`,
    );
  return sentences;
}

function troubledSentences({ agent, failed, retried, shares }: Troubled): string[] {
  const again =
    retried.completed === retried.tasks
      ? "Every task that failed once ran again and completed."
      : `Of ${formatCount(retried.tasks)} tasks that failed once, ${formatCount(retried.completed)} completed.`;
  const failures =
    failed === 0
      ? `No attempt of ${agent} failed.`
      : `${formatCount(failed)} attempts of ${agent} failed. ${again}`;
  if (failed === 0) return [failures];
  if (shares === null) return [failures, "Too few tasks were assigned to say how its share changed."];
  return [failures, `${lossSentence(agent, shares)} ${returnSentence(shares)}`];
}

/** A change of a share is reported from this factor and this difference on. */
const FACTOR = 1.5;
const DIFFERENCE = 0.03;

function lossSentence(agent: string, { healthy, broken }: PartShares): string {
  const [from, to] = [formatShare(healthy), formatShare(broken)];
  return isBelow(broken, healthy)
    ? `Broken, it lost share: ${from} before, ${to} after.`
    : `${agent} did not lose share in this run: ${from} before, ${to} after.`;
}

function returnSentence({ broken, repaired }: PartShares): string {
  const share = formatShare(repaired);
  return isBelow(broken, repaired)
    ? `Repaired, it got work again: ${share}.`
    : `Repaired, it had not got more work when the demo ended: ${share}.`;
}

function isBelow(less: number, more: number): boolean {
  return more >= less * FACTOR && more - less >= DIFFERENCE;
}
