// Runs a workload in virtual time: tasks arrive, agents work, a dispatcher decides. At equal times the order is
// ends, deaths, joins, arrivals, then one planning. All events are logged; figures.ts computes figures from the
// log. An agent keeps assignments above its capacity in its own queue, first in, first out (early binding).

import { IndexedHeap } from "../../state/indexed-heap.ts";
import type { Assignment, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";

/** The planned course of an attempt. @property ms ≥ 1, whole */
export interface AttemptPlan {
  readonly ms: number;
  readonly succeeds: boolean;
  /** Tokens used, in scenarios with tokens. */
  readonly tokens?: number;
}

/** The death of an agent with its running attempts. */
export interface Death {
  readonly at: number;
  readonly agent: SimAgent;
}

export interface Workload {
  readonly agents: readonly SimAgent[];
  /** In order of arrival; `index` is the position. */
  readonly tasks: readonly SimTask[];
  readonly attemptsMax: number;
  /** End of the run, ms; absent: until every task has ended or nothing can happen any more. */
  readonly untilMs?: number;
  /** In order of time. */
  readonly deaths?: readonly Death[];
  /** @param attempt from 1 */
  attemptOf(assignment: Assignment, attempt: number, at: number): AttemptPlan;
}

/** An attempt that ran. */
export interface AttemptLog {
  readonly task: SimTask;
  readonly agent: SimAgent;
  readonly startedAt: number;
  readonly endsAt: number;
  readonly succeeds: boolean;
}

export interface TaskLog {
  readonly task: SimTask;
  /** When the first attempt began to run; undefined if none began. */
  startedAt: number | undefined;
  /** When the task succeeded or its last attempt failed; undefined while live. */
  endedAt: number | undefined;
  succeeded: boolean;
  attempts: number;
}

export interface Log {
  readonly tasks: readonly TaskLog[];
  /** In order of their beginning, including attempts that run at the end. */
  readonly attempts: readonly AttemptLog[];
  readonly assignments: number;
  /** Assignments to an agent without free capacity. */
  readonly assignmentsAbove: number;
  /** Attempts that died with their agent. */
  readonly lost: number;
  readonly endedAt: number;
}

interface RunningAttempt extends AttemptLog {
  heapAt: number;
  readonly order: number;
  readonly tokens: number | undefined;
}

interface AgentSlots {
  running: number;
  readonly queue: SimTask[];
}

/** Runs a workload to its end under one dispatcher. */
export function runTasks(workload: Workload, dispatcher: Dispatcher): Log {
  return new TaskRun(workload, dispatcher).run();
}

class TaskRun {
  readonly #workload: Workload;
  readonly #dispatcher: Dispatcher;
  readonly #tasks: TaskLog[];
  readonly #loads: AgentSlots[];
  readonly #attempts: RunningAttempt[] = [];
  readonly #running = new IndexedHeap<RunningAttempt>(endsEarlier);
  /** Agents that have not joined yet, in order of joining. */
  readonly #joining: SimAgent[];
  #arrived = 0;
  #died = 0;
  #ended = 0;
  #assignments = 0;
  #assignmentsAbove = 0;
  #lost = 0;
  #at = 0;

  constructor(workload: Workload, dispatcher: Dispatcher) {
    this.#workload = workload;
    this.#dispatcher = dispatcher;
    this.#tasks = workload.tasks.map((task) => ({
      task,
      startedAt: undefined,
      endedAt: undefined,
      succeeded: false,
      attempts: 0,
    }));
    this.#loads = workload.agents.map(() => ({ running: 0, queue: [] }));
    this.#joining = workload.agents
      .filter(({ joinsAt }) => joinsAt !== undefined)
      .sort((a, b) => (a.joinsAt ?? 0) - (b.joinsAt ?? 0));
  }

  run(): Log {
    const { untilMs = Number.POSITIVE_INFINITY } = this.#workload;
    for (let next = this.#nextAt(); next < untilMs; next = this.#nextAt()) this.#instant(next);
    return {
      tasks: this.#tasks,
      attempts: this.#attempts,
      assignments: this.#assignments,
      assignmentsAbove: this.#assignmentsAbove,
      lost: this.#lost,
      endedAt: this.#at,
    };
  }

  /** Infinity when nothing can happen any more. */
  #nextAt(): number {
    const { tasks } = this.#workload;
    if (this.#ended === tasks.length) return Number.POSITIVE_INFINITY;
    return Math.min(
      this.#running.peek()?.endsAt ?? Number.POSITIVE_INFINITY,
      tasks[this.#arrived]?.arrivesAt ?? Number.POSITIVE_INFINITY,
      this.#workload.deaths?.[this.#died]?.at ?? Number.POSITIVE_INFINITY,
      this.#joining[0]?.joinsAt ?? Number.POSITIVE_INFINITY,
      this.#dispatcher.dueAt() ?? Number.POSITIVE_INFINITY,
    );
  }

  #instant(at: number): void {
    this.#at = at;
    for (let next = this.#running.peek(); next !== undefined && next.endsAt <= at; ) {
      this.#running.remove(next);
      this.#end(next);
      next = this.#running.peek();
    }
    const { tasks, deaths = [] } = this.#workload;
    for (let death = deaths[this.#died]; death !== undefined && death.at <= at; ) {
      this.#die(death.agent);
      this.#died += 1;
      death = deaths[this.#died];
    }
    for (let agent = this.#joining[0]; agent?.joinsAt !== undefined && agent.joinsAt <= at; ) {
      this.#dispatcher.joined?.(agent, at);
      this.#joining.shift();
      agent = this.#joining[0];
    }
    for (let task = tasks[this.#arrived]; task !== undefined && task.arrivesAt <= at; ) {
      this.#dispatcher.submitted(task, at);
      this.#arrived += 1;
      task = tasks[this.#arrived];
    }
    for (const assignment of this.#dispatcher.plan(at)) this.#assign(assignment);
  }

  #end(attempt: RunningAttempt): void {
    const { task, agent, succeeds, tokens } = attempt;
    this.#close(task, succeeds);
    this.#dispatcher.ended({ task, agent, succeeds, ...(tokens === undefined ? {} : { tokens }) }, this.#at);
    const load = this.#loads[agent.index] as AgentSlots;
    load.running -= 1;
    const next = load.queue.shift();
    if (next !== undefined) this.#begin({ task: next, agent });
  }

  #close({ index }: SimTask, succeeded: boolean): void {
    const log = this.#tasks[index] as TaskLog;
    if (!succeeded && log.attempts < this.#workload.attemptsMax) return;
    log.endedAt = this.#at;
    log.succeeded = succeeded;
    this.#ended += 1;
  }

  #die(agent: SimAgent): void {
    const lost = this.#attempts.filter((attempt) => attempt.agent === agent && attempt.heapAt !== -1);
    for (const attempt of lost) {
      this.#running.remove(attempt);
      this.#close(attempt.task, false);
    }
    this.#lost += lost.length;
    this.#dispatcher.died?.(agent, this.#at);
  }

  #assign(assignment: Assignment): void {
    const { agent, task } = assignment;
    const load = this.#loads[agent.index] as AgentSlots;
    this.#assignments += 1;
    if (load.running < agent.maxConcurrent) return this.#begin(assignment);
    this.#assignmentsAbove += 1;
    load.queue.push(task);
  }

  #begin(assignment: Assignment): void {
    const { task, agent } = assignment;
    const log = this.#tasks[task.index] as TaskLog;
    log.attempts += 1;
    log.startedAt ??= this.#at;
    (this.#loads[agent.index] as AgentSlots).running += 1;
    const { ms, succeeds, tokens } = this.#workload.attemptOf(assignment, log.attempts, this.#at);
    const attempt: RunningAttempt = {
      task,
      agent,
      startedAt: this.#at,
      endsAt: this.#at + Math.max(1, Math.round(ms)),
      succeeds,
      heapAt: -1,
      order: this.#attempts.length,
      tokens,
    };
    this.#attempts.push(attempt);
    this.#running.push(attempt);
  }
}

function endsEarlier(a: RunningAttempt, b: RunningAttempt): boolean {
  return a.endsAt !== b.endsAt ? a.endsAt < b.endsAt : a.order < b.order;
}
