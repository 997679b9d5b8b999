// The command line as a whole: global flags, the verbs, help. Not here: what a verb does (its own file).

import { Command, Option } from "commander";
import { logLevels } from "../config/schema.ts";
import { agentCommand } from "./agent.ts";
import { cancelCommand } from "./cancel.ts";
import { asStartedBy, commandName } from "./command-name.ts";
import { completionCommand } from "./completion.ts";
import { configCommand } from "./config.ts";
import { demoCommand } from "./demo.ts";
import { doctorCommand } from "./doctor.ts";
import { downCommand } from "./down.ts";
import { drainCommand, undrainCommand } from "./drain.ts";
import { eventsCommand } from "./events.ts";
import { exitCodeMeanings } from "./exit-code.ts";
import { explainCommand } from "./explain.ts";
import { HELP_COLUMNS } from "./format.ts";
import { fittedHelp, globalOptionsHelp, helpLayout } from "./help.ts";
import { kindCommand } from "./kind.ts";
import { leaderCommand } from "./leader.ts";
import { pauseCommand, resumeCommand } from "./pause.ts";
import { planCommand } from "./plan.ts";
import { policyCommand } from "./policy.ts";
import { projectCommand } from "./project.ts";
import { rateCommand } from "./rate.ts";
import { resourceCommand } from "./resource.ts";
import { retryCommand } from "./retry.ts";
import { knownColumns, type OutputStream } from "./shell.ts";
import { simulateCommand } from "./simulate.ts";
import { statusCommand } from "./status.ts";
import { submitCommand } from "./submit.ts";
import { taskCommand } from "./task.ts";
import { tasksCommand } from "./tasks.ts";
import { tortureCommand } from "./torture.ts";
import { upCommand } from "./up.ts";
import type { Program } from "./verb.ts";
import { packageVersion } from "./version.ts";
import { waitCommand } from "./wait-tasks.ts";

/** Every verb, with its flags and its action, ready to parse. It throws instead of ending the process. */
export function buildProgram(program: Program): Command {
  const root = new Command(commandName(program.shell))
    .description("Routes tasks across a swarm of agents, and writes down why.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .addHelpText("after", rootHelp)
    .addHelpText("afterAll", globalOptionsHelp);
  for (const option of globalOptions()) root.addOption(option);
  for (const [group, verbs] of verbsByGroup) {
    root.commandsGroup(`${group}:`);
    for (const build of verbs) root.addCommand(build(program));
  }
  root.helpCommand("help [verb]", "print help for a verb");
  program.asStarted = asStartedBy(
    program.shell,
    root.commands.map((command) => command.name()),
  );
  for (const command of [root, ...root.commands, ...root.commands.flatMap(({ commands }) => commands)])
    quietly(command, program);
  return root;
}

/** In the order in which help lists them. */
const verbsByGroup: readonly (readonly [string, readonly ((program: Program) => Command)[]])[] = [
  ["Run", [demoCommand, upCommand, agentCommand, downCommand]],
  [
    "Tasks",
    [submitCommand, waitCommand, tasksCommand, taskCommand, explainCommand, retryCommand, cancelCommand],
  ],
  ["Settings", [projectCommand, kindCommand, resourceCommand, rateCommand, policyCommand, configCommand]],
  ["Look", [statusCommand, eventsCommand, planCommand, simulateCommand, tortureCommand]],
  [
    "Operate",
    [
      doctorCommand,
      drainCommand,
      undrainCommand,
      pauseCommand,
      resumeCommand,
      leaderCommand,
      completionCommand,
    ],
  ],
];

function globalOptions(): Option[] {
  return [
    new Option("--nats <url>", "URL of the NATS server (NATS_URL; default: the broker of the data folder)"),
    new Option("--nats-context <name>", "context of the nats tool (NATS_CONTEXT)"),
    new Option("--creds <file>", "credentials for that server (NATS_CREDS)"),
    new Option("--nkey <file>", "nkey seed for that server (NATS_NKEY)"),
    new Option("--tls-ca <file>", "certificate authority for TLS (NATS_CA)"),
    new Option("--tls-cert <file>", "client certificate for TLS (NATS_CERT)"),
    new Option("--tls-key <file>", "client key for TLS (NATS_KEY)"),
    new Option("--swarm <name>", "name of the swarm (WAGGLE_SWARM; default: default)"),
    new Option(
      "--data-folder <folder>",
      "folder of the local broker and its journal (WAGGLE_DATA_FOLDER; default: .waggle)",
    ),
    new Option(
      "--config <file>",
      "file of settings (WAGGLE_CONFIG; default: waggle.config.json, if it exists)",
    ),
    new Option(
      "--log-level <level>",
      "what is logged to stderr (WAGGLE_LOG_LEVEL; default: info for up and agent, else silent)",
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
  $ waggle up                            start a coordinator (and a broker, if none is there)
  $ waggle agent --kind count --exec 'wc -w' --max-concurrent 4
  $ waggle submit --kind count --text 'how many words' --wait
  $ waggle status --watch
  $ waggle events --follow
  $ waggle explain ID                    why a task waits, or went where it did

Exit codes:
${exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join("\n")}`;
