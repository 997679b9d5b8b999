// The acknowledgement of an accepted task, as its submitter sees it.

import type { JournalPoint } from "../protocol/journal-point.ts";
import type { SubmitWarning } from "./task-warnings.ts";

/** Acknowledgement of an accepted task. An accepted task ends exactly once. */
export interface SubmitAck {
  readonly taskId: string;
  /** Position of the journal at acceptance. Serves to detect a loss of the task. */
  readonly term: number;
  readonly idx: number;
  /** True when the same id and content was accepted before. */
  readonly duplicate: boolean;
  readonly warnings: readonly SubmitWarning[];
}

/** An acknowledgement without the id of its task: most tasks of a message share one. */
export interface Acceptance extends JournalPoint {
  readonly duplicate: boolean;
  readonly warnings: readonly SubmitWarning[];
}
