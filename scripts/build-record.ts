// The record of the last build: a hash of what the build read, and the files that it wrote. If both are as they were,
// there is nothing to build. Reading all sources takes 50 ms, and a build without changes takes seconds.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export interface BuildRecord {
  /** As `hashOfSources`. */
  readonly sources: string;
  /** Size and time of change of each written file, by its path relative to dist. */
  readonly written: Readonly<Record<string, readonly [bytes: number, changedMs: number]>>;
}

/** In dist. */
export const RECORD = ".build-record.json";

const folders = ["machines", "scripts", "src"];
/** npm keeps the versions of the installed packages in the last file. */
const files = ["package.json", "tsconfig.json", "tsconfig.build.json", "node_modules/.package-lock.json"];

/** @param root the folder of package.json */
export function hashOfSources(root: string): string {
  const hash = createHash("sha256");
  for (const file of [...folders.flatMap((folder) => filesIn(root, folder)), ...files]) {
    if (!existsSync(join(root, file))) continue;
    const bytes = readFileSync(join(root, file));
    hash.update(`${file}\n${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex");
}

/** Undefined without a record that can be read. */
export function readRecord(dist: string): BuildRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(dist, RECORD), "utf8")) as BuildRecord;
  } catch {
    return undefined; // a missing or damaged record costs one build
  }
}

/** Of files relative to dist. */
export function writtenNow(dist: string, written: readonly string[]): BuildRecord["written"] {
  return Object.fromEntries(
    written.map((file) => {
      // A build beside this one may have removed the file.
      const stats = statSync(join(dist, file), { throwIfNoEntry: false });
      return [file, [stats?.size ?? 0, stats?.mtimeMs ?? 0]];
    }),
  );
}

/** Whether each written file is as the record says. */
export function areUnchanged(dist: string, { written }: BuildRecord): boolean {
  return Object.entries(written).every(([file, [bytes, changedMs]]) => {
    const stats = statSync(join(dist, file), { throwIfNoEntry: false });
    return stats?.size === bytes && stats.mtimeMs === changedMs;
  });
}

/** Paths relative to the root, sorted; none without the folder. */
function filesIn(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replace(/^\//, ""))
    .sort();
}
