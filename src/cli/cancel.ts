// `waggle cancel`: ends tasks that have not ended yet.

import { Command } from "commander";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { errorRecord } from "./report-error.ts";
import { plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function cancelCommand(program: Program): Command {
  return new Command("cancel")
    .summary("cancel tasks")
    .description("Cancels tasks. One that runs is told to stop; one that has ended stays as it ended.")
    .argument("<ids...>", "ids of tasks", plainNames)
    .option("--project <name>", "project of the tasks (WAGGLE_PROJECT; default: default)")
    .addHelpText("after", examples)
    .action((ids: string[], _: unknown, command: Command) =>
      runVerb(program, command, (context) => cancel(context, ids)),
    );
}

const examples = `
Prints each task with the state it is in then: cancelled, or how it had ended before.

Examples:
  $ waggle cancel t1
  $ waggle cancel t1 t2 t3 --project acme`;

async function cancel(context: VerbContext, ids: readonly string[]): Promise<ExitCode> {
  const { output, signal } = context;
  return await withSwarm(context, async (swarm) => {
    let code: ExitCode = exitCodes.ok;
    for (const id of ids) {
      try {
        const { state } = await ask(context, (options) => swarm.cancel(id, options));
        output.datum({ taskId: id, state }, () => `${id} ${state}`);
      } catch (error) {
        if (signal.aborted || ids.length === 1) throw error;
        const record = errorRecord(error);
        code = record.error.exitCode;
        if (output.json) output.datum({ taskId: id, ...record }, () => "");
        else output.note(`${output.noteColors.red(`error ${record.error.code}:`)} ${record.error.message}`);
      }
    }
    return code;
  });
}
