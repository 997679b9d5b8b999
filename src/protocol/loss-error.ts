// Something acknowledged is no longer in the journal. It happens when a server loses power with records in
// its page cache, or a file is put back from a backup; Waggle cannot undo it, so it says so.

import { WaggleError } from "../errors.ts";
import type { JournalPoint } from "./journal-point.ts";

/** What was known of the journal, and how much less of it there is now. `taskId` is set when one accepted
 *  task is known to be lost: submit it again, under the same id, if it may run twice. */
export class LossError extends WaggleError {
  readonly known: JournalPoint;
  readonly found: JournalPoint;
  readonly taskId: string | undefined;

  constructor(known: JournalPoint, found: JournalPoint, taskId?: string) {
    const what =
      taskId === undefined ? "The journal lost its end" : `Task ${taskId} was accepted and is lost`;
    super(
      "WAGGLE_JOURNAL_DAMAGED",
      `${what}: it was known up to term ${known.term}, batch ${known.idx}, and the leader now speaks from term ` +
        `${found.term}, batch ${found.idx}. Tasks accepted in between may be gone: submit them again under their ids.`,
    );
    this.known = known;
    this.found = found;
    this.taskId = taskId;
  }
}
