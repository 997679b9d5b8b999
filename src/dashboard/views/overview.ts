// The first page: the verdict, and the figures that each lead to a list.

import { type Health, healthOf } from "../../audit/health.ts";
import { defined } from "../../defined.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { needsText } from "../../state/needs.ts";
import type { ActivityBook } from "../activity-book.ts";
import type { HistoryRing } from "../history.ts";
import type { HealthView, Overview, QueueRow } from "../wire.ts";

export function overviewView(
  status: StatusResponse,
  { book, history }: { readonly book: ActivityBook; readonly history: HistoryRing },
): Overview {
  const { agents, queues } = status;
  const online = agents.filter((agent) => agent.status !== "offline");
  const { metrics } = status;
  const { windowMs, of } = history.lastMinute;
  return {
    health: healthView(healthOf(status)),
    ...{ swarm: status.swarm, leader: status.leader, term: status.term, tasks: status.tasks },
    ...defined({ standbys: status.standbys }),
    isStale: status.stale === true,
    isPaused: status.paused === true,
    oldestWaitMs: Math.max(0, ...queues.map(({ oldestMs }) => oldestMs)),
    lastMinute: {
      windowMs,
      ...{ submitted: of("submitted"), completed: of("completed") },
      ...{ failed: of("failed"), cancelled: of("cancelled") },
    },
    capacity: capacityOf(status),
    agents: {
      online: metrics === undefined ? online.length : metrics.totalAgents - metrics.offlineAgents,
      busy: metrics?.busyAgents ?? online.filter(({ inFlight }) => inFlight > 0).length,
      offline: metrics?.offlineAgents ?? agents.length - online.length,
    },
    queues: Object.fromEntries(queues.map((queue) => [queueName(queue), queueRow(queue)])),
    failures: [...book.failures.newest(limits.dashboardFailuresShown)].reverse(),
    durability: status.journal.durability,
  };
}

/** Attempts in flight at online agents, and how many may run at once. */
export function capacityOf({ agents }: StatusResponse): Overview["capacity"] {
  let used = 0;
  let total = 0;
  for (const { status, inFlight, maxConcurrent } of agents) {
    if (status === "offline") continue;
    used += inFlight;
    total += maxConcurrent;
  }
  return { used, total };
}

function queueName({ kind, role, needs }: StatusResponse["queues"][number]): string {
  const ofRole = role === undefined ? kind : `${kind} (${role})`;
  return needs === undefined ? ofRole : `${ofRole} with ${needsText(needs)}`;
}

function queueRow(queue: StatusResponse["queues"][number]): QueueRow {
  const { kind, role, waiting, oldestMs, agents } = queue;
  const needs = queue.needs === undefined ? undefined : needsText(queue.needs);
  return { kind, ...defined({ role, needs }), waiting, oldestMs: Math.round(oldestMs), agents };
}

export function healthView({ level, verdict, next, areas, findings }: Health): HealthView {
  return { level, verdict, ...defined({ next }), areas, findings };
}
