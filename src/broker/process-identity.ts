// Whether a process id still means the broker that we started: ids are used again, and nothing that merely
// has the number may be killed. A broker is known by the configuration file on its command line.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** Whether process `pid` lives and has `argument` on its command line. */
export async function isProcessWith(pid: number, argument: string): Promise<boolean> {
  if (process.platform !== "linux") return (await askPs(pid, "command=")).includes(argument);
  return (await readProc(pid, "cmdline")).split("\0").includes(argument);
}

/** Whether process `pid` has ended, files and ports closed. An ending process loses its command line before
 *  its port, and one that ended stays in the table, as a zombie, until its parent has looked. */
export async function hasEnded(pid: number): Promise<boolean> {
  const state =
    process.platform === "linux"
      ? (await readProc(pid, "stat")).replace(/^.*\) /s, "")
      : (await askPs(pid, "stat=")).trim();
  return state === "" || state.startsWith("Z") || state.startsWith("X");
}

async function readProc(pid: number, file: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return ""; // no such process
  }
}

async function askPs(pid: number, format: string): Promise<string> {
  try {
    return (await promisify(execFile)("ps", ["-ww", "-o", format, "-p", String(pid)])).stdout;
  } catch {
    return ""; // ps fails when there is no such process
  }
}
