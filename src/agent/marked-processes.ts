// Ends the processes of an attempt that left the attempt's process group (setsid, daemons), on Linux. A process
// inherits the environment of the parent process, so a variable with a random mark finds all processes of an attempt.
// A command that clears the environment of a child process can leave the process behind: this is no sandbox.

import { readdirSync, readFileSync } from "node:fs";

/** Environment variable of a command and all its processes: random per attempt. */
export const MARK_VARIABLE = "WAGGLE_RUN";

/** The processes of an attempt have ids from `firstPid` on. */
export interface MarkedAttempt {
  readonly mark: string;
  /** Id of the attempt's first process. */
  readonly firstPid: number;
  readonly tookMs: number;
}

/** Sends KILL to all processes with the mark. Elsewhere than on Linux, does nothing. */
export function killMarked(attempt: MarkedAttempt): void {
  if (process.platform !== "linux") return;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const marked = candidates(attempt).filter((pid) => hasMark(pid, attempt.mark));
    if (marked.length === 0) return;
    for (const pid of marked) kill(pid);
  }
}

/** A process that starts others while it is ended is found in a later round. */
const ROUNDS_MAX = 5;

/** Too short for the kernel to give out all process ids once. Ids grow, and begin again from below after the
 *  maximum. */
const SHORT_MS = 1_000;

/** Reading the environment of every process takes milliseconds. So after a short attempt, only processes with ids
 *  between the attempt's first and the newest count. */
function candidates({ firstPid, tookMs }: MarkedAttempt): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  const newest = Number(readProc("loadavg").split(" ")[4]);
  if (tookMs >= SHORT_MS || !Number.isInteger(newest)) return pids;
  return pids.filter((pid) =>
    firstPid <= newest ? firstPid < pid && pid <= newest : firstPid < pid || pid <= newest,
  );
}

/** An ended process has no environment any more, and that of another user cannot be read. */
function hasMark(pid: number, mark: string): boolean {
  return readProc(`${pid}/environ`).split("\0").includes(`${MARK_VARIABLE}=${mark}`);
}

function readProc(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "latin1");
  } catch {
    return ""; // ended meanwhile, or of another user
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    return; // ended meanwhile, or of another user
  }
}
