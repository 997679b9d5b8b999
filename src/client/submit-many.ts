// Bulk submission: reads ahead a bounded number of tasks, and yields the outcomes in the order of the tasks.
// Reading ahead fills messages; the window bounds memory.

import type { Aborts } from "../abort.ts";
import { WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { TaskHandle } from "./task-handle.ts";
import type { PreparedTask, TaskRequest } from "./task-request.ts";

export type SubmitOutcome<Request = TaskRequest, Handle = TaskHandle> =
  | { readonly ok: true; readonly handle: Handle; readonly task: Request }
  /** `task` has an id: submitting it again submits the same task. */
  | { readonly ok: false; readonly error: WaggleError; readonly task: Request };

export interface SubmitManyDeps {
  /** @throws InvalidMessageError */
  prepare(task: TaskRequest): PreparedTask;
  submit(task: PreparedTask): Promise<TaskHandle>;
  readonly signal: AbortSignal | undefined;
  readonly aborts: Aborts;
}

/** Breaking out of the loop ends the reading. Sent tasks stay sent.
 *  @throws the reason of `signal`, after the outcomes of sent tasks; errors of the source */
export async function* submitMany(
  tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
  deps: SubmitManyDeps,
): AsyncGenerator<SubmitOutcome> {
  const window = new Window();
  const stop = () => window.end();
  const stopWatching = deps.signal === undefined ? undefined : deps.aborts.on(deps.signal, stop);
  if (deps.signal?.aborted) stop();
  const reading = read(tasks, deps, window);
  reading.catch(() => undefined); // thrown below, after all earlier outcomes were yielded
  try {
    for (;;) {
      for (let first = window.first; first !== undefined; first = window.first) {
        const outcome = await first;
        window.shift();
        yield outcome;
      }
      if (window.hasEnded) break;
      await window.filled();
    }
    deps.signal?.throwIfAborted();
    await reading;
  } finally {
    stop();
    stopWatching?.();
  }
}

/** Reads while the window has room. */
async function read(
  tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
  deps: SubmitManyDeps,
  window: Window,
): Promise<void> {
  try {
    for await (const next of wrapped(tasks)) {
      if (window.hasEnded) return;
      begin(next.task, deps, window);
      if (window.isFull) await window.drained();
      if (window.hasEnded) return;
    }
  } finally {
    window.end();
  }
}

/** `for await` looks for a `then` in each item of a plain iterable. A Proxy of the caller may throw there, and
 *  one bad task would end the whole submission. */
function wrapped(
  tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
): Iterable<{ readonly task: TaskRequest }> | AsyncIterable<{ readonly task: TaskRequest }> {
  return Symbol.asyncIterator in tasks ? wrappedLater(tasks) : wrappedNow(tasks);
}

async function* wrappedLater(
  tasks: AsyncIterable<TaskRequest>,
): AsyncGenerator<{ readonly task: TaskRequest }> {
  for await (const task of tasks) yield { task };
}

function* wrappedNow(tasks: Iterable<TaskRequest>): Generator<{ readonly task: TaskRequest }> {
  for (const task of tasks) yield { task };
}

function begin(task: TaskRequest, deps: SubmitManyDeps, window: Window): void {
  try {
    const prepared = deps.prepare(task);
    window.push(outcomeOf({ ...task, id: prepared.id }, deps.submit(prepared)), prepared.leastBytes);
  } catch (error) {
    window.push(outcomeOf(task, Promise.reject(error)), 0);
  }
}

/** Rejects only with errors that are no answer about the task: a signal's reason, a bug. */
async function outcomeOf(task: TaskRequest, submitting: Promise<TaskHandle>): Promise<SubmitOutcome> {
  try {
    return { ok: true, handle: await submitting, task };
  } catch (error) {
    if (error instanceof WaggleError) return { ok: false, error, task };
    throw error;
  }
}

/** Outcomes of tasks that were read and not yet yielded. Connects the reader with the consumer. */
class Window {
  readonly #entries: { readonly outcome: Promise<SubmitOutcome>; readonly bytes: number }[] = [];
  #bytes = 0;
  #hasEnded = false;
  #onFill: (() => void) | undefined;
  #onDrain: (() => void) | undefined;

  get isFull(): boolean {
    return this.#entries.length >= limits.submitWindowTasksMax || this.#bytes >= limits.submitWindowBytesMax;
  }

  /** The source ended, or the consumer stopped. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get first(): Promise<SubmitOutcome> | undefined {
    return this.#entries[0]?.outcome;
  }

  push(outcome: Promise<SubmitOutcome>, bytes: number): void {
    outcome.catch(() => undefined); // thrown when its turn comes; handled until then
    this.#entries.push({ outcome, bytes });
    this.#bytes += bytes;
    this.#onFill?.();
  }

  shift(): void {
    this.#bytes -= this.#entries.shift()?.bytes ?? 0;
    if (!this.isFull) this.#onDrain?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#onFill?.();
    this.#onDrain?.();
  }

  /** Resolves at the first entry, or at the end. */
  async filled(): Promise<void> {
    if (this.#entries.length > 0 || this.#hasEnded) return;
    await new Promise<void>((resolve) => {
      this.#onFill = resolve;
    });
  }

  /** Resolves when the window has room, or at the end. */
  async drained(): Promise<void> {
    if (!this.isFull || this.#hasEnded) return;
    await new Promise<void>((resolve) => {
      this.#onDrain = resolve;
    });
  }
}
