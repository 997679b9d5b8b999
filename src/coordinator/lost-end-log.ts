// What is said of a journal that lost its end while somebody holds what is missing (refill.ts), by whoever puts it
// back: the leader, a candidate or a standby.

import type { Logger } from "pino";

export function tellRefilled(logger: Logger, records: number): void {
  logger.error({ records }, "the journal had lost its end: it was put back");
}

/** @param cause why the journal did not take it */
export function tellKeptOut(logger: Logger, cause: unknown): void {
  logger.error({ err: cause }, "the journal lost its end, and does not take it back yet");
}
