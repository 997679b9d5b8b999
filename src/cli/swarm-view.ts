// The metrics section of `waggle status`: metrics of the swarm, bottlenecks, and kinds with a dominant agent.
// docs/operations.md explains their meaning and the remedies.

import { duration } from "../audit/describe.ts";
import { formatCount } from "../count-text.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { brokenAt, formatShare } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;
type Observed = NonNullable<StatusResponse["observed"]>;

const columns: readonly Column[] = [
  { head: "agents", align: "right" },
  { head: "idle", align: "right" },
  { head: "busy", align: "right" },
  { head: "offline", align: "right" },
  { head: "in flight", align: "right" },
  { head: "success", align: "right" },
  { head: "load", align: "right" },
];

/** Undefined for an older coordinator without metrics. */
export function swarmSection({ metrics, observed }: StatusResponse, view: View): string | undefined {
  if (metrics === undefined) return undefined;
  const { totalAgents, idleAgents, busyAgents, offlineAgents, totalInFlight } = metrics;
  const ofSome = (share: number) => (totalAgents === 0 ? "–" : formatShare(share));
  const row = [
    ...[totalAgents, idleAgents, busyAgents, offlineAgents, totalInFlight].map(formatCount),
    ofSome(metrics.avgSuccessRate),
    ofSome(metrics.avgLoad),
  ];
  const { bold, yellow } = view.colors;
  return [
    bold("all agents, with offline ones (mean success and load)"),
    renderTable(view, columns, [row]),
    ...(observed === undefined
      ? []
      : [
          ...broken(bottleneckLines(observed), view),
          ...broken(alertLines(observed), view).map(yellow),
          ...broken(soleLines(observed), view),
        ]),
  ].join("\n");
}

function broken(lines: readonly string[], { columns: width }: View): string[] {
  return width === undefined ? [...lines] : lines.flatMap((line) => brokenAt(line, width));
}

function bottleneckLines({ bottlenecks, windowMs }: Observed): string[] {
  if (bottlenecks.length === 0) return [];
  const named = bottlenecks.map(({ agent, share }) => `${printable(agent)} ${formatShare(share)}`);
  return [`full while tasks waited, of the last ${duration(windowMs)}: ${named.join(", ")}`];
}

function alertLines({ concentration }: Observed): string[] {
  return concentration.map(
    ({ kind, agent, share, threshold, assignments }) =>
      `${printable(agent)} got ${formatShare(share)} of the last ${formatCount(assignments)} ${printable(kind)} tasks, above ${formatShare(threshold)}`,
  );
}

/** A single agent is no fault of the routing, so the line is no alert. */
function soleLines({ soleAgents }: Observed): string[] {
  if (soleAgents.length === 0) return [];
  const named = soleAgents.map(({ kind, agent }) => `${printable(kind)} (${printable(agent)})`);
  return [`served by a single agent: ${named.join(", ")}`];
}
