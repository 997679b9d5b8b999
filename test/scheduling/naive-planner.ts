// The planner as the design says it, without a thought for speed: at every pick it looks at every task and every
// agent anew. The tests hold the real one to it, event by event. It shares with it only what has tests of its
// own: the success rate and the load function.

import type { EventOf } from "../../src/core/event.ts";
import type { CandidateTerms, DecidedBy, IneligibleReason } from "../../src/core/receipt.ts";
import type { AgentRow, SwarmState, TaskRow } from "../../src/core/state.ts";
import { assignmentNumber, attemptNumber, type Instant, token } from "../../src/ids.ts";
import { loads } from "../../src/scheduling/load.ts";
import { successRate } from "../../src/scheduling/success-rate.ts";

interface Ranked {
  readonly agent: AgentRow;
  readonly isProbe: boolean;
  readonly score: number;
  readonly terms: CandidateTerms;
}

export class NaivePlanner {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #lambda: number;
  readonly #backlogAtStart: ReadonlyMap<AgentRow, number>;

  constructor(state: SwarmState, at: Instant, { lambda = 0.25, alpha = 0.25 } = {}) {
    this.#state = state;
    this.#at = at;
    this.#lambda = lambda;
    const agents = [...state.agentById.values()];
    const queues = agents.map((agent) => {
      const waiting = [...agent.open.values()].sort((a, b) => a.number - b.number).slice(agent.maxConcurrent);
      return {
        queueDepth: waiting.reduce((sum, { weight }) => sum + weight, 0),
        oldestAge: Math.max(0, ...waiting.map(({ assignedTick }) => state.tick - assignedTick)),
      };
    });
    const all = loads(queues, alpha);
    this.#backlogAtStart = new Map(agents.map((agent, n) => [agent, lambda === 0 ? 0 : (all[n] as number)]));
  }

  next(): EventOf<"TaskAssigned"> | undefined {
    const waiting = [...this.#state.taskById.values()]
      .filter(({ state }) => state === "queued")
      .sort((a, b) => a.spec.priority - b.spec.priority || a.sequence - b.sequence);
    for (const task of waiting) {
      const assigned = this.#assign(task, waiting);
      if (assigned !== undefined) return assigned;
    }
    return undefined;
  }

  #assign(task: TaskRow, waiting: readonly TaskRow[]): EventOf<"TaskAssigned"> | undefined {
    const ineligible: Partial<Record<IneligibleReason, number>> = {};
    const ranked: Ranked[] = [];
    for (const agent of this.#state.agentById.values()) {
      const reason = this.#reasonAgainst(agent, task);
      if (reason === undefined) ranked.push(this.#rankedOf(agent, task));
      else ineligible[reason] = (ineligible[reason] ?? 0) + 1;
    }
    const isLastAttempt = task.failures + 1 >= task.spec.maxAttempts;
    ranked.sort((a, b) => this.#compare(a, b, isLastAttempt, task));
    const [winner, second] = ranked;
    if (winner === undefined) return undefined;
    const { agent } = winner;
    return {
      type: "TaskAssigned",
      task: task.spec.id,
      attempt: attemptNumber(task.attempt + 1),
      agent: agent.id,
      incarnation: agent.incarnation,
      number: assignmentNumber(agent.lastNumber + 1),
      token: token(`${this.#state.term}.${agent.lastNumber + 1}`),
      receipt: {
        feasible: ranked.length,
        candidates: ranked.slice(0, 3).map(({ terms }) => terms),
        ineligible,
        decidedBy: decidedBy(winner, second),
        lane: task.lane?.key ?? "",
        waiting: waiting.filter((other) => isSameLane(other, task)).length,
        waitedMs: this.#at - task.queuedAt,
      },
    };
  }

  #reasonAgainst(agent: AgentRow, task: TaskRow): IneligibleReason | undefined {
    const { kind, role } = task.spec;
    if (!agent.online) return "offline";
    if (agent.draining) return "draining";
    if (!agent.kinds.has(kind)) return "wrong-kind";
    if (role !== undefined && agent.role !== role) return "wrong-role";
    if (agent.open.size >= agent.maxConcurrent + agent.prefetch) return "full";
    if (agent.unresponsive) return "unresponsive";
    const others = this.#whoCouldServe(task);
    if (agent.suspensionByKind.has(kind) && others.some((other) => !other.suspensionByKind.has(kind))) {
      if (!this.#isProbe(agent, task)) return "suspended";
    }
    if (task.failedBy.includes(agent.id) && others.some((other) => !task.failedBy.includes(other.id))) {
      return "failed-this-task";
    }
    return undefined;
  }

  /** Live and not suspended; if all are suspended, then all. */
  #whoCouldServe(task: TaskRow): AgentRow[] {
    const { kind, role } = task.spec;
    const live = [...this.#state.agentById.values()].filter(
      (agent) =>
        agent.online &&
        !agent.draining &&
        agent.kinds.has(kind) &&
        (role === undefined || agent.role === role),
    );
    const unsuspended = live.filter((agent) => !agent.suspensionByKind.has(kind));
    return unsuspended.length > 0 ? unsuspended : live;
  }

  #isProbe(agent: AgentRow, task: TaskRow): boolean {
    const { kind } = task.spec;
    const suspension = agent.suspensionByKind.get(kind);
    if (suspension === undefined) return false;
    if (this.#whoCouldServe(task).every((other) => other.suspensionByKind.has(kind))) return false;
    const isUnderWay = [...agent.open.values()].some(
      (open) => open.kind === kind && open.state !== "revoked" && open.assignedAt >= suspension.until,
    );
    return this.#at >= suspension.until && !isUnderWay;
  }

  #rankedOf(agent: AgentRow, task: TaskRow): Ranked {
    const { kind } = task.spec;
    const rate = successRate(agent.recordByKind.get(kind), this.#state.recordByKind.get(kind), this.#at);
    const load = agent.open.size / agent.maxConcurrent;
    const backlog = this.#backlogAtStart.get(agent) ?? 0;
    const score = rate / (1 + load + this.#lambda * backlog);
    return {
      agent,
      isProbe: this.#isProbe(agent, task),
      score,
      terms: {
        agent: agent.id,
        score: shown(score),
        successRate: shown(rate),
        load: shown(load),
        ...(backlog === 0 ? {} : { backlog: shown(backlog) }),
      },
    };
  }

  #compare(a: Ranked, b: Ranked, isLastAttempt: boolean, task: TaskRow): number {
    if (a.isProbe !== b.isProbe) return a.isProbe === isLastAttempt ? 1 : -1;
    const { kind } = task.spec;
    if (a.isProbe) {
      const dueAt = (of: Ranked) => of.agent.suspensionByKind.get(kind)?.until ?? 0;
      return dueAt(a) - dueAt(b) || (a.agent.id < b.agent.id ? -1 : 1);
    }
    return (
      b.score - a.score ||
      a.agent.open.size - b.agent.open.size ||
      a.agent.lastAssignedOrder - b.agent.lastAssignedOrder ||
      (a.agent.id < b.agent.id ? -1 : 1)
    );
  }
}

function decidedBy(winner: Ranked, second: Ranked | undefined): DecidedBy {
  if (winner.isProbe || second?.isProbe === true) return "probe";
  if (second === undefined) return "only";
  if (winner.score !== second.score) return "score";
  if (winner.agent.open.size !== second.agent.open.size) return "in-flight";
  return winner.agent.lastAssignedOrder === second.agent.lastAssignedOrder ? "id" : "longest-idle";
}

function isSameLane(a: TaskRow, b: TaskRow): boolean {
  return a.spec.kind === b.spec.kind && a.spec.role === b.spec.role && `${a.failedBy}` === `${b.failedBy}`;
}

function shown(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
