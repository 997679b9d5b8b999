// `waggle serve a2a`: kinds of tasks as skills of an A2A agent, over HTTP.

import { Command, Option } from "commander";
import { loadA2aServer } from "../adapters/a2a/load-sdk.ts";
import type { ListenAddress } from "../metrics/listen-address.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { untilInterrupted } from "./serving.ts";
import { tokenIn } from "./token-file.ts";
import { UsageError } from "./usage-error.ts";
import { kindList, listenAddress } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface A2aFlags {
  readonly kind?: readonly string[];
  readonly listen: ListenAddress;
  readonly url?: string;
  readonly tokenFile?: string;
}

const defaultAddress: ListenAddress = { host: "127.0.0.1", port: 41_241 };

export function serveA2aCommand(program: Program): Command {
  return new Command("a2a")
    .summary("be an agent of A2A")
    .description(
      "Serves an A2A 1.0 agent over HTTP, with JSON-RPC and streams. Each kind is a skill, each message a task, and " +
        "each result an artifact. The card is at /.well-known/agent-card.json.",
    )
    .option("--kind <kinds>", "kinds of the tasks, separated by commas; may be repeated. Required", kindList)
    .addOption(
      new Option("--listen <address>", "HOST:PORT; port 0: any free port")
        .argParser(listenAddress)
        .default(defaultAddress, "127.0.0.1:41241"),
    )
    .option("--url <url>", "URL in the card, for agents behind a proxy; default http://HOST:PORT/")
    .option(
      "--token-file <file>",
      "file with a token that requests must bring as Authorization: Bearer. Required unless HOST is a loopback address",
    )
    .option("--project <name>", "project of the tasks (WAGGLE_PROJECT; default: default)")
    .option("--user <name>", "user of the tasks (WAGGLE_USER; default: the account's name)")
    .addHelpText("after", examples)
    .action((flags: A2aFlags, command: Command) =>
      runVerb(program, command, (context) => serveA2a(context, flags), { logLevel: "info", logIsData: true }),
    );
}

const examples = `
With several kinds a request names one as metadata.skill. The message is the payload: its text, or a
single part with data or bytes. The same messageId is the same task, so a repeated request runs once.
Tasks outlive this server: one that is started again answers for them.

Needs the package @a2a-js/sdk (npm install @a2a-js/sdk).

Ctrl-C once: answers the open requests. Twice: ends at once.

Examples:
  $ waggle serve a2a --kind review,summary
  $ curl http://127.0.0.1:41241/.well-known/agent-card.json
  $ waggle serve a2a --kind review --listen 0.0.0.0:8080 --token-file token --url https://agents.example/`;

async function serveA2a(context: VerbContext, flags: A2aFlags): Promise<ExitCode> {
  const { kind: kinds, listen, url: publicUrl } = flags;
  if (kinds === undefined) throw new UsageError("--kind KIND is required; see waggle serve a2a --help");
  if (publicUrl !== undefined && !URL.canParse(publicUrl))
    throw new UsageError(`--url ${publicUrl} is no URL`, { field: "--url" });
  const { settings, logger, shell, signal } = context;
  const token = flags.tokenFile === undefined ? undefined : tokenIn(flags.tokenFile, shell.cwd);
  if (token === undefined && !isLoopback(listen.host))
    throw new UsageError(
      `--listen ${listen.host}:${listen.port} lets other machines submit tasks: give --token-file FILE`,
      { field: "--listen" },
    );
  const { serveA2a: serve } = await loadA2aServer();
  return await withSwarm(context, async (swarm) => {
    const connection = swarm.project(settings.project);
    const server = await serve({
      ...{ connection, swarm: settings.swarm, kinds, version: packageVersion(), publicUrl, token, logger },
      ...listen,
    });
    logger.info(`serving ${kinds.join(", ")} at ${server.url}`);
    try {
      await untilInterrupted(signal, swarm.closed);
      logger.info("answering the open requests (Ctrl-C again ends at once)");
      await server.drain();
    } finally {
      server.close();
    }
    return exitCodes.ok;
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
