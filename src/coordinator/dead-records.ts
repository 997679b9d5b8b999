// What is said of a record that everybody skips. Those that leaders leave behind when they change are part of life;
// one that no coordinator of this journal wrote is an alarm.

import type { Logger } from "pino";
import type { JournalRecord } from "../journal/journal.ts";
import type { DeadReason } from "../journal/replay.ts";

export function tellDead(logger: Logger, { seq }: JournalRecord, reason: DeadReason): void {
  if (reason === "alien" || reason === "other-journal")
    logger.error(
      { seq, reason },
      "a record that is not ours stands in the journal: everybody skips it; find out who may write there",
    );
  else
    logger.warn(
      { seq, reason },
      "a record that a former leader left behind stands in the journal: everybody skips it",
    );
}
