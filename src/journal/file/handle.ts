// The disk under the file journal. The journal opens files through a function, so that a test can let the disk run full
// or break, and count syncs.

import { type FileHandle, open } from "node:fs/promises";
import { UnreachableError } from "../../errors.ts";

/** A file as the journal uses files. */
export type JournalFile = Pick<FileHandle, "fd" | "read" | "writev" | "datasync" | "truncate" | "close">;

/** `create` refuses a file that exists. */
export type FileAccess = "create" | "write" | "read";

export type OpenJournalFile = (path: string, access: FileAccess) => Promise<JournalFile>;

/** A new file is readable by the user only. */
export const openJournalFile: OpenJournalFile = async (path, access) =>
  await open(path, { create: "wx+", write: "r+", read: "r" }[access], 0o600);

/** Writes all parts one after the other. A call that throws may have written some parts. */
export async function writeAll(file: JournalFile, parts: readonly Uint8Array[], at: number): Promise<void> {
  let written = (await file.writev([...parts], at)).bytesWritten;
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  while (written < bytes) {
    const rest = Buffer.concat(parts).subarray(written);
    written += (await file.writev([rest], at + written)).bytesWritten;
  }
}

/** Puts the names in a folder on the disk: creations, renames and removals survive a power loss. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // Windows opens no folder, and journals folder entries
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** True if the disk, or the user's quota, is full. */
export function isNoSpace(cause: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(codeOf(cause) ?? "");
}

export function isMissing(cause: unknown): boolean {
  return codeOf(cause) === "ENOENT";
}

/** Runs `action`. @throws UnreachableError for an error of the disk; other errors unchanged */
export async function reachingDisk<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof Error) || codeOf(cause) === undefined || !("syscall" in cause)) throw cause;
    throw new UnreachableError(
      `the journal's disk failed (${cause.message}); check the disk, and who may read and write the journal's folder`,
      { cause },
    );
  }
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}
