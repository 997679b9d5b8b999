// `waggle reschedule`: changes the earliest start of waiting tasks.

import { Command } from "commander";
import { reschedulableStates } from "../client/reschedules.ts";
import { addBulkFlags, type BulkFlags, type BulkRequest, touch } from "./bulk.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatTime } from "./format.ts";
import { parseTime, plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface RescheduleFlags extends BulkFlags {
  readonly notBefore: Date;
}

export function rescheduleCommand(program: Program): Command {
  const command = new Command("reschedule")
    .description(
      "Changes the earliest start of waiting tasks: queued tasks, and tasks delayed until a not-before or a retry. Give ids, or filters. With filters it asks for the number of " +
        "tasks to confirm.",
    )
    .argument("[ids...]", "ids of tasks", plainNames)
    .requiredOption(
      "--not-before <time>",
      "earliest start: 2026-11-20T18:00:00Z, or +2h; a past time, or +0s: at once. Required",
      (text) => parseTime(text),
    );
  return addBulkFlags(command, reschedulableStates)
    .addHelpText("after", examples)
    .action((ids: string[], flags: RescheduleFlags, command: Command) =>
      runVerb(program, command, (context) => reschedule(context, { ids, flags, command })),
    );
}

const examples = `
A running or ended task is refused; so is a time at or after the deadline of the task.

Examples:
  $ waggle reschedule t1 --not-before +2h
  $ waggle reschedule t1 --not-before +0s                   start at once, also before a retry is due
  $ waggle reschedule --kind report --not-before 2026-11-21T06:00:00Z --dry-run`;

async function reschedule(
  context: VerbContext,
  request: BulkRequest & { readonly flags: RescheduleFlags },
): Promise<ExitCode> {
  const { notBefore } = request.flags;
  return await touch(context, request, (swarm) => ({
    name: "reschedule",
    states: reschedulableStates,
    touch: async (tasks, asked) => {
      const results = await swarm.reschedule(tasks, { ...asked, notBefore });
      return results.map((each) => (each.ok ? { ...each, text: rescheduledText(each) } : each));
    },
  }));
}

function rescheduledText({
  state,
  notBefore,
}: {
  readonly state: string;
  readonly notBefore: number;
}): string {
  return state === "delayed" ? `delayed until ${formatTime(notBefore)}` : `${state}: due at once`;
}
