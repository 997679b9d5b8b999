// `waggle mcp`: the swarm as tools for a model, over standard input and output. Logs go to standard error alone.

import { Writable } from "node:stream";
import { Command } from "commander";
import { openSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import type { OutputStream } from "./shell.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface McpFlags {
  readonly readOnly?: boolean;
}

export function mcpCommand(program: Program): Command {
  return new Command("mcp")
    .description(
      "Serves the swarm to an MCP client, such as Claude Code, over standard input and output: submit, result, " +
        "status, explain, health, events, cancel. The client starts this command. Ends when standard input closes.",
    )
    .option("--read-only", "leave out the tools that change the swarm: submit, cancel")
    .option("--project <name>", "project of tasks that name none (WAGGLE_PROJECT; default: default)")
    .option("--user <name>", "user of tasks that name none (WAGGLE_USER; default: the account's name)")
    .addHelpText("after", examples)
    .action((flags: McpFlags, command: Command) =>
      runVerb(program, command, (context) => mcp(context, flags), { logLevel: "warn" }),
    );
}

const examples = `
The server starts without a swarm: calls fail with WAGGLE_UNREACHABLE until one runs. Answers are cut
at 20,000 characters, and say so.

Examples:
  $ claude mcp add swarm -- waggle mcp --data-folder /path/to/.waggle
  $ claude mcp add swarm -- waggle mcp --nats nats://127.0.0.1:4222 --read-only
  $ waggle mcp --user claude --log-level info 2> mcp.log`;

async function mcp(context: VerbContext, { readOnly = false }: McpFlags): Promise<ExitCode> {
  const { shell, output, logger, settings } = context;
  const { serveMcp } = await import("../adapters/mcp/serve.ts");
  await serveMcp({
    input: shell.stdin,
    output: writableOf(shell.stdout),
    readOnly,
    onlyProject: settings.projectOnly ? settings.project : undefined,
    connect: (signal) => openSwarm({ ...context, signal }),
    version: packageVersion(),
    logger,
    signal: AbortSignal.any([context.signal, output.closed]),
  });
  return exitCodes.ok;
}

/** Holds back while the reader is slow. */
function writableOf(stream: OutputStream): Writable {
  return new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void stream.write(chunk, () => done()),
  });
}
