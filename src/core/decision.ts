// The value of every decision: events to journal, and the reply.

import type { Event } from "../state/event.ts";
import type { Reply } from "./command.ts";

export interface Decision {
  readonly events: readonly Event[];
  readonly reply: Reply;
}

/** A decision that changes nothing. */
export function answered(reply: Reply): Decision {
  return { events: [], reply };
}
