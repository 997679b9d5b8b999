// Locks a state file for a single run: two runs would run the same seeds, and could cut off each other's lines. The
// lock is a folder beside the file, locked like the folder of a journal, so a killed run leaves no lock.

import { mkdir, realpath, rmdir } from "node:fs/promises";
import { WaggleError } from "../../errors.ts";
import { type FolderLock, lockFolder } from "../../journal/file/folder-lock.ts";
import { fileError } from "../file-error.ts";
import { UsageError } from "../usage-error.ts";

/**
 * @param path of an existing file
 * @param name as given by the user
 * @throws UsageError naming the process with the lock
 */
export async function lockStateFile(path: string, name: string): Promise<FolderLock> {
  const folder = `${await realpath(path)}.lock`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = await lockFolder(folder, (pid) => heldError(name, pid));
    return { release: () => release(folder, lock) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return await lockStateFile(path, name); // just released
    throw error instanceof WaggleError ? error : fileError("lock", name, error, "state");
  }
}

async function release(folder: string, lock: FolderLock): Promise<void> {
  await lock.release();
  await rmdir(folder).catch(() => undefined); // the next run already holds the folder
}

function heldError(name: string, pid: number): UsageError {
  return new UsageError(
    `process ${pid} uses the state file ${name}, and only one run at a time may; wait for its end, or name a different file`,
    { field: "state" },
  );
}
