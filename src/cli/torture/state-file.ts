// The file of finished seeds, with which a long run can be interrupted and continued: one JSON line per seed, written
// when the seed ends. A last line cut off by a crash is a seed to run again. So is a line of a different version of the
// code, for a seed repeats its run only on the same code. A file with unknown content is left unchanged.

import { appendFileSync, closeSync, existsSync, openSync, readFileSync, truncateSync } from "node:fs";
import * as z from "zod";
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

/** The fields that identify a line of a state file, its version and its terms. */
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

/** The other fields: the line must be of the same version, for other versions may record different fields. */
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
  /** Seeds of different versions of the code. */
  readonly leftOut: number;
}

export class StateFile {
  readonly #path: string;
  readonly #name: string;
  readonly #own: { readonly terms: SeedTerms; readonly version: string };
  /**
   * Bytes of whole lines, if a crash left an incomplete line behind them. The next `note` cuts the incomplete line off.
   */
  #wholeBytes: number | undefined;

  /**
   * @param name as given by the user
   * @param own terms of the seeds that count, and `version` of the code (code-version.ts)
   */
  constructor(path: string, name: string, own: { readonly terms: SeedTerms; readonly version: string }) {
    this.#path = path;
    this.#name = name;
    this.#own = own;
  }

  /**
   * The reports in the file; none if the file does not exist.
   * @throws UsageError where the file holds unknown content, or seeds of different terms
   */
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
      `${this.#name} holds seeds of ${termsText(other)}, but this run has ${termsText(terms)}; name a different file, or use the ` +
        "same --for, --profile and --without",
      { field: "state" },
    );
  }

  /**
   * Call before the first seed: a failure later would lose a report. @throws UsageError where the file cannot be
   * written
   */
  requireWritable(): void {
    try {
      closeSync(openSync(this.#path, "a"));
    } catch (error) {
      throw fileError("write", this.#name, error, "state");
    }
  }

  /** @throws UsageError where the file cannot be written */
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
    const parsedLine = lineSchema.safeParse(line);
    const isOwn = parsedLine.success && parsedLine.data.version === this.#own.version;
    const parsed = isOwn ? ownLineSchema.safeParse(line) : parsedLine;
    if (parsed.success) return parsed.data as unknown as Line;
    const field = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new UsageError(
      `line ${number} of ${this.#name} is not a seed written by \`waggle torture --state\`` +
        `${field === "" ? "" : ` (see its ${field})`}; name a different file`,
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
