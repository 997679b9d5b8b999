// The command line as a whole: global flags, verbs, help. Not here: the verbs themselves (one file each).

import { Command, Option } from "commander";
import { logLevels } from "../config/schema.ts";
import { asStartedBy, commandName } from "./command-name.ts";
import { exitCodeMeanings } from "./exit-code.ts";
import { HELP_COLUMNS } from "./format.ts";
import { fittedHelp, globalOptionsHelp, helpLayout } from "./help.ts";
import { knownColumns, type OutputStream } from "./shell.ts";
import type { Program } from "./verb.ts";
import { type VerbEntry, verbsByGroup } from "./verbs.ts";
import { packageVersion } from "./version.ts";
import { nameWrongValues } from "./wrong-value.ts";

/** Verbs with their flags and actions, ready to parse. The command throws instead of ending the process.
 *  @param argv what will be parsed, without node and script: other verbs have no flags; absent: all verbs have flags */
export async function buildProgram(program: Program, argv?: readonly string[]): Promise<Command> {
  const root = new Command(commandName(program.shell))
    .description("Routes tasks across a swarm of agents, and records the reason for each decision.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .addHelpText("after", rootHelp)
    .addHelpText("afterAll", globalOptionsHelp);
  for (const option of globalOptions()) root.addOption(option);
  for (const [group, verbs] of Object.entries(verbsByGroup)) {
    root.commandsGroup(`${group}:`);
    for (const [name, entry] of Object.entries(verbs))
      root.addCommand(await verbOf(name, entry, program, argv === undefined || isNeeded(name, argv)));
  }
  root.helpCommand("help [verb]", "print help for a verb");
  const names = Object.values(verbsByGroup).flatMap((verbs) => Object.keys(verbs));
  program.asStarted = asStartedBy(program.shell, names);
  for (const command of [root, ...root.commands, ...root.commands.flatMap(({ commands }) => commands)])
    quietly(command, program);
  return root;
}

/** A verb with its flags and actions, or without them where the command line does not name the verb. */
async function verbOf(name: string, { summary, load }: VerbEntry, program: Program, isLoaded: boolean) {
  const verb = isLoaded ? (await load())(program) : new Command(name);
  return verb.summary(summary);
}

/** Commander runs only a verb that a word of the command line names. The script of `completion` holds all flags. */
function isNeeded(name: string, argv: readonly string[]): boolean {
  return argv.includes(name) || argv.includes("completion");
}

function globalOptions(): Option[] {
  return [
    new Option("--nats <url>", "URL of the NATS server (NATS_URL; default: the broker of the data folder)"),
    new Option("--nats-context <name>", "context of the nats tool (NATS_CONTEXT)"),
    new Option("--creds <file>", "credentials file for the NATS server (NATS_CREDS)"),
    new Option("--nkey <file>", "file with the nkey seed for the NATS server (NATS_NKEY)"),
    new Option("--tls-ca <file>", "certificate authority for TLS (NATS_CA)"),
    new Option("--tls-cert <file>", "client certificate for TLS (NATS_CERT)"),
    new Option("--tls-key <file>", "client key for TLS (NATS_KEY)"),
    new Option(
      "--inbox-prefix <subject>",
      "prefix of the subjects on which answers arrive, such as _INBOX_ann (NATS_INBOX_PREFIX; default: _INBOX)",
    ),
    new Option(
      "--insecure",
      "permit a password or token to go to another machine without encryption (WAGGLE_INSECURE=1)",
    ),
    new Option("--swarm <name>", "name of the swarm (WAGGLE_SWARM; default: default)"),
    new Option(
      "--data-folder <folder>",
      "folder of the local broker and its journal (WAGGLE_DATA_FOLDER; default: .waggle)",
    ),
    new Option("--config <file>", "settings file (WAGGLE_CONFIG; default: waggle.config.json, if it exists)"),
    new Option(
      "--log-level <level>",
      "lowest level that is logged to stderr (WAGGLE_LOG_LEVEL; default: info for up and agent, else silent)",
    ).choices(logLevels),
    new Option("--json", "print records for programs: one JSON object per line"),
    new Option("--verbose", "log everything; show the stack of the error that ends the command"),
  ];
}

/** Commander neither prints errors nor ends the process: main.ts does both, in one form for all. */
function quietly(command: Command, program: Program): void {
  const { shell, asStarted } = program;
  if (command.parent !== null && command.commands.length > 0)
    command.helpCommand("help [command]", "print help for a command");
  command.description(asStarted(command.description())).summary(asStarted(command.summary()));
  for (const part of [...command.options, ...command.registeredArguments])
    part.description = asStarted(part.description);
  nameWrongValues(command);
  const widthOf = (stream: OutputStream) => knownColumns(stream) ?? HELP_COLUMNS;
  const helpTo = (stream: OutputStream) => (text: string) =>
    void stream.write(fittedHelp(asStarted(text), widthOf(stream)));
  command
    .helpOption("-h, --help", "print help")
    .exitOverride()
    .showHelpAfterError(false)
    .configureHelp(helpLayout)
    .configureOutput({
      writeOut: helpTo(shell.stdout),
      writeErr: helpTo(shell.stderr),
      outputError: () => undefined,
      getOutHelpWidth: () => widthOf(shell.stdout),
      getErrHelpWidth: () => widthOf(shell.stderr),
    });
}

const rootHelp = `
Examples:
  $ waggle demo                          see a swarm at work on this folder
  $ waggle up                            start a coordinator, and a broker if none runs
  $ waggle agent --kind count --exec 'wc -w' --max-concurrent 4
  $ waggle submit --kind count --text 'how many words' --wait
  $ waggle status --watch
  $ waggle events --follow
  $ waggle explain ID                    why a task waits, or why it got its agent

Exit codes:
${exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join("\n")}`;
