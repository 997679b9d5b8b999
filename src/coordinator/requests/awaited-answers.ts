// The answer to `await`: how ended tasks ended is read from the journal, one after the other. What does not fit the
// answer follows on the client's own subject, like the outcome of a task that ends just then.
//
// The rule: one task never keeps the others waiting. Where the journal is damaged at the batch that ended a task, that
// task is answered with `WAGGLE_JOURNAL_DAMAGED` and with what the state knows of its end; where a batch is not found
// yet, the task is to be asked about again, and where the journal cannot be read just now, or takes long, all not read
// yet are.

import { unreachable } from "../../assert.ts";
import type { Clock } from "../../clock.ts";
import {
  BackpressureError,
  JournalDamagedError,
  MissingRecordsError,
  UnreachableError,
} from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { AwaitAnswer, CodedError, Outcome } from "../../protocol/schemas.ts";
import type { EndedTask } from "../../state/state.ts";
import { codedError } from "./answers.ts";

/** How a task stood when it was looked up. */
export type Look =
  | { readonly kind: "answer"; readonly answer: AwaitAnswer }
  /** Its outcome is to be read from the journal. */
  | { readonly kind: "ended"; readonly ended: EndedTask };

export interface AwaitedAnswersDeps {
  readonly clock: Clock;
  /** @throws UnreachableError, BackpressureError; MissingRecordsError for what may be found yet; JournalDamagedError */
  readonly read: (ended: EndedTask) => Promise<Outcome>;
  /** Of the outcomes in the answer. */
  readonly bytesMax: number;
  /** Takes outcomes that do not fit. */
  readonly overflow: (outcome: Outcome) => void;
  /** Told of a task whose outcome could not be read, and why. */
  readonly onUnread: (ended: EndedTask, cause: Error) => void;
}

type Reading =
  | { readonly kind: "read"; readonly outcome: Outcome }
  | { readonly kind: "damaged"; readonly cause: JournalDamagedError }
  /** The journal does not know of it yet, as far as is known now, or too many read at once. */
  | { readonly kind: "missing" }
  | { readonly kind: "unreachable"; readonly cause: Error };

/** An answer for each look, in order. Takes no longer than `limits.awaitReadMs`. */
export async function awaitedAnswers(
  looks: readonly Look[],
  deps: AwaitedAnswersDeps,
): Promise<AwaitAnswer[]> {
  const { clock, bytesMax, overflow, onUnread } = deps;
  const late = deadline(clock, limits.awaitReadMs);
  const answers: AwaitAnswer[] = [];
  let bytes = 0;
  let isReadable = true;
  for (const look of looks) {
    if (look.kind === "answer") {
      answers.push(look.answer);
      continue;
    }
    const { ended } = look;
    if (!isReadable) {
      answers.push(notReadYet(ended));
      continue;
    }
    const reading = await Promise.race([readingOf(ended, deps), late.passed]);
    switch (reading.kind) {
      case "read": {
        const answer = { ok: true, outcome: reading.outcome } as const;
        bytes += Buffer.byteLength(JSON.stringify(answer));
        if (bytes <= bytesMax) answers.push(answer);
        else {
          overflow(reading.outcome);
          answers.push({ ok: true, live: true });
        }
        break;
      }
      case "missing":
        answers.push(notReadYet(ended));
        break;
      case "damaged":
        onUnread(ended, reading.cause);
        answers.push(damaged(ended, reading.cause));
        break;
      case "unreachable":
        onUnread(ended, reading.cause);
        isReadable = false;
        answers.push(notReadYet(ended));
        break;
      default:
        unreachable(reading);
    }
  }
  late.cancel();
  return answers;
}

async function readingOf(ended: EndedTask, { read }: AwaitedAnswersDeps): Promise<Reading> {
  try {
    return { kind: "read", outcome: await read(ended) };
  } catch (cause) {
    if (cause instanceof MissingRecordsError || cause instanceof BackpressureError)
      return { kind: "missing" };
    if (cause instanceof JournalDamagedError) return { kind: "damaged", cause };
    return {
      kind: "unreachable",
      cause: cause instanceof Error ? cause : new UnreachableError(String(cause)),
    };
  }
}

function deadline(
  clock: Clock,
  ms: number,
): { readonly passed: Promise<Reading>; readonly cancel: () => void } {
  let cancel: () => void = () => undefined;
  const passed = new Promise<Reading>((resolve) => {
    const cause = new UnreachableError(`The journal was not read within ${ms} ms`);
    cancel = clock.after(ms, () => resolve({ kind: "unreachable", cause }));
  });
  return { passed, cancel };
}

function damaged({ id, state, attempts }: EndedTask, { message }: JournalDamagedError): CodedError {
  const end = `task ${id} ended (${state}, ${attempts} ${attempts === 1 ? "attempt" : "attempts"})`;
  const rest =
    "Ask again later; if it stays so, see to the journal's storage (`waggle doctor`); submit the task under another id only if it may run twice";
  return codedError(
    "WAGGLE_JOURNAL_DAMAGED",
    `${end}, but what it ended with cannot be read: ${message}. ${rest}`,
  );
}

function notReadYet({ id, state }: EndedTask): CodedError {
  return codedError(
    "WAGGLE_OUTCOME_UNKNOWN",
    `task ${id} ended (${state}), and how cannot be read from the journal just now: ask again`,
  );
}
