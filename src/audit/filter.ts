// Filters events by task, kind, attributes, agent, project and type, and extracts the task and the agent that an event
// names. Not here: payloads and results (contents.ts).

import { projectOf } from "../core/effect.ts";
import { type TaskRef, taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Attributes, BareEvent, BareTaskSpec } from "../state/event.ts";

/** Every given condition must hold. */
export interface EventFilter {
  readonly project?: string;
  readonly task?: string;
  readonly agent?: string;
  /** Kind of the task, as submitted or as run; of agents, kinds and suspensions the kind that the event names. */
  readonly kind?: string;
  /** Values that the task's attributes must have. */
  readonly attributes?: Attributes;
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

/** A filter over events in the order of the journal. Most events of a task name neither its kind nor its attributes.
 *  So the filter remembers the newest `limits.eventKindsRememberedMax` tasks: their kinds, or those with the wanted
 *  attributes. It learns a kind from the submission, a retry or an assignment, and attributes from the first two. */
export function eventFilter(filter: EventFilter): (event: BareEvent) => boolean {
  const { kind, attributes, ...rest } = filter;
  const kinds = kind === undefined ? undefined : new TaskKinds();
  const marked = attributes === undefined ? undefined : new MarkedTasks(attributes);
  return (event) => {
    // Both learn also from events that other conditions refuse.
    const isOfKind = kinds === undefined || kinds.of(event).includes(kind as string);
    const isMarked = marked === undefined || marked.has(event);
    return isOfKind && isMarked && matches(event, rest);
  };
}

/** Tasks with the wanted attributes. */
class MarkedTasks {
  readonly #wanted: readonly (readonly [name: string, value: string])[];
  readonly #keys = new Set<string>();

  constructor(wanted: Attributes) {
    this.#wanted = Object.entries(wanted);
  }

  /** Whether the event is about such a task. */
  has(event: BareEvent): boolean {
    if (event.type === "TaskSubmitted" || event.type === "TaskRetried") return this.#look(event.task);
    if (!("task" in event) || typeof event.task !== "string") return false;
    return this.#keys.has(taskKey(event as TaskRef));
  }

  #look({ project, id: task, attributes }: BareTaskSpec): boolean {
    const isWanted = this.#wanted.every(([name, value]) => attributes?.[name] === value);
    if (!isWanted) return false;
    this.#keys.add(taskKey({ project, task }));
    const oldest = this.#keys.values().next();
    if (this.#keys.size > limits.eventKindsRememberedMax && oldest.done === false)
      this.#keys.delete(oldest.value);
    return true;
  }
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
        const [own = ""] = event.receipt.queue.split(" "); // the queue's name begins with the kind
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

export function matches(event: BareEvent, filter: Omit<EventFilter, "kind" | "attributes">): boolean {
  if (filter.types !== undefined && !filter.types.includes(event.type)) return false;
  if (filter.project !== undefined && projectOf(event) !== filter.project) return false;
  if (filter.task !== undefined && taskOf(event) !== filter.task) return false;
  return filter.agent === undefined || agentOf(event) === filter.agent;
}
