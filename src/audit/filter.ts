// Filters events by task, agent, project and type, and extracts the task and the agent that an event names.

import { projectOf } from "../core/effect.ts";
import type { Event } from "../state/event.ts";

/** Every given condition must hold. */
export interface EventFilter {
  readonly project?: string;
  readonly task?: string;
  readonly agent?: string;
  /** Types of events, like `TaskAssigned`. */
  readonly types?: readonly string[];
}

/** The task of an event, if any. */
export function taskOf(event: Event): string | undefined {
  if (!("task" in event)) return undefined;
  return typeof event.task === "string" ? event.task : event.task.id;
}

/** The agent of an event, if any. */
export function agentOf(event: Event): string | undefined {
  return "agent" in event ? event.agent : undefined;
}

export function matches(event: Event, filter: EventFilter): boolean {
  if (filter.types !== undefined && !filter.types.includes(event.type)) return false;
  if (filter.project !== undefined && projectOf(event) !== filter.project) return false;
  if (filter.task !== undefined && taskOf(event) !== filter.task) return false;
  return filter.agent === undefined || agentOf(event) === filter.agent;
}
