// `waggle status`: the swarm at this moment, or with --watch each second.

import { Command } from "commander";
import type { Swarm } from "../client/swarm.ts";
import { limits } from "../limits.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { pause } from "./pause.ts";
import { renderStatus } from "./status-view.ts";
import { parseDuration } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface StatusFlags {
  readonly watch?: boolean;
  readonly interval?: number;
}

export function statusCommand(program: Program): Command {
  return new Command("status")
    .summary("show agents, queues, projects, users, leader and journal")
    .description(
      "Shows the swarm as its leader knows it: agents, queues, projects and users, leader, journal.",
    )
    .option("--watch", "show it again and again, until Ctrl-C")
    .option("--interval <duration>", "how often with --watch; default 1s", parseDuration)
    .addHelpText("after", examples)
    .action((flags: StatusFlags, command: Command) =>
      runVerb(program, command, (context) => status(context, flags)),
    );
}

const examples = `
Examples:
  $ waggle status
  $ waggle status --watch
  $ waggle status --json | jq '.agents[] | {id, load}'
  $ waggle status --watch --json         one record a second`;

async function status(context: VerbContext, flags: StatusFlags): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    if (flags.watch === true || flags.interval !== undefined)
      return await watch(swarm, context, flags.interval);
    const answer = await ask(context, (options) => swarm.status(options));
    context.output.datum(answer, () => renderStatus(answer, context.output));
    return exitCodes.ok;
  });
}

/** Ends when the reader of the output is gone, or by the signal. */
async function watch(
  swarm: Swarm,
  context: VerbContext,
  intervalMs: number = limits.statusWatchMs,
): Promise<ExitCode> {
  const { output, signal } = context;
  const ended = AbortSignal.any([signal, output.closed]);
  while (!output.closed.aborted) {
    const answer = await ask(context, (options) => swarm.status(options));
    if (output.json || output.columns === undefined)
      output.datum(answer, () => `${renderStatus(answer, output)}\n`);
    else output.page(renderStatus(answer, output));
    await pause(intervalMs, ended);
    signal.throwIfAborted();
  }
  return exitCodes.ok;
}
