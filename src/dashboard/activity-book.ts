// What happened lately, folded from events: assignments, attempts, failures, waits and slots, each within a bound. The
// coordinator's status has the present only. Not here: reading the events (event-tap.ts), the views.

import type { JournaledEvent } from "../audit/journaled-event.ts";
import { taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AttemptFailure, BareTaskSpec, EventOf, TaskSpec } from "../state/event.ts";
import { NewestValues } from "./quantiles.ts";
import { Ring } from "./ring.ts";
import { WindowedCounts } from "./windowed-counts.ts";
import type { FailureRow, WaterfallRow } from "./wire.ts";

/** An attempt at an agent, with its terms of the score at the assignment. */
export interface Bar {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  readonly fromAt: number;
  readonly score?: number | undefined;
  readonly load?: number | undefined;
  readonly successRate?: number | undefined;
  toAt?: number;
  ended?: string;
}

export interface ResourceRecord {
  /** Waits of granted requests, ms. */
  readonly waits: NewestValues;
  readonly alphas: Ring<{ readonly at: number; readonly alpha: number }>;
}

type KnownTask = Pick<TaskSpec, "kind" | "user" | "weight">;
type Assignment = WaterfallRow;

export class ActivityBook {
  /** Journal time of the first event; undefined before it. */
  #sinceAt: number | undefined;
  #lastAt = 0;
  readonly assignedByAgent = new WindowedCounts();
  readonly failedByAgent = new WindowedCounts();
  readonly assignedByProject = new WindowedCounts();
  readonly costByProject = new WindowedCounts();
  readonly grantsByResource = new WindowedCounts();
  readonly delayedByResource = new WindowedCounts();
  readonly failures = new Ring<FailureRow>(limits.dashboardFailuresKept);
  readonly assignments = new Ring<Assignment>(limits.dashboardAssignmentsShown);
  readonly #barsByAgent = new Map<string, Ring<Bar>>();
  readonly #waitsByProject = new Map<string, NewestValues>();
  readonly #recordByResource = new Map<string, ResourceRecord>();
  /** By task: the open attempt. */
  readonly #openByTask = new Map<string, Bar>();
  readonly #taskByKey = new Map<string, KnownTask>();

  /** Forgets all: events are missing, so sums would be wrong. */
  clear(): void {
    this.#sinceAt = undefined;
    for (const counts of this.#counts) counts.clear();
    this.failures.clear();
    this.assignments.clear();
    for (const map of [this.#barsByAgent, this.#waitsByProject, this.#recordByResource, this.#openByTask])
      map.clear();
  }

  observe({ event, at, idx }: JournaledEvent): void {
    this.#sinceAt ??= at;
    this.#lastAt = Math.max(this.#lastAt, at);
    switch (event.type) {
      case "TaskSubmitted":
      case "TaskRetried":
        return this.#note(event.task);
      case "TaskAssigned":
        return this.#assigned(event, at);
      case "TaskCompleted":
        return this.#close(event, at, "completed");
      case "TaskCancelled":
        return this.#close(event, at, "cancelled");
      case "TaskExpired":
        return this.#close(event, at, "expired");
      case "AttemptFailed":
        return this.#failed(event, { at, idx, isFinal: false });
      case "TaskFailed":
      case "TaskDeadLettered":
        return this.#failed(event, { at, idx, isFinal: true });
      case "SlotGranted":
        return this.#granted(event, at);
      case "AlphaTuned":
        this.resource(event.resource).alphas.push({ at, alpha: event.to });
        return;
      default:
    }
  }

  /** Forgets what is out of the window. @param now journal time */
  forget(now: number): void {
    for (const counts of this.#counts) counts.forget(now);
  }

  /** Length of the window that the sums cover, ms. */
  windowMs(now: number): number {
    if (this.#sinceAt === undefined) return 0;
    return Math.max(0, Math.min(limits.dashboardWindowMs, Math.max(now, this.#lastAt) - this.#sinceAt));
  }

  barsOf(agent: string): readonly Bar[] {
    return this.#barsByAgent.get(agent)?.newest() ?? [];
  }

  /** Waits of the newest assignments, ms. */
  waitsOf(project: string): readonly number[] {
    return this.#waitsByProject.get(project)?.values ?? [];
  }

  resource(name: string): ResourceRecord {
    return recordIn(this.#recordByResource, name, () => ({
      waits: new NewestValues(limits.dashboardWaitsKept),
      alphas: new Ring(limits.dashboardRowsShown),
    }));
  }

  /** Undefined for a task whose submission was not seen. */
  kindOf(key: string): string | undefined {
    return this.#taskByKey.get(key)?.kind;
  }

  get #counts(): readonly WindowedCounts[] {
    return [
      this.assignedByAgent,
      this.failedByAgent,
      this.assignedByProject,
      this.costByProject,
      this.grantsByResource,
      this.delayedByResource,
    ];
  }

  #note(task: BareTaskSpec): void {
    const { kind, user, weight } = task;
    keep(this.#taskByKey, keyOf(task), { kind, user, weight }, limits.dashboardTasksKept);
  }

  #assigned(event: EventOf<"TaskAssigned">, at: number): void {
    const { project, task, attempt, agent, receipt } = event;
    const known = this.#taskByKey.get(taskKey(event));
    this.assignedByAgent.add(agent, at);
    this.assignedByProject.add(project, at);
    this.costByProject.add(project, at, known?.weight ?? 1);
    recordIn(this.#waitsByProject, project, () => new NewestValues(limits.dashboardWaitsKept)).add(
      receipt.waitedMs,
    );
    const [winner] = receipt.candidates;
    const terms =
      winner === undefined ? {} : { score: winner.score, load: winner.load, successRate: winner.successRate };
    const bar: Bar = { project, task, attempt, fromAt: at, ...terms };
    recordIn(this.#barsByAgent, agent, () => new Ring<Bar>(limits.dashboardAttemptsKept)).push(bar);
    keep(this.#openByTask, taskKey(event), bar, limits.dashboardTasksKept);
    const { turn = { project: "rule", user: "rule" } } = receipt;
    this.assignments.push({
      ...{ at, project, user: known?.user ?? "", task, agent, waitedMs: receipt.waitedMs },
      ...{ projectBy: turn.project, userBy: turn.user },
    });
  }

  #close(event: { readonly project: string; readonly task: string }, at: number, ended: string): void {
    const key = taskKey(event);
    const bar = this.#openByTask.get(key);
    if (bar === undefined) return;
    this.#openByTask.delete(key);
    bar.toAt = at;
    bar.ended = ended;
  }

  #failed(
    event: EventOf<"AttemptFailed" | "TaskFailed" | "TaskDeadLettered">,
    { at, idx, isFinal }: { readonly at: number; readonly idx: number; readonly isFinal: boolean },
  ): void {
    const { project, task, attempt, agent } = event;
    const failure: AttemptFailure = event.failure;
    this.#close(event, at, failure.class);
    this.failedByAgent.add(agent, at);
    const why = { failureClass: failure.class, error: failure.error, isFinal };
    this.failures.push({ at, idx, project, task, attempt, agent, ...why });
  }

  #granted({ resources, receipt }: EventOf<"SlotGranted">, at: number): void {
    for (const resource of new Set<string>(resources)) {
      this.grantsByResource.add(resource, at);
      if (receipt.by !== "free") this.delayedByResource.add(resource, at);
      this.resource(resource).waits.add(receipt.waitedMs);
    }
  }
}

function keyOf({ project, id }: BareTaskSpec): string {
  return taskKey({ project, task: id });
}

/** Adds the newest entry, and drops the oldest above `kept`. */
function keep<Value>(map: Map<string, Value>, key: string, value: Value, kept: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.size > kept ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
}

function recordIn<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  keep(map, key, made, limits.dashboardRecordsKept);
  return made;
}
