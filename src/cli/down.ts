// `waggle down`: stops the broker of the data folder, and lists the processes left without a broker.

import { Command } from "commander";
import { findBroker } from "../broker/find-broker.ts";
import { type StoppedBroker, stopBroker } from "../broker/stop-broker.ts";
import { limits } from "../limits.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { type LeftBehind, leftBehind, leftBehindLines } from "./left-behind.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function downCommand(program: Program): Command {
  return new Command("down")
    .description(
      "Stops the data folder's broker, started by `waggle up` or the demo. The journal stays. Coordinators and " +
        "agents are not stopped: they wait for the broker to come back; end them with Ctrl-C.",
    )
    .addHelpText("after", "\nExamples:\n  $ waggle down\n  $ waggle down --data-folder /srv/swarm/.waggle")
    .action((_: unknown, command: Command) => runVerb(program, command, down));
}

async function down(context: VerbContext): Promise<ExitCode> {
  const { output, settings } = context;
  const remaining = await whoIsThere(context);
  const stopped = await stopBroker(settings.dataFolder);
  output.datum({ ...stopped, ...(stopped.wasRunning && remaining !== undefined ? { remaining } : {}) }, () =>
    output.asStarted(stopped.sentence),
  );
  for (const line of remarks(stopped, remaining, context)) output.note(line);
  return exitCodes.ok;
}

/** Undefined without an answer from the broker; answers of different servers do not count. */
async function whoIsThere(context: VerbContext): Promise<LeftBehind | undefined> {
  try {
    const { kind } = await findBroker({ mode: "find-only", ...context.settings, env: context.shell.env });
    if (kind === "named") return undefined;
    return await withSwarm(context, async (swarm) =>
      leftBehind(await swarm.status({ timeoutMs: limits.leaderLookMs })),
    );
  } catch {
    return undefined; // no broker, or no leader: `down` continues
  }
}

function remarks(
  stopped: StoppedBroker,
  remaining: LeftBehind | undefined,
  { settings }: VerbContext,
): string[] {
  if (!stopped.wasRunning && settings.nats !== undefined) {
    return ["the server of --nats or NATS_URL was not started by this data folder and keeps running"];
  }
  if (!stopped.wasRunning || remaining === undefined) return [];
  return leftBehindLines(remaining);
}
