// The answer of the tool `status`: one line of JSON for the swarm and for each row. A cut answer loses its end, so what
// a model decides by comes first: totals, holds, queues, then the agents that are there. Offline agents are a number.

import { presentHolds } from "../../audit/present-holds.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { record } from "./answer.ts";

export function statusLines(found: StatusResponse): string[] {
  const { swarm, leader, standbys, idx, at, stale, paused, tasks, budget, omitted, journal, metrics } = found;
  const online = found.agents.filter(({ status }) => status !== "offline");
  const offline = metrics?.offlineAgents ?? found.agents.length - online.length;
  const head = {
    ...{ swarm, leader, standbys, idx, at: inUtc(at), stale, paused, tasks },
    agents: { online: metrics === undefined ? online.length : metrics.totalAgents - offline, offline },
    ...{ budget, omitted },
    journal: { durability: journal.durability, bytes: journal.bytes, bytesMax: journal.bytesMax },
  };
  const { queues, projects, resources, rates = [] } = found;
  return [
    record(head),
    ...rows("holds", presentHolds(found), ({ on, name, until, ...of }) => ({
      ...{ onHold: name, is: on, until: inUtc(until), ...of },
    })),
    ...rows("queues", queues, ({ kind, ...queue }) => ({ queue: kind, ...queue })),
    ...rows("projects", projects, ({ users, ...of }) => ({ ...of, users: users.length })),
    ...rows("resources", resources, ({ resource, ...of }) => ({ resource, ...of })),
    ...rows("rates", rates, ({ type, ...of }) => ({ rateOfType: type, ...of })),
    ...rows("agents", online, agentFigures),
  ];
}

/** Lines of one table, and a line with the number of rows beyond the bound. */
function rows<Row>(of: string, all: readonly Row[], lineOf: (row: Row) => object): string[] {
  const lines = all.slice(0, limits.mcpStatusRowsMax).map((row) => record(lineOf(row)));
  const notShown = all.length - lines.length;
  return notShown > 0 ? [...lines, record({ notShown, of })] : lines;
}

function agentFigures(agent: StatusResponse["agents"][number]) {
  const { id, status, draining, unresponsive, role, type, inFlight, maxConcurrent, kinds, onHold } = agent;
  return {
    ...{ agent: id, status, role, type, inFlight, maxConcurrent },
    ...(draining ? { draining } : {}),
    ...(unresponsive ? { unresponsive } : {}),
    ...(onHold === undefined ? {} : { onHold: { ...onHold, until: inUtc(onHold.until) } }),
    kinds: kinds.map(({ kind, successRate, attempts, latencyMs, suspendedUntil }) => ({
      ...{ kind, attempts, latencyMs: Math.round(latencyMs), suspendedUntil },
      successRate: Math.round(successRate * 1_000) / 1_000,
    })),
  };
}

function inUtc(at: number): string {
  return new Date(at).toISOString();
}
