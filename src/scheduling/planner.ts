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
import { Candidate } from "./candidate.ts";
import { excludedByFailure, isFull } from "./eligibility.ts";
import { fittedReceipt, jsonBytes } from "./fitted-receipt.ts";
import { defaultPolicy, type SchedulingPolicy } from "./policy.ts";
import { Pool, type Ranking } from "./pool.ts";
import { agentRate, swarmRate } from "./success-rate.ts";
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

interface Pick {
  readonly task: TaskRow;
  readonly agent: AgentRow;
}

/** Assigns what can be assigned at one instant. Used up once `next` has returned undefined. */
export class Round {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #policy: SchedulingPolicy;
  readonly #survey: Survey;
  readonly #poolByKey = new Map<string, Pool>();
  readonly #poolsByAgent = new Map<AgentRow, Pool[]>();
  readonly #openByLane = new Map<Lane, OpenLane>();
  readonly #turns: TurnOrder;
  /** Agents of some pool that have a place free. */
  #freeCount: number;
  /** What `next` returned last, until it is known to be applied. */
  #pending: Pick | undefined;

  /** @param at the instant of the assignments; no instant in the state is later */
  constructor(state: SwarmState, at: Instant, policy: Partial<SchedulingPolicy> = {}) {
    this.#state = state;
    this.#at = at;
    this.#policy = { ...defaultPolicy, ...policy };
    this.#survey = state.laneByKey.size === 0 ? nothingToPlan : surveyOf(state, this.#policy);
    if (this.#survey.free.length > 0) for (const lane of state.laneByKey.values()) this.#open(lane);
    this.#turns = new SubmissionOrder(this.#openByLane.keys());
    this.#freeCount = this.#poolsByAgent.size;
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
    const agent = ranking.candidates[0]?.agent;
    if (agent === undefined) return undefined;

    this.#pending = { task, agent };
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
    const { task, agent } = this.#pending;
    assert(
      task.state !== "queued",
      `the assignment of ${task.spec.id} is applied before the next is asked for`,
    );
    this.#pending = undefined;
    this.#turns.granted();
    const hasFilled = isFull(agent);
    if (hasFilled) this.#freeCount -= 1;
    if (!hasFilled && agent.suspensionByKind.size === 0) return;
    for (const pool of this.#poolsByAgent.get(agent) ?? []) pool.update(agent);
  }

  #open(lane: Lane): void {
    if (lane.queue.size === 0) return;
    const pool = this.#poolOf(lane.kind, lane.role);
    if (!pool.isOpen) return;
    const excluded = lane.avoid.length === 0 ? lane.avoid : excludedByFailure(lane.avoid, pool.peers);
    this.#openByLane.set(lane, { lane, pool, excluded, nameBytes: undefined });
  }

  #poolOf(kind: Kind, role: string | undefined): Pool {
    // Neither a kind nor a role holds a space.
    const key = role === undefined ? kind : `${kind} ${role}`;
    const known = this.#poolByKey.get(key);
    if (known !== undefined) return known;
    const pool = this.#newPool(kind, role);
    this.#poolByKey.set(key, pool);
    for (const agent of pool.agents()) {
      const pools = this.#poolsByAgent.get(agent);
      if (pools === undefined) this.#poolsByAgent.set(agent, [pool]);
      else pools.push(pool);
    }
    return pool;
  }

  #newPool(kind: Kind, role: string | undefined): Pool {
    const { free, census, backlogByAgent } = this.#survey;
    const prior = swarmRate(this.#state.recordByKind.get(kind), this.#at);
    const serving = this.#state.onlineByKind.get(kind);
    const candidateOf = (agent: AgentRow) =>
      new Candidate({
        agent,
        successRate: agentRate(agent.recordByKind.get(kind), prior, this.#at),
        backlog: backlogByAgent.get(agent) ?? 0,
        lambda: this.#policy.lambda,
      });
    const agents = serving === undefined || serving.size > free.length ? free : serving.values();
    return new Pool({ state: this.#state, at: this.#at, kind, role, agents, candidateOf, census });
  }
}
