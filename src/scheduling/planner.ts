// One round of assignments: which of the waiting tasks goes to which agent, until nothing more fits. Joins the
// rules that stand beside it: turn-order.ts (whose turn), eligibility.ts and pool.ts (who may), candidate.ts
// (who is best). Reads the state and returns events; the caller applies each before it asks for the next.
//
// Within a round only assignments happen. So a lane found blocked stays blocked, nobody's standing or score gets
// better, and success rates and L(agent) are those of the round's start. That is what makes a pick cost only
// what it touches, with the same outcome as if everything were looked at anew each time.

import { assert } from "../assert.ts";
import type { EventOf } from "../core/event.ts";
import type { Receipt } from "../core/receipt.ts";
import type { AgentRow, Lane, SwarmState, TaskRow } from "../core/state.ts";
import type { AgentId, AssignmentNumber, AttemptNumber, Instant, Kind, Token } from "../ids.ts";
import { Contender } from "./candidate.ts";
import { excludedByFailure, isFree, isFull } from "./eligibility.ts";
import { fittedReceipt, jsonBytes } from "./fitted-receipt.ts";
import type { Policy } from "./policy.ts";
import { Pool, type Ranking } from "./pool.ts";
import { nothingToPlan, type Survey, surveyOf } from "./survey.ts";
import { SubmissionOrder, type TurnOrder } from "./turn-order.ts";

/** What a round knows of a lane that somebody may serve. */
interface OpenLane {
  readonly lane: Lane;
  readonly pool: Pool;
  /** Agents that failed these tasks, as far as that counts. */
  readonly excluded: readonly AgentId[];
  /** Of the lane's name in a receipt, once it was needed. */
  nameBytes: number | undefined;
}

interface Granted {
  readonly task: TaskRow;
  readonly contender: Contender;
}

/** Assigns what can be assigned at one instant. Used up once `next` has returned undefined. */
export class Round {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #policy: Policy;
  readonly #survey: Survey;
  readonly #poolsByKind = new Map<Kind, Pool[]>();
  readonly #openByLane = new Map<Lane, OpenLane>();
  readonly #turns: TurnOrder;
  /** Agents that have a place free and serve a kind that waits. */
  #freeCount = 0;
  /** What `next` returned last, until it is known to be applied. */
  #pending: Granted | undefined;

  /** @param at the instant of the assignments; no instant in the state is later */
  constructor(state: SwarmState, at: Instant, policy: Partial<Policy> = {}) {
    this.#state = state;
    this.#at = at;
    this.#policy = { ...state.policy, ...policy };
    this.#survey = state.laneByKey.size === 0 ? nothingToPlan : surveyOf(state, this.#policy);
    if (this.#survey.free.length > 0) this.#open();
    this.#turns = new SubmissionOrder(this.#openByLane.keys());
  }

  /**
   * The next assignment, or undefined when no queued task has an agent that would take it. The caller applies
   * the event to the state before it asks again.
   *
   * @throws InvariantError when the last one was not applied
   */
  next(): EventOf<"TaskAssigned"> | undefined {
    this.#settle();
    while (this.#freeCount > 0) {
      const lane = this.#turns.next();
      if (lane === undefined) return undefined;
      const assigned = this.#assign(this.#openByLane.get(lane) as OpenLane);
      if (assigned !== undefined) return assigned;
      this.#turns.block();
    }
    return undefined;
  }

  #assign(open: OpenLane): EventOf<"TaskAssigned"> | undefined {
    const task = open.lane.queue.peek() as TaskRow;
    const isLastAttempt = task.failures + 1 >= task.spec.maxAttempts;
    const ranking = open.pool.rank(open.excluded, isLastAttempt);
    const contender = ranking.candidates[0]?.contender;
    if (contender === undefined) return undefined;

    this.#pending = { task, contender };
    const { agent } = contender;
    const number = agent.lastNumber + 1;
    return {
      type: "TaskAssigned",
      task: task.spec.id,
      attempt: (task.attempt + 1) as AttemptNumber,
      agent: agent.id,
      incarnation: agent.incarnation,
      number: number as AssignmentNumber,
      token: `${this.#state.term}.${number}` as Token,
      receipt: this.#receiptOf(open, task, ranking),
    };
  }

  #receiptOf(open: OpenLane, task: TaskRow, ranking: Ranking): Receipt {
    open.nameBytes ??= jsonBytes(open.lane.key);
    const receipt: Receipt = {
      feasible: ranking.feasible,
      candidates: ranking.candidates.map((candidate) => candidate.terms),
      ineligible: open.pool.ineligible(open.excluded),
      decidedBy: ranking.decidedBy,
      lane: open.lane.key,
      waiting: open.lane.queue.size,
      waitedMs: Math.max(0, Math.floor(this.#at - task.queuedAt)),
    };
    return fittedReceipt(receipt, open.nameBytes);
  }

  /** Takes note of what the last assignment changed. */
  #settle(): void {
    if (this.#pending === undefined) return;
    const { task, contender } = this.#pending;
    assert(
      task.state !== "queued",
      `the assignment of ${task.spec.id} is applied before the next is asked for`,
    );
    this.#pending = undefined;
    this.#turns.granted();
    contender.assigned += 1;
    const hasFilled = isFull(contender.agent);
    if (hasFilled) this.#freeCount -= 1;
    if (!hasFilled && contender.agent.suspensionByKind.size === 0) return;
    for (const candidate of contender.candidates) candidate.ranks.update(candidate);
  }

  /** Lanes to pools, free agents into the pools, and out with the lanes that nobody may serve. */
  #open(): void {
    const waiting = [...this.#state.laneByKey.values()].filter(({ queue }) => queue.size > 0);
    const offered = waiting.map((lane) => ({ lane, pool: this.#poolOf(lane.kind, lane.role) }));
    for (const agent of this.#wantedAgents()) this.#enter(agent);
    for (const { lane, pool } of offered) {
      if (!pool.isOpen) continue;
      const excluded = lane.avoid.length === 0 ? lane.avoid : excludedByFailure(lane.avoid, pool.peers);
      this.#openByLane.set(lane, { lane, pool, excluded, nameBytes: undefined });
    }
  }

  #poolOf(kind: Kind, role: string | undefined): Pool {
    const ofKind = this.#poolsByKind.get(kind) ?? [];
    const known = ofKind.find((pool) => pool.role === role);
    if (known !== undefined) return known;
    const { lambda } = this.#policy;
    const pool = new Pool({
      state: this.#state,
      at: this.#at,
      kind,
      role,
      lambda,
      census: this.#survey.census,
    });
    ofKind.push(pool);
    this.#poolsByKind.set(kind, ofKind);
    return pool;
  }

  /** All with a place free, or, where few kinds wait in a large swarm, those of them that serve these. */
  #wantedAgents(): Iterable<AgentRow> {
    const serving = [...this.#poolsByKind.keys()].map((kind) => this.#state.onlineByKind.get(kind));
    const servingCount = serving.reduce((sum, agents) => sum + (agents?.size ?? 0), 0);
    if (servingCount >= this.#survey.free.length) return this.#survey.free;
    const wanted = new Set<AgentRow>();
    for (const agents of serving) {
      for (const agent of agents?.values() ?? []) if (isFree(agent)) wanted.add(agent);
    }
    return wanted;
  }

  #enter(agent: AgentRow): void {
    const contender = new Contender(agent, this.#survey.backlogByAgent.get(agent) ?? 0);
    const isVersatile = agent.kinds.size > this.#poolsByKind.size;
    for (const kind of isVersatile ? this.#poolsByKind.keys() : agent.kinds) {
      for (const pool of this.#poolsByKind.get(kind) ?? []) pool.admit(contender);
    }
    if (contender.candidates.length > 0) this.#freeCount += 1;
  }
}
