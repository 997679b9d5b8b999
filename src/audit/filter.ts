// Filters events by task, kind, agent, project and type, and extracts the task and the agent that an event names. Not
// here: payloads and results (contents.ts).

import { projectOf } from "../core/effect.ts";
import { type TaskRef, taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import type { BareEvent } from "../state/event.ts";

/** Every given condition must hold. */
export interface EventFilter {
  readonly project?: string;
  readonly task?: string;
  readonly agent?: string;
  /** Kind of the task, as submitted or as run; of agents, kinds and suspensions the kind that the event names. */
  readonly kind?: string;
  /** Types of events, like `TaskAssigned`. */
  readonly types?: readonly string[];
}

/** The task of an event, if any. */
export function taskOf(event: BareEvent): string | undefined {
  if (!("task" in event)) return undefined;
  return typeof event.task === "string" ? event.task : event.task.id;
}

/** The agent of an event, if any. */
export function agentOf(event: BareEvent): string | undefined {
  if ("agent" in event) return event.agent;
  return "on" in event && event.on === "agent" ? event.name : undefined;
}

/** A filter over events in the order of the journal. Most events of a task do not name its kind, so the filter
 *  remembers the kinds of the newest `limits.eventKindsRememberedMax` tasks. It learns a kind from the submission, a
 *  retry or an assignment. */
export function eventFilter(filter: EventFilter): (event: BareEvent) => boolean {
  const { kind, ...rest } = filter;
  if (kind === undefined) return (event) => matches(event, rest);
  const kinds = new TaskKinds();
  return (event) => {
    const found = kinds.of(event); // also of events that other conditions refuse
    return found.includes(kind) && matches(event, rest);
  };
}

class TaskKinds {
  readonly #kindsByTask = new Map<string, readonly string[]>();

  /** The kinds that an event is about. */
  of(event: BareEvent): readonly string[] {
    switch (event.type) {
      case "TaskSubmitted":
      case "TaskRetried":
        return this.#remember({ project: event.task.project, task: event.task.id }, [event.task.kind]);
      case "TaskAssigned": {
        const [own = ""] = event.receipt.queue.split(" "); // the queue's name: the kind, and a role if there is one
        return this.#remember(event, event.runsAs === undefined ? [own] : [own, event.runsAs]);
      }
      case "AgentJoined":
        return event.kinds;
      default:
        if ("kind" in event) return [event.kind];
        return "task" in event && typeof event.task === "string"
          ? (this.#kindsByTask.get(taskKey(event as TaskRef)) ?? [])
          : [];
    }
  }

  #remember(ref: TaskRef, kinds: readonly string[]): readonly string[] {
    const key = taskKey(ref);
    this.#kindsByTask.delete(key);
    this.#kindsByTask.set(key, kinds);
    const oldest = this.#kindsByTask.keys().next();
    if (this.#kindsByTask.size > limits.eventKindsRememberedMax && oldest.done === false)
      this.#kindsByTask.delete(oldest.value);
    return kinds;
  }
}

export function matches(event: BareEvent, filter: Omit<EventFilter, "kind">): boolean {
  if (filter.types !== undefined && !filter.types.includes(event.type)) return false;
  if (filter.project !== undefined && projectOf(event) !== filter.project) return false;
  if (filter.task !== undefined && taskOf(event) !== filter.task) return false;
  return filter.agent === undefined || agentOf(event) === filter.agent;
}
