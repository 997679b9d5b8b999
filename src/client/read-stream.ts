// An RxJS Observable that is also an async iterable. Each subscriber and each loop reads independently. A loop pulls,
// so a slow loop holds little. A subscriber gets all items as they come.

import { Observable } from "rxjs";
import type { Aborts } from "../abort.ts";
import { UnauthorizedError, UnreachableError } from "../errors.ts";

/** Ends without an error when the connection is closed, and with UnauthorizedError when the server has ended it. */
export class ReadStream<Item> extends Observable<Item> implements AsyncIterable<Item> {
  readonly #reading: Reading<Item>;

  constructor(reading: Reading<Item>) {
    super((subscriber) => {
      const ended = begin(reading);
      const pump = async () => {
        for await (const item of reading.read(ended.signal)) subscriber.next(item);
        requireAuthorized(reading.closed);
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
  [Symbol.asyncIterator](): AsyncIterableIterator<Item> {
    const ended = begin(this.#reading);
    const items = this.#reading.read(ended.signal);
    const iterator: AsyncIterableIterator<Item> = {
      next: async () => {
        try {
          const result = await items.next();
          if (result.done === true) {
            ended.abort();
            requireAuthorized(this.#reading.closed);
          }
          return result;
        } catch (error) {
          ended.abort();
          throw error;
        }
      },
      return: async () => {
        ended.abort();
        return await items.return(undefined);
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }
}

/** The source of a stream. */
export interface Reading<Item> {
  /** Ends without an error when `signal` aborts. */
  read(signal: AbortSignal): AsyncGenerator<Item>;
  /** The reader's own signal. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  readonly aborts: Aborts;
}

/** @throws UnreachableError when the connection is closed already, because a closed connection is no end of a
 *    stream */
function begin({ signal, closed, aborts }: Omit<Reading<unknown>, "read">): AbortController {
  requireAuthorized(closed);
  if (closed.aborted) throw new UnreachableError("The connection to the swarm is closed");
  return aborts.linkedTo(signal, closed);
}

/** @throws UnauthorizedError when the server refuses formerly accepted credentials */
function requireAuthorized({ reason }: AbortSignal): void {
  if (reason instanceof UnauthorizedError) throw reason;
}
