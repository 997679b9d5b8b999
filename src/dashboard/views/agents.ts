// The pages of agents: all of them, and one with its attempts over time.

import { defined } from "../../defined.ts";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ActivityBook, Bar } from "../activity-book.ts";
import { commandOf } from "../command-text.ts";
import type { AgentDetail, AgentRow, Agents, AttemptBar } from "../wire.ts";
import { holdBadge } from "./holds.ts";

type Row = StatusResponse["agents"][number];

export function agentsView({ agents, omitted, at }: StatusResponse, book: ActivityBook): Agents {
  const shown = agents.slice(0, limits.dashboardAgentsShown);
  return {
    agents: Object.fromEntries(shown.map((row) => [row.id, rowOf(row, book)])),
    omitted: (omitted?.agents ?? 0) + agents.length - shown.length,
    windowMs: book.windowMs(at),
  };
}

function rowOf(row: Row, book: ActivityBook): AgentRow {
  const { id, group, role, type, labels, status, reported, silentMs } = row;
  const total = book.assignedByAgent.total;
  const assigned = book.assignedByAgent.sumOf(id);
  return {
    ...{ id, labels, status },
    ...defined({ group, role, type }),
    isSaturated: row.saturated,
    isDraining: row.draining,
    isUnresponsive: row.unresponsive,
    ...holdBadge(row.onHold),
    ...{ inFlight: row.inFlight, maxConcurrent: row.maxConcurrent, prefetch: row.prefetch },
    ...{ load: rounded(row.load), completed: row.completed },
    kinds: Object.fromEntries(
      row.kinds.map(({ kind, successRate, completed, attempts, latencyMs, suspendedUntil }) => [
        kind,
        {
          ...{ successRate: rounded(successRate), completed, attempts, latencyMs: Math.round(latencyMs) },
          ...defined({ suspendedUntilAt: suspendedUntil }),
        },
      ]),
    ),
    ...(reported === undefined ? {} : { reported: reportedOf(reported) }),
    ...defined({ silentMs: silentMs === undefined ? undefined : Math.round(silentMs) }),
    ...defined({ score: book.barsOf(id).at(-1)?.score }),
    share: total === 0 ? 0 : rounded(assigned / total),
    assigned,
    failed: book.failedByAgent.sumOf(id),
  };
}

function reportedOf({ status, successRate, latencyMs, inFlight }: NonNullable<Row["reported"]>) {
  return { status, inFlight, ...defined({ successRate, latencyMs }) };
}

/** @throws WaggleError WAGGLE_UNKNOWN_AGENT */
export function agentView(status: StatusResponse, book: ActivityBook, id: string): AgentDetail {
  const row = status.agents.find((agent) => agent.id === id);
  if (row === undefined)
    throw new WaggleError(
      "WAGGLE_UNKNOWN_AGENT",
      `the swarm has no agent ${id}: it never joined, or it left a while ago and is forgotten`,
    );
  const fromAt = status.at - limits.dashboardGanttMs;
  const bars = book.barsOf(id).filter(({ toAt = status.at }) => toAt >= fromAt);
  const attempts = inGanttRows(bars);
  const failures = book.failures.newest().filter(({ agent }) => agent === id);
  return {
    agent: rowOf(row, book),
    attempts,
    fromAt: Math.max(fromAt, Math.min(status.at, ...bars.map((bar) => bar.fromAt))),
    toAt: status.at,
    ganttRows: Math.max(row.maxConcurrent, ...attempts.map(({ ganttRow }) => ganttRow + 1)),
    scores: {
      times: bars.map((bar) => bar.fromAt),
      series: {
        score: bars.map(({ score = null }) => score),
        load: bars.map(({ load = null }) => load),
        successRate: bars.map(({ successRate = null }) => successRate),
      },
    },
    failures: failures.slice(-limits.dashboardAgentFailuresShown).reverse(),
    commands: {
      drain: commandOf("drain", id),
      undrain: commandOf("undrain", id),
      events: commandOf("events", "--agent", id, "--tail", "50"),
    },
  };
}

/** Each attempt in the first row that is free at its beginning. */
function inGanttRows(bars: readonly Bar[]): readonly AttemptBar[] {
  const freeAt: number[] = [];
  return bars.map(({ project, task, attempt, fromAt, toAt, ended }) => {
    const free = freeAt.findIndex((at) => at <= fromAt);
    const ganttRow = free === -1 ? freeAt.length : free;
    freeAt[ganttRow] = toAt ?? Number.POSITIVE_INFINITY;
    return { project, task, attempt, ganttRow, fromAt, ...defined({ toAt, ended }) };
  });
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
