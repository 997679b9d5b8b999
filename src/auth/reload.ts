// Tells the nats-server of the folder to read its configuration again. Process ids are reused, so the process is
// recognised by the configuration file on its command line.

import { readlinkSync } from "node:fs";
import { relative } from "node:path";
import { type AuthFolder, readSecret } from "./auth-folder.ts";

export type Reload = "reloaded" | "not-running";

/** @param isServer whether the process has the argument on its command line */
export async function reloadServer(
  { pidFile, serverConfig }: AuthFolder,
  isServer: (pid: number, argument: string) => Promise<boolean>,
): Promise<Reload> {
  const pid = Number(readSecret(pidFile)?.trim() || Number.NaN);
  if (!Number.isSafeInteger(pid) || pid < 1) return "not-running";
  for (const argument of [serverConfig, relative(folderOf(pid), serverConfig)]) {
    if (!(await isServer(pid, argument))) continue;
    process.kill(pid, "SIGHUP");
    return "reloaded";
  }
  return "not-running";
}

/** The working folder of a process, which a path on its command line may begin from. */
function folderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return process.cwd(); // no such process, or a system without /proc
  }
}
