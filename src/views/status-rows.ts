// Rows of `status`: agents, resources, budgets, rates, and the swarm's metrics. No decision reads them. Not here: the
// choice of rows that fit the answer (status.ts).

import type { AgentStanding } from "../../machines/agent.ts";
import { headOf } from "../cut-text.ts";
import { type Instant, type Kind, NO_GROUP } from "../ids.ts";
import { limits } from "../limits.ts";
import type { HoldStatus, StatusResponse } from "../protocol/schemas.ts";
import type { ResourceStatus } from "../protocol/slot-schemas.ts";
import type { Presences } from "../requests/presence.ts";
import { collectSwarmMetrics, type SwarmMetrics, type VaporaAgent } from "../scheduling/exact/vapora.ts";
import { rateOpensAt, rateReserved } from "../scheduling/gates.ts";
import { lastHoldOn } from "../scheduling/hold.ts";
import { rounded } from "../scheduling/rounded.ts";
import { alphaAt, alphaSettingsAt, tokensReasonOf } from "../scheduling/slot-planner.ts";
import { holdScopes } from "../state/hold.ts";
import { attemptOf, findHold, phaseOf } from "../state/hold-rows.ts";
import { usedOf, usedReturns } from "../state/rate.ts";
import { returnsOf, totalAt } from "../state/rolling-window.ts";
import type { BudgetSettings } from "../state/settings.ts";
import { utilisationOf } from "../state/slot-rows.ts";
import {
  type AgentRow,
  capacityOf,
  type HoldRow,
  type ResourceRow,
  runsTasks,
  type SlotLeaseRow,
  type SwarmState,
  type TokenLedger,
} from "../state/state.ts";
import { type Expectation, expectationOf, latencyMsOf, successRate } from "../state/success-rate.ts";
import { thousandthsPerWeight } from "../state/weight.ts";

type AgentStatus = StatusResponse["agents"][number];

/** An agent's status by its row. A test walks the agent's own chart against this function. */
export function standingOf(row: AgentRow): AgentStanding {
  const { online, draining, open } = row;
  if (!online) return { status: "offline", saturated: false, draining };
  const status = open.size > 0 ? "busy" : "ready";
  return { status, saturated: open.size >= capacityOf(row), draining };
}

/** @param presences undefined on a standby */
export function agentStatusOf(
  state: SwarmState,
  row: AgentRow,
  presences: Presences | undefined,
): AgentStatus {
  const reported = presences?.reported(row);
  const silentMs = row.online ? presences?.silentMs(row.id) : undefined;
  const outlivedMs = presences?.outlivedMs(row.id);
  return {
    id: row.id,
    ...(row.group === NO_GROUP ? {} : { group: row.group as string }),
    ...standingOf(row),
    unresponsive: row.unresponsive,
    kinds: [...row.kinds].map((kind) => {
      const record = row.recordByKind.get(kind);
      const suspension = row.suspensionByKind.get(kind);
      return {
        kind: kind as string,
        successRate: successRate(record, expectationOf(state.recordByKind.get(kind), state.at), state.at),
        completed: record?.completed ?? 0,
        attempts: record?.attempts ?? 0,
        latencyMs: latencyMsOf(record),
        ...(suspension === undefined ? {} : { suspendedUntil: suspension.until }),
      };
    }),
    ...(row.role === undefined ? {} : { role: row.role }),
    ...(row.agentType === undefined ? {} : { type: row.agentType }),
    labels: { ...row.labels },
    inFlight: row.open.size,
    maxConcurrent: row.maxConcurrent,
    prefetch: row.prefetch,
    load: row.open.size / row.maxConcurrent,
    completed: row.completed,
    ...(reported === undefined
      ? {}
      : {
          reported: {
            status: reported.status,
            saturated: reported.saturated ?? false,
            inFlight: reported.inFlight,
            ...(reported.successRate === undefined ? {} : { successRate: reported.successRate }),
            ...(reported.latencyMs === undefined ? {} : { latencyMs: reported.latencyMs }),
          },
        }),
    ...(silentMs === undefined ? {} : { silentMs }),
    ...onHoldOf(lastHoldOn(state, row, undefined)),
    ...(row.fencedAt === undefined ? {} : { fencedAt: row.fencedAt }),
    ...(outlivedMs === undefined ? {} : { outlivedMs }),
  };
}

// --- resources, budgets and rates -----------------------------------------------------------------

export function* resourceStatuses(state: SwarmState, now: Instant): Generator<ResourceStatus> {
  for (const row of state.resourceByName.values()) yield resourceStatusOf(state, row, now);
}

function resourceStatusOf(state: SwarmState, row: ResourceRow, now: Instant): ResourceStatus {
  const { autoTune, from } = alphaSettingsAt(state, row);
  const { resource, settings, inUse, tick, grants, waiting, holdings } = row;
  return {
    resource,
    slots: settings.slots,
    maxWaiters: settings.maxWaiters,
    inUse,
    waiting: waiting.size,
    waitingWeight: row.waitingWeightThousandths / thousandthsPerWeight,
    tick,
    grants,
    utilisation: rounded(utilisationOf(row, now)),
    alpha: alphaAt(state, row),
    autoTune,
    alphaFrom: from,
    holders: firstOf(holdings.values(), (slot) => holderOf(state, slot, now)),
    waiters: firstOf(waiting.values(), (slot) => waiterOf(state, slot, now)),
    ...resourceHoldOf(findHold(state, { on: "resource", name: resource })),
  };
}

// --- holds ----------------------------------------------------------------------------------------

function onHoldOf(hold: HoldRow | undefined): Pick<AgentStatus, "onHold"> {
  if (hold === undefined || hold.on === "resource") return {};
  return { onHold: { on: hold.on, until: hold.until, phase: phaseOf(hold) } };
}

function resourceHoldOf(hold: HoldRow | undefined): Pick<ResourceStatus, "onHold"> {
  return hold === undefined ? {} : { onHold: { until: hold.until, phase: phaseOf(hold) } };
}

/** As many as `status` shows, the first to end first. */
export function holdStatusesOf({ holds }: SwarmState): HoldStatus[] {
  return holdScopes
    .flatMap((on) => [...holds[on].values()])
    .sort((a, b) => a.until - b.until)
    .slice(0, limits.holdsShownMax)
    .map((hold) => ({
      on: hold.on,
      name: hold.name,
      until: hold.until,
      since: hold.placedAt,
      phase: phaseOf(hold),
      by: hold.by,
      ...(hold.reason === undefined ? {} : { reason: headOf(hold.reason, limits.holdReasonShownCharacters) }),
    }));
}

type SlotLeaseStatus = ResourceStatus["holders"][number];

function holderOf(state: SwarmState, slot: SlotLeaseRow, at: Instant): SlotLeaseStatus {
  const idleAt = slot.idleTimer?.dueAt;
  return { ...slotLeaseOf(state, slot, slot.grantedAt, at), ...(idleAt === undefined ? {} : { idleAt }) };
}

function waiterOf(state: SwarmState, slot: SlotLeaseRow, at: Instant): SlotLeaseStatus {
  const waitsFor = tokensReasonOf(state, slot, at);
  return {
    ...slotLeaseOf(state, slot, slot.requestedAt, at),
    ...(waitsFor === undefined ? {} : { waitsFor }),
  };
}

/** Who holds or waits, and for what. */
function slotLeaseOf(
  state: SwarmState,
  slot: SlotLeaseRow,
  since: Instant | undefined,
  at: Instant,
): SlotLeaseStatus {
  const { agent, handle, as, label, tokens } = slot;
  const attempt = attemptOf(state, slot);
  const { project = attempt?.project } = slot;
  const user = slot.user ?? (attempt && state.taskById.get(attempt)?.spec.user);
  return {
    agent,
    handle,
    forMs: Math.max(0, at - (since ?? at)),
    ...(as === undefined ? {} : { as }),
    ...(label === undefined ? {} : { label }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(attempt === undefined
      ? {}
      : { task: { project: attempt.project, task: attempt.task, attempt: attempt.attempt } }),
    ...(tokens === 0 ? {} : { tokens }),
  };
}

/** Rows of the oldest items. */
function firstOf<Item, Row>(items: Iterable<Item>, rowOf: (item: Item) => Row): Row[] {
  const rows: Row[] = [];
  for (const item of items) {
    if (rows.length === limits.slotLeasesShownMax) break;
    rows.push(rowOf(item));
  }
  return rows;
}

type BudgetStatus = NonNullable<StatusResponse["budget"]>;
type RateStatus = NonNullable<StatusResponse["rates"]>[number];

/** @param at no earlier than the newest event of the state */
export function budgetStatusOf(ledger: TokenLedger, budget: BudgetSettings, at: Instant): BudgetStatus {
  const spent = ledger.spent === undefined ? 0 : totalAt(ledger.spent, at);
  const returns = ledger.spent === undefined ? undefined : returnsOf(ledger.spent, at);
  return { spent, reserved: ledger.reserved, ...budget, ...returns };
}

export function* rateStatusesOf(state: SwarmState, at: Instant): Generator<RateStatus> {
  for (const row of [...state.ratesByType.values()].flat()) {
    const { agentType, settings, use } = row;
    const opens = rateOpensAt(state, row, at);
    yield {
      type: agentType,
      used: usedOf(use, settings, at),
      reserved: rateReserved(state, row),
      ...settings,
      ...usedReturns(use, settings, at),
      ...(opens !== undefined && opens > at ? { opensAt: opens } : {}),
    };
  }
}

// --- the swarm ------------------------------------------------------------------------------------

/** VAPORA's seven metrics over all agents for tasks. As in the document, offline agents count as idle, and in the
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

/** Mean over the agent's kinds: the document has a rate per agent, Waggle a rate per agent and kind. */
function meanRate(row: AgentRow, expectation: (kind: Kind) => Expectation, at: Instant): number {
  let total = 0;
  for (const kind of row.kinds) total += successRate(row.recordByKind.get(kind), expectation(kind), at);
  return total / row.kinds.size;
}
