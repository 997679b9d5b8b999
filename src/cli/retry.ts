// `waggle retry`: opens the next round of tasks ended without completion.

import { Command } from "commander";
import { retryableStates } from "../client/retries.ts";
import { addBulkFlags, type BulkFlags, type BulkRequest, touch } from "./bulk.ts";
import type { ExitCode } from "./exit-code.ts";
import { parseTime, plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface RetryFlags extends BulkFlags {
  readonly deadline?: Date;
}

export function retryCommand(program: Program): Command {
  const command = new Command("retry")
    .description(
      "Opens the next round of tasks that failed, expired, were cancelled or were dead-lettered: same id, same " +
        "payload. Give ids, or filters. With filters it asks for the number of tasks to confirm. The new round " +
        "has its full number of attempts, and no deadline unless --deadline gives one.",
    )
    .argument("[ids...]", "ids of tasks", plainNames)
    .option(
      "--deadline <time>",
      "deadline of the new round: 2026-11-20T18:00:00Z, or +2h; default: none",
      (text) => parseTime(text),
    );
  return addBulkFlags(command, retryableStates)
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
  request: BulkRequest & { readonly flags: RetryFlags },
): Promise<ExitCode> {
  const { deadline } = request.flags;
  return await touch(context, request, (swarm) => ({
    name: "retry",
    states: retryableStates,
    touch: async (tasks, asked) => {
      const results = await swarm.retry(tasks, {
        ...asked,
        ...(deadline === undefined ? {} : { deadline }),
      });
      return results.map((each) => (each.ok ? { ...each, text: `retried, round ${each.round}` } : each));
    },
  }));
}
