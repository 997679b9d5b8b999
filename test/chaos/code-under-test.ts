// Which code a leg struck, for whoever reads its figures later.

import { spawnSync } from "node:child_process";

/** What a leg runs and is judged by. */
const PATHS = ["src", "bin", "test", "package.json", "package-lock.json"];

/** The commit that is checked out, seven digits; with a `+` where files differ from it; `unknown` without git. */
export function codeUnderTest(folder = "."): string {
  const commit = git(folder, "rev-parse", "--short=7", "HEAD");
  if (commit === undefined) return "unknown";
  return git(folder, "status", "--porcelain", "--", ...PATHS) === "" ? commit : `${commit}+`;
}

function git(folder: string, ...argv: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync("git", ["-C", folder, ...argv], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
