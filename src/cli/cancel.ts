// `waggle cancel`: ends tasks that have not ended yet.

import { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { TaskRef } from "../client/bulk.ts";
import { type BulkFlags, checkTargets, touchFiltered, touchTasks } from "./bulk.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import { addFilterFlags, type FilterFlags, filterOf } from "./task-filter.ts";
import { plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

type CancelFlags = FilterFlags & BulkFlags;

export function cancelCommand(program: Program): Command {
  const command = new Command("cancel")
    .summary("cancel tasks")
    .description(
      "Cancels tasks. One that runs is told to stop; one that has ended stays as it ended. Names tasks, or takes all " +
        "that match the filters; those are confirmed first.",
    )
    .argument("[ids...]", "ids of tasks", plainNames);
  return addFilterFlags(command)
    .option("--dry-run", "show what the filters take, and how many; change nothing")
    .option("--yes", "do not ask for the count")
    .addHelpText("after", examples)
    .action((ids: string[], flags: CancelFlags, command: Command) =>
      runVerb(program, command, (context) => cancel(context, { ids, flags, command })),
    );
}

const examples = `
Prints each task with the state it is in then: cancelled, or how it had ended before.

Examples:
  $ waggle cancel t1
  $ waggle cancel t1 t2 t3 --project acme
  $ waggle cancel --state queued --kind summarize --dry-run`;

async function cancel(
  context: VerbContext,
  {
    ids,
    flags,
    command,
  }: { readonly ids: readonly string[]; readonly flags: CancelFlags; readonly command: Command },
): Promise<ExitCode> {
  const filter = filterOf(flags, command);
  checkTargets("cancel", ids, filter, flags);
  return await withSwarm(context, async (swarm) => {
    const verb = {
      name: "cancel",
      states: ["queued", "delayed", "assigned", "running"] as const,
      touch: async (tasks: readonly TaskRef[], asked: AskOptions) =>
        (await swarm.cancel(tasks, asked)).map((each) => (each.ok ? { ...each, text: each.state } : each)),
    };
    return ids.length > 0
      ? touchTasks(
          context,
          ids.map((task) => ({ task })),
          verb,
        )
      : touchFiltered(context, { swarm, filter, flags, verb });
  });
}
