// Programs that some suites need besides Node. Without its program a suite is skipped, and the end of the run names
// the suite and the program to install (skipped-suites-reporter.ts). With CI=true a missing program is a failure.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "vitest";

/** For `describe.runIf` and `it.runIf`. @throws Error in CI without the program */
export function hasProgram(program: string, suite: string): boolean {
  if (pathsOf(program).length > 0) return true;
  sayMissing(`${suite}: no ${program} on the PATH: install ${program}`);
  return false;
}

/** Where the PATH has the program, best first. */
export function pathsOf(program: string): string[] {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, program)).filter(isExecutable);
}

/** Leaves one skipped test in the file, because vitest fails a file without tests.
 *  @param sentence the suite, the missing program, what to install @throws Error in CI */
export function skipSuite(suite: string, sentence: string): void {
  sayMissing(sentence);
  test.skipIf(true)(suite, () => undefined);
}

function sayMissing(sentence: string): void {
  if (process.env.CI === "true") throw new Error(`${sentence}; CI must have it`);
  console.warn(`${sentence}; skipped`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent, or not ours to run
  }
}
