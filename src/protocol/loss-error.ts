// An acknowledged record is no longer in the journal. Causes are a power loss of a server with records in the page
// cache, and a restored backup. Waggle cannot undo the loss, but reports the loss.

import { WaggleError } from "../errors.ts";
import type { JournalPoint } from "./journal-point.ts";

/** The point known before, and the point of the leader now: earlier, or the start of a later term. `taskId` is set if
 *  an accepted task is no longer known: lost, unless it ended longer than `rememberMs` ago. */
export class LossError extends WaggleError {
  readonly known: JournalPoint;
  readonly found: JournalPoint;
  readonly taskId: string | undefined;

  constructor(known: JournalPoint, found: JournalPoint, taskId?: string) {
    super(
      "WAGGLE_JOURNAL_DAMAGED",
      taskId === undefined
        ? `The journal lost records at its end: it had reached ${pointText(known)}, and the leader has ` +
            `${pointText(found)} instead. Tasks accepted in between may be lost: submit them again with their ids.`
        : `Task ${taskId} was accepted at ${pointText(known)}, and is unknown to the leader at ` +
            `${pointText(found)}: the task is lost, or ended before the swarm's horizon (rememberMs). ` +
            "Submit the task again with the same id if it may run twice.",
    );
    this.known = known;
    this.found = found;
    this.taskId = taskId;
  }
}

function pointText({ term, idx }: JournalPoint): string {
  return `term ${term}, batch ${idx}`;
}
