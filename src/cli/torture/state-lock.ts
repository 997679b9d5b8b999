// The lock of a state file: one run at a time notes seeds in the file. Two runs would run the same seeds, and might cut
// off each other's lines. The lock is a folder beside the file, as for a journal, so a killed run leaves no lock.

import { mkdir, realpath, rmdir } from "node:fs/promises";
import { WaggleError } from "../../errors.ts";
import { type FolderLock, lockFolder } from "../../journal/file/folder-lock.ts";
import { fileError } from "../file-error.ts";
import { UsageError } from "../usage-error.ts";

/** @param path of a file that is there
 *  @param name as the user gave it
 *  @throws UsageError naming the process that holds it */
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
  await rmdir(folder).catch(() => undefined); // the next one has it already
}

function heldError(name: string, pid: number): UsageError {
  return new UsageError(
    `process ${pid} keeps its seeds in ${name}, as one run at a time may; wait for it, or name another file`,
    { field: "state" },
  );
}
