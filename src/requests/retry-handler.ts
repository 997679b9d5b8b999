// Handler of `project.<p>.retry`: reads the specifications of ended tasks from the journal, and has the next turn open
// new rounds. The state keeps no payloads of ended tasks.
//
//   look at the state → commit → read payloads from the journal → decide → commit → answer
//
// The one thing to know: the state goes on while the journal is read, so the decision looks again (core/decide.ts).
// Bounded: requests are carried out in order, and a limited number waits. A request is carried out in parts. Only the
// payloads of one part are held.

import type { Command, Reply } from "../core/command.ts";
import { toRetry } from "../core/decide.ts";
import { JournalDamagedError, MissingRecordsError } from "../errors.ts";
import type { Instant, ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import {
  type CodedError,
  type RetryAnswer,
  retryItemSchema,
  retryRequestSchema,
} from "../protocol/schemas.ts";
import type { EndedTask } from "../state/ended-task.ts";
import type { TaskSpec } from "../state/event.ts";
import type { SwarmState } from "../state/state.ts";
import type { Message } from "../transport/transport.ts";
import { backpressure, codedError, retryAnswer } from "./answers.ts";
import type { Commit } from "./inbox.ts";
import type { Intake, LeaderParts } from "./intake.ts";

type RetryItem = typeof retryItemSchema._output;

interface RetryRequest {
  readonly items: readonly (RetryItem | CodedError)[];
  readonly deadline: Instant | undefined;
  readonly project: ProjectId;
  readonly reply: string;
}

/** A task whose next round may be opened. */
interface Found {
  /** Position in the request. */
  readonly place: number;
  readonly item: RetryItem;
  readonly ended: EndedTask;
  /** Set after reading. */
  readonly spec?: TaskSpec;
}

export class RetryHandler {
  readonly #intake: Intake;
  readonly #parts: LeaderParts;
  readonly #waiting: RetryRequest[] = [];
  #isBusy = false;

  constructor(intake: Intake, parts: LeaderParts) {
    this.#intake = intake;
    this.#parts = parts;
  }

  take(project: ProjectId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, retryRequestSchema));
    if (request === undefined) return;
    const { reply } = request;
    const { tasks, deadline } = request.body;
    if (this.#intake.isClosed(reply, project, tasks.length)) return;
    const items = tasks.map((item, at) => {
      const checked = this.#intake.checkItem(item, retryItemSchema, `tasks[${at}]`);
      return checked.ok ? checked.value : checked;
    });
    if (this.#waiting.length >= limits.retriesWaitingMax)
      return this.#intake.refuse(reply, backpressure("too-many-retries", limits.retryAfterMs));
    this.#waiting.push({ items, deadline, project, reply });
    if (!this.#isBusy) void this.#run();
  }

  /** Never rejects. When the term ends meanwhile, nothing is answered, and the client asks the next leader. */
  async #run(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#carryOut(next);
      } catch (cause) {
        this.#parts.logger.error({ err: cause }, "a request to retry tasks failed");
      }
    }
    this.#isBusy = false;
  }

  async #carryOut({ items, deadline, project, reply }: RetryRequest): Promise<void> {
    const answers: (RetryAnswer | undefined)[] = items.map((item) => ("code" in item ? item : undefined));
    const found: Found[] = [];
    const look = (state: SwarmState) => {
      for (const [place, item] of items.entries()) {
        if ("code" in item) continue;
        const known = toRetry(state, { project, ...item });
        if ("reply" in known) answers[place] = retryAnswer(known.reply);
        else found.push({ place, item, ended: known.ended });
      }
    };
    let done = await this.#decided([], look);
    if (done === undefined) return this.#intake.send(reply, backpressure("inbox-full", limits.retryAfterMs));
    let commit = done.commit;
    const readUntilMs = this.#parts.clock.monotonicMs() + limits.awaitReadMs;
    while (found.length > 0) {
      const part = await this.#read(found, answers, readUntilMs);
      const commands = part.map(
        ({ item, spec }): Command => ({
          type: "RetryTask",
          project,
          ...item,
          spec: renewed(spec, deadline),
        }),
      );
      done = commands.length === 0 ? { replies: [], commit } : await this.#decided(commands);
      if (done === undefined) {
        for (const { place } of [...part, ...found.splice(0)])
          answers[place] = backpressure("inbox-full", limits.retryAfterMs);
        break;
      }
      commit = done.commit;
      for (const [at, { place }] of part.entries())
        answers[place] = this.#answered(done.replies[at], project);
    }
    this.#intake.send(reply, { ...commit, answers });
  }

  /** Takes tasks off the front of `found` and reads their specifications, up to `limits.retryBytesMax`. Unreadable
   *  tasks are answered. */
  async #read(
    found: Found[],
    answers: (RetryAnswer | undefined)[],
    readUntilMs: number,
  ): Promise<readonly (Found & { readonly spec: TaskSpec })[]> {
    const part: (Found & { readonly spec: TaskSpec })[] = [];
    let bytes = 0;
    while (bytes < limits.retryBytesMax && found.length > 0) {
      const next = found.splice(0, limits.retryReadsAtOnce);
      const specs = await Promise.all(
        next.map(({ ended, spec }) => spec ?? this.#specOf(ended, readUntilMs)),
      );
      const isNextPart: Found[] = [];
      for (const [at, each] of next.entries()) {
        const spec = specs[at] ?? notReadYet(each.ended.id);
        if ("code" in spec) answers[each.place] = spec;
        else if (bytes >= limits.retryBytesMax) isNextPart.push({ ...each, spec });
        else {
          part.push({ ...each, spec });
          bytes += spec.payload.length + limits.pushItemOverheadBytes;
        }
      }
      found.unshift(...isNextPart);
    }
    return part;
  }

  async #specOf(ended: EndedTask, readUntilMs: number): Promise<TaskSpec | CodedError> {
    const { clock, logger, reader, auditFirstIdx } = this.#parts;
    if (clock.monotonicMs() >= readUntilMs) return notReadYet(ended.id);
    try {
      const spec = await reader.spec(ended, auditFirstIdx());
      return spec === "gone" ? gone(ended) : spec;
    } catch (cause) {
      const isDamaged = cause instanceof JournalDamagedError && !(cause instanceof MissingRecordsError);
      logger.warn({ err: cause, task: ended.id, idx: ended.roundIdx }, "a task to retry could not be read");
      return isDamaged ? damaged(ended, cause) : notReadYet(ended.id);
    }
  }

  #answered(reply: Reply | undefined, project: ProjectId): RetryAnswer {
    if (reply?.kind === "refused" || reply?.kind === "budget-exceeded")
      this.#intake.refusals.add(project, reply.reason, 1);
    return retryAnswer(reply ?? { kind: "none" });
  }

  /** Has commands decided in a turn, and waits for their commit. Undefined when the inbox is full. */
  #decided(
    commands: readonly Command[],
    look?: (state: SwarmState) => void,
  ): Promise<{ readonly replies: readonly Reply[]; readonly commit: Commit } | undefined> {
    return new Promise((resolve) => {
      const isTaken = this.#parts.enqueue({
        commands,
        replies: [],
        ...(look === undefined ? {} : { look }),
        finish(commit) {
          resolve({ replies: this.replies, commit });
        },
      });
      if (!isTaken) resolve(undefined);
    });
  }
}

/** Leaves out times of the previous round. The order of the fields is the journal's (task-spec.ts). */
function renewed(spec: TaskSpec, deadline: Instant | undefined): TaskSpec {
  const { deadline: _, notBefore: __, ...kept } = spec;
  if (deadline === undefined) return kept;
  const { maxAttempts, timeoutMs, stallMs, stream, attributes, traceparent, tracestate, ...first } = kept;
  return {
    ...first,
    deadline,
    maxAttempts,
    timeoutMs,
    ...(stallMs === undefined ? {} : { stallMs }),
    ...(stream === undefined ? {} : { stream }),
    ...(attributes === undefined ? {} : { attributes }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
  };
}

function gone({ id, roundIdx }: EndedTask): CodedError {
  return codedError(
    "WAGGLE_GONE",
    `the payload of task ${id} is no longer kept: batch ${roundIdx} was removed from the journal. Submit the task anew, under another id`,
    { field: "task" },
  );
}

function notReadYet(task: string): CodedError {
  return codedError(
    "WAGGLE_UNREACHABLE",
    `the payload of task ${task} cannot be read from the journal just now, and nothing was done: retry it again`,
  );
}

function damaged({ id }: EndedTask, { message }: JournalDamagedError): CodedError {
  return codedError(
    "WAGGLE_JOURNAL_DAMAGED",
    `the payload of task ${id} cannot be read: ${message}. See to the journal's storage (\`waggle doctor\`), or submit the task anew, under another id`,
  );
}
