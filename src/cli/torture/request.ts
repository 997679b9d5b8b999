// The flags of `waggle torture` as values; each refusal names valid input.

import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import { duration } from "../../audit/describe.ts";
import { limits } from "../../limits.ts";
import { type FaultKind, faultKinds, isFaultKind, type Profile } from "../../sim/fault/fault.ts";
import type { SeedRequest } from "../../sim/fault/run-seed.ts";
import type { Shell } from "../shell.ts";
import { UsageError } from "../usage-error.ts";
import { parseDuration } from "../values.ts";
import { readSchedule, type ScheduledSeed } from "./schedule-file.ts";

export interface TortureFlags {
  readonly seed?: number;
  readonly seeds?: readonly number[];
  readonly minutes?: number;
  readonly for?: number;
  readonly without?: readonly FaultKind[];
  readonly profile?: Profile;
  readonly shrink?: boolean;
  readonly schedule?: string;
  readonly state?: string;
  readonly threads?: number;
}

/** The terms common to every seed of a command. */
export type SeedTerms = Pick<SeedRequest, "forMs" | "without" | "profile">;

/** A few seeds as a quick check; they take about a minute. */
const SEEDS_DEFAULT = 20;
/** Long enough for several leaders, short enough for many seeds. */
const FOR_MS_DEFAULT = 120_000;

/** `--for 10m`. @throws InvalidArgumentError */
export function virtualTime(text: string): number {
  const ms = parseDuration(text);
  if (ms >= limits.tortureForMsMin && ms <= limits.tortureForMsMax) return ms;
  throw new InvalidArgumentError(
    `must be a duration from ${duration(limits.tortureForMsMin)} to ${duration(limits.tortureForMsMax)}`,
  );
}

/** `--without loss,pause`. @throws InvalidArgumentError */
export function faultList(text: string, before: readonly FaultKind[] | undefined): readonly FaultKind[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.length === 1 && names[0] === "all") return Object.keys(faultKinds) as FaultKind[];
  const kinds = names.filter(isFaultKind);
  const unknown = names.find((name) => !isFaultKind(name));
  if (unknown === undefined) return [...(before ?? []), ...kinds];
  if (unknown === "all") throw new InvalidArgumentError("must be all alone, or names of faults");
  throw new InvalidArgumentError(
    `there is no fault '${unknown}'; there are ${Object.keys(faultKinds).join(", ")}`,
  );
}

export function termsOf({ for: forMs = FOR_MS_DEFAULT, without = [], profile }: TortureFlags): SeedTerms {
  const terms = { forMs, without: [...new Set(without)].sort() };
  return profile === "outside" ? { ...terms, profile } : terms;
}

/** @param count number of seeds; undefined: as many as the time allows */
export function threadsOf(
  { threads = availableParallelism() }: TortureFlags,
  count: number | undefined,
): number {
  return Math.max(1, Math.min(threads, count ?? threads));
}

/** How many seeds are left to run; undefined where time decides. */
export function countOf(flags: TortureFlags, known: ReadonlySet<number>): number | undefined {
  return flags.minutes === undefined
    ? [...seedsOf(flags)].filter((seed) => !known.has(seed)).length
    : undefined;
}

/** Whether the flags include a seed. */
export function asksFor(flags: TortureFlags): (seed: number) => boolean {
  if (flags.minutes !== undefined) return (seed) => seed >= (flags.seed ?? 0);
  const asked = new Set(seedsOf(flags));
  return (seed) => asked.has(seed);
}

/** The unknown seeds in order, until the time is over. @throws UsageError where flags contradict */
export function requestsOf(
  flags: TortureFlags,
  terms: SeedTerms,
  known: ReadonlySet<number>,
): Iterable<SeedRequest> {
  if (flags.seeds !== undefined && (flags.seed !== undefined || flags.minutes !== undefined))
    throw new UsageError("--seeds names the seeds: use --seeds without --seed and --minutes");
  return untilTime(flags, terms, known);
}

function* untilTime(
  flags: TortureFlags,
  terms: SeedTerms,
  known: ReadonlySet<number>,
): Generator<SeedRequest> {
  const minutes = flags.minutes ?? Number.POSITIVE_INFINITY;
  const endMs = performance.now() + minutes * 60_000;
  for (const seed of seedsOf(flags)) {
    if (performance.now() >= endMs) return;
    if (!known.has(seed)) yield { ...terms, seed };
  }
}

/** A single seed, several, or with `--minutes` all from `--seed` on. */
function seedsOf({ seed, seeds, minutes }: TortureFlags): Iterable<number> {
  if (minutes !== undefined) return everySeed(seed);
  if (seed !== undefined) return [seed];
  return seeds ?? Array.from({ length: SEEDS_DEFAULT }, (_, at) => at);
}

function* everySeed(from = 0): Generator<number> {
  for (let seed = from; seed <= limits.seedMax; seed += 1) yield seed;
}

/** A seed with the faults and operations of a file written by `--shrink`. @throws UsageError */
export function scheduledSeed(flags: TortureFlags, file: string, { cwd }: Shell): ScheduledSeed {
  const { seed, seeds, minutes, state } = flags;
  if ([seed, seeds, minutes, state].some((given) => given !== undefined))
    throw new UsageError("--schedule includes its seed: leave out --seed, --seeds, --minutes and --state");
  return readSchedule(resolve(cwd, file), file);
}
