// A file under the file journal, as little of it as is needed: a port, so that tests can let the disk
// run full or break, and count what is synced.

import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";

export interface JournalFile {
  size(): Promise<number>;
  /** Reads at most `target.length` bytes at `position`; returns how many there were. */
  read(target: Uint8Array, position: number): Promise<number>;
  /** Writes all parts one after the other at `position`. What throws may have written some of it. */
  write(parts: readonly Uint8Array[], position: number): Promise<void>;
  /** Returns when everything written is on the disk. */
  sync(): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Waits for what is under way. */
  close(): Promise<void>;
}

/** `write` creates the file if it is missing, readable by this user only; `read` takes what is there. */
export type FileAccess = "write" | "read";

export type OpenJournalFile = (path: string, access: FileAccess) => Promise<JournalFile>;

export async function openJournalFile(path: string, access: FileAccess): Promise<JournalFile> {
  return new DiskFile(access === "read" ? await open(path, "r") : await openOrCreate(path));
}

async function openOrCreate(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const handle = await open(path, "wx+", 0o600);
  await syncFolder(dirname(path));
  return handle;
}

/** So that the names of its files survive the power, too. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there, and their entries are journaled
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const NO_SPACE_CODES: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Whether the disk, or what this user may have of it, is full. */
export function isNoSpace(cause: unknown): boolean {
  return NO_SPACE_CODES.has((cause as NodeJS.ErrnoException).code);
}

/** What the disk says of the file at `path`, in words that name it and say what to do. Of a file that is missing its
 *  user says what that means. @throws JournalDamagedError where it is a folder; UnreachableError */
export async function reachingFile<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof Error) || !("syscall" in cause)) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") throw cause;
    const name = basename(path);
    if (code === "EISDIR")
      throw new JournalDamagedError(`${name} is a folder; restore the file from a backup or move it away`, {
        cause,
      });
    throw new UnreachableError(
      `${name} does not work (${cause.message}); see to the disk, and to who may read and write the file`,
      { cause },
    );
  }
}

class DiskFile implements JournalFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    return (await this.#handle.read(target, 0, target.length, position)).bytesRead;
  }

  async write(parts: readonly Uint8Array[], position: number): Promise<void> {
    const wanted = parts.reduce((sum, part) => sum + part.length, 0);
    let written = (await this.#handle.writev([...parts], position)).bytesWritten;
    if (written === wanted) return;
    const whole = Buffer.concat(parts);
    while (written < wanted) {
      written += (await this.#handle.write(whole, written, wanted - written, position + written))
        .bytesWritten;
    }
  }

  async sync(): Promise<void> {
    await this.#handle.datasync();
  }

  async truncate(size: number): Promise<void> {
    await this.#handle.truncate(size);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
