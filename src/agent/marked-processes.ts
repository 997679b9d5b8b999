// Ends the processes of an attempt that left the attempt's process group (setsid, daemons), on Linux. A process
// inherits the environment of the parent process, so a variable with a random mark finds all processes of an attempt.
// A command that clears the environment of a child process can leave the process behind: this is no sandbox.

import { readdirSync, readFileSync } from "node:fs";

/** Environment variable of a command and all its processes: random per attempt. */
export const MARK_VARIABLE = "WAGGLE_RUN";

/** Sends KILL to all processes with the mark. Elsewhere than on Linux, does nothing.
 *  @param firstPid id of the attempt's first process; the others have later ids */
export function killMarked(mark: string, firstPid: number): void {
  if (process.platform !== "linux") return;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const marked = processesAfter(firstPid).filter((pid) => hasMark(pid, mark));
    if (marked.length === 0) return;
    for (const pid of marked) kill(pid);
  }
}

/** A process that starts others while it is ended is found in a later round. */
const ROUNDS_MAX = 5;

/** Ids grow, and begin again from below after the maximum. */
function processesAfter(firstPid: number): number[] {
  const beyond = firstPid - Number(readProc("sys/kernel/pid_max")) / 2;
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > firstPid || pid < beyond);
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
