// Assigns: which of the waiting tasks goes to which agent, until nothing more fits. Joins the rules that stand
// beside it: turn-order.ts (whose turn), gates.ts (what is closed), eligibility.ts and pool.ts (who may, and who is
// best). Reads the state and returns events; the caller applies each before it asks for the next. docs/scheduling.md
// is the rule.
//
// A planner belongs to one state and is kept from turn to turn, so that a round costs what changed since the last.
// It follows from the state: one made anew decides the same.

import { assert } from "../assert.ts";
import type { EventOf } from "../core/event.ts";
import type { Receipt } from "../core/receipt.ts";
import type { Lane, SwarmState, TaskQueue, TaskRow } from "../core/state.ts";
import type { AgentId, AssignmentNumber, AttemptNumber, Instant, Kind, Token } from "../ids.ts";
import { limits } from "../limits.ts";
import { AgentIndex } from "./agent-index.ts";
import type { Contender } from "./candidate.ts";
import { isFull } from "./eligibility.ts";
import { fittedReceipt, jsonBytes } from "./fitted-receipt.ts";
import { type BudgetVerdict, budgetVerdict, projectGate, swarmGate } from "./gates.ts";
import type { Pool, Ranking } from "./pool.ts";
import { firstTasks } from "./service-order.ts";
import { type Next, TurnOrder } from "./turn-order.ts";

/** Keeps what rounds have in common. */
export class Planner {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;

  constructor(state: SwarmState) {
    this.#state = state;
    this.#agents = new AgentIndex(state);
  }

  /** Something of the agent's row changed since the last round. Must be called of each one. */
  touch(agent: AgentId): void {
    this.#agents.touch(agent);
  }

  /** Begins a round. Nothing but its assignments may change the state until it is closed.
   *  @param at the instant of the assignments; no instant in the state is later */
  open(at: Instant): Round {
    return new Round(this.#state, this.#agents, at);
  }
}

/** A task that may be placed, as far as gates and budgets go. */
interface Placeable {
  readonly task: TaskRow;
  readonly queue: TaskQueue;
  readonly verdict: Extract<BudgetVerdict, { kind: "runs" }>;
}

interface Placed extends Placeable {
  readonly pool: Pool;
  readonly excluded: readonly AgentId[];
  readonly ranking: Ranking;
}

/** Assigns what can be assigned at one instant. */
export class Round {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;
  readonly #at: Instant;
  readonly #turns: TurnOrder | undefined;
  readonly #nameBytes = new Map<Lane, number>();
  /** What `next` returned last, until it is known to be applied. */
  #pending: { readonly task: TaskRow; readonly contender: Contender } | undefined;
  #isClosed = false;

  constructor(state: SwarmState, agents: AgentIndex, at: Instant) {
    this.#state = state;
    this.#agents = agents;
    this.#at = at;
    if (state.laneByKey.size === 0 || swarmGate(state) !== undefined) return;
    agents.begin(at);
    const lanes = [...state.laneByKey.values()].filter((lane) => this.#isOpen(lane));
    if (lanes.length > 0) this.#turns = new TurnOrder(state, at, lanes);
  }

  /**
   * The next assignment, or undefined when no queued task has an agent that would take it; the round is closed
   * then. The caller applies the event to the state before it asks again.
   *
   * @throws InvariantError when the last one was not applied
   */
  next(): EventOf<"TaskAssigned"> | undefined {
    this.#settle();
    const turns = this.#turns;
    while (turns !== undefined && !this.#isClosed && swarmGate(this.#state) === undefined) {
      const next = turns.next();
      if (next === undefined) break;
      const placed = this.#place(turns, next);
      if (placed === undefined) continue;
      turns.granting(next);
      return this.#assigned(next, placed);
    }
    this.close();
    return undefined;
  }

  /** Ends the round before it has ended by itself. */
  close(): void {
    this.#settle();
    if (!this.#isClosed) this.#turns?.close();
    this.#isClosed = true;
  }

  /** Finds an agent for whose turn it is, or takes out of the round what cannot be placed. */
  #place(turns: TurnOrder, next: Next): Placed | undefined {
    const { lane, project } = next;
    if (projectGate(project.row) !== undefined) {
      turns.excludeProject(project.row);
      return undefined;
    }
    const placeable = this.#fitting(turns, next);
    if (placeable === undefined) return undefined;
    const { task, queue, verdict } = placeable;
    const pool = this.#poolFor(lane, verdict.runsAs);
    const excluded = pool.excludedByFailure(queue.avoid);
    const ranking = pool.rank(excluded, task.failures + 1 >= task.spec.maxAttempts);
    if (ranking.candidates.length > 0) return { ...placeable, pool, excluded, ranking };

    if (excluded.length > 0 && pool.isOpen) turns.excludeQueue(queue);
    else if (this.#isOpen(lane)) turns.excludeUser(next);
    else turns.excludeLane();
    return undefined;
  }

  /** The task of whose turn it is, or, where that one does not fit a budget, the first of its user's that does. */
  #fitting(turns: TurnOrder, next: Next): Placeable | undefined {
    const { task, project } = next;
    const first = this.#verdictOn(task);
    if (first.kind === "runs") return { task, queue: task.queue as TaskQueue, verdict: first };
    if (next.isPastCeiling) {
      // Room is kept for it: nothing that draws on the same budget passes.
      if (first.reason === "global-budget") this.close();
      else turns.excludeProject(project.row);
      return undefined;
    }
    const isOut = (queue: TaskQueue) => turns.isOut(queue);
    for (const other of firstTasks(next.user, isOut, limits.budgetLookAhead)) {
      const verdict = this.#verdictOn(other);
      if (verdict.kind === "runs") return { task: other, queue: other.queue as TaskQueue, verdict };
    }
    turns.excludeUser(next);
    return undefined;
  }

  #verdictOn({ spec, projectRow }: TaskRow): BudgetVerdict {
    const isUnlimited = projectRow.settings?.budget === undefined && this.#state.policy.budget === undefined;
    if (isUnlimited) return withoutBudget;
    return budgetVerdict(this.#state, projectRow, spec, this.#at);
  }

  #assigned(next: Next, { task, queue, verdict, pool, excluded, ranking }: Placed): EventOf<"TaskAssigned"> {
    const { contender } = ranking.candidates[0] as Ranking["candidates"][number];
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
      ...(verdict === withoutBudget ? {} : { tokensReserved: verdict.tokens }),
      ...(verdict.runsAs === undefined ? {} : { runsAs: verdict.runsAs }),
      receipt: this.#receiptOf(next, { task, queue, pool, excluded, ranking }),
    };
  }

  #receiptOf({ lane, turn }: Next, { task, pool, excluded, ranking }: Omit<Placed, "verdict">): Receipt {
    const isByRule = turn.project === "rule" && turn.user === "rule";
    const receipt: Receipt = {
      ...(isByRule ? {} : { turn }),
      feasible: ranking.feasible,
      candidates: ranking.candidates.map((candidate) => candidate.terms),
      ineligible: pool.ineligible(excluded),
      decidedBy: ranking.decidedBy,
      lane: lane.key,
      waiting: lane.size,
      waitedMs: Math.max(0, Math.floor(this.#at - task.queuedAt)),
    };
    return fittedReceipt(receipt, this.#nameBytesOf(lane));
  }

  #nameBytesOf(lane: Lane): number {
    const known = this.#nameBytes.get(lane);
    if (known !== undefined) return known;
    const bytes = jsonBytes(lane.key);
    this.#nameBytes.set(lane, bytes);
    return bytes;
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
    this.#agents.assigned(contender, isFull(contender.agent));
  }

  /** Whether somebody may have a task of the lane now, be it as the kind named cheaper. */
  #isOpen(lane: Lane): boolean {
    if (this.#agents.poolOf(lane).isOpen) return true;
    const cheaper = lane.kindRow.settings?.cheaper;
    return cheaper !== undefined && this.#agents.poolFor(cheaper, lane.role).isOpen;
  }

  #poolFor(lane: Lane, runsAs: Kind | undefined): Pool {
    return runsAs === undefined ? this.#agents.poolOf(lane) : this.#agents.poolFor(runsAs, lane.role);
  }
}

const withoutBudget: BudgetVerdict & { readonly kind: "runs" } = { kind: "runs", tokens: 0 };
