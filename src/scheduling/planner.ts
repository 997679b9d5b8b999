// Assigns waiting tasks to agents, until nothing more fits. Joins the rules beside it: turn-order.ts (whose turn),
// gates.ts (closed gates), eligibility.ts and pool.ts (eligible agents and the best of them). Returns events; the
// caller applies each before asking for the next. docs/scheduling.md is the rule.
//
// The planner changes nothing that a decision could depend on. But an open round borrows the state's queues. Excluded
// members stand in no queue until `close`, and heaps are mended where they are read. A queue's answers follow from the
// journal; its layout depends on earlier reads.
//
// A planner belongs to one state and is kept from turn to turn, so that a round costs what changed since the last. It
// is derived from the state: a new planner decides the same.

import { assert } from "../assert.ts";
import type { AgentId, AssignmentNumber, AttemptNumber, Instant, Kind, Token } from "../ids.ts";
import { limits } from "../limits.ts";
import { preferredAgent } from "../state/affinity-rows.ts";
import type { EventOf } from "../state/event.ts";
import type { Access } from "../state/grant.ts";
import { queueOf } from "../state/queues.ts";
import type { Receipt } from "../state/receipt.ts";
import {
  kindSettingsOf,
  type SwarmState,
  type TaskPartition,
  type TaskQueue,
  type TaskRow,
} from "../state/state.ts";
import type { Writable } from "../state/writable.ts";
import { AgentIndex } from "./agent-index.ts";
import type { Contender } from "./candidate.ts";
import { isFull } from "./eligibility.ts";
import { fittedReceipt, jsonBytes } from "./fitted-receipt.ts";
import { type BudgetVerdict, budgetVerdict, isBudgeted, projectGate, swarmGate } from "./gates.ts";
import type { Pool, Ranking } from "./pool.ts";
import { type Next, TurnOrder } from "./turn-order.ts";

/** Keeps the data that rounds share. */
export class Planner {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;

  constructor(state: SwarmState) {
    this.#state = state;
    this.#agents = new AgentIndex(state);
  }

  /**
   * Notes a change of the agent's row, except by an assignment of this planner's round. Must be called after each
   * change.
   */
  touch(agent: AgentId): void {
    this.#agents.touch(agent);
  }

  /**
   * Begins a round. Only its assignments may change the state until the round is closed.
   * @param at the instant of the assignments; no instant in the state is later
   */
  open(at: Instant): Round {
    return new Round(this.#state, this.#agents, at);
  }
}

/** A task, its budget verdict, and the agents that may have it. */
interface Offer {
  readonly task: TaskRow;
  readonly partition: TaskPartition;
  readonly verdict: BudgetVerdict;
  readonly pool: Pool;
  readonly excluded: readonly AgentId[];
  /** Without candidates when no agent may have the task. */
  readonly ranking: Ranking;
}

/** The downgrade of a task by a budget or a hold; absent fields stay unchanged. */
interface Cheaper {
  readonly runsAs?: Kind | undefined;
  readonly cheaperType?: string | undefined;
}

/** Assigns all assignable tasks at one instant. */
export class Round {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;
  readonly #at: Instant;
  readonly #turns: TurnOrder | undefined;
  readonly #nameBytes = new Map<TaskQueue, number>();
  /** The last result of `next`, until its application is known. */
  #pending: { readonly task: TaskRow; readonly contender: Contender } | undefined;
  #isClosed = false;
  #granted = 0;

  constructor(state: SwarmState, agents: AgentIndex, at: Instant) {
    this.#state = state;
    this.#agents = agents;
    this.#at = at;
    if (state.queueByKey.size === 0 || swarmGate(state) !== undefined) return;
    agents.begin(at);
    const queues = [...state.queueByKey.values()].filter((queue) => this.#isOpen(queue));
    if (queues.length > 0) this.#turns = new TurnOrder(state, at, queues, (task) => this.#isTakeable(task));
  }

  /**
   * The next assignment, or undefined when no queued task has a willing agent; the round is then closed. The caller
   * must apply the event to the state before the next call.
   *
   * @throws InvariantError when the last event was not applied
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
      this.#granted += 1;
      return this.#assigned(next, placed);
    }
    this.close();
    return undefined;
  }

  /**
   * Whether another round may find more to assign. A grant of this round may have used up a budget in mode `downgrade`.
   * A task that found no agent as its own kind may then run as the cheaper kind, or at agents of the cheaper type.
   * Among agents of the cheaper type, failures of the task exclude no agent if all of them failed it.
   */
  get mayLeaveMore(): boolean {
    const { policy, budgetedProjects, projectById } = this.#state;
    if (this.#granted === 0) return false;
    if (policy.budget?.mode === "downgrade") return true;
    for (const id of budgetedProjects) {
      if (projectById.get(id)?.settings?.budget?.mode === "downgrade") return true;
    }
    return false;
  }

  /** Ends the round without the last assignment, which was not applied. */
  abandon(): void {
    this.#pending = undefined;
    this.close();
  }

  /** Ends the round early. */
  close(): void {
    this.#settle();
    if (!this.#isClosed) this.#turns?.close();
    this.#isClosed = true;
  }

  /**
   * Finds an agent for the task whose turn is next, or excludes a task, user, project or queue that cannot be placed.
   */
  #place(turns: TurnOrder, next: Next): Offer | undefined {
    const { project } = next;
    if (projectGate(project.row) !== undefined) turns.excludeProject(project.row);
    else if (isBudgeted(this.#state, project.row)) return this.#assignWithinBudgets(turns, next);
    else return this.#assignFreely(turns, next);
    return undefined;
  }

  #assignFreely(turns: TurnOrder, next: Next): Offer | undefined {
    const offer = this.#offer(next.queue, next.task);
    if (offer.ranking.candidates.length > 0) return offer;
    if (offer.excluded.length > 0 && offer.pool.isOpen) turns.excludePartition(offer.partition);
    else if (offer.pool.access !== undefined) turns.excludeProjectHere(next);
    else if (this.#isOpen(next.queue)) turns.excludeUser(next);
    else turns.excludeQueue(next);
    return undefined;
  }

  /** Under a budget: the first of the user's tasks that fits and has a willing agent. */
  #assignWithinBudgets(turns: TurnOrder, next: Next): Offer | undefined {
    const first = this.#offer(next.queue, next.task);
    if (first.ranking.candidates.length > 0 && first.verdict.kind === "runs") return first;
    if (this.#isOutAsOne(first, next.queue)) {
      turns.excludePartition(first.partition);
      return undefined;
    }
    const { late, others } = turns.tasksOf(next, limits.budgetLookAhead);
    const isDue = next.bases.project === "starvation-limit" || next.bases.user === "starvation-limit";
    for (const task of [...late, ...others]) {
      const offer = this.#offer(next.queue, task);
      if (offer.ranking.candidates.length === 0) continue;
      if (offer.verdict.kind === "runs") return offer;
      if (!isDue && !late.includes(task)) continue;
      // Room is kept for this task: no task with the same budget passes it.
      if (offer.verdict.reason === "global-budget") this.close();
      else turns.excludeProject(next.project.row);
      return undefined;
    }
    turns.excludeUser(next);
    return undefined;
  }

  /**
   * Whether the offered task's whole partition finds the same agents full, because no budget may downgrade some of its
   * tasks.
   */
  #isOutAsOne({ ranking, excluded, pool }: Offer, queue: TaskQueue): boolean {
    if (ranking.candidates.length > 0 || excluded.length === 0 || !pool.isOpen) return false;
    return !hasCheaper(queue) || !this.#mayDowngrade(queue);
  }

  /** Whether a queued task of an open queue has candidates. */
  #isTakeable(task: TaskRow): boolean {
    const isOfAnyGroup = this.#state.grants.accesses === 0;
    if (task.failedBy.length === 0 && isOfAnyGroup && !isBudgeted(this.#state, task.projectRow)) return true;
    return this.#offer(queueOf(task) as TaskQueue, task).ranking.candidates.length > 0;
  }

  /** As the cheaper kind where all agents of the own kind are on hold, and none is due to probe. */
  #offer(queue: TaskQueue, task: TaskRow): Offer {
    const own = this.#offerAs(queue, task, this.#verdictOn(task));
    if (own.ranking.candidates.length > 0 || !hasCheaperKind(queue) || !own.pool.isOnHold) return own;
    const verdict = budgetVerdict(this.#state, task.projectRow, task.spec, this.#at, true);
    const cheaper = this.#offerAs(queue, task, verdict);
    return cheaper.ranking.candidates.length > 0 || !own.pool.isOpen ? cheaper : own;
  }

  #offerAs(queue: TaskQueue, task: TaskRow, verdict: BudgetVerdict): Offer {
    const partition = task.partition as TaskPartition;
    const pool = this.#poolFor(queue, verdict, this.#state.grants.accessOf(task.spec.project));
    const excluded = pool.excludedByFailure(task.failedBy);
    const { affinity } = task.spec;
    const isLastAttempt = task.failures + 1 >= task.spec.maxAttempts;
    const ranking =
      affinity === undefined
        ? pool.rank(excluded, isLastAttempt)
        : pool.rank(excluded, isLastAttempt, preferredAgent(this.#state, task.spec, this.#at));
    return { task, partition, verdict, pool, excluded, ranking };
  }

  #verdictOn({ spec, projectRow }: TaskRow): BudgetVerdict {
    if (!isBudgeted(this.#state, projectRow)) return withoutBudget;
    return budgetVerdict(this.#state, projectRow, spec, this.#at);
  }

  #assigned(next: Next, offer: Offer): EventOf<"TaskAssigned"> {
    const { task, verdict, ranking } = offer;
    assert(verdict.kind === "runs", "what is assigned fits its budgets");
    const { contender } = ranking.candidates[0] as Ranking["candidates"][number];
    this.#pending = { task, contender };
    const { agent } = contender;
    const number = agent.lastNumber + 1;
    const event: Writable<EventOf<"TaskAssigned">> = {
      type: "TaskAssigned",
      project: task.spec.project,
      task: task.spec.id,
      attempt: (task.attempt + 1) as AttemptNumber,
      agent: agent.id,
      incarnation: agent.incarnation,
      number: number as AssignmentNumber,
      token: `${this.#state.term}.${number}` as Token,
      receipt: this.#receiptOf(next, offer),
    };
    if (verdict === withoutBudget) return event;
    if (isBudgeted(this.#state, task.projectRow)) event.tokensReserved = verdict.tokens;
    if (verdict.runsAs !== undefined) event.runsAs = verdict.runsAs;
    if (verdict.cheaperType !== undefined) event.cheaperType = verdict.cheaperType;
    return event;
  }

  #receiptOf({ queue, bases }: Next, { task, verdict, pool, excluded, ranking }: Offer): Receipt {
    // Not by spreading: an object literal that begins with a spread costs a hundred times as much.
    const receipt: Writable<Receipt> = {
      feasible: ranking.feasible,
      candidates: ranking.candidates.map((candidate) => candidate.terms),
      ineligible: pool.ineligible(excluded),
      decidedBy: ranking.decidedBy,
      queue: queue.key,
      waiting: queue.size,
      waitedMs: Math.max(0, Math.floor(this.#at - task.queuedAt)),
    };
    if (bases.project !== "rule" || bases.user !== "rule") receipt.turn = bases;
    if (verdict.budget !== undefined) receipt.budget = verdict.budget;
    return fittedReceipt(receipt, this.#nameBytesOf(queue));
  }

  #nameBytesOf(queue: TaskQueue): number {
    const known = this.#nameBytes.get(queue);
    if (known !== undefined) return known;
    const bytes = jsonBytes(queue.key);
    this.#nameBytes.set(queue, bytes);
    return bytes;
  }

  /** Notes the last assignment, now applied. */
  #settle(): void {
    if (this.#pending === undefined) return;
    const { task, contender } = this.#pending;
    assert(task.state !== "queued", "an assignment is applied before the next is asked for");
    this.#pending = undefined;
    this.#agents.assigned(contender, isFull(contender.agent));
  }

  /** Whether some agent may have a task of the queue now, possibly downgraded by a budget or a hold. */
  #isOpen(queue: TaskQueue): boolean {
    const isDowngraded = hasCheaper(queue) && this.#mayDowngrade(queue);
    for (const access of this.#accessesIn(queue)) {
      const own = this.#poolOfAccess(queue, access);
      if (own.isOpen) return true;
      if (!isDowngraded && !(hasCheaperKind(queue) && own.isOnHold)) continue;
      const { cheaper: runsAs, cheaperType } = kindSettingsOf(queue.kindRow);
      if (this.#poolOfCheaper(queue, { runsAs, cheaperType }, access).isOpen) return true;
    }
    return false;
  }

  /** The different sets of groups that may have tasks of the queue; undefined: any group. */
  *#accessesIn(queue: TaskQueue): Generator<Access | undefined> {
    const { grants } = this.#state;
    if (grants.accesses === 0) return yield undefined;
    const seen = new Set<Access>();
    for (const project of queue.memberByProject.keys()) {
      const access = grants.accessOf(project);
      if (access === undefined || seen.has(access)) continue;
      seen.add(access);
      yield access;
    }
  }

  #mayDowngrade(queue: TaskQueue): boolean {
    if (this.#state.policy.budget?.mode === "downgrade") return true;
    for (const id of this.#state.budgetedProjects) {
      if (queue.memberByProject.get(id)?.row.settings?.budget?.mode === "downgrade") return true;
    }
    return false;
  }

  /** A task that waits for one budget may run as the cheaper kind by another. */
  #poolFor(queue: TaskQueue, verdict: BudgetVerdict, access: Access | undefined): Pool {
    const isCheaper = verdict.runsAs !== undefined || verdict.cheaperType !== undefined;
    if (isCheaper) return this.#poolOfCheaper(queue, verdict, access);
    return this.#poolOfAccess(queue, access);
  }

  #poolOfAccess(queue: TaskQueue, access: Access | undefined): Pool {
    if (access === undefined) return this.#agents.poolOf(queue);
    const { kind, role, needs } = queue;
    return this.#agents.poolFor({ kind, role, needs, access });
  }

  #poolOfCheaper(
    { kind, role, needs }: TaskQueue,
    { runsAs = kind, cheaperType }: Cheaper,
    access?: Access,
  ): Pool {
    return this.#agents.poolFor({ kind: runsAs, role, needs, agentType: cheaperType, access });
  }
}

/** Whether the queue's kind has a downgrade for a used-up budget in mode `downgrade`. */
function hasCheaper({ kindRow: { settings } }: TaskQueue): boolean {
  return settings !== undefined && (settings.cheaper !== undefined || settings.cheaperType !== undefined);
}

/** Whether the queue's kind has a kind to run as while its agents are on hold. */
function hasCheaperKind({ kindRow: { settings } }: TaskQueue): boolean {
  return settings?.cheaper !== undefined;
}

const withoutBudget: BudgetVerdict & { readonly kind: "runs" } = { kind: "runs", tokens: 0 };
