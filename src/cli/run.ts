// Runs one command line, from its arguments to the exit code. Not here: the process (main.ts), the verbs
// (program.ts). Nothing in here ends the process, except a second Ctrl-C.

import { type Command, CommanderError } from "commander";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { Output } from "./output.ts";
import { buildProgram } from "./program.ts";
import { reportError } from "./report-error.ts";
import type { Shell } from "./shell.ts";
import { UsageError } from "./usage-error.ts";
import type { Program } from "./verb.ts";

/** Runs the command line `argv` (without node and script). Resolves to the exit code; never rejects. */
export async function run(argv: readonly string[], shell: Shell): Promise<ExitCode> {
  const program: Program = { shell, exitCode: exitCodes.ok, asStarted: (text) => text };
  const root = await buildProgram(program, argv);
  try {
    if (argv.length === 0) root.help({ error: true });
    await root.parseAsync([...argv], { from: "user" });
    return program.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok; // help, version
    if (error instanceof CommanderError && error.code === "commander.help") return exitCodes.usage;
    const output = new Output(shell, { json: argv.includes("--json"), asStarted: program.asStarted });
    return reportError(withHelp(error, root, argv), output, { verbose: argv.includes("--verbose") });
  }
}

/** The error of the command line, and the help to read. Any other error stays as it is. */
function withHelp(error: unknown, root: Command, argv: readonly string[]): unknown {
  const help = helpFor(root, argv);
  if (error instanceof UsageError) {
    const { field } = error;
    return new UsageError(`${error.message} (see ${help})`, {
      cause: error,
      ...(field === undefined ? {} : { field }),
    });
  }
  if (!(error instanceof CommanderError)) return error;
  const message = error.message
    .replace(/^error: /, "")
    .replace(/\s*\n\s*/g, " ")
    .replace(/\(Did you mean (?:one of )?(.*?)\?\)/, "· did you mean $1?");
  return new UsageError(`${message}${/[.?]$/.test(message) ? "" : ";"} see ${help}`);
}

/** The command that prints the help for the command line. */
function helpFor(root: Command, argv: readonly string[]): string {
  const verb = firstNamed(root, argv);
  const part = verb === undefined ? undefined : firstNamed(verb, argv.slice(argv.indexOf(verb.name()) + 1));
  return ["waggle", verb?.name(), part?.name(), "--help"].filter((word) => word !== undefined).join(" ");
}

/** The command that the first of the words names: a later word may be an argument of that command. */
function firstNamed({ commands }: Command, words: readonly string[]): Command | undefined {
  const commandByName = new Map(commands.map((command) => [command.name(), command]));
  return words.map((word) => commandByName.get(word)).find((command) => command !== undefined);
}
