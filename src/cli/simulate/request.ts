// The arguments of `waggle simulate`, as values. Each error lists the valid values.

import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import { type Kind, kind } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Scenario } from "../../sim/policy/scenario.ts";
import { scenarioNamed, scenarios } from "../../sim/policy/scenarios.ts";
import { readsAlpha } from "../../sim/policy/simulate.ts";
import { parseTrace } from "../../sim/policy/trace-file.ts";
import type { TraceRequest } from "../../sim/policy/trace-rows.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { defaultPolicy } from "../../state/policy.ts";
import { textIn } from "../source.ts";
import { UsageError } from "../usage-error.ts";
import type { VerbContext } from "../verb.ts";

export interface SimulateFlags {
  readonly rules?: string;
  readonly compare?: readonly string[];
  readonly alpha?: number;
  readonly seeds?: readonly number[];
  readonly svg?: string;
}

/** `20` means seeds 0 to 19; `5..24` means seeds 5 to 24. @throws InvalidArgumentError */
export function seedRange(text: string): number[] {
  const { simulationSeedsMax, seedMax } = limits;
  const [, first, last] = /^(?:(\d+)\.\.)?(\d+)$/.exec(text) ?? [];
  const from = first === undefined ? 0 : Number(first);
  const count = first === undefined ? Number(last) : Number(last) - from + 1;
  if (!(count >= 1)) {
    throw new InvalidArgumentError("must be a number of seeds (20), or a range from low to high (5..24)");
  }
  if (count > simulationSeedsMax)
    throw new InvalidArgumentError(`must be at most ${simulationSeedsMax} seeds`);
  if (from + count - 1 > seedMax) throw new InvalidArgumentError(`must end at seed ${seedMax} or lower`);
  return Array.from({ length: count }, (_, at) => from + at);
}

/** The named scenarios without repetition, and the file of `trace FILE`.
 *  @throws UsageError for an unknown scenario, for `trace` with further scenarios, for several scenarios with --svg */
export function scenariosOf(
  [first = "", ...others]: readonly string[],
  { svg }: SimulateFlags,
): { readonly wanted: readonly Scenario[]; readonly file: string | undefined } {
  const scenario = scenarioOf(first);
  if (scenario.needsTrace === true) {
    if (others.length > 1) {
      throw new UsageError("trace reads one file and runs alone: waggle simulate trace requests.csv", {
        field: "scenarios",
      });
    }
    return { wanted: [scenario], file: others[0] };
  }
  const wanted = [...new Set([scenario, ...others.map(scenarioOf)])];
  if (wanted.some(({ needsTrace }) => needsTrace === true)) {
    throw new UsageError("trace runs alone: waggle simulate trace requests.csv", { field: "scenarios" });
  }
  if (wanted.length > 1 && svg !== undefined)
    throw new UsageError("--svg draws a single scenario: name the scenario", { field: "svg" });
  return { wanted, file: undefined };
}

/** @throws UsageError with the nearest name */
function scenarioOf(name: string): Scenario {
  const scenario = scenarioNamed(name);
  if (scenario !== undefined) return scenario;
  const known = scenarios.map((one) => one.name);
  const hint = hintOf(name, known) ?? "waggle simulate list lists the scenarios";
  throw new UsageError(`no scenario is called '${name}'; ${hint}`, { field: "scenario" });
}

/** @throws UsageError with the scenario's rules */
export function rulesOf(scenario: Scenario, { rules, compare }: SimulateFlags): string[] {
  const known = Object.keys(scenario.rules);
  if (rules !== undefined && compare !== undefined) {
    throw new UsageError("--rules runs one rule, --compare several: give either flag", { field: "rules" });
  }
  if (compare?.length === 1 && compare[0] === "all") return known;
  const wanted = [...new Set(compare ?? [rules ?? known[0] ?? ""])];
  for (const name of wanted) {
    if (Object.hasOwn(scenario.rules, name)) continue;
    const hint = hintOf(name, known) ?? `it has ${known.join(", ")}`;
    throw new UsageError(`${scenario.name} has no rule '${name}'; ${hint}`, { field: "rules" });
  }
  return wanted;
}

/** @throws UsageError if α is given and no rule reads it */
export function alphaOf(scenario: Scenario, rules: readonly string[], { alpha }: SimulateFlags): number {
  if (alpha === undefined || rules.some(readsAlpha)) return alpha ?? defaultPolicy.alpha;
  const readers = Object.keys(scenario.rules).filter(readsAlpha);
  const instead =
    readers.length === 0
      ? `no rule of ${scenario.name} does: leave --alpha out`
      : `leave it out, or compare with ${readers.join(" or ")}`;
  const which = rules.length === 1 ? `${rules[0]} does not read α` : "none of these rules reads α";
  throw new UsageError(`${which}; ${instead}`, { field: "alpha" });
}

/** @throws UsageError without a readable file · InvalidValueError naming a line */
export async function readTrace(file: string | undefined, { shell }: VerbContext): Promise<TraceRequest[]> {
  if (file === undefined) {
    throw new UsageError("trace replays a file: waggle simulate trace requests.csv", { field: "file" });
  }
  const path = resolve(shell.cwd, file);
  try {
    const { size } = await stat(path);
    if (size > limits.simulationTraceBytes) {
      throw new UsageError(`${file} is larger than ${limits.simulationTraceBytes} bytes`, { field: "file" });
    }
    return parseTrace(textIn(await readFile(path), file));
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw new UsageError(`cannot read ${file}: ${error.message}`, { field: "file", cause: error });
  }
}

function hintOf(name: string, known: readonly string[]): string | undefined {
  const near: readonly Kind[] = nearMisses(kind(name), known.map(kind));
  return near.length === 0 ? undefined : `did you mean ${near.join(", or ")}?`;
}
