// The gauges of a coordinator, read from one look at the state for each text. Only a leader shows the swarm's state:
// with a standby's state beside it, a sum over all coordinators would count the swarm twice.

import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { ProcessFigures } from "../process-watch.ts";
import { projectSharesOf } from "../scheduling/project-shares.ts";
import { alphaAt } from "../scheduling/slot-planner.ts";
import { holdScopes } from "../state/hold.ts";
import { phaseOf } from "../state/hold-rows.ts";
import { totalAt } from "../state/rolling-window.ts";
import {
  type AgentRow,
  capacityOf,
  type HoldRow,
  runsTasks,
  type SwarmState,
  type TaskQueue,
} from "../state/state.ts";
import { OTHER_NAMES } from "./bounded-names.ts";
import type { GaugeMetric, Labels, Metric, Registry } from "./registry.ts";

export const coordinatorRoles = ["leading", "standing-by", "halted", "stopped"] as const;

/** The coordinator at the moment of a text. */
export interface CoordinatorView {
  readonly role: (typeof coordinatorRoles)[number];
  readonly term: number;
  /** Index of the newest batch that the coordinator holds; for a leader, of the newest committed batch. */
  readonly idx: number;
  /** Batches that the leader announced and this coordinator has not read; undefined if no leader was heard lately. */
  readonly lagBatches: number | undefined;
  readonly journalBytes: number;
  /** Absent without a bound. */
  readonly journalBytesMax?: number;
  /** Absent if nobody watches the process. */
  readonly process?: ProcessFigures;
  /** Undefined on a standby. */
  readonly led: LedView | undefined;
}

/** The leader at the moment of a text. */
export interface LedView {
  /** Read at once, and not kept. */
  readonly state: SwarmState;
  /** Journal time. */
  readonly now: Instant;
  readonly standbys: number;
  /** Since the term began. */
  readonly missedHeartbeats: number;
  /** Dropped and refused messages by reason, since the term began. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly concentrations: readonly Concentration[];
}

/** How often the same agent gets a kind's tasks. */
export interface Concentration {
  readonly kind: string;
  /** Share of the agent with most of the last assignments, (0, 1]. */
  readonly share: number;
  /** Whether the alert stands. */
  readonly isAlert: boolean;
}

/** Not elapsed, or with the probe under way. */
function isInForce(hold: HoldRow): boolean {
  return phaseOf(hold) !== "due";
}

const taskStates = ["queued", "delayed", "assigned", "running"] as const;
const agentStates = ["ready", "busy", "offline"] as const;

export class Gauges {
  readonly #metrics: GaugeMetrics;
  /** Gauges that are filled anew for each text. */
  readonly #cleared: readonly Pick<Metric<never, unknown>, "clear">[];
  readonly #byAgent: boolean;

  constructor(
    registry: Registry,
    { version, byAgent }: { readonly version: string; readonly byAgent: boolean },
  ) {
    const metrics = gaugesIn(registry, byAgent);
    const { build, started, ...cleared } = metrics;
    this.#metrics = metrics;
    this.#cleared = Object.values(cleared);
    this.#byAgent = byAgent;
    build.with({ version, node: process.versions.node }).set(1);
    started.with({}).set(Math.round(Date.now() / 1000 - process.uptime()));
  }

  /** @param view undefined before the coordinator runs */
  read(view: CoordinatorView | undefined): void {
    for (const metric of this.#cleared) metric.clear();
    this.#readProcess();
    if (view === undefined) return;
    this.#readCoordinator(view);
    if (view.led !== undefined) this.#readSwarm(view.led);
  }

  #readProcess(): void {
    const { cpu, memory } = this.#metrics;
    const { user, system } = process.cpuUsage();
    cpu.with({}).add((user + system) / 1e6);
    memory.with({}).set(process.memoryUsage.rss());
  }

  #readCoordinator(view: CoordinatorView): void {
    const { role, term, idx, lag, journalBytes, journalBytesMax, loopLag, heapUsed } = this.#metrics;
    for (const each of coordinatorRoles) role.with({ role: each }).set(each === view.role ? 1 : 0);
    term.with({}).set(view.term);
    idx.with({}).set(view.idx);
    if (view.lagBatches !== undefined) lag.with({}).set(view.lagBatches);
    journalBytes.with({}).set(view.journalBytes);
    if (view.journalBytesMax !== undefined) journalBytesMax.with({}).set(view.journalBytesMax);
    if (view.process === undefined) return;
    loopLag.with({ statistic: "p99" }).set(view.process.loopLagP99Ms / 1000);
    loopLag.with({ statistic: "max" }).set(view.process.loopLagMaxMs / 1000);
    heapUsed.with({}).set(view.process.heapUsedBytes);
  }

  #readSwarm(led: LedView): void {
    const { state, now } = led;
    const { standbys, tasks, paused, missedHeartbeats, dropped } = this.#metrics;
    standbys.with({}).set(led.standbys);
    for (const each of taskStates) tasks.with({ state: each }).set(state.counts[each]);
    paused.with({}).set(state.isPaused ? 1 : 0);
    missedHeartbeats.with({}).add(led.missedHeartbeats);
    for (const [reason, count] of Object.entries(led.dropped)) dropped.with({ reason }).add(count);
    this.#readQueues(state, now);
    this.#readAgents(state);
    this.#readProjects(state, now);
    this.#readResources(state);
    for (const on of holdScopes)
      this.#metrics.holds.with({ on }).set([...state.holds[on].values()].filter(isInForce).length);
    this.#readConcentration(led.concentrations);
  }

  #readQueues(state: SwarmState, now: Instant): void {
    const { queued, oldest } = this.#metrics;
    const nameOf = bounded();
    for (const queue of state.queueByKey.values()) {
      const kind = nameOf(queue.kind);
      queued.with({ kind }).add(queue.size);
      oldest.with({ kind }).raise(Math.max(0, now - oldestIn(queue)) / 1000);
    }
  }

  #readAgents(state: SwarmState): void {
    const { agents, capacity, inFlight, load } = this.#metrics;
    for (const each of agentStates) agents.with({ status: each }).set(0);
    let total = 0;
    let open = 0;
    let loads = 0;
    let online = 0;
    for (const agent of state.agentById.values()) {
      if (!runsTasks(agent)) continue;
      agents.with({ status: statusOf(agent) }).add(1);
      if (!agent.online) continue;
      online += 1;
      total += capacityOf(agent);
      open += agent.open.size;
      loads += loadOf(agent);
      if (this.#byAgent && online <= limits.metricAgentsMax)
        load.with({ agent: agent.id }).set(loadOf(agent));
    }
    capacity.with({}).set(total);
    inFlight.with({}).set(open);
    if (!this.#byAgent) load.with({} as Labels<"agent">).set(online === 0 ? 0 : loads / online);
  }

  #readProjects(state: SwarmState, now: Instant): void {
    const { share, target, deficit, reserved, budgetSpent, budgetLimit } = this.#metrics;
    const { swarmBudgetSpent, swarmBudgetLimit } = this.#metrics;
    const at = Math.max(now, state.at) as Instant;
    for (const { row, share: shareNow, target: targetNow } of projectSharesOf(state, now).slice(
      0,
      limits.metricNamesMax,
    )) {
      const { project, ledger, settings } = row;
      const labels = { project };
      share.with(labels).set(shareNow);
      reserved.with(labels).set(ledger.reserved);
      if (targetNow !== undefined) {
        target.with(labels).set(targetNow);
        deficit.with(labels).set(shareNow - targetNow);
      }
      if (settings?.budget === undefined) continue;
      budgetSpent.with(labels).set(ledger.spent === undefined ? 0 : totalAt(ledger.spent, at));
      budgetLimit.with(labels).set(settings.budget.tokens);
    }
    const { budget } = state.policy;
    if (budget === undefined) return;
    swarmBudgetSpent.with({}).set(state.ledger.spent === undefined ? 0 : totalAt(state.ledger.spent, at));
    swarmBudgetLimit.with({}).set(budget.tokens);
  }

  #readResources(state: SwarmState): void {
    const { slots, slotsUsed, waiters, alpha, ticks, grants } = this.#metrics;
    for (const row of [...state.resourceByName.values()].slice(0, limits.metricNamesMax)) {
      const labels = { resource: row.resource };
      slots.with(labels).set(row.settings.slots);
      slotsUsed.with(labels).set(row.inUse);
      waiters.with(labels).set(row.waiting.size);
      alpha.with(labels).set(alphaAt(state, row));
      ticks.with(labels).add(row.tick);
      grants.with(labels).add(row.grants);
    }
  }

  #readConcentration(concentrations: readonly Concentration[]): void {
    const { concentration, concentrationAlert } = this.#metrics;
    const nameOf = bounded();
    for (const { kind: full, share, isAlert } of concentrations) {
      const kind = nameOf(full);
      concentration.with({ kind }).raise(share);
      concentrationAlert.with({ kind }).raise(isAlert ? 1 : 0);
    }
  }
}

type GaugeMetrics = ReturnType<typeof gaugesIn>;

function gaugesIn(registry: Registry, byAgent: boolean) {
  const gauge = <Label extends string = never>(
    name: string,
    help: string,
    ...labels: readonly Label[]
  ): GaugeMetric<Label> => registry.gauge<Label>({ name, help, labels });
  /** A counter kept elsewhere. */
  const counter = <Label extends string = never>(name: string, help: string, ...labels: readonly Label[]) =>
    registry.counter<Label>({ name, help, labels });
  return {
    tasks: gauge("waggle_tasks", "Tasks that have not ended", "state"),
    queued: gauge("waggle_queue_tasks", "Waiting tasks", "kind"),
    oldest: gauge("waggle_queue_oldest_seconds", "Wait of the oldest waiting task", "kind"),
    paused: gauge("waggle_swarm_paused", "1 while an operator paused the swarm"),
    agents: gauge("waggle_agents", "Agents that run tasks", "status"),
    capacity: gauge(
      "waggle_agent_capacity",
      "Attempts that online agents take at once, prefetched ones included",
    ),
    inFlight: gauge("waggle_attempts_in_flight", "Attempts that occupy capacity of online agents"),
    load: gauge(
      "waggle_agent_load",
      byAgent
        ? "In flight / max concurrent of each online agent"
        : "Mean of in flight / max concurrent over online agents",
      ...(byAgent ? (["agent"] as const) : []),
    ) as GaugeMetric<"agent">,
    missedHeartbeats: counter(
      "waggle_agent_missed_heartbeats_total",
      "Heartbeats of online agents that did not come in time, since the term began",
    ),
    share: gauge(
      "waggle_project_share",
      "Part of all tokens used in the guarantee's window, 0 to 1",
      "project",
    ),
    target: gauge(
      "waggle_project_target_share",
      "Credit weight's part among waiting projects, 0 to 1",
      "project",
    ),
    deficit: gauge(
      "waggle_project_deficit",
      "Share less target of a waiting project; below 0 it is owed",
      "project",
    ),
    reserved: gauge("waggle_tokens_reserved", "Tokens reserved for open attempts", "project"),
    budgetSpent: gauge(
      "waggle_budget_spent_tokens",
      "Tokens spent in the window of the project's budget",
      "project",
    ),
    budgetLimit: gauge("waggle_budget_limit_tokens", "Tokens of the project's budget", "project"),
    swarmBudgetSpent: gauge(
      "waggle_swarm_budget_spent_tokens",
      "Tokens spent in the window of the swarm's budget",
    ),
    swarmBudgetLimit: gauge("waggle_swarm_budget_limit_tokens", "Tokens of the swarm's budget"),
    holds: gauge("waggle_holds", "Agents, types of agents, and resources on hold", "on"),
    slots: gauge("waggle_resource_slots", "Slots of the resource", "resource"),
    slotsUsed: gauge("waggle_resource_slots_used", "Slots held", "resource"),
    waiters: gauge("waggle_resource_waiters", "Requests that wait for slots", "resource"),
    alpha: gauge(
      "waggle_resource_alpha",
      "Weight of the queue against the wait in LOCO's load, 0 to 1",
      "resource",
    ),
    ticks: counter("waggle_resource_ticks_total", "Releases of slots: LOCO's clock", "resource"),
    grants: counter("waggle_resource_grants_total", "Grants of slots", "resource"),
    concentration: gauge(
      "waggle_concentration_share",
      "Highest share of one agent in the last assignments",
      "kind",
    ),
    concentrationAlert: gauge("waggle_concentration_alert", "1 while one agent gets too many tasks", "kind"),
    dropped: counter(
      "waggle_messages_dropped_total",
      "Refused and dropped messages, since the term began",
      "reason",
    ),
    role: gauge("waggle_coordinator_role", "1 for the role of this coordinator", "role"),
    term: gauge("waggle_coordinator_term", "Term of the newest batch"),
    idx: gauge("waggle_journal_idx", "Index of the newest batch"),
    lag: gauge("waggle_journal_lag_batches", "Announced batches that this coordinator has not read"),
    journalBytes: gauge("waggle_journal_bytes", "Size of the journal"),
    journalBytesMax: gauge("waggle_journal_limit_bytes", "Largest size of the journal"),
    loopLag: gauge(
      "waggle_event_loop_lag_seconds",
      "How much later than due the event loop ran a timer, in the last 10 to 20 s",
      "statistic",
    ),
    heapUsed: gauge("waggle_heap_used_bytes", "Heap of JavaScript in use, part of the resident memory"),
    standbys: gauge("waggle_standbys", "Standbys that the leader heard lately"),
    build: gauge("waggle_build_info", "Always 1", "version", "node"),
    cpu: counter("process_cpu_seconds_total", "CPU time of the process"),
    memory: gauge("process_resident_memory_bytes", "Resident memory of the process"),
    started: gauge("process_start_time_seconds", "Start of the process, in seconds since the Unix epoch"),
  };
}

/** Bounds the names of one look: the first names keep theirs. */
function bounded(): (name: string) => string {
  const kept = new Set<string>();
  return (name) => {
    if (kept.has(name)) return name;
    if (kept.size >= limits.metricNamesMax) return OTHER_NAMES;
    kept.add(name);
    return name;
  };
}

/** When the oldest task of a queue was queued. */
function oldestIn({ memberByProject }: TaskQueue): number {
  let oldestAt = Number.POSITIVE_INFINITY;
  for (const { memberByUser } of memberByProject.values())
    for (const { oldest } of memberByUser.values()) oldestAt = Math.min(oldestAt, oldest.queuedAt);
  return oldestAt;
}

function statusOf({ online, open }: AgentRow): (typeof agentStates)[number] {
  if (!online) return "offline";
  return open.size > 0 ? "busy" : "ready";
}

function loadOf({ open, maxConcurrent }: AgentRow): number {
  return open.size / maxConcurrent;
}
