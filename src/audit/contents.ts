// Payloads and results of events. An audit of decisions does not need them, and they may be large or confidential.

import type { BareEvent } from "../state/event.ts";

/** The event without `task.payload` and `result`; itself if it has none. */
export function withoutContents(event: BareEvent): BareEvent {
  switch (event.type) {
    case "TaskSubmitted":
    case "TaskRetried": {
      const { payload: _, ...task } = event.task;
      return { ...event, task };
    }
    case "TaskCompleted": {
      const { result: _, ...rest } = event;
      return rest;
    }
    default:
      return event;
  }
}
