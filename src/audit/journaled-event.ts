// An event with its position in the journal, for all readers of the journal.

import type { Event } from "../state/event.ts";

export interface JournaledEvent {
  /** Index of the event's batch; several events share a batch. */
  readonly idx: number;
  /** Term of the leader that wrote the batch. */
  readonly term: number;
  /** Journal time, ms since the Unix epoch. */
  readonly at: number;
  readonly event: Event;
  /** The event's batch is not as it was written: the batch after names another hash. `waggle verify` tells more. */
  readonly isChanged?: true;
}
