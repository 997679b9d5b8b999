// Which seeds were run already, so that a long run can be interrupted and gone on with: one JSON line a seed, written
// as it ends. A line that was cut off by a crash is a seed to run again, and so is one of another version of the code:
// a seed takes the same course on the same code alone.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { SeedReport } from "../../sim/fault/run-seed.ts";
import { UsageError } from "../usage-error.ts";
import type { SeedTerms } from "./request.ts";

type Line = SeedTerms & SeedReport & { readonly version: string };

export interface StateRead {
  readonly reports: readonly SeedReport[];
  /** Seeds of other versions of the code. */
  readonly leftOut: number;
}

/** What stands in the file; nothing where there is none. @param version of the code (code-version.ts)
 *  @throws UsageError where its seeds ran on other terms */
export function readState(path: string, terms: SeedTerms, version: string): StateRead {
  if (!existsSync(path)) return { reports: [], leftOut: 0 };
  const all = readFileSync(path, "utf8").split("\n").flatMap(parsed);
  const lines = all.filter((line) => line.version === version);
  const other = lines.find((line) => !isSame(line, terms));
  if (other === undefined) return { reports: lines, leftOut: all.length - lines.length };
  throw new UsageError(
    `${path} holds seeds of ${other.forMs / 1_000} s${other.without.length === 0 ? "" : ` without ${other.without.join(",")}`}; ` +
      "name another file, or the same --for and --without",
    { field: "state" },
  );
}

/** @throws UsageError where it cannot be written */
export function noteSeed(
  path: string,
  report: SeedReport,
  { terms, version }: { readonly terms: SeedTerms; readonly version: string },
): void {
  try {
    appendFileSync(path, `${JSON.stringify({ version, ...terms, ...report })}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`cannot write ${path}: ${reason}`, { field: "state", cause: error });
  }
}

function parsed(text: string): Line[] {
  try {
    return text === "" ? [] : [JSON.parse(text) as Line];
  } catch {
    return []; // cut off: that seed runs again
  }
}

function isSame(line: SeedTerms, terms: SeedTerms): boolean {
  return line.forMs === terms.forMs && line.without.join() === terms.without.join();
}
