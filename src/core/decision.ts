// The value of every decision: events to journal, and the reply.

import type { Event } from "../state/event.ts";
import type { Reply } from "./command.ts";

export interface Decision {
  readonly events: readonly Event[];
  readonly reply: Reply;
  /** The result that the only event, `TaskCompleted`, leaves out: for the clients that await the task. */
  readonly unkeptResult?: string;
  /** The events end several sessions: slots that one session frees are not granted to another before all have ended. */
  readonly endsSessions?: true;
}

/** A decision that changes nothing. */
export function answered(reply: Reply): Decision {
  return { events: [], reply };
}
