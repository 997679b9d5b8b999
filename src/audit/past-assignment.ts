// One assignment with all agents as they stood, from the journal itself. The replay begins at the newest base before
// the assignment's batch. Not here: the table (assignment-replay.ts), the reading up to the batch (journal/read-to.ts).

import type { Clock } from "../clock.ts";
import type { JournalReader } from "../journal/journal.ts";
import { readTo } from "../journal/read-to.ts";
import { AssignmentReplay, type ReplayedAssignment } from "./assignment-replay.ts";

export interface PastAssignmentQuery {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  /** The batch of the assignment. */
  readonly idx: number;
  /** Called after each replayed batch. */
  readonly onBatch?: (idx: number) => void;
  readonly signal?: AbortSignal;
}

/** @returns undefined if the journal ends before the batch, or the batch holds no such assignment
 *  @throws AuditTrimmedError if no state from before the batch is kept; UnreachableError, JournalDamagedError; the
 *    signal's reason */
export async function pastAssignment(
  deps: { readonly journal: JournalReader; readonly clock: Clock },
  { project, task, attempt, idx, onBatch, signal }: PastAssignmentQuery,
): Promise<ReplayedAssignment | undefined> {
  const read = await readTo(deps, {
    ...{ idx, before: 0 },
    ...(signal === undefined ? {} : { signal }),
    onBatch: (batch) => onBatch?.(batch.idx),
  });
  if (read === undefined) return undefined;
  const replay = new AssignmentReplay({ project, task }, attempt);
  replay.startFrom(read.state);
  const found = replay.take(read.batch);
  if (found === undefined) return undefined;
  onBatch?.(idx);
  return { ...found, replayed: { from: read.firstIdx, to: idx } };
}
