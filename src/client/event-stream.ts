// What `swarm.events()` returns: an RxJS Observable that is also an async iterable. Each subscriber and each
// loop reads on its own. A loop takes pages as it goes, so that a slow one holds one page; a subscriber is
// given everything as it comes.

import { Observable } from "rxjs";
import type { Aborts } from "../abort.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { UnreachableError } from "../errors.ts";

export interface EventsOptions {
  /** Where to begin: a batch index, from 1; a time, as a Date or as text (`2026-11-20T18:00:00Z`, or `10m` before now);
   *  "start", or "now". Default: "now" with `follow`, else "start". */
  readonly from?: number | Date | string;
  /** Go on with what happens from now on. Default false: end at the present. */
  readonly follow?: boolean;
  /** Only events of tasks of this id: name its project, too, where several have one. */
  readonly task?: string;
  /** Only events of this agent. */
  readonly agent?: string;
  /** Only events of this project's tasks. */
  readonly project?: string;
  /** Only events of these types, like `TaskAssigned`; at least one. */
  readonly types?: readonly string[];
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

/** Events of the journal in order, each once. Ends without an error when the connection is closed. Errors with
 *  NoLeaderError or UnreachableError when the journal cannot be read, JournalDamagedError or LossError when it is
 *  not what it should be. */
export class EventStream extends Observable<JournaledEvent> implements AsyncIterable<JournaledEvent> {
  readonly #reading: EventReading;

  constructor(reading: EventReading) {
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
  [Symbol.asyncIterator](): AsyncIterableIterator<JournaledEvent> {
    const ended = begin(this.#reading);
    const events = this.#reading.read(ended.signal);
    const iterator: AsyncIterableIterator<JournaledEvent> = {
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

/** What a stream is made of. */
export interface EventReading {
  /** Ends without an error when `signal` aborts. */
  read(signal: AbortSignal): AsyncGenerator<JournaledEvent>;
  /** The reader's own. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  readonly aborts: Aborts;
}

/** @throws UnreachableError when the connection is closed already: that is no end of a stream */
function begin({ signal, closed, aborts }: EventReading): AbortController {
  if (closed.aborted) throw new UnreachableError("The connection to the swarm is closed");
  return aborts.linkedTo(signal, closed);
}
