// `waggle replay [JOURNAL]`: decides a recorded journal once more, exactly; or runs its work again under other rules or
// another capacity. Not here: decisions (audit/decision-replay.ts), the work (sim/replay), the tables (replay/view.ts).

import { accessSync, constants, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { copyOf, replayDecisions, requireWhole } from "../audit/decision-replay.ts";
import { type Gap, verifyJournal } from "../audit/verifying/verify.ts";
import { systemClock } from "../clock.ts";
import { formatCount } from "../count-text.ts";
import type { JournalReader } from "../journal/journal.ts";
import { limits } from "../limits.ts";
import { figuresOf, timelineOfCourse } from "../sim/replay/figures.ts";
import { Playback, type PlaybackResult } from "../sim/replay/playback.ts";
import { Recorder, type Recording } from "../sim/replay/recording.ts";
import { replayRuleNames } from "../sim/replay/variation.ts";
import { Slices } from "../slices.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { fileError } from "./file-error.ts";
import { formatTime } from "./format.ts";
import { ProgressLine } from "./progress-line.ts";
import { openJournal } from "./readable-journal.ts";
import {
  agentsFlag,
  capacityFlag,
  changesText,
  isChanged,
  type NamedVariation,
  type ReplayFlags,
  requireKinds,
  topnFlag,
  variationsOf,
} from "./replay/request.ts";
import {
  type CourseReport,
  type ExactReport,
  exactText,
  type PolicyReport,
  policyText,
} from "./replay/view.ts";
import type { Shell } from "./shell.ts";
import { drawTimelines, loadVega } from "./simulate/picture.ts";
import { UsageError } from "./usage-error.ts";
import { nameList, numberBetween, parseFrom } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { gapText } from "./verify-view.ts";

export function replayCommand(program: Program): Command {
  return new Command("replay")
    .description(
      "Without flags: feeds the recorded inputs batch by batch into the decision, and compares every decision with the " +
        "record. With --rules or another change: runs the recorded work again in virtual time, and prints waits, fairness, " +
        "makespan, tokens and cost beside what happened. Each attempt keeps its recorded duration, outcome and tokens. " +
        "Changes nothing, and may run beside coordinators.",
    )
    .argument(
      "[journal]",
      "a folder of a file journal, a data folder, or a file of `waggle export`; default: the swarm's journal",
    )
    .option(
      "--rules <names>",
      `rules to run, separated by commas: ${replayRuleNames.join(", ")}. Default: the recorded rules`,
      nameList,
    )
    .option(
      "--alpha <x>",
      "α of the load function, from 0 to 1. Default: that of the rules",
      numberBetween(0, 1),
    )
    .option(
      "--lambda <x>",
      `λ, the weight by which an agent's own backlog lowers its score, from 0 to ${limits.lambdaMax}. Default: that of the rules`,
      numberBetween(0, limits.lambdaMax),
    )
    .option(
      "--topn <n>",
      "maximum number of open attempts in the swarm; none: no limit. Default: that of the rules",
      topnFlag,
    )
    .option(
      "--capacity <kind=n>",
      "maximum number of concurrent tasks of each agent that serves the kind, like render=4; several separated by commas. Default: as recorded",
      capacityFlag,
    )
    .option(
      "--agents <+n>",
      `number of agents to add, from +1 to +${limits.agentsMax}: copies of the recorded agents, in order of joining. Default: none`,
      agentsFlag,
    )
    .option(
      "--from <where>",
      "first work to run: a batch index, a time (2026-11-20T18:00:00Z, -10m), or start (default)",
      parseFrom,
    )
    .option(
      "--chart <path>",
      "draw waterfall, shares and waits as SVG: all in one file, or one file each into a folder. Needs `npm install vega`",
    )
    .addHelpText("after", `${details}${examples}`)
    .action((target: string | undefined, flags: ReplayFlags, command: Command) =>
      runVerb(program, command, (context) => replay(context, target, flags)),
    );
}

const details = `
Exit codes: 0 replayed, and without flags: every decision is exact; 7 a decision differs, or the journal was changed; 3 no
server can be reached; 2 no such journal, or nothing to replay.
`;

const examples = `
Examples:
  $ waggle replay                                      decide the swarm's journal again
  $ waggle replay audit.ndjson --rules lucio,fifo      the recorded work under two other rules
  $ waggle replay --rules waggle --lambda 0.5 --from -1d
  $ waggle replay --agents +2 --chart replay.svg       the recorded rules with two more agents
  $ waggle replay --capacity render=4 --json | jq '.courses[] | {name, wait: .figures.waitMs.p95}'`;

async function replay(
  context: VerbContext,
  target: string | undefined,
  flags: ReplayFlags,
): Promise<ExitCode> {
  if (!isChanged(flags)) requireChangeFor(flags);
  // Every refusal that needs no journal comes before the reading.
  const variations = isChanged(flags) ? variationsOf(flags) : undefined;
  if (flags.chart !== undefined) {
    chartFiles(flags.chart, ["replay"], context.shell);
    await loadVega("chart");
  }
  const { reader, where } = await openJournal(context, target);
  try {
    return variations === undefined
      ? await replayExactly(context, reader, where)
      : await replayWork(context, { reader, where, flags, variations });
  } finally {
    await reader.close();
  }
}

function requireChangeFor({ from, chart }: ReplayFlags): void {
  const field = from !== undefined ? "from" : chart !== undefined ? "chart" : undefined;
  if (field === undefined) return;
  throw new UsageError(
    `--${field} needs a change to run the work under, such as --rules waggle: without a change, all decisions are made again from the journal's beginning`,
    { field },
  );
}

function noJournal({ settings }: VerbContext, where: string): UsageError {
  return new UsageError(
    `the swarm ${settings.swarm} has no journal ${where}, or an empty one: check --swarm`,
    {
      field: "swarm",
    },
  );
}

// --- decisions --------------------------------------------------------------------------------------

async function replayExactly(context: VerbContext, journal: JournalReader, where: string): Promise<ExitCode> {
  const { output, signal } = context;
  let text = "reading the journal";
  const progress = new ProgressLine(output, () => text);
  const found = await replayDecisions({
    journal,
    clock: systemClock,
    signal,
    onProgress: ({ idx }) => {
      text = `decided up to batch ${formatCount(idx)}`;
    },
  }).finally(() => progress.end());
  signal.throwIfAborted();
  if (found === undefined) throw noJournal(context, where);
  const report: ExactReport = { type: "replay", exact: found.difference === undefined, where, ...found };
  output.datum(report, () => output.asStarted(exactText(report, output)));
  return report.exact ? exitCodes.ok : exitCodes.journalDamaged;
}

// --- work -------------------------------------------------------------------------------------------

interface WorkRequest {
  readonly reader: JournalReader;
  readonly where: string;
  readonly flags: ReplayFlags;
  readonly variations: readonly NamedVariation[];
}

async function replayWork(
  context: VerbContext,
  { reader, where, flags, variations }: WorkRequest,
): Promise<ExitCode> {
  const { output } = context;
  const { recording, gaps } = await recorded(context, { reader, where, flags });
  requireKinds(flags, recording.kinds);
  const results = new Map<string, PlaybackResult>();
  results.set("recorded", { course: recording.happened, estimated: 0, endAt: recording.endAt });
  for (const { name, variation } of [{ name: "replayed", variation: {} }, ...variations])
    results.set(name, await played(context, recording, { name, variation }));
  const report: PolicyReport = {
    type: "replay",
    where,
    firstIdx: recording.firstIdx,
    lastIdx: recording.lastIdx,
    startAt: recording.startAt,
    endAt: recording.endAt,
    gaps,
    changes: changesText(flags),
    courses: [...results].map(
      ([name, { course, estimated, endAt }]): CourseReport => ({
        name,
        estimated,
        figures: figuresOf(course, endAt),
      }),
    ),
  };
  output.datum(report, () => policyText(report, output));
  if (flags.chart !== undefined) await draw(context, flags.chart, report, results);
  return exitCodes.ok;
}

async function recorded(
  context: VerbContext,
  { reader, where, flags: { from = "start" } }: Pick<WorkRequest, "reader" | "where" | "flags">,
): Promise<{ readonly recording: Recording; readonly gaps: readonly Gap[] }> {
  const { output, signal } = context;
  const isFirst = ({ idx, at }: { readonly idx: number; readonly at: number }) =>
    from === "start" || (from instanceof Date ? at >= from.getTime() : idx >= from);
  let recorder = new Recorder(isFirst);
  let text = "reading the journal";
  const progress = new ProgressLine(output, () => text);
  const verified = await verifyJournal({
    journal: reader,
    clock: systemClock,
    signal,
    onBase: (state) => {
      recorder = new Recorder(isFirst);
      recorder.continueFrom(copyOf(state));
    },
    onBatch: (batch) => recorder.take(batch),
    onProgress: ({ idx }) => {
      text = `reading the journal: batch ${formatCount(idx)}`;
    },
  }).finally(() => progress.end());
  signal.throwIfAborted();
  requireWhole(verified);
  if (verified === undefined || verified.batches === 0) throw noJournal(context, where);
  if (typeof from === "number" && from < verified.firstIdx)
    throw new UsageError(
      `the journal begins at batch ${formatCount(verified.firstIdx)}: earlier batches are not kept`,
      {
        field: "from",
      },
    );
  if (!recorder.hasBegun) {
    const { idx, at } = recorder.last;
    throw new UsageError(
      `--from lies beyond the end: the journal ends at batch ${formatCount(idx)}, ${formatTime(at)}`,
      { field: "from" },
    );
  }
  const recording = recorder.finish();
  for (const gap of verified.gaps)
    output.note(`${gapText(gap)}. The work is replayed from batch ${formatCount(recording.firstIdx)} on`);
  if (recording.happened.tasks.length === 0 && recording.happened.slotRequests.length === 0)
    throw new UsageError(
      `batches ${formatCount(recording.firstIdx)} to ${formatCount(recording.lastIdx)} hold no task: there is no work to replay`,
      { field: "from" },
    );
  return { recording, gaps: verified.gaps };
}

async function played(
  { output, signal }: VerbContext,
  recording: Recording,
  { name, variation }: NamedVariation,
): Promise<PlaybackResult> {
  let text = `${name}: starting`;
  const progress = new ProgressLine(output, () => text);
  const slices = new Slices(systemClock, limits.baseSliceMs);
  const running = new Playback(recording, variation).run();
  try {
    for (let step = running.next(); ; step = running.next()) {
      if (step.done === true) return step.value;
      if (!slices.isOver) continue;
      text = `${name}: ${formatCount(step.value.ended)} of ${formatCount(step.value.tasks)} tasks ended`;
      await slices.pause();
      signal.throwIfAborted();
    }
  } finally {
    progress.end();
  }
}

// --- pictures ---------------------------------------------------------------------------------------

async function draw(
  { output, shell }: VerbContext,
  chart: string,
  { where, firstIdx, lastIdx, changes, courses }: PolicyReport,
  results: ReadonlyMap<string, PlaybackResult>,
): Promise<void> {
  const timelines = new Map(
    [...results].map(([name, { course, endAt }]) => [name, timelineOfCourse(course, endAt)] as const),
  );
  const batches = `batches ${formatCount(firstIdx)} to ${formatCount(lastIdx)} ${where}`;
  const lines = [
    batches,
    changes === "" ? "recorded, and replayed under other rules" : `changed: ${changes}`,
  ];
  const names = courses.map(({ name }) => name);
  const files = chartFiles(chart, names, shell);
  for (const [path, of] of files) {
    const wanted = of === undefined ? timelines : new Map([...timelines].filter(([name]) => name === of));
    const svg = await drawTimelines({ title: of === undefined ? "replay" : `replay: ${of}`, lines }, wanted);
    await writeFile(path, svg).catch((error: unknown) => {
      throw fileError("write", path, error, "chart");
    });
    output.note(`drawn: ${path}`);
  }
}

/** Files to draw, with the course of each; one file holds all courses.
 *  @throws UsageError if a file cannot be written */
function chartFiles(
  chart: string,
  names: readonly string[],
  { cwd }: Shell,
): ReadonlyMap<string, string | undefined> {
  const path = resolve(cwd, chart);
  try {
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
    accessSync(isFolder ? path : dirname(path), constants.W_OK);
    if (!isFolder && statSync(path, { throwIfNoEntry: false }) !== undefined)
      accessSync(path, constants.W_OK);
    return isFolder
      ? new Map(names.map((name) => [join(path, `${name}.svg`), name]))
      : new Map([[path, undefined]]);
  } catch (error) {
    throw fileError("write", chart, error, "chart");
  }
}
