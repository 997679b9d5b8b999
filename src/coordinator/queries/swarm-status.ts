// What `status` says of the swarm as a whole: VAPORA's seven metrics on the live agents, and what the leader observed
// (monitor.ts). For people and for dashboards; nothing here is a decision.

import type { Instant, Kind } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { collectSwarmMetrics, type SwarmMetrics, type VaporaAgent } from "../../scheduling/exact/vapora.ts";
import { rounded } from "../../scheduling/rounded.ts";
import { type AgentRow, runsTasks, type SwarmState } from "../../state/state.ts";
import { type Expectation, expectationOf, successRate } from "../../state/success-rate.ts";
import type { Monitor } from "../leader/monitor.ts";

type Observed = NonNullable<StatusResponse["observed"]>;

/** Of the agents that run tasks. To the letter of the document: whoever is offline counts as idle too, and in the
 *  means. */
export function swarmMetricsOf(state: SwarmState): SwarmMetrics {
  const expected = new Map<Kind, Expectation>();
  const expectation = (kind: Kind): Expectation => {
    const known = expected.get(kind) ?? expectationOf(state.recordByKind.get(kind), state.at);
    expected.set(kind, known);
    return known;
  };
  const agents: VaporaAgent[] = [];
  for (const row of state.agentById.values()) {
    if (!runsTasks(row)) continue;
    agents.push({
      id: row.id,
      status: !row.online ? "offline" : row.open.size === 0 ? "ready" : "busy",
      inFlight: row.open.size,
      maxConcurrent: row.maxConcurrent,
      successRate: meanRate(row, expectation, state.at),
    });
  }
  return collectSwarmMetrics(agents);
}

/** The document knows one rate an agent, we one for each kind it serves. */
function meanRate(row: AgentRow, expectation: (kind: Kind) => Expectation, at: Instant): number {
  let total = 0;
  for (const kind of row.kinds) total += successRate(row.recordByKind.get(kind), expectation(kind), at);
  return total / row.kinds.size;
}

/** As much of it as is shown. */
export function observedBy(monitor: Monitor): Observed {
  return {
    windowMs: limits.bottleneckWindowMs,
    bottlenecks: monitor.bottlenecks().slice(0, limits.bottlenecksShownMax).map(withRoundedShare),
    concentration: monitor.alerts().slice(0, limits.concentrationAlertsShownMax).map(withRoundedShare),
    soleAgents: monitor.soleAgents().slice(0, limits.concentrationAlertsShownMax),
  };
}

function withRoundedShare<Row extends { readonly share: number }>(row: Row): Row {
  return { ...row, share: rounded(row.share) };
}
