// Why a task still waits, for a person at a terminal who waits for its end: printed after a while, and again when the
// reason changes. Not here: finding the reason (`waggle explain`).

import { describeWait } from "../audit/describe-wait.ts";
import type { AskOptions } from "../client/asker.ts";
import { limits } from "../limits.ts";
import type { TaskWait } from "../protocol/explain-schemas.ts";
import { formatTime } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { wait } from "./wait.ts";

export interface WaitReasonDeps {
  readonly explain: (options: AskOptions) => Promise<{ readonly waiting?: TaskWait | undefined }>;
  readonly output: Output;
  /** Aborts when the wait ends. */
  readonly signal: AbortSignal;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Resolves when the wait ends, or without a terminal. Never rejects. */
export async function printWaitReason({
  explain,
  output,
  signal,
  pause = wait,
}: WaitReasonDeps): Promise<void> {
  if (output.json || !output.isNoteTerminal) return;
  let printed: string | undefined;
  while (!signal.aborted) {
    await pause(limits.waitReasonMs, signal);
    const waiting = signal.aborted ? undefined : await askWhy(explain, signal);
    const reason = waiting?.obstacles[0]?.reason;
    if (signal.aborted || waiting === undefined || reason === printed) continue;
    printed = reason;
    output.note(output.noteColors.dim(`waits: ${printable(describeWait(waiting, formatTime))}`));
  }
}

async function askWhy(
  explain: WaitReasonDeps["explain"],
  signal: AbortSignal,
): Promise<TaskWait | undefined> {
  try {
    return (await explain({ signal, timeoutMs: limits.verbAskTimeoutMs })).waiting;
  } catch {
    return undefined; // the wait itself reports the error
  }
}
