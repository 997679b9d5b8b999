// `waggle events`: the journal as it was and, with --follow, as it goes on.

import { Command } from "commander";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { nearMisses } from "../core/near-miss.ts";
import { kind } from "../ids.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { tellEvent } from "./event-text.ts";
import { eventTypes } from "./event-types.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { printable } from "./output.ts";
import { UsageError } from "./usage-error.ts";
import { nameList, parseFrom } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface EventsFlags {
  readonly follow?: boolean;
  readonly from?: number | Date | "start";
  readonly task?: string;
  readonly agent?: string;
  readonly project?: string;
  readonly type?: readonly string[];
  readonly all?: boolean;
}

export function eventsCommand(program: Program): Command {
  return new Command("events")
    .summary("replay or follow what happened")
    .description(
      "Prints the journal: every decision, in order, from its start. With --follow it goes on with what happens " +
        "from now on, or from --from.",
    )
    .option("-f, --follow", "go on with what happens from now on, until Ctrl-C")
    .option("--from <where>", "a batch index, a time (2026-11-20T18:00:00Z, -10m), or start", parseFrom)
    .option("--task <id>", "only events of this task")
    .option("--agent <id>", "only events of this agent")
    .option("--project <name>", "only events of this project's tasks")
    .option(
      "--type <types>",
      "only these types: TaskAssigned, or several with commas; may be repeated",
      nameList,
    )
    .option("--all", "also what only says that nothing changed (TermRenewed)")
    .addHelpText("after", examples)
    .action((flags: EventsFlags, command: Command) => {
      // --project names a project to submit to elsewhere; here the setting must not filter.
      const { project: _, ...rest } = flags;
      const given = command.getOptionValueSource("project") === "cli" ? flags : rest;
      return runVerb(program, command, (context) => events(context, given));
    });
}

const examples = `
Types: ${eventTypes.join(", ")}

Examples:
  $ waggle events --follow
  $ waggle events --from -10m --type TaskDeadLettered,AgentLeft
  $ waggle events --from 120 --agent a1
  $ waggle events --task t1 --json
  $ waggle events --json | jq -r 'select(.event.type == "TaskAssigned") | .event.agent' | sort | uniq -c`;

async function events(context: VerbContext, flags: EventsFlags): Promise<ExitCode> {
  const { output, signal } = context;
  checkTypes(flags.type);
  return await withSwarm(context, async (swarm) => {
    const { idx, journal } = await ask(context, (options) => swarm.status(options)); // nobody there: that is said soon
    if (beginsAtStart(flags) && journal.auditFirstIdx > 1)
      output.note(
        `the record begins at batch ${formatCount(journal.auditFirstIdx)}: what was before is no longer kept`,
      );
    const stream = swarm.events({
      follow: flags.follow === true,
      signal: AbortSignal.any([signal, output.closed]),
      ...(flags.from === undefined ? {} : { from: flags.from }),
      ...(flags.task === undefined ? {} : { task: flags.task }),
      ...(flags.agent === undefined ? {} : { agent: flags.agent }),
      ...(flags.project === undefined ? {} : { project: flags.project }),
      ...(flags.type === undefined ? {} : { types: flags.type }),
    });
    let told = 0;
    for await (const event of stream) {
      if (!isWanted(event, flags)) continue;
      tellEvent(event, output);
      told += 1;
    }
    signal.throwIfAborted();
    if (told === 0 && flags.follow !== true)
      output.note(`no event${wantedText(flags)}; the journal ends at batch ${formatCount(idx)}`);
    return exitCodes.ok;
  });
}

function beginsAtStart({ from, follow }: EventsFlags): boolean {
  return from === "start" || (from === undefined && follow !== true);
}

/** ` of task t1, from batch 12`. */
function wantedText({ task, agent, project, type, from }: EventsFlags): string {
  const parts = [
    type === undefined ? "" : `of type ${type.join(" or ")}`,
    task === undefined ? "" : `of task ${printable(task)}`,
    agent === undefined ? "" : `of agent ${printable(agent)}`,
    project === undefined ? "" : `of project ${printable(project)}`,
    typeof from === "number" ? `from batch ${formatCount(from)}` : "",
    from instanceof Date ? `since ${from.toISOString()}` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : ` ${parts.join(", ")}`;
}

/** An idle leader says each second that it is alive: that is shown to who asks for it. */
function isWanted({ event }: JournaledEvent, { all, type }: EventsFlags): boolean {
  return event.type !== "TermRenewed" || all === true || type !== undefined;
}

/** @throws WaggleError WAGGLE_USAGE for a type that does not exist */
function checkTypes(types: readonly string[] = []): void {
  for (const type of types) {
    if ((eventTypes as readonly string[]).includes(type)) continue;
    const near = nearMisses(kind(type), eventTypes.map(kind));
    const hint =
      near.length > 0 ? `did you mean ${near.join(" or ")}?` : "see waggle events --help for the types";
    throw new UsageError(`there is no event type ${type}; ${hint}`, { field: "--type" });
  }
}
