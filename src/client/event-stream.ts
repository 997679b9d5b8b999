// The return value of `swarm.events()`: an RxJS Observable that is also an async iterable. Each subscriber and
// each loop reads independently. A loop pulls pages, so a slow loop holds a single page. A subscriber gets all
// events as they come.

import { Observable } from "rxjs";
import type { Aborts } from "../abort.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { UnreachableError } from "../errors.ts";
import type { BareEvent } from "../state/event.ts";

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
  /** Keep payloads and results. Default false: `task.payload` and `result` are absent. A result is absent in any case
   *  where its project journals results as hash. */
  readonly contents?: boolean;
  /** Only events of the listed types, at least one: `["TaskAssigned"]`. */
  readonly types?: readonly string[];
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

/** Events of the journal in order, each once. Ends without an error when the connection is closed. Errors with
 *  InvalidMessageError when `from` is a batch beyond the journal's end. Errors with NoLeaderError or UnreachableError
 *  when the journal cannot be read, and with JournalDamagedError or LossError when the journal is inconsistent. */
export class EventStream<Of extends BareEvent = BareEvent>
  extends Observable<JournaledEvent<Of>>
  implements AsyncIterable<JournaledEvent<Of>>
{
  readonly #reading: EventReading<Of>;

  constructor(reading: EventReading<Of>) {
    super((subscriber) => {
      const ended = begin(reading);
      const pump = async () => {
        for await (const event of reading.read(ended.signal)) subscriber.next(event);
      };
      pump().then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
      return () => ended.abort();
    });
    this.#reading = reading;
  }

  /** Breaking out of the loop ends the reading. */
  [Symbol.asyncIterator](): AsyncIterableIterator<JournaledEvent<Of>> {
    const ended = begin(this.#reading);
    const events = this.#reading.read(ended.signal);
    const iterator: AsyncIterableIterator<JournaledEvent<Of>> = {
      next: async () => {
        try {
          const result = await events.next();
          if (result.done === true) ended.abort();
          return result;
        } catch (error) {
          ended.abort();
          throw error;
        }
      },
      return: async () => {
        ended.abort();
        return await events.return(undefined);
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }
}

/** The source of a stream. */
export interface EventReading<Of extends BareEvent> {
  /** Ends without an error when `signal` aborts. */
  read(signal: AbortSignal): AsyncGenerator<JournaledEvent<Of>>;
  /** The reader's own signal. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  readonly aborts: Aborts;
}

/** @throws UnreachableError when the connection is closed already, because a closed connection is no end of a
 *    stream */
function begin({ signal, closed, aborts }: Omit<EventReading<BareEvent>, "read">): AbortController {
  if (closed.aborted) throw new UnreachableError("The connection to the swarm is closed");
  return aborts.linkedTo(signal, closed);
}
