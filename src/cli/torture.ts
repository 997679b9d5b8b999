// `waggle torture`: runs a swarm of the production code through faults in virtual time, seed after seed, and reports
// violations. Faults and checks: src/sim/fault.

import { resolve } from "node:path";
import { Command, Option } from "commander";
import { counted } from "../count-text.ts";
import { limits } from "../limits.ts";
import { faultKinds, profiles } from "../sim/fault/fault.ts";
import { planOf, type SeedReport, type SeedRequest } from "../sim/fault/run-seed.ts";
import { runSeeds } from "../sim/fault/seed-threads.ts";
import { shrink } from "../sim/fault/shrink.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { showProgress } from "./progress-bar.ts";
import { seedRange } from "./simulate/request.ts";
import { codeVersion } from "./torture/code-version.ts";
import { commandOf, failureText, interruptedText, summaryOf, summaryText } from "./torture/report-text.ts";
import {
  asksFor,
  countOf,
  faultList,
  requestsOf,
  type SeedTerms,
  scheduledSeed,
  type TortureFlags,
  termsOf,
  threadsOf,
  virtualTime,
} from "./torture/request.ts";
import { writeSchedule } from "./torture/schedule-file.ts";
import { StateFile } from "./torture/state-file.ts";
import { lockStateFile } from "./torture/state-lock.ts";
import { numberBetween, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function tortureCommand(program: Program): Command {
  return new Command("torture")
    .description(
      "Runs the production coordinator, agents and clients in virtual time over a simulated network and journal. Faults " +
        "are drawn from a seed. It checks every invariant after every batch, and at the end each answer that a client or " +
        "agent got. The same seed gives the same run on every machine.",
    )
    .option("--seed <n>", "run one seed; with --minutes, start at this seed", wholeNumber(0, limits.seedMax))
    .option(
      "--seeds <seeds>",
      "number of seeds, from seed 0, or a range like 100..299; default 20",
      seedRange,
    )
    .option(
      "--minutes <m>",
      "run seeds for this many minutes, from seed 0 or --seed on",
      numberBetween(limits.tortureMinutesMin, limits.tortureMinutesMax),
    )
    .option(
      "--for <duration>",
      "virtual time of each seed until the faults end, at most 1h; default 2m",
      virtualTime,
    )
    .addOption(
      new Option(
        "--profile <profile>",
        "faults inside the fault model, or outside it too; default inside",
      ).choices(profiles),
    )
    .option("--without <faults>", "faults to leave out, separated by commas; all: no faults", faultList)
    .option("--shrink", "reduce the first failing seed, and write the schedule to torture-<seed>.json")
    .option("--schedule <file>", "run the file that --shrink wrote")
    .option("--state <file>", "record finished seeds in this file and continue from there; one run at a time")
    .option(
      "--threads <n>",
      "seeds that run at once; default: one per core",
      wholeNumber(1, limits.tortureThreadsMax),
    )
    .addHelpText("after", examples)
    .action((flags: TortureFlags, command: Command) =>
      runVerb(program, command, (context) => torture(context, flags)),
    );
}

/** Width of the longest fault name and the space after it. */
const FAULT_WIDTH = 20;

const examples = `
Faults:
${Object.entries(faultKinds)
  .map(([kind, what]) => `  ${kind.padEnd(FAULT_WIDTH)}${what}`)
  .join("\n")}

With --json: one object per seed, beginning with the seeds that --state holds: {seed, findings, trace, events, batches,
tasks, virtualMs, realMs, faults, occurrences}. A failed seed also has {schedule, command}. The last object is of the run;
it has {interrupted: true} if Ctrl-C ended the run.

Exit code 1 if a seed failed, or if a long run never reached a state that it should have reached.

With --profile outside, losses overlap crashes. Coordinators may halt; the run checks two promises: no loss is silent, and no
answer contradicts a longer journal.

Examples:
  $ waggle torture                                   20 seeds of 2 virtual minutes
  $ waggle torture --seed 11                         one seed; prints the command that repeats a failure
  $ waggle torture --seed 11 --shrink                the fewest faults that make it fail
  $ waggle torture --seed 11 --log-level warn        with the logs of its nodes; one seed at a time
  $ waggle torture --seeds 0..1999 --for 10m --state torture.ndjson
  $ waggle torture --seeds 200 --profile outside     halting is allowed, silence is not
  $ waggle torture --minutes 30 --without pause,slow
  $ waggle torture --seed 5000 --minutes 30          other seeds each day: 5000, 5001, …`;

async function torture(context: VerbContext, flags: TortureFlags): Promise<ExitCode> {
  const { schedule, state } = flags;
  if (schedule !== undefined) return await tortureScheduled(context, flags, schedule);
  const terms = termsOf(flags);
  if (state === undefined) return await tortureUnknown(context, flags, { terms, state: undefined });
  const path = resolve(context.shell.cwd, state);
  const file = new StateFile(path, state, { terms, version: codeVersion() });
  file.requireWritable();
  const lock = await lockStateFile(path, state);
  try {
    return await tortureUnknown(context, flags, { terms, state: file });
  } finally {
    await lock.release();
  }
}

/** Runs a file written by `--shrink`. */
async function tortureScheduled(context: VerbContext, flags: TortureFlags, file: string): Promise<ExitCode> {
  const { request, version } = scheduledSeed(flags, file, context.shell);
  if (version !== codeVersion())
    context.output.note(
      `${file} was written by a different version of the code: the seed may run differently`,
    );
  const run = { requests: [request], count: 1, terms: request, before: [], state: undefined };
  return await runAndReport(run, flags, context);
}

/** Runs the requested seeds except the finished seeds of the state file. */
async function tortureUnknown(
  context: VerbContext,
  flags: TortureFlags,
  { terms, state }: { readonly terms: SeedTerms; readonly state: StateFile | undefined },
): Promise<ExitCode> {
  const { output } = context;
  const { reports: noted, leftOut } = state?.read() ?? { reports: [], leftOut: 0 };
  const isAsked = asksFor(flags);
  const before = noted.filter(({ seed }) => isAsked(seed));
  if (before.length > 0)
    output.note(
      `${counted(before.length, "seed")} of ${flags.state} ${before.length === 1 ? "is" : "are"} not run again`,
    );
  if (leftOut > 0)
    output.note(
      `${counted(leftOut, "seed")} of ${flags.state} ran on a different version of the code and ${leftOut === 1 ? "does" : "do"} not count`,
    );
  const known = new Set(before.map(({ seed }) => seed));
  const count = countOf(flags, known);
  const requests = requestsOf(flags, terms, known);
  return await runAndReport({ requests, count, terms, before, state }, flags, context);
}

interface Run {
  readonly requests: Iterable<SeedRequest>;
  /** Number of `requests`; undefined: as many as the time allows. */
  readonly count: number | undefined;
  readonly terms: SeedTerms & Partial<SeedRequest>;
  /** Requested seeds of earlier runs: they count, and their failures are shown again. */
  readonly before: readonly SeedReport[];
  /** The file that records each finished seed. */
  readonly state: StateFile | undefined;
}

async function runAndReport(run: Run, flags: TortureFlags, context: VerbContext): Promise<ExitCode> {
  const { output, signal, logger } = context;
  const { terms, count } = run;
  const reports = [...run.before];
  const progress = showProgress(output, { name: "torture", unit: "seeds" });
  const show = () => {
    const done = reports.length - run.before.length;
    progress.at(done, count ?? done + 1);
  };
  const reportSeed = (report: SeedReport) => {
    const hasFailed = report.findings.length > 0;
    if (!output.json && !hasFailed) return;
    const { schedule } = planOf({ ...terms, seed: report.seed });
    const command =
      flags.schedule === undefined ? commandOf(report.seed, terms) : scheduleCommand(flags.schedule);
    const record = hasFailed ? { ...report, schedule, command } : report;
    output.datum(record, () =>
      failureText(report, { schedule, operations: terms.operations, command, view: output }),
    );
  };
  for (const report of run.before) reportSeed(report);
  show();
  const onDone = (report: SeedReport) => {
    reports.push(report);
    run.state?.note(report);
    reportSeed(report);
    show();
  };
  const threads = threadsOf(flags, count);
  const log = { level: logger.level, write: (line: string) => output.note(line.trimEnd()) };
  try {
    await runSeeds(run.requests, { signal, threads, log, onDone });
  } catch (error) {
    progress.stop();
    if (signal.aborted) printInterrupted(reports, run, flags, context);
    throw error;
  }
  progress.stop();
  const summary = summaryOf(reports, terms);
  output.datum(summary, () => summaryText(summary, output));
  const [failed] = summary.failed;
  if (flags.shrink === true) {
    if (failed === undefined) output.note("nothing was shrunk: no seed failed");
    else await shrinkAndPrint({ ...terms, seed: failed }, context);
  }
  return failed === undefined && summary.neverReached.length === 0 ? exitCodes.ok : exitCodes.unexpected;
}

/** Reports the seeds run so far. */
function printInterrupted(
  reports: readonly SeedReport[],
  { before, count, terms }: Run,
  { state }: TortureFlags,
  { output }: VerbContext,
): void {
  const summary = summaryOf(reports, terms);
  const ran = reports.length - before.length;
  output.datum({ ...summary, interrupted: true }, () =>
    interruptedText(summary, { ran, count, state, view: output }),
  );
}

async function shrinkAndPrint(request: SeedRequest, { output, shell, signal }: VerbContext): Promise<void> {
  const progress = showProgress(output, { name: "shrinking", unit: "attempts" });
  const shrunk = await shrink(request, {
    signal,
    onTried: ({ tried }) => progress.at(tried, tried + 1),
  }).finally(() => progress.stop());
  if (shrunk === undefined) {
    output.note(`nothing was shrunk: seed ${request.seed} did not fail when it was run again`);
    return;
  }
  const file = `torture-${request.seed}.json`;
  const { schedule, operations } = shrunk.request;
  writeSchedule(resolve(shell.cwd, file), file, { request: shrunk.request, version: codeVersion() });
  const command = scheduleCommand(file);
  output.datum({ shrunk: shrunk.request, findings: shrunk.report.findings }, () =>
    [
      "",
      `shrunk to ${counted(schedule.length, "fault")} and ${counted(operations.length, "operation")}`,
      failureText(shrunk.report, { schedule, operations, command, view: output }),
    ].join("\n"),
  );
}

function scheduleCommand(file: string): string {
  return `waggle torture --schedule ${file}`;
}
