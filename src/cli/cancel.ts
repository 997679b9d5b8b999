// `waggle cancel`: ends tasks that have not ended yet.

import { Command } from "commander";
import { cancellableStates } from "../client/cancels.ts";
import { addBulkFlags, type BulkFlags, type BulkRequest, touch } from "./bulk.ts";
import type { ExitCode } from "./exit-code.ts";
import { plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function cancelCommand(program: Program): Command {
  const command = new Command("cancel")
    .summary("cancel tasks")
    .description(
      "Cancels tasks. One that runs is told to stop; one that has ended stays as it ended. Names tasks, or takes all " +
        "that match the filters; those are confirmed first.",
    )
    .argument("[ids...]", "ids of tasks", plainNames);
  return addBulkFlags(command)
    .addHelpText("after", examples)
    .action((ids: string[], flags: BulkFlags, command: Command) =>
      runVerb(program, command, (context) => cancel(context, { ids, flags, command })),
    );
}

const examples = `
Prints each task with the state it is in then: cancelled, or how it had ended before.

Examples:
  $ waggle cancel t1
  $ waggle cancel t1 t2 t3 --project acme
  $ waggle cancel --state queued --kind summarize --dry-run`;

async function cancel(context: VerbContext, request: BulkRequest): Promise<ExitCode> {
  return await touch(context, request, (swarm) => ({
    name: "cancel",
    states: cancellableStates,
    touch: async (tasks, asked) =>
      (await swarm.cancel(tasks, asked)).map((each) => (each.ok ? { ...each, text: each.state } : each)),
  }));
}
