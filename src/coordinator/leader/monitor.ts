// Observations of the load for people: kinds with too many tasks on a single agent, and busy agents with waiting tasks.
// Decisions do not depend on observations, the journal does not record them, and a new leader starts afresh. Fed with
// committed events and at each pulse; bounded by the limits of both watches.

import type { Logger } from "pino";
import type { RecordedEvent } from "../../core/step.ts";
import type { AgentId, Instant, Kind } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Concentration } from "../../metrics/gauges.ts";
import { type AgentPressure, type BottleneckShare, BottleneckWatch } from "../../scheduling/bottleneck.ts";
import { type ConcentrationAlert, ConcentrationWatch } from "../../scheduling/concentration.ts";
import { isCalled, isFull } from "../../scheduling/eligibility.ts";
import type { EventOf } from "../../state/event.ts";
import type { Receipt } from "../../state/receipt.ts";
import type { AgentRow, SwarmState, TaskQueue } from "../../state/state.ts";

/** An active alert. */
export interface KindAlert extends ConcentrationAlert {
  readonly kind: Kind;
  /** Journal time of the begin. */
  readonly since: Instant;
}

/** A kind with a single agent. */
export interface SoleAgent {
  readonly kind: Kind;
  readonly agent: AgentId;
}

/** An alert, from its begin until `limits.concentrationQuietMs` after the end of the condition. */
interface Raised {
  readonly since: Instant;
  heldAt: Instant;
  /** Absent after the condition ended. */
  alert: ConcentrationAlert | undefined;
}

export class Monitor {
  readonly #state: SwarmState;
  readonly #logger: Logger;
  readonly #bottlenecks = new BottleneckWatch();
  /** Assigned longest ago first, to within a pulse. */
  readonly #watchByKind = new Map<Kind, ConcentrationWatch>();
  /** Assigned since the last pulse. */
  readonly #changedKinds = new Set<Kind>();
  readonly #raisedByKind = new Map<Kind, Raised>();
  /** Journal time of the last pulse. */
  #at: Instant;

  constructor(state: SwarmState, logger: Logger) {
    this.#state = state;
    this.#logger = logger;
    this.#at = state.at;
  }

  /** Takes in the events of a committed batch. */
  committed(recorded: readonly RecordedEvent[]): void {
    for (const { event, kind } of recorded)
      if (event.type === "TaskAssigned" && kind !== undefined) this.#assigned(event, kind);
  }

  /** Looks at the state. @param at journal time; never decreases */
  pulse(at: Instant): void {
    this.#at = at;
    this.#bottlenecks.observe(at, pressures(this.#state));
    for (const kind of this.#changedKinds) this.#look(kind);
    this.#changedKinds.clear();
    for (const [kind, raised] of this.#raisedByKind) this.#lookAgain(kind, raised);
  }

  /** Up to the last pulse, the worst first. */
  bottlenecks(): readonly BottleneckShare[] {
    return this.#bottlenecks.shares(this.#at);
  }

  /** Active alerts of the last pulse, the highest share first. */
  alerts(): readonly KindAlert[] {
    const alerts: KindAlert[] = [];
    for (const [kind, { alert, since }] of this.#raisedByKind)
      if (alert !== undefined) alerts.push({ kind, since, ...alert });
    return alerts.sort((a, b) => b.share - a.share || (a.kind < b.kind ? -1 : 1));
  }

  /** Kinds with a single agent: a note, no alert. Most recently assigned first. */
  soleAgents(): readonly SoleAgent[] {
    const sole: SoleAgent[] = [];
    for (const [kind, watch] of this.#watchByKind) {
      const agent = watch.soleAgent();
      if (agent !== undefined) sole.push({ kind, agent });
    }
    return sole.reverse();
  }

  /** How often one agent gets a kind's tasks, for kinds with enough assignments. */
  concentrations(): readonly Concentration[] {
    const all: Concentration[] = [];
    for (const [kind, watch] of this.#watchByKind) {
      const share = watch.share();
      if (share !== undefined)
        all.push({ kind, share, isAlert: this.#raisedByKind.get(kind)?.alert !== undefined });
    }
    return all;
  }

  #assigned({ agent, receipt }: EventOf<"TaskAssigned">, kind: Kind): void {
    this.#watchOf(kind).assigned(agent, servingIn(receipt));
  }

  #watchOf(kind: Kind): ConcentrationWatch {
    const known = this.#watchByKind.get(kind);
    if (known !== undefined && this.#changedKinds.has(kind)) return known;
    this.#changedKinds.add(kind);
    const watch = known ?? new ConcentrationWatch();
    this.#watchByKind.delete(kind);
    this.#watchByKind.set(kind, watch);
    const oldest = this.#watchByKind.keys().next();
    if (this.#watchByKind.size > limits.concentrationKindsMax && oldest.done === false)
      this.#watchByKind.delete(oldest.value);
    return watch;
  }

  #look(kind: Kind): void {
    const alert = this.#watchByKind.get(kind)?.alert();
    const raised = this.#raisedByKind.get(kind);
    if (raised !== undefined) raised.alert = alert;
    if (raised !== undefined || alert === undefined) return;
    this.#raisedByKind.set(kind, { since: this.#at, heldAt: this.#at, alert });
    const { agent, share, threshold } = alert;
    this.#logger.warn({ kind, agent, share, threshold }, "one agent gets most tasks of a kind");
  }

  #lookAgain(kind: Kind, raised: Raised): void {
    if (!this.#watchByKind.has(kind)) raised.alert = undefined;
    if (raised.alert !== undefined) raised.heldAt = this.#at;
    if (this.#at - raised.heldAt < limits.concentrationQuietMs) return;
    this.#raisedByKind.delete(kind);
    this.#logger.info({ kind }, "tasks of a kind are spread over its agents again");
  }
}

/** How many agents served the task's kind, role and needs at its assignment, free or not. */
function servingIn({ feasible, ineligible }: Receipt): number {
  const { full = 0, unresponsive = 0, suspended = 0 } = ineligible;
  return (
    feasible +
    full +
    unresponsive +
    suspended +
    (ineligible["rate-limited"] ?? 0) +
    (ineligible["on-hold"] ?? 0) +
    (ineligible["failed-this-task"] ?? 0)
  );
}

function* pressures(state: SwarmState): Generator<AgentPressure> {
  const waiting = waitingQueues(state);
  for (const agent of state.agentById.values()) {
    if (agent.online)
      yield { agent: agent.id, isAtLimit: isFull(agent), isAwaited: isAwaited(agent, waiting) };
  }
}

/** Queues with tasks waiting for an agent, and not for an operator. */
function waitingQueues(state: SwarmState): ReadonlyMap<Kind, readonly TaskQueue[]> {
  const queuesByKind = new Map<Kind, TaskQueue[]>();
  if (state.isPaused) return queuesByKind;
  for (const queue of state.queueByKey.values()) {
    if (!hasUnpaused(queue)) continue;
    const queues = queuesByKind.get(queue.kind);
    if (queues === undefined) queuesByKind.set(queue.kind, [queue]);
    else queues.push(queue);
  }
  return queuesByKind;
}

function hasUnpaused({ memberByProject }: TaskQueue): boolean {
  for (const { row } of memberByProject.values()) if (!row.isPaused) return true;
  return false;
}

function isAwaited(agent: AgentRow, waiting: ReadonlyMap<Kind, readonly TaskQueue[]>): boolean {
  if (waiting.size === 0 || agent.draining) return false;
  for (const kind of agent.kinds) {
    const queues = waiting.get(kind);
    if (queues === undefined || agent.suspensionByKind.has(kind)) continue;
    if (queues.some((queue) => isCalled(agent, { kind, role: queue.role, needs: queue.needs }))) return true;
  }
  return false;
}
