// `.waggle/demo/results.ndjson`: one line per task, in the order of the files.

import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Outcome } from "../../protocol/schemas.ts";
import type { DemoTask } from "./scenario.ts";

/** A line: the fields of the work, or the error. */
export function resultLine(task: DemoTask, outcome: Outcome): string {
  const { file, kind, id } = task;
  const head = { file, kind, ...fieldsOf(outcome) };
  return JSON.stringify({ ...head, task: id, agent: outcome.agent, attempts: outcome.attempts });
}

function fieldsOf({ state, result, error, reason }: Outcome): object {
  if (state === "completed" && result !== undefined) return JSON.parse(result) as object;
  return { error: error ?? reason ?? state };
}

/** Whole or not at all: a reader never sees half a run. */
export async function writeResults(file: string, lines: readonly string[]): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}.new`;
  await writeFile(draft, lines.map((line) => `${line}\n`).join(""));
  await rename(draft, file);
}
