// docs/scheduling.md as plainly as possible, without regard for speed: every decision reads every task and every agent,
// and no queues, heaps or counters. The tests compare the real planner with it, event by event. Both share only parts
// with tests of their own: learned values, the load function, the gates, and the shortening of receipts.

import { type AgentId, assignmentNumber, attemptNumber, type Instant, token } from "../../src/ids.ts";
import { fittedReceipt, jsonBytes } from "../../src/scheduling/fitted-receipt.ts";
import { type BudgetVerdict, budgetVerdict } from "../../src/scheduling/gates.ts";
import type { EventOf } from "../../src/state/event.ts";
import type { Policy } from "../../src/state/policy.ts";
import type { Receipt } from "../../src/state/receipt.ts";
import type { OpenAttempt, ProjectRow, SwarmState, TaskRow } from "../../src/state/state.ts";
import { type Demand, decidedBetween, NaiveRanking, type RankedAgent } from "./naive-ranking.ts";
import { compareMemberships, type Membership, NaiveTurns, queueKey } from "./naive-turns.ts";

/** A task that the budgets let through, and how. */
type Fitting = { readonly task: TaskRow } & Extract<BudgetVerdict, { kind: "runs" }>;

export class NaivePlanner {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #policy: Policy;
  readonly #ranking: NaiveRanking;
  readonly #turns: NaiveTurns;
  /** Out of this round, for lack of tokens. */
  readonly #outProjects = new Set<string>();
  readonly #outUsers = new Set<string>();
  readonly #mayBy = new Map<string, boolean>();
  #isOver = false;

  constructor(state: SwarmState, at: Instant) {
    this.#state = state;
    this.#at = at;
    this.#policy = state.policy;
    this.#ranking = new NaiveRanking(state, at, this.#policy);
    this.#turns = new NaiveTurns(state, at, this.#policy, this.#atStart());
  }

  next(): EventOf<"TaskAssigned"> | undefined {
    this.#mayBy.clear();
    for (;;) {
      const [best] = this.#contenders().sort(compareMemberships);
      if (best === undefined) return undefined;
      const fitting = this.#thatFits(best);
      if (fitting !== undefined) return this.#assign(fitting, best);
    }
  }

  /** All candidates for the next turn: one for each user of each project of each open queue. */
  #contenders(): Membership[] {
    if (this.#isOver || this.#state.isPaused || this.#isTopNReached()) return [];
    const inOpenQueues = this.#queued().filter((task) => this.#isQueueOpen(task));
    const outProjects = new Set(
      [...new Set(inOpenQueues.map((task) => task.projectRow))].filter(this.#isOut),
    );
    return this.#turns
      .membershipsOf(inOpenQueues, (task) => this.#isTakeable(task))
      .filter(({ takeable: [first] }) => first !== undefined && !outProjects.has(first.task.projectRow))
      .filter(({ key }) => !this.#outUsers.has(key));
  }

  /** Members of open queues that are not out, at the start of the round: the base of totals and maxima. */
  #atStart(): { open: TaskRow[]; competing: TaskRow[] } {
    const open = this.#queued().filter((task) => this.#isQueueOpen(task));
    return { open, competing: open.filter(({ projectRow }) => !this.#isOut(projectRow)) };
  }

  #queued(): TaskRow[] {
    return [...this.#state.taskById.values()].filter(({ state }) => state === "queued");
  }

  #isTopNReached(): boolean {
    return this.#policy.topN !== undefined && this.#openAttempts().length >= this.#policy.topN;
  }

  readonly #isOut = (row: ProjectRow): boolean => {
    const concurrencyMax = row.settings?.maxConcurrent ?? Number.POSITIVE_INFINITY;
    const open = this.#openAttempts().filter(({ project }) => project === row.project).length;
    return row.isPaused || open >= concurrencyMax || this.#outProjects.has(row.project);
  };

  /** All attempts that occupy capacity: revoked attempts too, until released. */
  #openAttempts(): OpenAttempt[] {
    return [...this.#state.agentById.values()].flatMap(({ open }) => [...open.values()]);
  }

  /**
   * Whether an agent may have a task of this kind and role now, or as the cheaper kind where a waiting project's budget
   * downgrades it.
   */
  #isQueueOpen(task: TaskRow): boolean {
    const { kind, role, needs } = task.spec;
    const inQueue = this.#queued().filter((other) => isSameQueue(other, task));
    const isByBudget = inQueue.some(({ projectRow }) => mayDowngrade(this.#state, projectRow));
    const itsKind = this.#state.kindByName.get(kind)?.settings;
    return [...new Set(inQueue.map(({ spec }) => spec.project))].some((project) => {
      const asItIs = { kind, role, needs, agentType: undefined, failedBy: [], project };
      const isByHold = itsKind?.cheaper !== undefined && this.#ranking.areAllOnHold(asItIs);
      const settings = isByBudget || isByHold ? itsKind : undefined;
      const cheaper = { ...asItIs, kind: settings?.cheaper ?? kind, agentType: settings?.cheaperType };
      return this.#mayAnybodyHave(asItIs) || this.#mayAnybodyHave(cheaper);
    });
  }

  #isTakeable(task: TaskRow): boolean {
    return this.#mayAnybodyHave(demandOf(task, this.#verdictOn(task)));
  }

  /** What the budgets say; or the downgrade, where all agents are on hold and one of the cheaper kind may have the
   *  task. */
  #verdictOn(task: TaskRow): BudgetVerdict {
    const { spec, projectRow } = task;
    const verdict = budgetVerdict(this.#state, projectRow, spec, this.#at);
    const demand = demandOf(task, verdict);
    if (this.#state.kindByName.get(spec.kind)?.settings?.cheaper === undefined) return verdict;
    if (this.#mayAnybodyHave(demand) || !this.#ranking.areAllOnHold(demand)) return verdict;
    const cheaper = budgetVerdict(this.#state, projectRow, spec, this.#at, true);
    return this.#mayAnybodyHave(demandOf(task, cheaper)) ? cheaper : verdict;
  }

  /** Asked for many equal tasks, so the answer is kept until the next decision. */
  #mayAnybodyHave(demand: Demand): boolean {
    const needs = JSON.stringify(demand.needs);
    const key = `${demand.kind} ${demand.role} ${needs} ${demand.agentType} ${demand.project} ${demand.failedBy}`;
    const known = this.#mayBy.get(key) ?? this.#ranking.mayAnybodyHave(demand);
    this.#mayBy.set(key, known);
    return known;
  }

  /** The first of a user's tasks that fits the budgets. If none fits, a member is out of the round. */
  #thatFits({ key, takeable, project, user }: Membership): Fitting | undefined {
    const isDue = project.basis === "starvation-limit" || user.basis === "starvation-limit";
    for (const { task, isPastStarvationLimit } of takeable) {
      const verdict = this.#verdictOn(task);
      if (verdict.kind === "runs") return { task, ...verdict };
      if (!isDue && !isPastStarvationLimit) continue;
      if (verdict.reason === "global-budget") this.#isOver = true;
      else this.#outProjects.add(task.spec.project);
      return undefined;
    }
    this.#outUsers.add(key);
    return undefined;
  }

  /** The agent of the last assignment with the task's affinity, while it is remembered. */
  #preferredAgent({ spec: { project, affinity } }: TaskRow): AgentId | undefined {
    const known = [...this.#state.affinityByKey.values()].find(
      (row) => row.project === project && row.affinity === affinity,
    );
    return known !== undefined && this.#at < known.usedAt + 3_600_000 ? known.agent : undefined;
  }

  #assign(
    { task, runsAs, cheaperType, tokens, budget }: Fitting,
    { project, user }: Membership,
  ): EventOf<"TaskAssigned"> {
    const { spec, failedBy } = task;
    const { role, needs } = spec;
    const { project: of } = spec;
    const kind = runsAs ?? spec.kind;
    const demand = { kind, role, needs, agentType: cheaperType, failedBy, project: of };
    const isLastAttempt = task.failures + 1 >= spec.maxAttempts;
    const { ranked, ineligible, isByAffinity } = this.#ranking.rank(
      demand,
      isLastAttempt,
      this.#preferredAgent(task),
    );
    const isLimited = task.projectRow.settings?.budget !== undefined || this.#policy.budget !== undefined;
    const [winner, second] = ranked as [RankedAgent, RankedAgent | undefined];
    const { agent } = winner;
    const receipt: Receipt = {
      ...(project.basis === "rule" && user.basis === "rule"
        ? {}
        : { turn: { project: project.basis, user: user.basis } }),
      feasible: ranked.length,
      candidates: ranked.slice(0, 3).map(({ terms }) => terms),
      ineligible,
      decidedBy: isByAffinity ? "affinity" : decidedBetween(winner, second, this.#policy.agentRule),
      queue: queueKey(task),
      waiting: this.#queued().filter((other) => isSameQueue(other, task)).length,
      waitedMs: this.#at - task.queuedAt,
      ...(budget === undefined ? {} : { budget }),
    };
    return {
      type: "TaskAssigned",
      project: task.spec.project,
      task: task.spec.id,
      attempt: attemptNumber(task.attempt + 1),
      agent: agent.id,
      incarnation: agent.incarnation,
      number: assignmentNumber(agent.lastNumber + 1),
      token: token(`${this.#state.term}.${agent.lastNumber + 1}`),
      ...(isLimited ? { tokensReserved: tokens } : {}),
      ...(runsAs === undefined ? {} : { runsAs }),
      ...(cheaperType === undefined ? {} : { cheaperType }),
      receipt: fittedReceipt(receipt, jsonBytes(receipt.queue)),
    };
  }
}

function demandOf({ spec, failedBy }: TaskRow, { runsAs, cheaperType }: BudgetVerdict): Demand {
  const { role, needs, project } = spec;
  return { kind: runsAs ?? spec.kind, role, needs, agentType: cheaperType, failedBy, project };
}

/** Whether a budget may downgrade the project's tasks. */
export function mayDowngrade({ policy }: SwarmState, { settings }: ProjectRow): boolean {
  return [policy.budget, settings?.budget].some((budget) => budget?.mode === "downgrade");
}

function isSameQueue(a: TaskRow, b: TaskRow): boolean {
  return queueKey(a) === queueKey(b);
}
