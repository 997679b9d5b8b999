// The events of an A2A stream until the end of a task: states with reports of agents, then the end. Chunks of the
// result build an artifact, and the result completes the artifact.

import { type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import type { ResultChunk } from "../../client/chunk-log.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import { limits } from "../../limits.ts";
import { reportOf } from "../task-report.ts";
import { endedView, type Named, partOf, resultArtifact, statusOf, textPart } from "./task-view.ts";

interface FeedOptions {
  readonly signal: AbortSignal;
  /** Time of the end, ms since the Unix epoch. Default: the time at which the outcome comes. */
  readonly endedAt?: number | undefined;
}

/** Ends with the task, or when `signal` aborts. @throws the errors of the wait for the outcome */
export async function* feedOf(
  handle: TaskHandle,
  named: Named,
  { signal, endedAt }: FeedOptions,
): AsyncGenerator<StreamResponse> {
  const queue = new EventQueue();
  const stopped = new AbortController();
  const streamed = new StreamedText();
  const ending = AbortSignal.any([signal, stopped.signal]);
  const updates = handle.events$.subscribe({
    next: (update) => {
      const says = reportOf(update);
      if (says !== undefined)
        queue.add(statusEvent(named, statusOf(named, TaskState.TASK_STATE_WORKING, { says })));
    },
    error: () => undefined, // the wait for the outcome reports errors
  });
  const chunked = passOn(handle, { named, streamed, queue, signal: ending });
  const ended = handle.outcome({ signal: ending }).then(async (outcome) => {
    await chunked;
    const end = endedView(named, outcome, endedAt);
    for (const event of endOf(end, named, queue.hasDropped ? undefined : streamed)) queue.add(event);
  });
  try {
    ended.then(
      () => queue.end(),
      (error: unknown) => queue.end(error),
    );
    yield* queue.events();
  } finally {
    stopped.abort();
    updates.unsubscribe();
  }
}

/** The rest of the result, and the end. @param streamed undefined: parts of the result did not reach the reader */
function* endOf(
  { status, artifacts }: Task,
  named: Named,
  streamed: StreamedText | undefined,
): Generator<StreamResponse> {
  const parts = artifacts[0]?.parts ?? [];
  const content = parts[0]?.content;
  const rest = content?.$case === "text" ? streamed?.restOf(content.value) : undefined;
  if (rest === undefined || streamed === undefined) {
    if (parts.length > 0) yield artifactEvent(named, { parts, append: false, isLast: true });
  } else if (rest !== "" || streamed.isEmpty)
    yield artifactEvent(named, { parts: [textPart(rest)], append: !streamed.isEmpty, isLast: true });
  yield statusEvent(named, status);
}

interface Passing {
  readonly named: Named;
  readonly streamed: StreamedText;
  readonly queue: EventQueue;
  readonly signal: AbortSignal;
}

/** Never rejects: chunks may be lost, the result is whole. */
async function passOn(handle: TaskHandle, { named, streamed, queue, signal }: Passing): Promise<void> {
  try {
    for await (const chunk of handle.chunks({ signal })) {
      const isFirst = streamed.add(chunk);
      queue.add(artifactEvent(named, { parts: [partOf(chunk.bytes())], append: !isFirst, isLast: false }));
    }
  } catch {
    return; // the wait for the outcome reports errors
  }
}

/** The text of the present attempt's chunks, and whether it is the beginning of the result. */
class StreamedText {
  #attempt = 0;
  #next = 0;
  #text = "";
  #hasGap = false;

  get isEmpty(): boolean {
    return this.#next === 0;
  }

  /** @returns true for the first chunk of an attempt, which replaces the chunks of attempts before */
  add(chunk: ResultChunk): boolean {
    const isFirst = chunk.attempt !== this.#attempt;
    if (isFirst) {
      this.#attempt = chunk.attempt;
      this.#next = 0;
      this.#text = "";
      this.#hasGap = false;
    }
    if (chunk.index !== this.#next || chunk.encoding !== undefined) this.#hasGap = true;
    this.#next = chunk.index + 1;
    this.#text += chunk.data;
    return isFirst;
  }

  /** The part of the result that was not sent; undefined when other text was sent. */
  restOf(result: string): string | undefined {
    if (this.#hasGap || !result.startsWith(this.#text)) return undefined;
    return result.slice(this.#text.length);
  }
}

function statusEvent({ id: taskId, contextId }: Named, status: Task["status"]): StreamResponse {
  return { payload: { $case: "statusUpdate", value: { taskId, contextId, status, metadata: {} } } };
}

function artifactEvent(
  { id: taskId, contextId }: Named,
  of: {
    readonly parts: Parameters<typeof resultArtifact>[0];
    readonly append: boolean;
    readonly isLast: boolean;
  },
): StreamResponse {
  const { parts, append, isLast: lastChunk } = of;
  const artifact = resultArtifact(parts);
  return {
    payload: {
      $case: "artifactUpdate",
      value: { taskId, contextId, artifact, append, lastChunk, metadata: {} },
    },
  };
}

/** Events that wait for a reader. Beyond the limit the oldest are dropped; the last events have the whole result. */
class EventQueue {
  hasDropped = false;
  #events: StreamResponse[] = [];
  #end: { readonly error: unknown } | undefined;
  #wake: () => void = () => undefined;

  add(event: StreamResponse): void {
    if (this.#events.length >= limits.a2aWaitingEventsMax) {
      this.#events.shift();
      this.hasDropped = true;
    }
    this.#events.push(event);
    this.#wake();
  }

  end(error?: unknown): void {
    this.#end = { error };
    this.#wake();
  }

  async *events(): AsyncGenerator<StreamResponse> {
    while (true) {
      const event = this.#events.shift();
      if (event !== undefined) yield event;
      else if (this.#end === undefined)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      else if (this.#end.error === undefined) return;
      else throw this.#end.error;
    }
  }
}
