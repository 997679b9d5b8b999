// Which seeds were run already, so that a long run can be interrupted and gone on with: one JSON line a seed, written
// as it ends. A last line that was cut off by a crash is a seed to run again, and so is one of another version of the
// code: a seed takes the same course on the same code alone. A file of anything else is left as it is.

import { appendFileSync, closeSync, existsSync, openSync, readFileSync, truncateSync } from "node:fs";
import { z } from "zod";
import { limits } from "../../limits.ts";
import { type FaultKind, faultKinds, profiles } from "../../sim/fault/fault.ts";
import { occurrenceNames } from "../../sim/fault/occurrences.ts";
import type { SeedReport } from "../../sim/fault/run-seed.ts";
import { fileError } from "../file-error.ts";
import { textIn } from "../source.ts";
import { UsageError } from "../usage-error.ts";
import type { SeedTerms } from "./request.ts";

const count = z.int().min(0);
const ms = z.number().min(0);

/** What tells a line of ours, and whose it is. */
const lineSchema = z.looseObject({
  version: z.string(),
  forMs: ms,
  without: z.array(z.string()),
  profile: z.enum(profiles).optional(),
  seed: count.max(limits.seedMax),
  findings: z.array(z.looseObject({ check: z.string(), sentence: z.string() })),
  trace: z.string(),
  virtualMs: ms,
});

/** …and what else counts of it: another version of the code may have noted other things. */
const ownLineSchema = lineSchema.extend({
  without: z.array(z.enum(Object.keys(faultKinds) as FaultKind[])),
  findings: z.array(z.strictObject({ check: z.string(), sentence: z.string(), atMs: ms })),
  events: count,
  batches: count,
  tasks: count,
  realMs: ms,
  faults: count,
  occurrences: z.partialRecord(z.enum(occurrenceNames), count),
});

type Line = SeedTerms & SeedReport & { readonly version: string };

export interface StateRead {
  readonly reports: readonly SeedReport[];
  /** Seeds of other versions of the code. */
  readonly leftOut: number;
}

export class StateFile {
  readonly #path: string;
  readonly #name: string;
  readonly #own: { readonly terms: SeedTerms; readonly version: string };
  /** Behind these a crash left a line without its end: it goes when the next seed is noted. */
  #wholeBytes: number | undefined;

  /** @param name as the user gave it
   *  @param own of the seeds that count; `version` of the code (code-version.ts) */
  constructor(path: string, name: string, own: { readonly terms: SeedTerms; readonly version: string }) {
    this.#path = path;
    this.#name = name;
    this.#own = own;
  }

  /** What stands in the file; nothing where there is none.
   *  @throws UsageError where something else stands in it, or seeds that ran on other terms */
  read(): StateRead {
    if (!existsSync(this.#path)) return { reports: [], leftOut: 0 };
    const { texts, torn, wholeBytes } = this.#lines();
    if (torn !== "" && !torn.startsWith('{"version":')) this.#line(torn, texts.length + 1);
    const all = texts.map((text, at) => this.#line(text, at + 1));
    if (torn !== "") this.#wholeBytes = wholeBytes;
    const { terms, version } = this.#own;
    const lines = all.filter((line) => line.version === version);
    const other = lines.find((line) => !isSame(line, terms));
    if (other === undefined) return { reports: lines.map(reportOf), leftOut: all.length - lines.length };
    throw new UsageError(
      `${this.#name} holds seeds of ${termsText(other)}, and these are of ${termsText(terms)}; name another file, or the ` +
        "same --for, --profile and --without",
      { field: "state" },
    );
  }

  /** Before the first seed is run, whose report would be lost. @throws UsageError where it cannot be written */
  requireWritable(): void {
    try {
      closeSync(openSync(this.#path, "a"));
    } catch (error) {
      throw fileError("write", this.#name, error, "state");
    }
  }

  /** @throws UsageError where it cannot be written */
  note(report: SeedReport): void {
    const { terms, version } = this.#own;
    try {
      if (this.#wholeBytes !== undefined) truncateSync(this.#path, this.#wholeBytes);
      this.#wholeBytes = undefined;
      appendFileSync(this.#path, `${JSON.stringify({ version, ...terms, ...report })}\n`);
    } catch (error) {
      throw fileError("write", this.#name, error, "state");
    }
  }

  /** `torn` may end within a character, and so is not decoded. */
  #lines(): { readonly texts: readonly string[]; readonly torn: string; readonly wholeBytes: number } {
    try {
      const bytes = readFileSync(this.#path);
      const wholeBytes = bytes.lastIndexOf("\n") + 1;
      const texts = textIn(bytes.subarray(0, wholeBytes), this.#name).split("\n").slice(0, -1);
      return { texts, torn: bytes.toString("latin1", wholeBytes), wholeBytes };
    } catch (error) {
      throw fileError("read", this.#name, error, "state");
    }
  }

  #line(text: string, number: number): Line {
    const line = parsedOrNothing(text);
    const told = lineSchema.safeParse(line);
    const isOwn = told.success && told.data.version === this.#own.version;
    const parsed = isOwn ? ownLineSchema.safeParse(line) : told;
    if (parsed.success) return parsed.data as unknown as Line;
    const field = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new UsageError(
      `line ${number} of ${this.#name} is no seed that \`waggle torture --state\` noted` +
        `${field === "" ? "" : ` (see its ${field})`}; name another file`,
      { field: "state" },
    );
  }
}

function parsedOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reportOf({
  version: _version,
  forMs: _forMs,
  without: _without,
  profile: _profile,
  ...report
}: Line): SeedReport {
  return report;
}

function termsText({ forMs, without, profile }: SeedTerms): string {
  const beyond = profile === "outside" ? " outside the fault model" : "";
  return `${forMs / 1_000} s ${faultsText(without)}${beyond}`;
}

function faultsText(without: SeedTerms["without"]): string {
  if (without.length === 0) return "with all faults";
  return without.length === Object.keys(faultKinds).length
    ? "without faults"
    : `without ${without.join(",")}`;
}

function isSame(line: SeedTerms, terms: SeedTerms): boolean {
  const isSameFaults = line.without.join() === terms.without.join();
  return line.forMs === terms.forMs && line.profile === terms.profile && isSameFaults;
}
