// Handler of `project.<p>.await`: answers per task whether it lives or how it ended, and notes the client for live
// tasks. The outbox sends outcomes when tasks end. Outcomes of ended tasks are read from the journal, in order. An
// outcome beyond the size of the answer follows on the client's own subject.
//
// The rule: one task never delays the answer for others. A task with a damaged batch is answered with
// `WAGGLE_JOURNAL_DAMAGED` and with its end by the state. A task with a missing batch is to be asked for again. When
// the journal cannot be read, or takes too long, so are all remaining tasks.

import { unreachable } from "../assert.ts";
import type { Clock } from "../clock.ts";
import { BackpressureError, JournalDamagedError, MissingRecordsError, UnreachableError } from "../errors.ts";
import type { BatchIndex, ProjectId, TaskId } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  type AwaitAnswer,
  awaitRequestSchema,
  type CodedError,
  type Outcome,
  taskIdSchema,
} from "../protocol/schemas.ts";
import type { EndedTask } from "../state/ended-task.ts";
import type { SwarmState } from "../state/state.ts";
import type { Message } from "../transport/transport.ts";
import { backpressure, codedError, unknownTask } from "./answers.ts";
import type { Commit } from "./inbox.ts";
import { foreignInbox, InboxOwners } from "./inbox-owners.ts";
import type { Intake, LeaderParts } from "./intake.ts";
import { isRightAwaitRequest } from "./quick-checks.ts";

const awaitRequest = {
  schema: awaitRequestSchema,
  list: "tasks",
  itemSchema: taskIdSchema,
  isRight: isRightAwaitRequest,
} as const;

interface AwaitRequest {
  readonly reply: string;
  readonly project: ProjectId;
  /** The client's inbox: later outcomes go to `<notify>.done`. */
  readonly notify: string;
}

/** A task by the state when the request is decided. */
type Look =
  | { readonly kind: "answer"; readonly answer: AwaitAnswer }
  /** The outcome is in the journal. */
  | { readonly kind: "ended"; readonly ended: EndedTask };

type Reading =
  | { readonly kind: "read"; readonly outcome: Outcome }
  | { readonly kind: "damaged"; readonly cause: JournalDamagedError }
  /** The batch is not found so far, or too many reads wait. */
  | { readonly kind: "missing" }
  | { readonly kind: "unreachable"; readonly cause: Error };

export class AwaitHandler {
  readonly #intake: Intake;
  readonly #parts: LeaderParts;
  readonly #owners: InboxOwners;

  constructor(intake: Intake, parts: LeaderParts) {
    this.#intake = intake;
    this.#parts = parts;
    this.#owners = new InboxOwners(() => parts.state);
  }

  take(project: ProjectId, message: Message): void {
    const read = this.#intake.readItems(message, awaitRequest);
    if (read === undefined) return;
    const { reply, items } = read;
    if (!this.#owners.isOwn(project, read.body.notify))
      return this.#intake.refuse(reply, foreignInbox(project));
    const request = { notify: read.body.notify, project, reply };
    let looks: readonly Look[] = [];
    const isQueued = this.#parts.enqueue({
      commands: [],
      replies: [],
      look: (state) => {
        looks = items.map<Look>(
          (task) => this.#lookAt(state, task, request),
          (answer) => ({ kind: "answer", answer }),
        );
      },
      finish: (commit) => void this.#answer(request, looks, commit),
    });
    if (!isQueued) this.#intake.refuseFull(reply);
  }

  #lookAt(state: SwarmState, task: TaskId, { project, notify }: AwaitRequest): Look {
    const ref = { project, task };
    if (state.taskById.has(ref)) {
      const isNoted = this.#parts.outbox.awaiting.add(ref, notify);
      const answer: AwaitAnswer = isNoted
        ? { ok: true, live: true }
        : backpressure("too-many-waiting", limits.retryAfterMs);
      return { kind: "answer", answer };
    }
    const ended = state.endedById.get(ref);
    return ended === undefined ? { kind: "answer", answer: unknownTask(task) } : { kind: "ended", ended };
  }

  /** Takes no longer than `limits.awaitReadMs`. */
  async #answer({ notify, reply }: AwaitRequest, looks: readonly Look[], commit: Commit): Promise<void> {
    const { clock, transport, outbox, auditFirstIdx } = this.#parts;
    const firstIdx = auditFirstIdx(); // as of the batch in the answer
    const late = deadline(clock, limits.awaitReadMs);
    const bytesMax = transport.maxPayloadBytes / 4; // the rest is for answers without an outcome
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
      const reading = await Promise.race([this.#read(ended, firstIdx), late.passed]);
      switch (reading.kind) {
        case "read": {
          const answer = { ok: true, outcome: reading.outcome } as const;
          bytes += Buffer.byteLength(JSON.stringify(answer));
          if (bytes <= bytesMax) answers.push(answer);
          else {
            outbox.announce(notify, [reading.outcome], commit);
            answers.push({ ok: true, live: true });
          }
          break;
        }
        case "missing":
          answers.push(notReadYet(ended));
          break;
        case "damaged":
          this.#warnUnread(ended, reading.cause);
          answers.push(damaged(ended, reading.cause));
          break;
        case "unreachable":
          this.#warnUnread(ended, reading.cause);
          isReadable = false;
          answers.push(notReadYet(ended));
          break;
        default:
          unreachable(reading);
      }
    }
    late.cancel();
    this.#intake.send(reply, { ...commit, answers });
  }

  async #read(ended: EndedTask, firstIdx: BatchIndex): Promise<Reading> {
    try {
      return { kind: "read", outcome: await this.#parts.reader.outcome(ended, firstIdx) };
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

  #warnUnread({ id: task, endedIdx: idx }: EndedTask, cause: Error): void {
    this.#parts.logger.warn({ err: cause, task, idx }, "the outcome of a task could not be read");
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
    "Ask again later; if it stays so, see to the journal's storage (`waggle doctor`); submit the task under a new id only if it may run twice";
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
