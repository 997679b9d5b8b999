// The text of `submit --stream`: chunks of the result as they come.

import type { ResultChunk } from "../client/chunk-log.ts";
import type { TaskHandle } from "../client/task-handle.ts";
import type { Output } from "./output.ts";

export interface Streamed {
  /** Whether chunks of the last attempt were printed. */
  readonly isPrinted: boolean;
}

/** Prints the chunks until the task ends. At a terminal control characters are shown, not executed. */
export async function tellChunks(handle: TaskHandle, output: Output, signal: AbortSignal): Promise<Streamed> {
  let attempt = 0;
  let next = 0;
  let isLineOpen = false;
  for await (const chunk of handle.chunks({ signal })) {
    if (attempt !== 0 && chunk.attempt !== attempt) {
      if (isLineOpen) output.part("\n");
      output.note(`attempt ${chunk.attempt} begins; the output of attempt ${attempt} is void`);
      next = 0;
    }
    if (chunk.index > next) output.note(`${missing(next, chunk.index)}; the result has them`);
    attempt = chunk.attempt;
    next = chunk.index + 1;
    if (output.json) output.datum(recordOf(chunk), () => "");
    else output.part(chunk.encoding === undefined ? chunk.data : chunk.bytes());
    isLineOpen = !output.json && !chunk.data.endsWith("\n");
  }
  if (isLineOpen) output.part("\n");
  return { isPrinted: attempt !== 0 };
}

function missing(from: number, to: number): string {
  return to - from === 1
    ? `chunk ${from} was lost on the way`
    : `chunks ${from} to ${to - 1} were lost on the way`;
}

function recordOf({ attempt, agent, index, data, encoding }: ResultChunk): object {
  return { type: "chunk", attempt, agent, index, data, ...(encoding === undefined ? {} : { encoding }) };
}
