// `waggle hold` and `waggle unhold`: keep an agent, all agents of a type, or a resource from new work until a time. At
// that time one probe runs, and the rest when it is not refused. Running attempts and held slots continue.

import { Argument, Command } from "commander";
import { targetText } from "../audit/describe.ts";
import type { HoldTargetOption } from "../client/operations.ts";
import { limits } from "../limits.ts";
import { type HoldScope, holdScopes } from "../state/hold.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { durationBetween } from "./setting-flags.ts";
import { noteWarnings } from "./setting-text.ts";
import { UsageError } from "./usage-error.ts";
import { parseTime } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface Flags {
  readonly for?: number;
  readonly until?: Date;
}

export function holdCommand(program: Program): Command {
  return ofTarget(new Command("hold"))
    .description(
      "Puts an agent, all agents of a type, or a resource on hold: no task is assigned to it, and no slot is " +
        "granted. Running attempts continue. At the end of the hold one task or slot request runs as a " +
        "probe, and the rest if the probe is not refused. A second hold on the same target changes its time.",
    )
    .option(
      "--for <duration>",
      "time from now, at most 7d; one of --for and --until is required",
      durationBetween(limits.holdMsMin, limits.holdMsMax),
    )
    .option(
      "--until <time>",
      "end of the hold: 14:30 (local time, today or tomorrow), 2026-11-20T18:00:00Z, or +90m from now",
      (text: string) => parseTime(text),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ waggle hold agent a1 --for 10m\n  $ waggle hold type claude --until 14:30" +
        "\n  $ waggle hold resource gpt-4o --for 5h --json",
    )
    .action((on: HoldScope, name: string, flags: Flags, command: Command) =>
      runVerb(program, command, (context) => hold(context, on, name, flags)),
    );
}

export function unholdCommand(program: Program): Command {
  return ofTarget(new Command("unhold"))
    .description("Ends the hold on an agent, a type of agents or a resource at once, without a probe.")
    .addHelpText("after", "\nExamples:\n  $ waggle unhold agent a1\n  $ waggle unhold type claude --json")
    .action((on: HoldScope, name: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => unhold(context, on, name)),
    );
}

function ofTarget(command: Command): Command {
  return command
    .addArgument(new Argument("<scope>", "what is on hold").choices(holdScopes))
    .argument("<name>", "id of the agent, name of the type, or name of the resource");
}

/** @throws UsageError */
function hold(context: VerbContext, on: HoldScope, name: string, flags: Flags): Promise<ExitCode> {
  const { for: forMs, until } = flags;
  if ((forMs === undefined) === (until === undefined))
    throw new UsageError(
      "a hold needs --for DURATION or --until TIME, one of the two; see waggle hold --help",
    );
  const end = forMs === undefined ? { until: until as Date } : { forMs };
  return withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.hold(targetOf(on, name), { ...end, ...options }));
    const { changed, term, idx, settings, warnings } = setting;
    const again = context.output.asStarted(`waggle unhold ${on} ${name}`);
    context.output.datum({ ...settings, changed, term, idx, warnings }, () => {
      const isSo = changed ? "on hold" : "on hold as before,";
      return `${targetText({ on, name })} ${isSo} until ${new Date(settings.until).toISOString()}: then one probe runs; \`${again}\` ends the hold earlier`;
    });
    noteWarnings(context, setting);
    return exitCodes.ok;
  });
}

function unhold(context: VerbContext, on: HoldScope, name: string): Promise<ExitCode> {
  return withSwarm(context, async (swarm) => {
    const { changed, term, idx } = await ask(context, (options) => swarm.unhold(targetOf(on, name), options));
    context.output.datum({ on, name, changed, term, idx }, () =>
      changed
        ? `${targetText({ on, name })} no longer on hold`
        : `no hold was on ${on} ${name}; nothing changed`,
    );
    return exitCodes.ok;
  });
}

function targetOf(on: HoldScope, name: string): HoldTargetOption {
  switch (on) {
    case "agent":
      return { agent: name };
    case "type":
      return { type: name };
    case "resource":
      return { resource: name };
  }
}
