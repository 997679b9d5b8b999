// The error for a file of the command line that cannot be used.

import { messageOf } from "../errors.ts";
import { UsageError } from "./usage-error.ts";

/** What the codes of the operating system mean, for people. */
const reasonByCode: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EBUSY: "it is in use",
  EEXIST: "it exists already",
  EISDIR: "it is a folder, and a file is needed",
  ELOOP: "its symbolic links lead back to themselves",
  EMFILE: "too many files are open",
  ENAMETOOLONG: "the name is too long",
  ENOENT: "there is no such file or folder",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is a file, and no folder",
  EPERM: "permission denied",
  EROFS: "its file system is read-only",
};

/** `cannot read x.json: there is no such file or folder`.
 *  @param does the failed operation
 *  @param field the flag that named the file */
export function fileError(does: string, file: string, error: unknown, field?: string): UsageError {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "";
  const isFolderMissing = does === "write" && code === "ENOENT";
  const reason = isFolderMissing ? "its folder does not exist" : (reasonByCode[code] ?? messageOf(error));
  return new UsageError(`cannot ${does} ${file}: ${reason}`, {
    cause: error,
    ...(field === undefined ? {} : { field }),
  });
}
