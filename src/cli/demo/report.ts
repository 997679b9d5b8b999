// What the demo says at its end: tables by agent and by user, whether the troubled agent lost share, and what
// to try next. The same figures go into the record that --json prints.

import { duration } from "../../audit/describe.ts";
import { formatCount, formatShare } from "../format.ts";
import type { Output } from "../output.ts";
import { type Cell, type Column, renderTable } from "../table.ts";
import { demoAgents, troubledAgent } from "./scenario.ts";
import type { AgentTally, DemoTally, UserTally } from "./tally.ts";

export interface DemoSummary {
  readonly files: number;
  readonly tasks: number;
  readonly completed: number;
  readonly tookMs: number;
  readonly results: string;
  readonly agents: readonly AgentTally[];
  readonly users: readonly UserTally[];
  readonly troubled: Troubled;
}

/** How the agent fared that fails on purpose, among those that outline. */
export interface Troubled {
  readonly agent: string;
  readonly attempts: number;
  readonly failed: number;
  /** Of the outline agents' max concurrent: what it would get if nobody looked at success. */
  readonly shareByCapacity: number;
  readonly share: number;
  /** Of each of `shareParts` equal parts of the decisions, in their order. */
  readonly shareOverTime: readonly number[];
}

export function troubledIn(tally: DemoTally): Troubled {
  const outliners = demoAgents.filter(({ kinds }) => kinds.includes("outline"));
  const attemptsOf = (agent: AgentTally) => agent.byKind["outline"]?.attempts ?? 0;
  const agents = tally.agents(outliners.map(({ id }) => id));
  const own = agents.find(({ agent }) => agent === troubledAgent);
  const total = agents.reduce((sum, agent) => sum + attemptsOf(agent), 0);
  const slots = outliners.reduce((sum, { maxConcurrent }) => sum + maxConcurrent, 0);
  const ownSlots = outliners.find(({ id }) => id === troubledAgent)?.maxConcurrent ?? 0;
  const attempts = own === undefined ? 0 : attemptsOf(own);
  return {
    agent: troubledAgent,
    attempts,
    failed: attempts - (own?.byKind["outline"]?.completed ?? 0),
    shareByCapacity: ownSlots / slots,
    share: total === 0 ? 0 : attempts / total,
    shareOverTime: tally.outlineShares(troubledAgent, shareParts),
  };
}

export function renderSummary(summary: DemoSummary, output: Pick<Output, "columns" | "colors">): string {
  const { colors } = output;
  const tone = summary.completed === summary.tasks ? "green" : "red";
  return [
    `${colors.bold("agents")}\n${agentTable(summary, output)}`,
    `${colors.bold("users")}\n${userTable(summary, output)}`,
    troubledText(summary.troubled),
    colors[tone](
      `${formatCount(summary.completed)} of ${formatCount(summary.tasks)} tasks on ${formatCount(summary.files)} files ` +
        `completed in ${duration(summary.tookMs)}. Results: ${summary.results}`,
    ),
  ].join("\n\n");
}

const agentColumns: readonly Column[] = [
  { head: "agent" },
  { head: "max", align: "right" },
  { head: "attempts", align: "right" },
  { head: "share", align: "right" },
  { head: "mean latency", align: "right" },
  { head: "succeeded, by kind" },
];

function agentTable({ agents }: DemoSummary, output: Pick<Output, "columns" | "colors">): string {
  const rows = agents.map(({ agent, attempts, share, byKind, latencyMsMean }): Cell[] => {
    const spec = demoAgents.find(({ id }) => id === agent);
    const kinds = (spec?.kinds ?? []).map((kind) => {
      const tally = byKind[kind];
      return tally === undefined ? `${kind} –` : `${kind} ${formatShare(tally.completed / tally.attempts)}`;
    });
    return [
      agent,
      spec?.maxConcurrent ?? "",
      formatCount(attempts),
      formatShare(share),
      duration(latencyMsMean),
      kinds.join(", "),
    ];
  });
  return renderTable(output, agentColumns, rows);
}

const userColumns: readonly Column[] = [
  { head: "user" },
  { head: "tasks", align: "right" },
  { head: "mean wait", align: "right" },
  { head: "worst wait", align: "right" },
  { head: "submitted" },
];

function userTable({ users }: DemoSummary, output: Pick<Output, "columns" | "colors">): string {
  const rows = users.map(({ user, tasks, waitMsMean, waitMsMax }): Cell[] => [
    user,
    formatCount(tasks),
    duration(waitMsMean),
    duration(waitMsMax),
    user === "ann" ? "all at once" : "a few at a time, a little later",
  ]);
  return renderTable(output, userColumns, rows);
}

const shareParts = 6;
/** Of all outline agents together; fewer say nothing about shares. */
const ATTEMPTS_WORTH_SHARES = 60;

function troubledText({ agent, attempts, failed, share, shareByCapacity, shareOverTime }: Troubled): string {
  const again = failed === 0 ? "" : ", and ran again elsewhere";
  const failures = `${agent} fails three of ten outlines on purpose: ${failed} of its ${attempts} attempts failed${again}.`;
  if (attempts < share * ATTEMPTS_WORTH_SHARES) return failures;
  const verb = share < shareByCapacity ? "lost" : "did not lose";
  return (
    `${failures}\nIt ${verb} share for it: ${formatShare(share)} of the outlines, where its capacity is ` +
    `${formatShare(shareByCapacity)} of theirs (over time ${shareOverTime.map(formatShare).join(", ")}).`
  );
}
