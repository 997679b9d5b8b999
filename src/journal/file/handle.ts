// A file under the file journal, as little of it as is needed: a port, so that tests can let the disk
// run full or break, and count what is synced.

import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";

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
