// Flags of `npm run bench:planner`, and its requirements. Not here: the measurements (planner.ts).

import { parseArgs } from "node:util";
import { type Read, refusing } from "./harness/refusing.ts";
import type { Sizes } from "./loaded-swarm.ts";

export interface PlannerFlags {
  readonly all: boolean;
  readonly required: boolean;
  readonly json: boolean;
  readonly repetitions: number;
  readonly only?: string;
}

/** @param value undefined if not measured */
export interface Requirement {
  readonly what: string;
  readonly value: number | undefined;
  readonly max: number;
}

export const sizesMeasured: Readonly<Record<keyof Sizes, readonly number[]>> = {
  agents: [100, 1_000, 10_000],
  users: [10, 1_000, 10_000],
  queued: [10_000, 100_000, 1_000_000],
  projects: [10, 100],
};

export const usage = `npm run bench:planner -- [options]

  --all            every combination of sizes
  --required       only the corners with a requirement
  --only AGENTS/USERS/QUEUED/PROJECTS
                   one combination of ${sizesText()}
  --repetitions N  repetitions of each figure, from 1 to 9999 (default 5)
  --json           one object with all figures

Exits 1 if a requirement is not met.`;

/** @returns the flags, "help", or a sentence about the wrong flag */
export function readFlags(argv: readonly string[]): Read<PlannerFlags> {
  return refusing(() => {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        all: { type: "boolean", default: false },
        required: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        repetitions: { type: "string", default: "5" },
        only: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const { repetitions, only, help, ...rest } = values;
    if (help) return "help";
    if (!/^[1-9]\d{0,3}$/.test(repetitions))
      return { refused: `--repetitions is a number from 1 to 9999, not '${repetitions}'` };
    if (only === undefined) return { ...rest, repetitions: Number(repetitions) };
    if (!isMeasured(only)) return { refused: `--only is one combination of ${sizesText()}, not '${only}'` };
    return { ...rest, repetitions: Number(repetitions), only };
  });
}

function isMeasured(only: string): boolean {
  const parts = only.split("/");
  const known = Object.values(sizesMeasured);
  return (
    parts.length === known.length && known.every((counts, at) => counts.map(String).includes(parts[at] ?? ""))
  );
}

function sizesText(): string {
  return Object.entries(sizesMeasured)
    .map(([name, counts]) => `${name} ${counts.join(", ")}`)
    .join(" / ");
}

/** @param isPartial only one combination was measured: requirements outside of the combination count as met */
export function isMet({ value, max }: Requirement, isPartial: boolean): boolean {
  return value === undefined ? isPartial : value <= max;
}

export function requirementLine({ what, value, max }: Requirement): string {
  if (value === undefined) return `-       ${what}: not measured, at most ${max}`;
  return `${value <= max ? "ok    " : "FAILED"}  ${what}: ${rounded(value)}, at most ${max}`;
}

export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
