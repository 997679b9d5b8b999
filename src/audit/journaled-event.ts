// An event with its place in the journal: what every reader of the record works on.

import type { Event } from "../state/event.ts";

export interface JournaledEvent {
  /** Of the batch that holds it; several events share one. */
  readonly idx: number;
  /** Of the leader that wrote the batch. */
  readonly term: number;
  /** Journal time, ms since the Unix epoch. */
  readonly at: number;
  readonly event: Event;
}
