// One run at a time keeps its seeds in a state file: two would run the same seeds, and each might cut off what the
// other notes. Locked as the folder of a journal is, in a folder beside the file, so that a run that was killed locks
// nothing.

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
