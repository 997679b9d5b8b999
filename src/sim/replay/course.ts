// The course of a swarm, folded from its events: what happened as recorded, and what a replay made of it, by the same
// rules. Holds tasks and attempts as the log of a simulation, so that figures mean the same (policy/figures.ts).

import { type Instant, type TaskRef, taskKey } from "../../ids.ts";
import type { Event, EventOf, TaskSpec } from "../../state/event.ts";
import { refOf } from "../../state/task-rows.ts";
import type { SimAgent, SimTask } from "../policy/dispatcher.ts";
import type { Log, TaskLog } from "../policy/run-tasks.ts";

/** How a task stands at the end. `unfinished`: it has not ended. */
export type Outcome = "completed" | "failed" | "cancelled" | "expired" | "unfinished";

/** A request for slots. Times in ms since 1970. */
export interface SlotRequest {
  readonly agent: string;
  readonly resources: readonly string[];
  readonly requestedAt: number;
  /** Undefined: never granted. */
  grantedAt: number | undefined;
  endedAt: number | undefined;
}

export interface CourseTask extends TaskLog {
  task: SimTask;
  readonly project: string;
  readonly user: string;
  outcome: Outcome;
}

interface CourseAttempt {
  readonly task: SimTask;
  readonly agent: SimAgent;
  readonly startedAt: number;
  endsAt: number;
  succeeds: boolean;
}

export class Course {
  readonly tasks: CourseTask[] = [];
  readonly slotRequests: SlotRequest[] = [];
  /** Tokens that attempts reported. */
  tokens = 0;
  /** Weights of all attempts. */
  cost = 0;
  /** Attempts that ended because the agent left the swarm, or no longer knew the attempt. */
  lost = 0;
  /** Tasks that a bound or a budget refused: only a replay knows them. */
  refused = 0;
  /** When the last task or attempt ended; undefined before the first. */
  lastEndAt: number | undefined;
  readonly #taskByKey = new Map<string, CourseTask>();
  readonly #attempts: CourseAttempt[] = [];
  readonly #openByTask = new Map<string, CourseAttempt>();
  readonly #agentById = new Map<string, SimAgent>();
  readonly #slotByKey = new Map<string, SlotRequest>();

  /** Adds a task that was submitted before the course began. */
  addWaiting(spec: TaskSpec, arrivedAt: Instant): void {
    this.#submit(spec, arrivedAt);
  }

  /** Adds an attempt that was open when the course began. */
  addOpen(ref: TaskRef, agent: string, startedAt: Instant): void {
    this.#start(taskKey(ref), agent, startedAt);
  }

  take(event: Event, at: Instant): void {
    switch (event.type) {
      case "TaskSubmitted":
        return this.#submit(event.task, at);
      case "TaskRetried":
        return this.#reopen(event);
      case "TaskRescheduled":
        return this.#reschedule(event, at);
      case "TaskAssigned":
        return this.#start(taskKey(event), event.agent, at);
      case "TaskCompleted":
        return this.#end(event, "completed", at, event.tokens);
      case "TaskFailed":
      case "TaskDeadLettered":
        if (event.failure.class === "lost") this.lost += 1;
        return this.#end(event, "failed", at, event.tokens);
      case "AttemptFailed":
        if (event.failure.class === "lost") this.lost += 1;
        return this.#close(event, at, event.tokens);
      case "TaskCancelled":
        return this.#end(event, "cancelled", at);
      case "TaskExpired":
        return this.#end(event, "expired", at);
      case "AttemptReleased":
      case "TokensCharged":
        this.tokens += event.tokens ?? 0;
        return;
      case "SlotAwaited":
      case "SlotGranted":
        return this.#slot(event, at);
      case "SlotReleased":
        return this.#endSlot(event.agent, event.handle, at);
      case "SlotWaitEnded":
        for (const handle of event.handles) this.#endSlot(event.agent, handle, at);
        return;
      default:
    }
  }

  /** The log up to now. @param at for attempts that still run */
  log(at: number): Log {
    for (const open of this.#openByTask.values()) open.endsAt = at;
    return {
      tasks: this.tasks.toSorted((a, b) => a.task.arrivesAt - b.task.arrivesAt),
      attempts: this.#attempts,
      assignments: this.#attempts.length,
      assignmentsAbove: 0,
      lost: this.lost,
      endedAt: at,
    };
  }

  get attempts(): number {
    return this.#attempts.length;
  }

  /** A task arrives when it may first run. */
  #submit(spec: TaskSpec, at: number): void {
    const task: SimTask = {
      index: this.tasks.length,
      arrivesAt: Math.max(at, spec.notBefore ?? at),
      user: spec.user,
      project: spec.project,
      kind: spec.kind,
      weight: spec.weight,
      size: spec.weight,
    };
    const row: CourseTask = {
      task,
      project: spec.project,
      user: spec.user,
      startedAt: undefined,
      endedAt: undefined,
      succeeded: false,
      attempts: 0,
      outcome: "unfinished",
    };
    this.tasks.push(row);
    this.#taskByKey.set(taskKey(refOf(spec)), row);
  }

  #reopen({ task }: EventOf<"TaskRetried">): void {
    const row = this.#taskByKey.get(taskKey(refOf(task)));
    if (row === undefined) return;
    row.endedAt = undefined;
    row.outcome = "unfinished";
  }

  /** A waiting task arrives at its new time. */
  #reschedule(event: EventOf<"TaskRescheduled">, at: number): void {
    const row = this.#taskByKey.get(taskKey(event));
    if (row?.startedAt === undefined && row !== undefined)
      row.task = { ...row.task, arrivesAt: Math.max(at, event.notBefore) };
  }

  #start(key: string, agentId: string, at: number): void {
    const row = this.#taskByKey.get(key);
    if (row === undefined) return;
    const attempt: CourseAttempt = {
      task: row.task,
      agent: this.#agent(agentId),
      startedAt: at,
      endsAt: at,
      succeeds: false,
    };
    row.startedAt ??= at;
    row.attempts += 1;
    this.cost += row.task.weight;
    this.#attempts.push(attempt);
    this.#openByTask.set(key, attempt);
  }

  #close(ref: TaskRef, at: number, tokens = 0): void {
    const key = taskKey(ref);
    const open = this.#openByTask.get(key);
    if (open !== undefined) open.endsAt = at;
    this.#openByTask.delete(key);
    this.tokens += tokens;
    this.lastEndAt = at;
  }

  #end(ref: TaskRef, outcome: Outcome, at: number, tokens?: number): void {
    const open = this.#openByTask.get(taskKey(ref));
    if (open !== undefined) open.succeeds = outcome === "completed";
    this.#close(ref, at, tokens);
    const row = this.#taskByKey.get(taskKey(ref));
    if (row === undefined) return;
    row.endedAt = at;
    row.succeeded = outcome === "completed";
    row.outcome = outcome;
  }

  #slot({ agent, handle, resources, type }: EventOf<"SlotAwaited" | "SlotGranted">, at: number): void {
    const key = `${agent} ${handle}`;
    const grantedAt = type === "SlotGranted" ? at : undefined;
    const known = this.#slotByKey.get(key);
    if (known !== undefined) {
      known.grantedAt ??= grantedAt;
      return;
    }
    const request = {
      agent,
      resources: [...new Set(resources)],
      requestedAt: at,
      grantedAt,
      endedAt: undefined,
    };
    this.#slotByKey.set(key, request);
    this.slotRequests.push(request);
  }

  #endSlot(agent: string, handle: string, at: number): void {
    const request = this.#slotByKey.get(`${agent} ${handle}`);
    if (request !== undefined) request.endedAt = at;
  }

  #agent(id: string): SimAgent {
    let agent = this.#agentById.get(id);
    if (agent === undefined) {
      agent = { index: this.#agentById.size, maxConcurrent: 1, kinds: [] };
      this.#agentById.set(id, agent);
    }
    return agent;
  }
}
