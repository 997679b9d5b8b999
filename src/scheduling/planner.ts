// Assigns: which of the waiting tasks goes to which agent, until nothing more fits. Joins the rules that stand
// beside it: turn-order.ts (whose turn), gates.ts (what is closed), eligibility.ts and pool.ts (who may, and who is
// best). Returns events; the caller applies each before it asks for the next. docs/scheduling.md is the rule.
//
// It changes nothing of the state that a decision could depend on. But while a round is open it borrows the queues:
// who is out stands in none of them until `close`, and their heaps are mended where they are looked at. What they
// answer follows from the journal; how they are laid out, from who has looked.
//
// A planner belongs to one state and is kept from turn to turn, so that a round costs what changed since the last.
// It follows from the state: one made anew decides the same.

import { assert } from "../assert.ts";
import type { AgentId, AssignmentNumber, AttemptNumber, Instant, Kind, Token } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "../state/event.ts";
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

/** Keeps what rounds have in common. */
export class Planner {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;

  constructor(state: SwarmState) {
    this.#state = state;
    this.#agents = new AgentIndex(state);
  }

  /** Something of the agent's row changed, by anything but an assignment of a round from here. Must be called after
   *  each change. */
  touch(agent: AgentId): void {
    this.#agents.touch(agent);
  }

  /** Begins a round. Nothing but its assignments may change the state until it is closed.
   *  @param at the instant of the assignments; no instant in the state is later */
  open(at: Instant): Round {
    return new Round(this.#state, this.#agents, at);
  }
}

/** A task, whether and as what it may run as far as budgets go, and who may have it. */
interface Offer {
  readonly task: TaskRow;
  readonly partition: TaskPartition;
  readonly verdict: BudgetVerdict;
  readonly pool: Pool;
  readonly excluded: readonly AgentId[];
  /** Without candidates when nobody may. */
  readonly ranking: Ranking;
}

/** What a budget makes of a task; each absent where it stays as it is. */
interface Cheaper {
  readonly runsAs?: Kind | undefined;
  readonly cheaperType?: string | undefined;
}

/** Assigns what can be assigned at one instant. */
export class Round {
  readonly #state: SwarmState;
  readonly #agents: AgentIndex;
  readonly #at: Instant;
  readonly #turns: TurnOrder | undefined;
  readonly #nameBytes = new Map<TaskQueue, number>();
  /** What `next` returned last, until it is known to be applied. */
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
      this.#granted += 1;
      return this.#assigned(next, placed);
    }
    this.close();
    return undefined;
  }

  /** Whether another round may find more to assign: what this one granted may have used up a budget, so that what
   *  found no agent as its own kind is to run as the cheaper one, or is asked of the agents of a cheaper type alone,
   *  among whom nobody else is there to be preferred. */
  get mayLeaveMore(): boolean {
    const { policy, budgetedProjects, projectById } = this.#state;
    if (this.#granted === 0) return false;
    if (policy.budget?.mode === "downgrade") return true;
    for (const id of budgetedProjects) {
      if (projectById.get(id)?.settings?.budget?.mode === "downgrade") return true;
    }
    return false;
  }

  /** Ends the round before it has ended by itself. */
  close(): void {
    this.#settle();
    if (!this.#isClosed) this.#turns?.close();
    this.#isClosed = true;
  }

  /** Finds an agent for whose turn it is, or takes out of the round what cannot be placed. */
  #place(turns: TurnOrder, next: Next): Offer | undefined {
    const { project } = next;
    if (projectGate(project.row) !== undefined) turns.excludeProject(project.row);
    else if (isBudgeted(this.#state, project.row)) return this.#placeWithin(turns, next);
    else return this.#placeFreely(turns, next);
    return undefined;
  }

  #placeFreely(turns: TurnOrder, next: Next): Offer | undefined {
    const offer = this.#offer(next.queue, next.task);
    if (offer.ranking.candidates.length > 0) return offer;
    if (offer.excluded.length > 0 && offer.pool.isOpen) turns.excludePartition(offer.partition);
    else if (this.#isOpen(next.queue)) turns.excludeUser(next);
    else turns.excludeQueue(next);
    return undefined;
  }

  /** Under a budget: the first of the user's tasks that fits it and that somebody may have. */
  #placeWithin(turns: TurnOrder, next: Next): Offer | undefined {
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
      // Room is kept for it: nothing that draws on the same budget passes.
      if (offer.verdict.reason === "global-budget") this.close();
      else turns.excludeProject(next.project.row);
      return undefined;
    }
    turns.excludeUser(next);
    return undefined;
  }

  /** Whether all tasks of the offered one's queue find the same agents full: no budget may make some of them
   *  cheaper. */
  #isOutAsOne({ ranking, excluded, pool }: Offer, queue: TaskQueue): boolean {
    if (ranking.candidates.length > 0 || excluded.length === 0 || !pool.isOpen) return false;
    return !hasCheaper(queue) || !this.#mayDowngrade(queue);
  }

  /** Of a queued task of an open queue. */
  #isTakeable(task: TaskRow): boolean {
    if (task.failedBy.length === 0 && !isBudgeted(this.#state, task.projectRow)) return true;
    return this.#offer(queueOf(task) as TaskQueue, task).ranking.candidates.length > 0;
  }

  #offer(queue: TaskQueue, task: TaskRow): Offer {
    const partition = task.partition as TaskPartition;
    const verdict = this.#verdictOn(task);
    const pool = this.#poolFor(queue, verdict);
    const excluded = pool.excludedByFailure(task.failedBy);
    const ranking = pool.rank(excluded, task.failures + 1 >= task.spec.maxAttempts);
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
    event.tokensReserved = verdict.tokens;
    if (verdict.runsAs !== undefined) event.runsAs = verdict.runsAs;
    if (verdict.cheaperType !== undefined) event.cheaperType = verdict.cheaperType;
    return event;
  }

  #receiptOf({ queue, bases }: Next, { task, verdict, pool, excluded, ranking }: Offer): Receipt {
    // Not by spreading: an object literal that begins with one costs a hundred times as much.
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

  /** Takes note of what the last assignment changed. */
  #settle(): void {
    if (this.#pending === undefined) return;
    const { task, contender } = this.#pending;
    assert(task.state !== "queued", "an assignment is applied before the next is asked for");
    this.#pending = undefined;
    this.#agents.assigned(contender, isFull(contender.agent));
  }

  /** Whether somebody may have a task of the queue now, be it, under a budget that says so, as what is named
   *  cheaper. */
  #isOpen(queue: TaskQueue): boolean {
    if (this.#agents.poolOf(queue).isOpen) return true;
    if (!hasCheaper(queue) || !this.#mayDowngrade(queue)) return false;
    const { cheaper: runsAs, cheaperType } = kindSettingsOf(queue.kindRow);
    return this.#poolOfCheaper(queue, { runsAs, cheaperType }).isOpen;
  }

  #mayDowngrade(queue: TaskQueue): boolean {
    if (this.#state.policy.budget?.mode === "downgrade") return true;
    for (const id of this.#state.budgetedProjects) {
      if (queue.memberByProject.get(id)?.row.settings?.budget?.mode === "downgrade") return true;
    }
    return false;
  }

  #poolFor(queue: TaskQueue, verdict: BudgetVerdict): Pool {
    const isCheaper = verdict.runsAs !== undefined || verdict.cheaperType !== undefined;
    if (!isCheaper || verdict.kind === "waits") return this.#agents.poolOf(queue);
    return this.#poolOfCheaper(queue, verdict);
  }

  #poolOfCheaper({ kind, role }: TaskQueue, { runsAs = kind, cheaperType }: Cheaper): Pool {
    return this.#agents.poolFor({ kind: runsAs, role, agentType: cheaperType });
  }
}

/** Whether something stands in for the queue's kind where a budget in mode `downgrade` is used up. */
function hasCheaper({ kindRow: { settings } }: TaskQueue): boolean {
  return settings !== undefined && (settings.cheaper !== undefined || settings.cheaperType !== undefined);
}

const withoutBudget: BudgetVerdict & { readonly kind: "runs" } = { kind: "runs", tokens: 0 };
