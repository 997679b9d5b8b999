// First batch of the journal, and the part of a task's history that is lost with earlier batches.

import type { Swarm } from "../client/swarm.ts";
import { formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import type { TaskStatus } from "../protocol/schemas.ts";
import { ask } from "./ask.ts";
import type { VerbContext } from "./verb.ts";

type Accepted = Extract<TaskStatus, { readonly ok: true }>;

/** First batch that the journal still has: 1 if nothing was removed, or if no coordinator answers. */
export async function firstKeptIdx(context: VerbContext, swarm: Swarm, project: string): Promise<number> {
  try {
    const { journal } = await ask(context, (options) => swarm.status({ project, ...options }));
    return journal.auditFirstIdx;
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return 1; // the earlier answer is known and matters more
  }
}

/** Says which batches of a task's history are not as they were written. */
export function noteChanged({ output }: VerbContext, changedBatches: readonly number[] = []): void {
  if (changedBatches.length === 0) return;
  const batches = changedBatches.map(formatCount).join(", ");
  output.note(
    output.noteColors.red(
      `this history was changed after it was written: ${changedBatches.length === 1 ? "batch" : "batches"} ${batches} changed since; run \`waggle verify\``,
    ),
  );
}

/** The missing part of a task's history; undefined if the history is complete. @param firstIdx first batch that the
 *  journal still has */
export function unkeptText(
  { submittedIdx, endedIdx }: Pick<Accepted, "submittedIdx" | "endedIdx">,
  firstIdx: number,
): string | undefined {
  if (submittedIdx >= firstIdx) return undefined;
  const begin = `the journal begins at batch ${formatCount(firstIdx)}`;
  const isGone = endedIdx !== undefined && endedIdx < firstIdx;
  return isGone
    ? `the record of this task is no longer kept (${begin})`
    : `the beginning of this task's record is no longer kept (${begin})`;
}
