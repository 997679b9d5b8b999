// The return value of `swarm.events()`. A loop over it holds a single page.

import type { JournaledEvent } from "../audit/journaled-event.ts";
import type { BareEvent } from "../state/event.ts";
import { ReadStream } from "./read-stream.ts";

export interface EventsOptions {
  /** Beginning: a batch index, from 1 to the one after the journal's end; a time as a Date or text
   *  (`2026-11-20T18:00:00Z`, or `10m` before now); "start" or "now". Default: "now" with `follow`, else "start". */
  readonly from?: number | Date | string;
  /** Continue with new events. Default false: end at the present. */
  readonly follow?: boolean;
  /** Only events of tasks with this id. Add `project` when several projects have the id. */
  readonly task?: string;
  /** Only events of this agent. */
  readonly agent?: string;
  /** Only events of this project's tasks. */
  readonly project?: string;
  /** Only events of tasks of this kind, and events that name the kind. The kind of a task is known from its
   *  submission, a retry or an assignment on: events before the first of these in the stream are left out. */
  readonly kind?: string;
  /** Only events of tasks whose attributes have these values. The attributes of a task are known from its submission or
   *  a retry on: events before the first of these in the stream are left out. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Keep payloads and results. Default false: `task.payload` and `result` are absent. A result is absent in any case
   *  where its project journals results as hash. */
  readonly contents?: boolean;
  /** Only events of the listed types, at least one: `["TaskAssigned"]`. */
  readonly types?: readonly string[];
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

/** Events of the journal in order, each once. Ends without an error when the connection is closed. Errors with
 *  UnauthorizedError when the server refuses credentials that it accepted before. Errors with InvalidMessageError when
 *  `from` is a batch beyond the journal's end. Errors with NoLeaderError or UnreachableError when the journal cannot be
 *  read, and with JournalDamagedError or LossError when the journal is inconsistent. */
export class EventStream<Of extends BareEvent = BareEvent> extends ReadStream<JournaledEvent<Of>> {}
