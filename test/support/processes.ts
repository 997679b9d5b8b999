// The processes of this machine: from /proc on Linux, which needs no program, otherwise from ps.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Process group. */
  readonly group: number;
  /** `R`, `S`, `T` (stopped), `Z` (ended, not yet reaped), … */
  readonly state: string;
  /** The command line, words joined by spaces; empty for a zombie. */
  readonly command: string;
}

export function processes(): ProcessRow[] {
  return process.platform === "linux" ? fromProc() : fromPs();
}

/** States of all threads of a process; empty after its end. */
export function threadStates(pid: number): string[] {
  if (process.platform !== "linux") {
    const of = fromPs().filter((row) => row.pid === pid);
    return of.map(({ state }) => state);
  }
  return entriesOf(`/proc/${pid}/task`).flatMap((thread) => {
    const stat = statOf(`/proc/${pid}/task/${thread}`);
    return stat === undefined ? [] : [stat.state];
  });
}

function fromProc(): ProcessRow[] {
  return entriesOf("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = statOf(`/proc/${name}`);
      if (stat === undefined) return [];
      const command = contentOf(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim();
      return [{ pid: Number(name), ...stat, command }];
    });
}

/** The program's name stands in parentheses and may hold anything. */
function statOf(folder: string): Pick<ProcessRow, "parent" | "group" | "state"> | undefined {
  const [state, parent, group] = contentOf(`${folder}/stat`)
    .replace(/^.*\) /s, "")
    .split(" ");
  if (state === undefined || group === undefined) return undefined;
  return { state, parent: Number(parent), group: Number(group) };
}

function fromPs(): ProcessRow[] {
  const columns = "pid=,ppid=,pgid=,stat=,command=";
  const lines = execFileSync("ps", ["-axww", "-o", columns], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, group, state = "", command = ""] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S)\S*\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), state, command }];
  });
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // the process is gone
  }
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // the process is gone
  }
}
