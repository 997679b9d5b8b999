// A handle of one task, for its submitter or for any client with its id. A handle sends no request until a
// method is called. The leader pushes outcomes of tasks submitted with `notify`.

import type { Observable } from "rxjs";
import type { Aborts } from "../abort.ts";
import { abortSignal, readerOf, waitMs } from "../agent/options.ts";
import { opened, type PayloadCodec } from "../agent/payload-codec.ts";
import type { TypedKind } from "../agent/typed-kind.ts";
import { wordsOf } from "../agent/words.ts";
import type { Clock } from "../clock.ts";
import { InvalidMessageError } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import type { Awaited, AwaitedTask } from "./awaited-task.ts";
import type { AwaitedTasks } from "./awaited-tasks.ts";
import { type CancelOptions, type CancelOutcome, readHandleCancelOptions } from "./cancels.ts";
import type { ChunkLogs, ResultChunk } from "./chunk-log.ts";
import { ReadStream } from "./read-stream.ts";
import { type RetryOptions, type RetryOutcome, readHandleRetryOptions } from "./retries.ts";
import type { Acceptance, SubmitAck } from "./submit-ack.ts";
import { WaitTimedOutError } from "./task-errors.ts";
import { resultOf, type TaskResult, TypedTaskResult } from "./task-result.ts";
import type { TaskUpdate } from "./task-updates.ts";
import type { TaskWarning } from "./task-warnings.ts";
import { checkedAt } from "./typed-tasks.ts";

export interface WaitOptions {
  /** Ends the wait with the signal's reason. The task goes on. */
  readonly signal?: AbortSignal;
  /** Maximum wait, ms, at least 0; then the wait rejects with WaitTimedOutError and the task goes on. Default
   *  Infinity. */
  readonly timeoutMs?: number;
}

const readWaitOptions = readerOf<WaitOptions>({
  each: { signal: abortSignal, timeoutMs: waitMs },
  otherwise: { timeout: "timeoutMs" },
  example: "{ timeoutMs: 60000 }",
});

export interface ChunksOptions {
  /** Ends the stream without an error. */
  readonly signal?: AbortSignal;
}

const readChunksOptions = readerOf<ChunksOptions>({
  each: { signal: abortSignal },
  example: "{ signal: AbortSignal.timeout(60000) }",
});

export interface TaskHandle {
  readonly id: string;
  readonly project: string;
  /** The leader's acknowledgement. Undefined when the task was not submitted through this handle. */
  readonly ack: SubmitAck | undefined;
  /** Warnings for the submitter of an accepted task. Empty when the task was not submitted through this handle. */
  readonly warnings: readonly TaskWarning[];
  /** All updates of the task, from its submission to its outcome. */
  readonly events$: Observable<TaskUpdate>;
  /** Chunks of the result while the task runs, for a task submitted with `stream: true`: an Observable that is also an
   *  async iterable. A handle that submitted the task reads them from the first; any other handle reads from its first
   *  call of `chunks` on. Ends without an error when the task ends, in any state, or with `signal`. Chunks are not
   *  journaled and may be lost; the result is whole.
   *  @throws InvalidMessageError naming the option; `field: "stream"` when this handle submitted the task without it */
  chunks(options?: ChunksOptions): ReadStream<ResultChunk>;
  /** Resolves with the result when the task completes. After a retry over this connection: the result of the
   *  new round.
   *  @throws TaskFailedError, TaskCancelledError, TaskExpiredError, ResultGoneError when the task ended
   *    otherwise
   *  @throws as `outcome` does */
  result(options?: WaitOptions): Promise<TaskResult>;
  /** Resolves with the outcome when the task ends, in any state.
   *  @throws InvalidMessageError naming the option; WaitTimedOutError or the reason of `signal` when the wait
   *    ends first
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK` when no coordinator knows the task
   *  @throws LossError when the accepted task is lost, or ended longer than `rememberMs` ago
   *  @throws UnreachableError when the connection is closed */
  outcome(options?: WaitOptions): Promise<Outcome>;
  /** Ends the present round of the task. @throws as `Swarm.cancel` does */
  cancel(options?: Omit<CancelOptions, "project">): Promise<CancelOutcome>;
  /** Opens the next round of the task. @throws as `Swarm.retry` does */
  retry(options?: Omit<RetryOptions, "project">): Promise<RetryOutcome>;
}

/** The handle of a task whose kind `defineKind` made. */
export interface TypedTaskHandle<Value> extends TaskHandle {
  /** As `TaskHandle.result`, with the checked `value`.
   *  @throws InvalidMessageError when the result does not fit the output schema of the kind; `outcome` has its
   *    text */
  result(options?: WaitOptions): Promise<TypedTaskResult<Value>>;
}

/** Shared by all handles of a connection. */
export interface TaskHandleDeps {
  readonly clock: Clock;
  readonly codec: PayloadCodec | undefined;
  readonly aborts: Aborts;
  readonly awaitedTasks: AwaitedTasks;
  readonly chunkLogs: ChunkLogs;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  updates(task: SwarmTask): Observable<TaskUpdate>;
  cancel(id: string, options: CancelOptions): Promise<CancelOutcome>;
  retry(id: string, options: RetryOptions): Promise<RetryOutcome>;
}

/** State of a task that was submitted through its handle. */
interface Submitted {
  readonly acceptance: Acceptance;
  readonly awaited: AwaitedTask | undefined;
  readonly warnings: readonly TaskWarning[];
  readonly kind: TypedKind | undefined;
  readonly isStreamed: boolean;
}

export class SwarmTask implements TaskHandle {
  readonly id: string;
  readonly project: string;
  readonly warnings: readonly TaskWarning[];
  readonly #deps: TaskHandleDeps;
  readonly #kind: TypedKind | undefined;
  readonly #acceptance: Acceptance | undefined;
  /** Undefined: not known, because the task was not submitted through this handle. */
  readonly #isStreamed: boolean | undefined;
  #ack: SubmitAck | undefined;
  #awaited: AwaitedTask | undefined;

  /** @param submitted when the handle submitted the task; `awaited` when the leader pushes the outcome */
  constructor(
    task: { readonly id: string; readonly project: string },
    deps: TaskHandleDeps,
    submitted?: Submitted,
  ) {
    this.id = task.id;
    this.project = task.project;
    this.#acceptance = submitted?.acceptance;
    this.#isStreamed = submitted?.isStreamed;
    this.warnings = submitted?.warnings ?? [];
    this.#kind = submitted?.kind;
    this.#deps = deps;
    this.#awaited = submitted?.awaited;
  }

  get ack(): SubmitAck | undefined {
    if (this.#acceptance !== undefined) this.#ack ??= { taskId: this.id, ...this.#acceptance };
    return this.#ack;
  }

  get events$(): Observable<TaskUpdate> {
    return this.#deps.updates(this);
  }

  chunks(given?: ChunksOptions): ReadStream<ResultChunk> {
    const { signal } = readChunksOptions("chunks", given);
    if (this.#isStreamed === false)
      throw new InvalidMessageError(
        `chunks: task ${this.id} has none, because it was submitted without stream: submit it with stream: true`,
        { field: "stream" },
      );
    const { chunkLogs, closed, aborts } = this.#deps;
    const log = chunkLogs.of(this.watched());
    return new ReadStream({ read: (ended) => log.read(ended), signal, closed, aborts });
  }

  result(options?: WaitOptions): Promise<TaskResult> {
    const isPlain = this.#kind === undefined && this.#deps.codec === undefined;
    return options === undefined && isPlain ? this.#plainResult() : this.#result(options);
  }

  /** As `#result`, with a single promise. */
  #plainResult(): Promise<TaskResult> {
    return new Promise((resolve, reject) => {
      const settle = (awaited: Awaited) => {
        try {
          if (awaited.kind === "ended") resolve(resultOf(awaited.outcome));
          else reject(awaited.error);
        } catch (error) {
          reject(error); // the task ended without a result
        }
      };
      const task = this.watched();
      if (task.awaited === undefined) task.listen(settle);
      else settle(task.awaited);
    });
  }

  async #result(options: WaitOptions | undefined): Promise<TaskResult> {
    const outcome = await this.#opened(await this.#outcome(readWaitOptions("result", options)));
    const result = resultOf(outcome);
    if (this.#kind === undefined) return result;
    const value = await checkedAt("result", result.text(), this.#kind.output, ` (task ${this.id})`);
    return new TypedTaskResult(outcome, value);
  }

  /** @throws InvalidMessageError when the codec cannot open the result */
  async #opened(outcome: Outcome): Promise<Outcome> {
    const { codec } = this.#deps;
    if (codec === undefined || outcome.result === undefined) return outcome;
    const { result: text, encoding, project, task } = outcome;
    try {
      const plain = await opened(codec, { text, encoding }, { of: "result", project, task });
      return { ...outcome, result: plain.text, encoding: plain.encoding };
    } catch (cause) {
      throw new InvalidMessageError(`The result of task ${task} cannot be opened: ${wordsOf(cause)}`, {
        cause,
      });
    }
  }

  async outcome(options?: WaitOptions): Promise<Outcome> {
    return await this.#outcome(readWaitOptions("outcome", options));
  }

  async #outcome({ signal, timeoutMs }: WaitOptions): Promise<Outcome> {
    signal?.throwIfAborted();
    const task = this.watched();
    const awaited = task.awaited ?? (await this.#wait(task, signal, timeoutMs));
    if (awaited.kind === "failed") throw awaited.error;
    return awaited.outcome;
  }

  async cancel(given?: Omit<CancelOptions, "project">): Promise<CancelOutcome> {
    const options = readHandleCancelOptions("cancel", given);
    return await this.#deps.cancel(this.id, { ...options, project: this.project });
  }

  async retry(given?: Omit<RetryOptions, "project">): Promise<RetryOutcome> {
    const options = readHandleRetryOptions("retry", given);
    return await this.#deps.retry(this.id, { ...options, project: this.project });
  }

  /** Registers with a leader for the outcome. An outcome stays until the task is retried. A failed wait is
   *  renewed. */
  watched(): AwaitedTask {
    const known = this.#awaited?.awaited;
    const isOver = known?.kind === "ended" && !this.#deps.awaitedTasks.isOutdated(known.outcome);
    if (isOver && this.#awaited !== undefined) return this.#awaited;
    this.#awaited = this.#deps.awaitedTasks.watch(this.id, this.project);
    this.#awaited.acceptedAt ??= this.#acceptance;
    return this.#awaited;
  }

  #wait(task: AwaitedTask, signal: AbortSignal | undefined, timeoutMs: number | undefined): Promise<Awaited> {
    return new Promise((resolve, reject) => {
      const end = (finish: () => void) => {
        stopListening();
        cancelTimer?.();
        stopWatching?.();
        finish();
      };
      const giveUp = (error: unknown) =>
        end(() => {
          this.#deps.awaitedTasks.abandoned(task);
          reject(error);
        });
      const cancelTimer =
        timeoutMs === undefined
          ? undefined
          : this.#deps.clock.after(timeoutMs, () => giveUp(new WaitTimedOutError(this.id, timeoutMs)));
      const stopWatching =
        signal === undefined ? undefined : this.#deps.aborts.on(signal, () => giveUp(signal.reason));
      const stopListening = task.onEnd((awaited) => end(() => resolve(awaited)));
    });
  }
}
