// Files for the demo: the files that git lists, or every file outside of hidden folders and node_modules; text only.
// Files that are left out are counted by reason and reported.

import { execFile } from "node:child_process";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { limits } from "../../limits.ts";
import { UsageError } from "../usage-error.ts";

const skipReasons = [
  "not text",
  "too large",
  "unreadable",
  "no plain file",
  "beyond the demo's bound",
] as const;
export type SkipReason = (typeof skipReasons)[number];

export interface FoundFiles {
  /** Relative to the folder, in order. */
  readonly files: readonly string[];
  readonly skipped: Readonly<Partial<Record<SkipReason, number>>>;
  readonly listedBy: "git" | "walking";
}

/** @throws WaggleError WAGGLE_USAGE when the folder cannot be read; the signal's reason */
export async function findTextFiles(folder: string, signal?: AbortSignal): Promise<FoundFiles> {
  const fromGit = await listedByGit(folder, signal);
  const listed = (fromGit ?? (await listedByWalking(folder, signal))).sort();
  const skipped: Partial<Record<SkipReason, number>> = {};
  const files: string[] = [];
  for (const file of listed) {
    signal?.throwIfAborted();
    const reason =
      files.length < limits.demoFilesMax ? await whySkip(join(folder, file)) : "beyond the demo's bound";
    if (reason === undefined) files.push(file);
    else skipped[reason] = (skipped[reason] ?? 0) + 1;
  }
  return { files, skipped, listedBy: fromGit === undefined ? "walking" : "git" };
}

/** Undefined without git, outside of a repository, or in a folder that git ignores. */
async function listedByGit(folder: string, signal: AbortSignal | undefined): Promise<string[] | undefined> {
  try {
    const { stdout } = await promisify(execFile)("git", ["ls-files", "-z"], {
      cwd: folder,
      maxBuffer: limits.demoListBytesMax,
      ...(signal === undefined ? {} : { signal }),
    });
    const files = stdout.split("\0").filter((file) => file !== "");
    return files.length > 0 ? [...new Set(files)] : undefined;
  } catch {
    return undefined; // whatever git's error, walking the folder works or reports the problem
  }
}

async function listedByWalking(folder: string, signal: AbortSignal | undefined): Promise<string[]> {
  const found: string[] = [];
  const pending = [""];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    signal?.throwIfAborted();
    for (const entry of await entriesOf(folder, at)) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`;
      if (!entry.isDirectory()) found.push(path);
      else if (!entry.name.startsWith(".") && entry.name !== "node_modules") pending.push(path);
    }
  }
  return found;
}

async function entriesOf(folder: string, at: string) {
  try {
    return await readdir(join(folder, at), { withFileTypes: true });
  } catch (cause) {
    if (at !== "") return []; // a folder without read permission is left out
    throw new UsageError(`cannot read the folder ${folder}: ${(cause as Error).message}`, {
      cause,
    });
  }
}

async function whySkip(path: string): Promise<SkipReason | undefined> {
  try {
    const { size, isFile } = await lstat(path).then((stats) => ({
      size: stats.size,
      isFile: stats.isFile(),
    }));
    if (!isFile) return "no plain file";
    if (size > limits.demoFileBytesMax) return "too large";
    return (await isText(path)) ? undefined : "not text";
  } catch {
    return "unreadable"; // deleted since the listing, or unreadable: counted as unreadable
  }
}

/** Text has no NUL among the first bytes, as for git and grep. */
async function isText(path: string): Promise<boolean> {
  const file: FileHandle = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(
      Buffer.alloc(limits.demoProbeBytes),
      0,
      limits.demoProbeBytes,
      0,
    );
    return !buffer.subarray(0, bytesRead).includes(0);
  } finally {
    await file.close();
  }
}
