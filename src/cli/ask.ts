// How verbs ask the swarm: long enough for a standby to take over, and not in silence meanwhile.

import type { AskOptions } from "../client/asker.ts";
import { limits } from "../limits.ts";
import type { VerbContext } from "./verb.ts";

/** Calls `question` with the options of a verb's request. Rethrows its errors. */
export async function ask<Value>(
  { output, signal }: VerbContext,
  question: (options: AskOptions & { readonly signal: AbortSignal }) => Promise<Value>,
): Promise<Value> {
  const waiting = output.noteColors.dim("no leader answers yet; asking again for a while …");
  const notice = setTimeout(() => output.note(waiting), limits.verbSilenceMs);
  try {
    return await question({ signal, timeoutMs: limits.verbAskTimeoutMs });
  } finally {
    clearTimeout(notice);
  }
}
