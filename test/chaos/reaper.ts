// Ensures that no process outlives a run, even after kill -9 of the driver: a helper process knows all
// processes, and ends them when the driver is gone.

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

  /** Resolves when the helper listens. Does not keep the driver alive. */
  static async start(): Promise<Reaper> {
    const file = fileURLToPath(new URL("./processes/reaper-main.ts", import.meta.url));
    const child = fork(file, {
      execArgv: ["--import", "tsx"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      detached: true, // neither Ctrl-C nor the end of the terminal ends it early
    });
    await within(START_MS, "the reaper listens", once(child, "message"));
    child.unref();
    child.channel?.unref();
    return new Reaper(child);
  }

  /** Registers a running process. Ignores a process that has just ended. */
  minds(pid: number | undefined): void {
    const startTime = pid === undefined ? undefined : startTimeOf(pid);
    if (pid !== undefined && startTime !== undefined) this.#sendOrder({ type: "process", pid, startTime });
  }

  /** Registers a folder to delete. */
  removes(folder: string): void {
    this.#sendOrder({ type: "folder", folder });
  }

  /** Registers a folder to unmount. */
  unmounts(folder: string): void {
    this.#sendOrder({ type: "mount", folder });
  }

  #sendOrder(order: Reaped): void {
    if (this.#child.connected) this.#child.send(order);
  }
}

/** Start time of a process, which with the pid is unique, because pids are reused. @returns undefined without
 *  the process or without /proc */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")")).split(" ")[20]; // field 22 of proc(5); the name may hold spaces
  } catch {
    return undefined;
  }
}
