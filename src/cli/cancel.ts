// `waggle cancel`: cancels live tasks.

import { Command } from "commander";
import { cancellableStates } from "../client/cancels.ts";
import { addBulkFlags, type BulkFlags, type BulkRequest, touch } from "./bulk.ts";
import type { ExitCode } from "./exit-code.ts";
import { plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function cancelCommand(program: Program): Command {
  const command = new Command("cancel")
    .description(
      "Cancels tasks. The agent of a running task stops it; an ended task stays as it is. Give ids, or filters. With " +
        "filters it asks for the number of tasks to confirm.",
    )
    .argument("[ids...]", "ids of tasks", plainNames);
  return addBulkFlags(command, cancellableStates)
    .addHelpText("after", examples)
    .action((ids: string[], flags: BulkFlags, command: Command) =>
      runVerb(program, command, (context) => cancel(context, { ids, flags, command })),
    );
}

const examples = `
Prints each task with its state: cancelled, or the earlier end.

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
