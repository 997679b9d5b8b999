// An event with its position in the journal, for all readers of the journal.

import type { BareEvent } from "../state/event.ts";

/** `JournaledEvent<Event>` has its payload. */
export interface JournaledEvent<Of extends BareEvent = BareEvent> {
  /** Index of the event's batch; several events share a batch. */
  readonly idx: number;
  /** Term of the leader that wrote the batch. */
  readonly term: number;
  /** Journal time, ms since the Unix epoch. */
  readonly at: number;
  readonly event: Of;
  /** The event's batch is not as it was written: the batch after names another hash. `waggle verify` tells more. */
  readonly isChanged?: true;
}
