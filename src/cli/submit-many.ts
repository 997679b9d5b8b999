// Many tasks in one command: prints each task when it is accepted, refused or ended. A bad task does not stop the
// next tasks. The exit code is the worst of all tasks.

import { duration } from "../audit/describe.ts";
import type { Backpressure } from "../client/backpressure.ts";
import type { Swarm } from "../client/swarm.ts";
import { WaitTimedOutError } from "../client/task-errors.ts";
import type { TaskHandle } from "../client/task-handle.ts";
import type { TaskRequest } from "../client/task-request.ts";
import { formatCount } from "../count-text.ts";
import { OutcomeUnknownError } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import { type ExitCode, exitCodeOf, worstOf } from "./exit-code.ts";
import { printable } from "./output.ts";
import { ProgressLine } from "./progress-line.ts";
import { errorRecord } from "./report-error.ts";
import {
  errorOfOutcome,
  outcomeLine,
  outcomeRecord,
  type SubmitFlags,
  staysUntilTheEnd,
  warningText,
} from "./submitted-text.ts";
import type { TaskSource } from "./task-source.ts";
import type { VerbContext } from "./verb.ts";
import { printContinuing, printUnanswered } from "./wait-again.ts";

export async function submitMany(
  swarm: Swarm,
  source: TaskSource,
  flags: SubmitFlags,
  context: VerbContext,
): Promise<ExitCode> {
  return await new ManyTasks(flags, context).run(swarm, source);
}

class ManyTasks {
  readonly #flags: SubmitFlags;
  readonly #context: VerbContext;
  readonly #isWaiting: boolean;
  readonly #codes = new Set<ExitCode>();
  readonly #warnedKinds = new Set<string>();
  readonly #waits: Promise<void>[] = [];
  readonly #waitUntilMs: number;
  /** Source files of the tasks without an answer, oldest first; undefined without a file. */
  readonly #files: (string | undefined)[] = [];
  /** Accepted, waited for, and not ended. */
  readonly #open = new Set<string>();
  /** Sent, and neither accepted nor refused when the sending ended. */
  readonly #unanswered: string[] = [];
  #timedOut: WaitTimedOutError | undefined;
  #accepted = 0;
  #refused = 0;
  #completed = 0;
  #notCompleted = 0;
  #backpressure: Backpressure | undefined;

  constructor(flags: SubmitFlags, context: VerbContext) {
    this.#flags = flags;
    this.#context = context;
    this.#isWaiting = staysUntilTheEnd(flags);
    this.#waitUntilMs = performance.now() + (flags.waitTimeout ?? Number.POSITIVE_INFINITY);
  }

  async run(swarm: Swarm, source: TaskSource): Promise<ExitCode> {
    const progress = new ProgressLine(this.#context.output, () => this.#progressText());
    try {
      await this.#submitAll(swarm, source);
      await Promise.all(this.#waits);
      this.#context.signal.throwIfAborted();
    } finally {
      progress.stop();
      printUnanswered(this.#unanswered, this.#context);
      printContinuing(this.#timedOut, this.#open, this.#context);
    }
    return worstOf(this.#codes);
  }

  async #submitAll(swarm: Swarm, source: TaskSource): Promise<void> {
    const { signal } = this.#context;
    const options = {
      failFast: this.#flags.failFast === true,
      notify: this.#isWaiting,
      signal,
      onBackpressure: (backpressure: Backpressure) => {
        this.#backpressure = backpressure;
      },
    };
    for await (const one of swarm.submitMany(this.#wellFormed(source), options)) {
      const file = this.#files.shift();
      if (one.ok) this.#accept(one.handle, one.task.kind, file);
      else if (one.error instanceof OutcomeUnknownError) this.#leave(one.error, one.task.id ?? "");
      else this.#refuse(one.error, file);
    }
  }

  async *#wellFormed(source: TaskSource): AsyncGenerator<TaskRequest> {
    for await (const sourced of source.tasks) {
      if (!sourced.ok) {
        this.#refuse(sourced.error, sourced.file);
        continue;
      }
      this.#files.push(sourced.file);
      yield sourced.task;
    }
  }

  #accept(handle: TaskHandle, kind: string, file: string | undefined): void {
    const { output } = this.#context;
    this.#accepted += 1;
    for (const warning of handle.ack?.warnings ?? []) {
      if (!this.#warnedKinds.has(kind)) output.note(warningText(kind, warning, output));
      this.#warnedKinds.add(kind);
    }
    if (output.json || !this.#isWaiting)
      output.datum({ type: "accepted", ...handle.ack, ...named(file) }, () => handle.id);
    if (this.#isWaiting) this.#waits.push(this.#wait(handle, file));
  }

  #refuse(error: unknown, file: string | undefined): void {
    const { output } = this.#context;
    this.#refused += 1;
    const record = errorRecord(error);
    this.#codes.add(record.error.exitCode);
    if (output.json) output.datum({ type: "rejected", ...record, ...named(file) }, () => "");
    else {
      const place = file === undefined || record.error.message.startsWith(file) ? "" : `${printable(file)}: `;
      output.note(
        `${output.noteColors.red(`rejected ${record.error.code}:`)} ${place}${record.error.message}`,
      );
    }
  }

  #leave(error: OutcomeUnknownError, id: string): void {
    this.#unanswered.push(id);
    this.#codes.add(exitCodeOf(error));
  }

  /** Never rejects: the failure of a task does not end the wait for further tasks. */
  async #wait(handle: TaskHandle, file: string | undefined): Promise<void> {
    this.#open.add(handle.id);
    const { signal } = this.#context;
    const leftMs = this.#waitUntilMs - performance.now();
    try {
      this.#end(
        await handle.outcome({
          signal,
          ...(Number.isFinite(leftMs) ? { timeoutMs: Math.max(1, leftMs) } : {}),
        }),
        file,
      );
    } catch (error) {
      if (signal.aborted) return;
      this.#codes.add(exitCodeOf(error));
      if (error instanceof WaitTimedOutError) this.#timedOut = error;
      else this.#context.output.note(errorRecord(error).error.message);
    }
  }

  #end(outcome: Outcome, file: string | undefined): void {
    this.#open.delete(outcome.task);
    const error = errorOfOutcome(outcome);
    if (error === undefined) this.#completed += 1;
    else {
      this.#notCompleted += 1;
      this.#codes.add(exitCodeOf(error));
    }
    this.#context.output.datum({ ...outcomeRecord(outcome), ...named(file) }, () =>
      outcomeLine(outcome, file),
    );
  }

  #progressText(): string {
    const parts = [`${formatCount(this.#accepted)} accepted`];
    if (this.#refused > 0) parts.push(`${formatCount(this.#refused)} rejected`);
    if (this.#unanswered.length > 0) parts.push(`${formatCount(this.#unanswered.length)} without an answer`);
    if (this.#isWaiting) parts.push(`${formatCount(this.#completed)} completed`);
    if (this.#notCompleted > 0) parts.push(`${formatCount(this.#notCompleted)} did not complete`);
    const open = this.#accepted - this.#completed - this.#notCompleted;
    if (this.#isWaiting && open > 0) parts.push(`${formatCount(open)} continue`);
    if (this.#backpressure !== undefined && this.#backpressure.tasks > 0)
      parts.push(heldBackText(this.#backpressure));
    return parts.join(" · ");
  }
}

/** `1,024 held back for 12s, next try in about 0.5s: the queue of user ann is full`. */
function heldBackText({ tasks, since, retryAfterMs, reason }: Backpressure): string {
  const [heldFor, retryIn] = [Date.now() - since.getTime(), retryAfterMs].map(duration);
  return `${formatCount(tasks)} held back for ${heldFor}, next try in about ${retryIn}: ${printable(reason)}`;
}

function named(file: string | undefined): { readonly file?: string } {
  return file === undefined ? {} : { file };
}
