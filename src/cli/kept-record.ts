// Where the journal's record begins, and what that leaves of a task's story, in words.

import type { Swarm } from "../client/swarm.ts";
import { WaggleError } from "../errors.ts";
import type { TaskStatus } from "../protocol/schemas.ts";
import { ask } from "./ask.ts";
import { formatCount } from "./format.ts";
import type { VerbContext } from "./verb.ts";

type Accepted = Extract<TaskStatus, { readonly ok: true }>;

/** The first batch that is kept to be read: 1 where the journal was never purged, or nobody says so any more. */
export async function firstKeptIdx(context: VerbContext, swarm: Swarm): Promise<number> {
  try {
    const { journal } = await ask(context, (options) => swarm.status(options));
    return journal.auditFirstIdx;
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return 1; // what was asked for before is known, and worth more
  }
}

/** What of a task's story is no longer kept; undefined where all of it is. @param firstIdx the first batch that is */
export function unkeptText(
  { submittedIdx, endedIdx }: Pick<Accepted, "submittedIdx" | "endedIdx">,
  firstIdx: number,
): string | undefined {
  if (submittedIdx >= firstIdx) return undefined;
  const begin = `the journal begins at batch ${formatCount(firstIdx)}`;
  const isGone = endedIdx !== undefined && endedIdx < firstIdx;
  return isGone
    ? `the record of this task is no longer kept (${begin})`
    : `the beginning of the record of this task is no longer kept (${begin})`;
}
