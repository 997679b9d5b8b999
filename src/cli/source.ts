// A source of the command line, @FILE or - for standard input: whether it is readable, its bytes, its lines. Not
// here: its content (task-source.ts, plan-snapshot.ts).

import { isUtf8 } from "node:buffer";
import { constants, createReadStream } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import { lineNotUtf8 } from "../config/utf8.ts";
import type { Shell } from "./shell.ts";
import { UsageError } from "./usage-error.ts";

/** Name for people: the file's name, or `standard input`. */
export function nameOf(source: string): string {
  return source === "-" ? "standard input" : source.slice(1);
}

/** Runs before any other step. @throws UsageError for the first unreadable file */
export async function checkFiles(sources: readonly string[], { cwd }: Pick<Shell, "cwd">): Promise<void> {
  for (const file of sources.filter((source) => source !== "-").map(nameOf)) {
    try {
      const stats = await stat(resolve(cwd, file));
      if (stats.isDirectory()) throw new Error("this is a folder");
      await access(resolve(cwd, file), constants.R_OK);
    } catch (cause) {
      throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
    }
  }
}

/** All bytes of the source. @throws UsageError if unreadable, AbortError if `signal` aborts first */
export async function readSource(
  source: string,
  shell: Pick<Shell, "stdin" | "cwd">,
  signal?: AbortSignal,
): Promise<Buffer> {
  if (source === "-")
    return await readAll(signal === undefined ? shell.stdin : addAbortSignal(signal, shell.stdin));
  const file = nameOf(source);
  try {
    return await readFile(resolve(shell.cwd, file));
  } catch (cause) {
    throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
}

async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks);
}

/** The bytes as text. @throws UsageError `FILE:LINE: not UTF-8` */
export function textIn(bytes: Buffer, name: string): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new UsageError(`${name}:${lineNotUtf8(bytes)}: not UTF-8`);
}

/** The lines without their ends, until `signal` aborts. As bytes: the caller checks the encoding.
 *  @throws UsageError if unreadable */
export async function* linesOf(
  source: string,
  shell: Pick<Shell, "stdin" | "cwd">,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  const file = nameOf(source);
  const input = source === "-" ? shell.stdin : createReadStream(resolve(shell.cwd, file));
  if (signal !== undefined) addAbortSignal(signal, input);
  let parts: Buffer[] = [];
  const line = () => {
    const whole = Buffer.concat(parts);
    parts = [];
    return whole.at(-1) === CARRIAGE_RETURN ? whole.subarray(0, -1) : whole;
  };
  try {
    for await (const chunk of input) {
      let rest = Buffer.from(chunk as Uint8Array);
      for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
        parts.push(rest.subarray(0, end));
        yield line();
        rest = rest.subarray(end + 1);
      }
      parts.push(rest);
    }
  } catch (cause) {
    if (signal?.aborted) return;
    throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  const last = line();
  if (last.length > 0) yield last;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
