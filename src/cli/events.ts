// `waggle events`: the events of the journal so far, and with --follow new events.

import { Command } from "commander";
import { eventTypes } from "../audit/event-types.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import type { Swarm } from "../client/swarm.ts";
import { counted, formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import { kind } from "../ids.ts";
import { limits } from "../limits.ts";
import { nearMisses } from "../state/near-miss.ts";
import { valuesText } from "../state/needs.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { printEvent } from "./event-text.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { askAbout, findProject, typedProject } from "./find-project.ts";
import { type Output, printable } from "./output.ts";
import { UsageError } from "./usage-error.ts";
import {
  attributeMap,
  kindName,
  nameList,
  parseFrom,
  plainName,
  subjectToken,
  wholeNumber,
} from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface EventsFlags {
  readonly follow?: boolean;
  readonly tail?: number;
  readonly from?: number | Date | "start";
  readonly task?: string;
  readonly agent?: string;
  readonly kind?: string;
  readonly attribute?: Readonly<Record<string, string>>;
  readonly project?: string;
  readonly contents?: boolean;
  readonly type?: readonly string[];
  readonly all?: boolean;
}

export function eventsCommand(program: Program): Command {
  return new Command("events")
    .description(
      "Prints events of the journal, in order. Without flags: the last 50. With --json, or with a flag that " +
        "filters events: all, from the start. With --follow: new events, or also earlier ones with --from or " +
        "--tail.",
    )
    .option("-f, --follow", "continue with new events until Ctrl-C")
    .option(
      "--from <where>",
      "first event: a batch index, a time (2026-11-20T18:00:00Z, -10m), or start",
      parseFrom,
    )
    .option(
      "--tail <n>",
      `only the last n events, from 1 to ${limits.eventsTailMax}`,
      wholeNumber(1, limits.eventsTailMax),
    )
    .option("--task <id>", "only events of this task", plainName)
    .option("--agent <id>", "only events of this agent", subjectToken)
    .option("--kind <name>", "only events of tasks of the kind, and events that name the kind", kindName)
    .option(
      "--attribute <name=value>",
      "only events of tasks with this attribute; may be repeated: then all must match",
      attributeMap,
    )
    .option("--project <name>", "only events of this project and its tasks", subjectToken)
    .option("--contents", "with --json: keep payloads and results of tasks; default: left out")
    .option(
      "--type <types>",
      "only events of these types, separated by commas: TaskAssigned; may be repeated",
      nameList,
    )
    .option("--all", "print TermRenewed, too: one event per second of an idle leader")
    .addHelpText("after", examples)
    .action((flags: EventsFlags, command: Command) => {
      // --project names a project to submit to elsewhere; here the setting must not filter.
      const { project: _, ...rest } = flags;
      return runVerb(program, command, (context) => {
        const project = typedProject(command, context.settings);
        return events(context, project === undefined ? rest : { ...rest, project });
      });
    });
}

const examples = `
Types: ${eventTypes.join(", ")}

Examples:
  $ waggle events                        the last 50
  $ waggle events --from start           all
  $ waggle events --tail 200 --follow
  $ waggle events --from -10m --type TaskDeadLettered,AgentLeft
  $ waggle events --from 120 --agent a1
  $ waggle events --task t1 --json
  $ waggle events --kind summarize --project acme --type AttemptFailed --follow
  $ waggle events --json | jq -r 'select(.event.type == "TaskAssigned") | .event.agent' | sort | uniq -c`;

async function events(context: VerbContext, given: EventsFlags): Promise<ExitCode> {
  const { output, signal } = context;
  checkTypes(given.type);
  if (given.tail !== undefined && given.from !== undefined)
    throw new UsageError("--tail and --from exclude each other: both set the first event");
  return await withSwarm(context, async (swarm) => {
    // fails soon without a leader
    const asked = await askAbout(context, given.project, (options) => swarm.status(options));
    const { idx, journal, stale } = asked.answer;
    if (typeof given.from === "number" && given.from > idx + 1 && stale !== true)
      throw new UsageError(
        `batch ${formatCount(given.from)} does not exist yet: the journal ends at batch ${formatCount(idx)}. For new events: --follow`,
        { field: "--from" },
      );
    const project = await projectOf(context, swarm, { task: given.task, project: asked.project });
    const flags = project === undefined ? given : { ...given, project };
    if (beginsAtStart(flags) && tailOf(flags, output) === undefined && journal.auditFirstIdx > 1)
      output.note(
        `the journal begins at batch ${formatCount(journal.auditFirstIdx)}: earlier batches are no longer kept`,
      );
    const tail = tailOf(flags, output);
    const ended = AbortSignal.any([signal, output.closed]);
    if (tail !== undefined) {
      const last = await lastEvents(swarm, flags, {
        tail,
        idx,
        firstIdx: journal.auditFirstIdx,
        signal: ended,
      });
      for (const event of last) printEvent(event, output);
      signal.throwIfAborted();
      if (flags.follow !== true) {
        if (last.length === 0)
          output.note(`no event${wantedText(flags)}; the journal ends at batch ${formatCount(idx)}`);
        else if (flags.tail === undefined)
          output.note(
            output.noteColors.dim(
              `the last ${counted(last.length, "event")}; all events: \`waggle events --from start\`; new events: \`waggle events --follow\``,
            ),
          );
        return exitCodes.ok;
      }
    }
    const stream = swarm.events({
      follow: flags.follow === true,
      signal: ended,
      ...filtersOf(flags),
      ...(flags.from === undefined ? {} : { from: flags.from }),
      ...(tail === undefined ? {} : { from: idx + 1 }),
    });
    let printed = 0;
    for await (const event of stream) {
      if (!isWanted(event, flags)) continue;
      printEvent(event, output);
      printed += 1;
    }
    signal.throwIfAborted();
    if (printed === 0 && flags.follow !== true)
      output.note(`no event${wantedText(flags)}; the journal ends at batch ${formatCount(idx)}`);
    return exitCodes.ok;
  });
}

/** The project of the wanted events: `--project`, or the project of `--task`. A forgotten task may still have events.
 */
async function projectOf(
  context: VerbContext,
  swarm: Swarm,
  { task, project }: { readonly task: string | undefined; readonly project: string | undefined },
): Promise<string | undefined> {
  if (task === undefined) return project;
  const sought = { id: task, typed: project, configured: context.settings.project };
  try {
    return await ask(context, (options) => findProject(swarm, sought, options));
  } catch (error) {
    if (error instanceof WaggleError && error.code === "WAGGLE_UNKNOWN_TASK") return undefined;
    throw error;
  }
}

/** Undefined if all events are wanted. People without flags get the last events. */
function tailOf({ tail, ...flags }: EventsFlags, { json }: Output): number | undefined {
  const hasNoFlag = Object.keys(flags).every((flag) => flag === "all" || flag === "contents");
  return tail ?? (hasNoFlag && !json ? limits.eventsTailDefault : undefined);
}

function filtersOf({ task, agent, kind: ofKind, attribute, project, type, contents }: EventsFlags) {
  return {
    ...(attribute === undefined ? {} : { attributes: attribute }),
    ...(ofKind === undefined ? {} : { kind: ofKind }),
    ...(contents === undefined ? {} : { contents }),
    ...(task === undefined ? {} : { task }),
    ...(agent === undefined ? {} : { agent }),
    ...(project === undefined ? {} : { project }),
    ...(type === undefined ? {} : { types: type }),
  };
}

/** The last wanted events up to a batch: each reading begins further back, until enough are found. */
async function lastEvents(
  swarm: Swarm,
  flags: EventsFlags,
  {
    tail,
    idx,
    firstIdx,
    signal,
  }: { readonly tail: number; readonly idx: number; readonly firstIdx: number; readonly signal: AbortSignal },
): Promise<JournaledEvent[]> {
  for (let span = 2 * tail; ; span *= 8) {
    const from = Math.max(firstIdx, idx - span + 1);
    const last: JournaledEvent[] = [];
    for await (const event of swarm.events({ from, signal, ...filtersOf(flags) })) {
      if (event.idx > idx) break;
      if (!isWanted(event, flags)) continue;
      last.push(event);
      if (last.length > 2 * tail) last.splice(0, last.length - tail);
    }
    if (last.length >= tail || from === firstIdx || signal.aborted) return last.slice(-tail);
  }
}

function beginsAtStart({ from, follow }: EventsFlags): boolean {
  return from === "start" || (from === undefined && follow !== true);
}

/** ` of task t1, from batch 12`. */
function wantedText({ task, agent, kind: ofKind, attribute, project, type, from }: EventsFlags): string {
  const parts = [
    type === undefined ? "" : `of type ${type.join(" or ")}`,
    task === undefined ? "" : `of task ${printable(task)}`,
    agent === undefined ? "" : `of agent ${printable(agent)}`,
    ofKind === undefined ? "" : `of kind ${printable(ofKind)}`,
    attribute === undefined ? "" : `of tasks with ${printable(valuesText(attribute))}`,
    project === undefined ? "" : `of project ${printable(project)}`,
    typeof from === "number" ? `from batch ${formatCount(from)}` : "",
    from instanceof Date ? `since ${from.toISOString()}` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : ` ${parts.join(", ")}`;
}

/** An idle leader renews its term each second: shown only on request. */
function isWanted({ event }: JournaledEvent, { all, type }: EventsFlags): boolean {
  return event.type !== "TermRenewed" || all === true || type !== undefined;
}

/** @throws WaggleError WAGGLE_USAGE for an unknown type */
function checkTypes(types: readonly string[] = []): void {
  for (const type of types) {
    if ((eventTypes as readonly string[]).includes(type)) continue;
    const near = nearMisses(kind(type), eventTypes.map(kind));
    const hint =
      near.length > 0 ? `did you mean ${near.join(" or ")}?` : "see waggle events --help for the types";
    throw new UsageError(`unknown event type ${type}; ${hint}`, { field: "--type" });
  }
}
