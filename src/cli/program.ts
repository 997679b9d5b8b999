// The command line as a whole: global flags, verbs, help. Not here: the verbs themselves (one file each).

import { Command, Option } from "commander";
import { logLevels } from "../config/schema.ts";
import { asStartedBy, commandName } from "./command-name.ts";
import { exitCodeMeanings } from "./exit-code.ts";
import { HELP_COLUMNS } from "./format.ts";
import { fittedHelp, globalOptionsHelp, helpLayout } from "./help.ts";
import { knownColumns, type OutputStream } from "./shell.ts";
import type { Program } from "./verb.ts";
import { packageVersion } from "./version.ts";

/** Verbs with their flags and actions, ready to parse. The command throws instead of ending the process.
 *  @param argv what will be parsed, without node and script; absent: every verb is built */
export async function buildProgram(program: Program, argv: readonly string[] = []): Promise<Command> {
  const root = new Command(commandName(program.shell))
    .description("Routes tasks across a swarm of agents, and records the reason for each decision.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .addHelpText("after", rootHelp)
    .addHelpText("afterAll", globalOptionsHelp);
  for (const option of globalOptions()) root.addOption(option);
  const names = Object.values(verbsByGroup).flatMap((verbs) => Object.keys(verbs));
  const needed = neededVerbs(argv, names);
  for (const [group, verbs] of Object.entries(verbsByGroup)) {
    root.commandsGroup(`${group}:`);
    for (const [name, load] of Object.entries(verbs)) {
      if (!needed.has(name)) continue;
      const build = await load();
      root.addCommand(build(program));
    }
  }
  root.helpCommand("help [verb]", "print help for a verb");
  program.asStarted = asStartedBy(program.shell, names);
  for (const command of [root, ...root.commands, ...root.commands.flatMap(({ commands }) => commands)])
    quietly(command, program);
  return root;
}

/** In the order of help. A command line loads only its own verbs, because loading all of them takes a second. */
const verbsByGroup: Readonly<Record<string, Readonly<Record<string, () => Promise<BuildVerb>>>>> = {
  Run: {
    demo: async () => (await import("./demo.ts")).demoCommand,
    up: async () => (await import("./up.ts")).upCommand,
    agent: async () => (await import("./agent.ts")).agentCommand,
    serve: async () => (await import("./serve.ts")).serveCommand,
    bridge: async () => (await import("./bridge.ts")).bridgeCommand,
    mcp: async () => (await import("./mcp.ts")).mcpCommand,
    down: async () => (await import("./down.ts")).downCommand,
  },
  Tasks: {
    submit: async () => (await import("./submit.ts")).submitCommand,
    wait: async () => (await import("./wait-tasks.ts")).waitCommand,
    tasks: async () => (await import("./tasks.ts")).tasksCommand,
    task: async () => (await import("./task.ts")).taskCommand,
    explain: async () => (await import("./explain.ts")).explainCommand,
    retry: async () => (await import("./retry.ts")).retryCommand,
    cancel: async () => (await import("./cancel.ts")).cancelCommand,
    revoke: async () => (await import("./revoke.ts")).revokeCommand,
    reschedule: async () => (await import("./reschedule.ts")).rescheduleCommand,
  },
  Settings: {
    project: async () => (await import("./project.ts")).projectCommand,
    kind: async () => (await import("./kind.ts")).kindCommand,
    resource: async () => (await import("./resource.ts")).resourceCommand,
    rate: async () => (await import("./rate.ts")).rateCommand,
    grant: async () => (await import("./grant.ts")).grantCommand,
    policy: async () => (await import("./policy.ts")).policyCommand,
    config: async () => (await import("./config.ts")).configCommand,
  },
  Look: {
    status: async () => (await import("./status.ts")).statusCommand,
    health: async () => (await import("./health.ts")).healthCommand,
    dashboard: async () => (await import("./dashboard.ts")).dashboardCommand,
    events: async () => (await import("./events.ts")).eventsCommand,
    verify: async () => (await import("./verify.ts")).verifyCommand,
    export: async () => (await import("./export.ts")).exportCommand,
    replay: async () => (await import("./replay.ts")).replayCommand,
    plan: async () => (await import("./plan.ts")).planCommand,
    simulate: async () => (await import("./simulate.ts")).simulateCommand,
    torture: async () => (await import("./torture.ts")).tortureCommand,
  },
  Operate: {
    doctor: async () => (await import("./doctor.ts")).doctorCommand,
    drain: async () => (await import("./drain.ts")).drainCommand,
    undrain: async () => (await import("./drain.ts")).undrainCommand,
    hold: async () => (await import("./hold.ts")).holdCommand,
    unhold: async () => (await import("./hold.ts")).unholdCommand,
    pause: async () => (await import("./pause.ts")).pauseCommand,
    resume: async () => (await import("./pause.ts")).resumeCommand,
    leader: async () => (await import("./leader.ts")).leaderCommand,
    auth: async () => (await import("./auth.ts")).authCommand,
    journal: async () => (await import("./journal.ts")).journalCommand,
    completion: async () => (await import("./completion.ts")).completionCommand,
  },
};

type BuildVerb = (program: Program) => Command;

/** The verbs that a command line needs: the named verbs, none for the version, or all verbs for help and for errors. */
function neededVerbs(argv: readonly string[], names: readonly string[]): ReadonlySet<string> {
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) return new Set();
  const named = names.filter((name) => argv.includes(name));
  const isPlain = names.includes(argv[0] ?? "") && !named.includes("completion");
  return new Set(isPlain ? named : names);
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
