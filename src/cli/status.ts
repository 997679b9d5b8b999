// `waggle status`: the swarm at this moment, or with --watch each second.

import { Command } from "commander";
import type { Swarm } from "../client/swarm.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { tellingTrouble } from "./journal-trouble.ts";
import { renderStatus, type StatusView } from "./status-view.ts";
import { parseDuration } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { wait } from "./wait.ts";

interface StatusFlags {
  readonly watch?: boolean;
  readonly interval?: number;
  readonly all?: boolean;
}

export function statusCommand(program: Program): Command {
  return new Command("status")
    .summary("show agents, resources, queues, projects, users, leader and journal")
    .description(
      "Shows the swarm as its leader knows it: leader, journal, metrics with bottlenecks and alerts, agents, resources, queues, projects and users.",
    )
    .option("--watch", "show it again and again, until Ctrl-C")
    .option("--interval <duration>", "how often; implies --watch; default 1s", parseDuration)
    .option("--all", "each offline agent, not only how many there are")
    .addHelpText("after", examples)
    .action((flags: StatusFlags, command: Command) =>
      runVerb(program, command, (context) => status(context, flags)),
    );
}

const examples = `
Examples:
  $ waggle status
  $ waggle status --all
  $ waggle status --watch
  $ waggle status --json | jq '.agents[] | {id, load}'
  $ waggle status --json | jq '{metrics, observed}'
  $ waggle status --watch --json         one record a second`;

async function status(context: VerbContext, flags: StatusFlags): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    if (flags.watch === true || flags.interval !== undefined) return await watch(swarm, context, flags);
    const answer = await askStatus(swarm, context);
    context.output.datum(answer, () =>
      context.output.asStarted(renderStatus(answer, viewOf(context, flags))),
    );
    return exitCodes.ok;
  });
}

async function askStatus(swarm: Swarm, context: VerbContext): Promise<StatusResponse> {
  return await tellingTrouble(context, () => ask(context, (options) => swarm.status(options)));
}

function viewOf({ output }: VerbContext, { all }: StatusFlags): StatusView {
  const { columns, colors } = output;
  return { columns, colors, showsOffline: all === true };
}

/** Ends when the reader of the output is gone, or by the signal. */
async function watch(swarm: Swarm, context: VerbContext, flags: StatusFlags): Promise<ExitCode> {
  const { output, signal } = context;
  const { interval: intervalMs = limits.statusWatchMs } = flags;
  const view = viewOf(context, flags);
  const ended = AbortSignal.any([signal, output.closed]);
  while (!output.closed.aborted) {
    const answer = await askStatus(swarm, context);
    const text = () => output.asStarted(renderStatus(answer, view));
    if (output.json || output.columns === undefined) output.datum(answer, () => `${text()}\n`);
    else output.page(text());
    await wait(intervalMs, ended);
    signal.throwIfAborted();
  }
  return exitCodes.ok;
}
