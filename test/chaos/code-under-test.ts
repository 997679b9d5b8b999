// Identifies the code that a leg tested, for readers of its figures.

import { spawnSync } from "node:child_process";

/** Folders that a leg runs and judges with. */
const PATHS = ["src", "bin", "test", "package.json", "package-lock.json"];

/** The commit, seven digits; with a `+` when files differ from the commit; `unknown` without git. */
export function codeUnderTest(folder = "."): string {
  const commit = git(folder, "rev-parse", "--short=7", "HEAD");
  if (commit === undefined) return "unknown";
  return git(folder, "status", "--porcelain", "--", ...PATHS) === "" ? commit : `${commit}+`;
}

function git(folder: string, ...argv: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync("git", ["-C", folder, ...argv], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
