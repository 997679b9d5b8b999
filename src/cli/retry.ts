// `waggle retry`: opens the next round of tasks that ended otherwise than completed.

import { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { TaskRef } from "../client/bulk.ts";
import { type BulkFlags, checkTargets, touchFiltered, touchTasks } from "./bulk.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import { addFilterFlags, type FilterFlags, filterOf } from "./task-filter.ts";
import { parseTime, plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface RetryFlags extends FilterFlags, BulkFlags {
  readonly deadline?: Date;
}

export function retryCommand(program: Program): Command {
  const command = new Command("retry")
    .summary("run ended tasks again")
    .description(
      "Opens the next round of tasks that failed, expired, were cancelled or were dead-lettered: same id, same payload. " +
        "Names tasks, or takes all that match the filters; those are confirmed first. Attempts count from 0 again; the " +
        "deadline is cleared unless --deadline gives one.",
    )
    .argument("[ids...]", "ids of tasks", plainNames);
  return addFilterFlags(command)
    .option("--deadline <time>", "the new round expires then: 2026-11-20T18:00:00Z, or +2h", (text) =>
      parseTime(text),
    )
    .option("--dry-run", "show what the filters take, and how many; change nothing")
    .option("--yes", "do not ask for the count")
    .addHelpText("after", examples)
    .action((ids: string[], flags: RetryFlags, command: Command) =>
      runVerb(program, command, (context) => retry(context, { ids, flags, command })),
    );
}

const examples = `
Examples:
  $ waggle retry t1 t2
  $ waggle retry --state dead-lettered --kind summarize --dry-run
  $ waggle retry --state failed,expired --older-than 1h --deadline +2h --yes`;

async function retry(
  context: VerbContext,
  {
    ids,
    flags,
    command,
  }: { readonly ids: readonly string[]; readonly flags: RetryFlags; readonly command: Command },
): Promise<ExitCode> {
  const filter = filterOf(flags, command);
  checkTargets("retry", ids, filter, flags);
  const { deadline } = flags;
  return await withSwarm(context, async (swarm) => {
    const verb = {
      name: "retry",
      states: ["failed", "cancelled", "expired", "dead-lettered"] as const,
      touch: async (tasks: readonly TaskRef[], asked: AskOptions) => {
        const results = await swarm.retry(tasks, {
          ...asked,
          ...(deadline === undefined ? {} : { deadline }),
        });
        return results.map((each) => (each.ok ? { ...each, text: `retried, round ${each.round}` } : each));
      },
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
