// `waggle health`: one verdict on the swarm, with the figures behind it and the one command to run next. Not here: the
// rules (audit/health.ts).

import { Command } from "commander";
import { duration } from "../audit/describe.ts";
import { type Health, type HealthFinding, healthAreas } from "../audit/health.ts";
import { healthFrom } from "../client/health.ts";
import { systemClock } from "../clock.ts";
import { limits } from "../limits.ts";
import { ask } from "./ask.ts";
import { openSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { formatTime, labelled } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { parseDuration } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { wait } from "./wait.ts";

interface HealthFlags {
  readonly watch?: boolean;
  readonly interval?: number;
}

export function healthCommand(program: Program): Command {
  return new Command("health")
    .description(
      "Judges the swarm by fixed rules: do tasks move (flow), do attempts succeed (execution), are coordinators, agents " +
        "and journal in order (liveness)? Prints the worst finding as a sentence, the other findings below, and the one command to run next.",
    )
    .option("--watch", "judge again until Ctrl-C")
    .option("--interval <duration>", "time between two verdicts; implies --watch; default 2s", parseDuration)
    .addHelpText("after", `${details}${examples}`)
    .action((flags: HealthFlags, command: Command) =>
      runVerb(program, command, (context) => health(context, flags)),
    );
}

const details = `
Exit codes: 0 healthy; 1 something needs attention; 3 no server or no leader answers.
`;

const examples = `
Examples:
  $ waggle health
  $ waggle health --watch
  $ waggle health --json | jq -r '.findings[] | "\\(.level) \\(.text)"'
  $ waggle health >/dev/null || notify-send 'the swarm needs attention'`;

async function health(context: VerbContext, flags: HealthFlags): Promise<ExitCode> {
  if (flags.watch === true || flags.interval !== undefined) return await watch(context, flags);
  const { output } = context;
  const found = await judged(context);
  output.datum(recordOf(found), () => output.asStarted(healthText(found, output)));
  return exitCodeOf(found);
}

async function judged(context: VerbContext): Promise<Health> {
  return await healthFrom(async () => {
    const swarm = await openSwarm(context);
    try {
      return await ask(context, (options) => swarm.status(options));
    } finally {
      await swarm.close();
    }
  });
}

/** Ends when the reader of the output is gone, or by the signal. */
async function watch(
  context: VerbContext,
  { interval = limits.healthWatchMs }: HealthFlags,
): Promise<ExitCode> {
  const { output, signal } = context;
  const ended = AbortSignal.any([signal, output.closed]);
  while (!output.closed.aborted) {
    const found = await judged(context);
    if (output.json || output.columns === undefined)
      output.datum(recordOf(found), () => output.asStarted(healthText(found, output)));
    else {
      const until = `judged at ${formatTime(systemClock.now())}, again every ${duration(interval)}; Ctrl-C ends`;
      output.page(`${output.asStarted(healthText(found, output))}\n${output.colors.dim(until)}`);
    }
    await wait(interval, ended);
  }
  return exitCodes.ok;
}

function recordOf(found: Health): Health & { readonly type: "health" } {
  return { type: "health", ...found };
}

function exitCodeOf({ findings, level }: Health): ExitCode {
  const isAbsent = findings.some(({ rule }) => rule === "unreachable" || rule === "no-leader");
  if (isAbsent) return exitCodes.unreachable;
  return level === "ok" || level === "note" ? exitCodes.ok : exitCodes.unexpected;
}

type AreaLevel = Health["areas"]["flow"];

const levelWords: Readonly<Record<AreaLevel, string>> = {
  unknown: "unknown",
  ok: "ok",
  note: "ok",
  attention: "attention",
  critical: "critical",
};

export function healthText(
  { level, verdict, next, areas, findings }: Health,
  { columns, colors }: Pick<Output, "columns" | "colors">,
): string {
  const line = (label: string, text: string) => labelled(label, text, columns);
  const tone = (of: AreaLevel) => {
    if (of === "unknown") return colors.dim;
    return of === "critical" ? colors.red : of === "attention" ? colors.yellow : colors.green;
  };
  const lines = [line("health", tone(level)(`${levelWords[level]}: ${printable(verdict)}`))];
  for (const area of healthAreas) {
    const ofArea = findings.filter((finding) => finding.area === area);
    const [first = undefined, ...rest] = ofArea.map(findingText);
    lines.push(
      line(area, `${tone(areas[area])(levelWords[areas[area]])}${first === undefined ? "" : `  ${first}`}`),
    );
    for (const text of rest) lines.push(line("", text));
  }
  if (next !== undefined) lines.push(line("next", next));
  return lines.join("\n");
}

function findingText({ text, next }: HealthFinding): string {
  return `${printable(text)}: \`${printable(next)}\``;
}
