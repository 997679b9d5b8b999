// A step of a task in a sentence, for clients of other protocols that wait for its result.

import type { TaskUpdate } from "../client/task-updates.ts";

/** Undefined for a step that says nothing to a waiting client. */
export function reportOf(update: TaskUpdate): string | undefined {
  switch (update.type) {
    // Not `running`: its event is journaled with the agent's next heartbeat, up to a second later.
    case "assigned":
      return `attempt ${update.attempt} goes to ${update.agent}`;
    case "progress": {
      const { fraction, message } = update;
      const share = fraction === undefined ? undefined : `${Math.round(fraction * 100)} %`;
      return [share, message].filter((part) => part !== undefined).join(" · ") || undefined;
    }
    case "attempt-failed":
      return `attempt ${update.attempt} at ${update.agent} failed: ${update.error}`;
    default:
      return undefined;
  }
}
