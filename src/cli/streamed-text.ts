// The text of `submit --stream`: chunks of the result as they come, then what the result has beyond the chunks.

import { Buffer } from "node:buffer";
import type { ResultChunk } from "../client/chunk-log.ts";
import type { TaskHandle } from "../client/task-handle.ts";
import { limits } from "../limits.ts";
import type { Outcome } from "../protocol/schemas.ts";
import type { Output } from "./output.ts";

/** Prints the chunks until the task ends. At a terminal control characters are shown, not executed. */
export async function printChunks(
  handle: TaskHandle,
  output: Output,
  signal: AbortSignal,
): Promise<PrintedChunks> {
  const printed = new PrintedChunks(output);
  for await (const chunk of handle.chunks({ signal })) printed.add(chunk);
  if (signal.aborted) printed.endLine(); // the wait was given up: no result follows
  return printed;
}

export class PrintedChunks {
  readonly #output: Output;
  /** Number of the last chunk's attempt; 0 before the first chunk. */
  #attempt = 0;
  #next = 0;
  /** The attempt's chunks. Empty beyond the size of a result. */
  #chunks: ResultChunk[] = [];
  #bytes = 0;
  #isLineOpen = false;

  constructor(output: Output) {
    this.#output = output;
  }

  add(chunk: ResultChunk): void {
    const { attempt, index } = chunk;
    if (attempt !== this.#attempt) this.#begin(attempt);
    if (index > this.#next) this.#output.note(missing(this.#next, index));
    this.#next = index + 1;
    this.#keep(chunk);
    if (this.#output.json) this.#output.datum(recordOf(chunk), () => "");
    else this.#output.part(chunk.encoding === undefined ? chunk.data : chunk.bytes());
    this.#isLineOpen = !this.#output.json && chunk.encoding === undefined && !chunk.data.endsWith("\n");
  }

  /** Prints the rest of a result, or all of it where other text was printed. */
  printResult({ result = "", encoding, attempts }: Outcome): void {
    if (attempts > this.#attempt) this.#begin(attempts); // an attempt without chunks
    const rest = this.#restOf(result, encoding);
    if (rest === undefined) {
      this.endLine();
      this.#output.note("the result differs from the printed parts; it follows");
      return this.#output.raw(encoding === undefined ? result : Buffer.from(result, "base64"));
    }
    if (rest.length > 0) {
      this.#output.part(encoding === undefined ? rest.toString() : rest);
      this.#isLineOpen = encoding === undefined && !rest.toString().endsWith("\n");
    }
    this.endLine();
  }

  endLine(): void {
    if (this.#isLineOpen) this.#output.part("\n");
    this.#isLineOpen = false;
  }

  #begin(attempt: number): void {
    this.endLine();
    if (this.#attempt !== 0)
      this.#output.note(`attempt ${attempt} begins; the output of attempt ${this.#attempt} is void`);
    this.#attempt = attempt;
    this.#next = 0;
    this.#chunks = [];
    this.#bytes = 0;
  }

  #keep(chunk: ResultChunk): void {
    this.#bytes += chunk.data.length;
    if (this.#bytes > 2 * limits.payloadBytesMax) this.#chunks = [];
    else this.#chunks.push(chunk);
  }

  /** The part of the result that was not printed; undefined when other text was printed. */
  #restOf(result: string, encoding: "base64" | undefined): Buffer | undefined {
    const chunks = this.#chunks;
    if (chunks.length !== this.#next) return undefined; // some were lost, or there were too many
    const whole = Buffer.from(result, encoding ?? "utf8");
    const printed = Buffer.concat(chunks.map((chunk) => chunk.bytes()));
    if (whole.subarray(0, printed.length).equals(printed)) return whole.subarray(printed.length);
    const isListed = result === `[${chunks.map(({ data }) => data).join(",")}]`; // values that a generator yielded
    return isListed ? Buffer.alloc(0) : undefined;
  }
}

function missing(from: number, to: number): string {
  return to - from === 1
    ? `chunk ${from} was lost on the way; the result has it`
    : `chunks ${from} to ${to - 1} were lost on the way; the result has them`;
}

function recordOf({ attempt, agent, index, data, encoding }: ResultChunk): object {
  return { type: "chunk", attempt, agent, index, data, ...(encoding === undefined ? {} : { encoding }) };
}
