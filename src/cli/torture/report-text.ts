// The findings of a run of the fault simulator as text: each failed seed with its faults and the command to repeat it,
// and the summary of the run.

import { duration } from "../../audit/describe.ts";
import { counted, formatCount } from "../../count-text.ts";
import { type Fault, faultText } from "../../sim/fault/fault.ts";
import { type Occurrence, occurrenceNames, reachableWithout } from "../../sim/fault/occurrences.ts";
import type { SeedReport } from "../../sim/fault/run-seed.ts";
import type { Operation } from "../../sim/fault/workload.ts";
import type { Output } from "../output.ts";
import { operationText } from "./operation-text.ts";
import type { SeedTerms } from "./request.ts";

type View = Pick<Output, "colors">;

/** Findings to show per seed: the first is the cause or near the cause. */
const FINDINGS_SHOWN = 5;
/** A run of at least as many seeds should reach every state; otherwise the run tests less than promised. */
const LONG_RUN_SEEDS = 100;
const LONG_SEED_MS = 60_000;

export interface RunSummary {
  readonly seeds: number;
  readonly failed: readonly number[];
  readonly virtualMs: number;
  /** Real time of the seeds, summed over all threads. */
  readonly realMs: number;
  readonly events: number;
  readonly batches: number;
  readonly tasks: number;
  readonly occurrences: Partial<Record<Occurrence, number>>;
  /** For a long run, states that its faults should have reached; empty for a short run. */
  readonly neverReached: readonly Occurrence[];
}

export function summaryOf(reports: readonly SeedReport[], terms: SeedTerms): RunSummary {
  const sum = (of: (report: SeedReport) => number) =>
    reports.reduce((total, report) => total + of(report), 0);
  const occurrences: Partial<Record<Occurrence, number>> = {};
  for (const name of occurrenceNames) {
    const count = sum((report) => report.occurrences[name] ?? 0);
    if (count > 0) occurrences[name] = count;
  }
  const isLong =
    terms.profile !== "outside" && reports.length >= LONG_RUN_SEEDS && terms.forMs >= LONG_SEED_MS;
  const expected = isLong ? reachableWithout(terms.without) : [];
  return {
    seeds: reports.length,
    failed: reports.filter(({ findings }) => findings.length > 0).map(({ seed }) => seed),
    virtualMs: sum(({ virtualMs }) => virtualMs),
    realMs: sum(({ realMs }) => realMs),
    events: sum(({ events }) => events),
    batches: sum(({ batches }) => batches),
    tasks: sum(({ tasks }) => tasks),
    occurrences,
    neverReached: expected.filter((name) => occurrences[name] === undefined),
  };
}

/** The command to run a seed again. */
export function commandOf(seed: number, { forMs, without, profile }: SeedTerms): string {
  const faults = without.length === 0 ? "" : ` --without ${without.join(",")}`;
  const faultModel = profile === "outside" ? " --profile outside" : "";
  return `waggle torture --seed ${seed} --for ${forMs / 1_000}s${faultModel}${faults}`;
}

export interface Failure {
  readonly schedule: readonly Fault[];
  /** Operations of the clients, only for a reduced seed: all operations of a seed are too many to read. */
  readonly operations?: readonly Operation[] | undefined;
  /** The command to repeat the failure. */
  readonly command: string;
  readonly view: View;
}

export function failureText(
  report: SeedReport,
  { schedule, operations = [], command, view }: Failure,
): string {
  const { colors } = view;
  const { seed, findings, virtualMs } = report;
  const more = findings.length - FINDINGS_SHOWN;
  return [
    colors.red(`seed ${seed} failed after ${(virtualMs / 1_000).toFixed(3)} s of virtual time`),
    ...findings.slice(0, FINDINGS_SHOWN).map(({ check, sentence }) => `  ${colors.bold(check)}: ${sentence}`),
    ...(more > 0 ? [`  and ${counted(more, "finding")} more`] : []),
    ...listText("faults", schedule.map(faultText)),
    ...listText("operations", operations.map(operationText)),
    `  again    ${command}`,
  ].join("\n");
}

function listText(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`  ${title}`, ...lines.map((line) => `    ${line}`)];
}

export function summaryText(summary: RunSummary, { colors }: View): string {
  const { seeds, failed, virtualMs, realMs, events, batches, tasks, occurrences, neverReached } = summary;
  const speed = realMs === 0 ? 0 : virtualMs / realMs;
  const width = Math.max(...occurrenceNames.map(({ length }) => length));
  const reached = Object.entries(occurrences).map(
    ([name, count]) => `  ${name.padEnd(width)}  ${formatCount(count)}`,
  );
  return [
    failed.length === 0
      ? colors.green(`${counted(seeds, "seed")}, none failed`)
      : colors.red(`${counted(seeds, "seed")}, ${failed.length} failed: ${failed.join(", ")}`),
    `${duration(virtualMs)} of virtual time, ${Math.round(speed)} × real time per core: ` +
      `${counted(tasks, "task")}, ${formatCount(batches)} batches, ${counted(events, "event")}`,
    ...(reached.length === 0 ? [] : ["", "reached", ...reached]),
    ...(neverReached.length === 0
      ? []
      : ["", colors.red(`never reached, though a run of this length should: ${neverReached.join(", ")}`)]),
  ].join("\n");
}

export interface Interruption {
  /** Seeds finished in the run. */
  readonly ran: number;
  /** Seeds to run; undefined if the time is the limit. */
  readonly count: number | undefined;
  /** The file with the finished seeds. */
  readonly state: string | undefined;
  readonly view: View;
}

/** After Ctrl-C: how far the run came, and how to continue. */
export function interruptedText(summary: RunSummary, { ran, count, state, view }: Interruption): string {
  const goOn =
    state === undefined
      ? "to continue an interrupted run, record finished seeds with --state FILE"
      : `run the same command to continue: finished seeds in ${state} are not run again`;
  return [
    view.colors.yellow(
      `interrupted: ${count === undefined ? counted(ran, "seed") : `${ran} of ${counted(count, "seed")}`} run`,
    ),
    ...(summary.seeds === 0 ? [] : [summaryText(summary, view)]),
    ...(count === 1 ? [] : [goOn]),
  ].join("\n");
}
