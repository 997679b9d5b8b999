// Observations as JSON lines in a file, written by processes that may be killed at any moment and read at the
// end.

import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Observation } from "../../src/sim/history/observation.ts";

const FLUSH_MS = 50;
const SUFFIX = ".history.ndjson";

export function historyFile(folder: string, node: string): string {
  return join(folder, `${node}${SUFFIX}`);
}

/** Buffers observations briefly and appends them. Buffered observations of a killed process are not judged. */
export class HistoryWriter {
  readonly #file: string;
  readonly #recordsEvery: number;
  #lines: string[] = [];

  /** @param recordsEvery records one task in this many: tasks with a multiple as the last number of the id */
  constructor(file: string, recordsEvery: number) {
    this.#file = file;
    this.#recordsEvery = recordsEvery;
    setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  readonly record = (observation: Observation): void => {
    const task = observation.kind === "notified" ? observation.outcome.task : observation.task;
    const number = Number(task.slice(task.lastIndexOf("-") + 1));
    if (number % this.#recordsEvery !== 0) return;
    this.#lines.push(`${JSON.stringify(observation)}\n`);
  };

  flush(): void {
    if (this.#lines.length === 0) return;
    appendFileSync(this.#file, this.#lines.join(""));
    this.#lines = [];
  }
}

/** Observations of all nodes. Skips an incomplete last line of a killed process. */
export function readHistory(folder: string): Observation[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
  return files.flatMap((name) =>
    readFileSync(join(folder, name), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Observation),
  );
}
