// The processor time of a process, from Linux.

import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

const TICK_MS = 10;

/** So far, ms, to within 10; NaN where the system does not say. */
export function processorMs({ pid }: ChildProcess): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return Number.NaN; // not Linux
  }
}
