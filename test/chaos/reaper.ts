// Sees to it that nothing of a run outlives it, a kill -9 of the driver included: a process beside it is told of all
// others, and ends them when the driver is gone.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { within } from "./within.ts";

const START_MS = 30_000;

export type Reaped =
  | { readonly type: "process"; readonly pid: number; readonly startTime: string }
  | { readonly type: "folder"; readonly folder: string }
  | { readonly type: "mount"; readonly folder: string };

export class Reaper {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when it listens. It keeps nobody from ending. */
  static async start(): Promise<Reaper> {
    const file = fileURLToPath(new URL("./processes/reaper-main.ts", import.meta.url));
    const child = fork(file, {
      execArgv: ["--import", "tsx"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      detached: true, // neither Ctrl-C nor the end of the terminal ends it before its work is done
    });
    await within(START_MS, "the reaper listens", once(child, "message"));
    child.unref();
    child.channel?.unref();
    return new Reaper(child);
  }

  /** A process that runs. One that has just ended is nobody's. */
  minds(pid: number | undefined): void {
    const startTime = pid === undefined ? undefined : startTimeOf(pid);
    if (pid !== undefined && startTime !== undefined) this.#tell({ type: "process", pid, startTime });
  }

  /** A folder of which nothing is to be left. */
  removes(folder: string): void {
    this.#tell({ type: "folder", folder });
  }

  /** A folder over which something is mounted that is not to stay. */
  unmounts(folder: string): void {
    this.#tell({ type: "mount", folder });
  }

  #tell(told: Reaped): void {
    if (this.#child.connected) this.#child.send(told);
  }
}

/** With the pid it names one process: pids are used again. @returns undefined when there is none, or no /proc */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")")).split(" ")[20]; // field 22 of proc(5); the name may hold spaces
  } catch {
    return undefined;
  }
}
