// The value of every decision: events to journal, and the reply.

import type { Event } from "../state/event.ts";
import type { Reply } from "./command.ts";

export interface Decision {
  readonly events: readonly Event[];
  readonly reply: Reply;
  /** The result that the only event, `TaskCompleted`, leaves out: for the clients that await the task. */
  readonly unkeptResult?: string;
  /** Waiting requests for slots are granted only after the last event. The events end several sessions, or grant a slot
   *  lease for which the decision has checked the budgets. */
  readonly grantsLast?: true;
}

/** A decision that changes nothing. */
export function answered(reply: Reply): Decision {
  return { events: [], reply };
}
