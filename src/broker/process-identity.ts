// Checks whether a process id still belongs to the broker. Ids are reused, and a process must not be killed
// only because of the id. The configuration file on the command line identifies a broker.

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/** True if process `pid` lives and has `argument` on the command line. */
export async function isProcessWith(pid: number, argument: string): Promise<boolean> {
  if (process.platform !== "linux") return (await askPs(pid, "command=")).includes(argument);
  return (await readProc(pid, "cmdline")).split("\0").includes(argument);
}

/** True if process `pid` has ended, with files and ports closed. An ending process loses the command line
 *  before the port. An ended process stays in the table as a zombie until collected by the parent. */
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
    return ""; // no process with the id
  }
}

async function askPs(pid: number, format: string): Promise<string> {
  try {
    return (await promisify(execFile)("ps", ["-ww", "-o", format, "-p", String(pid)])).stdout;
  } catch {
    return ""; // ps fails for an unknown id
  }
}
