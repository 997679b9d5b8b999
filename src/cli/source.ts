// What a command line names as @FILE, or - for standard input: whether it can be read, its bytes, its lines.
// Not here: what is in it (task-source.ts, plan-snapshot.ts).

import { constants, createReadStream } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { addAbortSignal, type Readable } from "node:stream";
import type { Shell } from "./shell.ts";
import { UsageError } from "./usage-error.ts";

/** What people call it: the file's name, or `standard input`. */
export function nameOf(source: string): string {
  return source === "-" ? "standard input" : source.slice(1);
}

/** Before anything else is begun. @throws UsageError naming the first file that cannot be read */
export async function checkFiles(sources: readonly string[], { cwd }: Pick<Shell, "cwd">): Promise<void> {
  for (const file of sources.filter((source) => source !== "-").map(nameOf)) {
    try {
      const stats = await stat(resolve(cwd, file));
      if (stats.isDirectory()) throw new Error("it is a folder");
      await access(resolve(cwd, file), constants.R_OK);
    } catch (cause) {
      throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
    }
  }
}

/** All of it. @throws UsageError when it cannot be read, AbortError when `signal` aborts first */
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

/** Its lines, without their ends; no more of them once `signal` aborts. @throws UsageError when it cannot be read */
export async function* linesOf(
  source: string,
  shell: Pick<Shell, "stdin" | "cwd">,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  const file = nameOf(source);
  const input = source === "-" ? shell.stdin : createReadStream(resolve(shell.cwd, file));
  try {
    yield* createInterface({
      input,
      crlfDelay: Number.POSITIVE_INFINITY,
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
}
