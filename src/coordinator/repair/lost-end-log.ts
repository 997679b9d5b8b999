// What is said of a journal that lost its end while somebody holds what is missing (refill.ts), by whoever puts it
// back: the leader, a candidate or a standby.

import type { Logger } from "pino";
import type { JournalDamagedError } from "../../errors.ts";
import type { AppendOutcome } from "../../journal/journal.ts";

export function tellRefilled(logger: Logger, records: number): void {
  logger.error({ records }, "the journal had lost its end: it was put back");
}

/** @param cause why the journal did not take it: what an append came to, or an error */
export function tellKeptOut(logger: Logger, cause: unknown): void {
  if (isFull(cause))
    return logger.error(
      { reason: cause.message },
      "the journal lost its end, and has no room to take it back: give it more, for nothing is purged until the end is back",
    );
  logger.error({ err: cause }, "the journal lost its end, and does not take it back yet");
}

/** The journal lacks nothing, and takes nothing behind its end. */
export function tellRefused(logger: Logger, error: JournalDamagedError): void {
  logger.error({ err: error }, "the journal refuses what is to stand at its end");
}

function isFull(cause: unknown): cause is Extract<AppendOutcome, { kind: "full" }> {
  return typeof cause === "object" && cause !== null && "kind" in cause && cause.kind === "full";
}
