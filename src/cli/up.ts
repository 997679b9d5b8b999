// `waggle up`: runs a coordinator in this terminal, and starts a broker if none runs. Ctrl-C once hands over and
// ends; the broker keeps running, so that agents stay connected until the next coordinator. Ctrl-C twice ends at
// once.

import { Command } from "commander";
import type { FoundBroker } from "../broker/find-broker.ts";
import { retentionWarning } from "../config/retention.ts";
import { formatCount } from "../count-text.ts";
import { JournalDamagedError } from "../errors.ts";
import { withoutRemedy } from "../journal/journal-errors.ts";
import { limits } from "../limits.ts";
import { CoordinatorMetrics } from "../metrics/coordinator-metrics.ts";
import type { ListenAddress } from "../metrics/listen-address.ts";
import { type MetricsServer, serveMetrics } from "../metrics/metrics-server.ts";
import { reportActivity } from "./activity.ts";
import { operatorConfigHelp } from "./dashboard.ts";
import { startDashboardProcess } from "./dashboard-process.ts";
import { type DeclarationsFile, declarationsIn, declareWhenLeading } from "./declarations.ts";
import { durabilityText } from "./durability-text.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { labelled } from "./format.ts";
import { roomWarning } from "./room-warning.ts";
import { type RunningCoordinator, runCoordinator } from "./run-coordinator.ts";
import { standbyNotices } from "./standby-notices.ts";
import { tokenKeyIn } from "./token-key.ts";
import { UsageError } from "./usage-error.ts";
import { listenAddress } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface UpFlags {
  readonly dashboard: boolean;
  readonly metrics?: ListenAddress;
  readonly metricsByAgent?: boolean;
}

export function upCommand(program: Program): Command {
  return new Command("up")
    .description(
      "Runs a coordinator of the swarm. The broker is the first of: the server of --nats or NATS_URL, the data " +
        "folder's broker, a nats-server from the PATH, the development broker. A broker started by " +
        "`waggle up` keeps running until `waggle down`. With a journal in JetStream, a second coordinator of the " +
        "same swarm becomes a standby.",
    )
    .option(
      "--name <name>",
      "beginning of the coordinator's id, before four random characters: 1–64 characters of A–Z a–z 0–9 _ -. Default: the host's name",
    )
    .option(
      "--leader-timeout <duration>",
      "time without a heartbeat of this leader after which a standby takes over, from 500ms to 10s; default 3s",
    )
    .option(
      "--replicas <n>",
      "number of servers that store each new segment of the journal, from 1 to 5; more than 1 needs nats-server 2.10. Default: as for the newest segment, or 1",
    )
    .option(
      "--retain <how much>",
      "part of the journal that is kept for reading: a duration, a size, or both; the smaller applies. A new journal gets storage for this size; without a size, for 7.5 GiB. Default 7d,7GiB",
      (said: string, before: string | undefined) => (before === undefined ? said : `${before},${said}`),
    )
    .option(
      "--metrics <host:port>",
      "serve metrics for Prometheus on http://HOST:PORT/metrics; port 0 takes any free port. Default: none are served",
      listenAddress,
    )
    .option(
      "--metrics-by-agent",
      `a series of its own for the load of each agent, up to ${formatCount(limits.metricAgentsMax)} agents; requires --metrics. Default: the mean of all agents`,
    )
    .option(
      "--token-key-file <file>",
      "file with the secret key of the attempts' tokens: at least 32 bytes, the same for all coordinators of the swarm. Without a key, anyone who can read the journal can compute the tokens and report results in an agent's name. WAGGLE_TOKEN_KEY_FILE; default: none",
    )
    .option(
      "--declarations-file <file>",
      "file with grants of agent groups and users of projects; the leader sets those that the swarm lacks. `waggle auth` writes the file. WAGGLE_DECLARATIONS_FILE; default: none",
    )
    .option("--operator-config <file>", operatorConfigHelp)
    .option(
      "--no-dashboard",
      "serve no page (`waggle dashboard`); default: serve it at 127.0.0.1, and print its URL",
    )
    .addHelpText("after", examples)
    .action((flags: UpFlags, command: Command) =>
      runVerb(program, command, (context) => upWithMetrics(context, flags), {
        logLevel: "info",
        logIsData: true,
      }),
    );
}

const examples = `
Ctrl-C once: hands over and ends. Twice: ends at once. Neither damages the journal.

Examples:
  $ waggle up
  $ waggle up --nats nats://127.0.0.1:4222 --swarm acme
  $ waggle up --name north                 its id is north- and four random characters
  $ waggle up --leader-timeout 1s
  $ waggle up --nats nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3
  $ waggle up --retain 10GiB               batches of any age, up to 10 GiB
  $ waggle up --retain 30d --retain 100GiB
  $ waggle up --metrics 127.0.0.1:9464     metrics for Prometheus (docs/metrics.md)
  $ waggle up --token-key-file token.key   tokens of attempts that only coordinators can make
  $ waggle up --json > up.ndjson`;

/** An address that cannot be served ends the verb before anything else is started. */
async function upWithMetrics(context: VerbContext, flags: UpFlags): Promise<ExitCode> {
  const { metrics: address, metricsByAgent } = flags;
  if (address === undefined) {
    if (metricsByAgent === true) throw new UsageError("--metrics-by-agent needs --metrics HOST:PORT");
    return await up(context, flags, undefined);
  }
  const metrics = new CoordinatorMetrics({ version: packageVersion(), byAgent: metricsByAgent === true });
  const server = await serveMetrics(address, () => metrics.text());
  try {
    printMetrics(server, context);
    return await up(context, flags, metrics);
  } finally {
    await server.close();
  }
}

async function up(
  context: VerbContext,
  { dashboard }: UpFlags,
  metrics: CoordinatorMetrics | undefined,
): Promise<ExitCode> {
  const { tokenKeyFile, declarationsFile } = context.settings;
  const tokenKey = tokenKeyFile === undefined ? undefined : tokenKeyIn(tokenKeyFile);
  const declarations = declarationsFile === undefined ? undefined : declarationsIn(declarationsFile);
  let stopDashboard: (() => void) | undefined;
  const onBroker = (broker: FoundBroker) => {
    printBroker(broker, context);
    if (dashboard) stopDashboard = startDashboardProcess(context);
  };
  try {
    return await lead(context, { metrics, tokenKey, declarations, onBroker });
  } catch (error) {
    throw error instanceof JournalDamagedError ? withoutRunningCoordinator(error) : error;
  } finally {
    stopDashboard?.();
  }
}

/** The coordinator that could continue by itself is the one that halted. The report of the error adds the remedy. */
function withoutRunningCoordinator(error: JournalDamagedError): JournalDamagedError {
  return new JournalDamagedError(withoutRemedy(error.message), { cause: error });
}

interface Watchers {
  readonly metrics: CoordinatorMetrics | undefined;
  readonly tokenKey: Uint8Array | undefined;
  readonly declarations: DeclarationsFile | undefined;
  onBroker(broker: FoundBroker): void;
}

async function lead(context: VerbContext, watchers: Watchers): Promise<ExitCode> {
  const { metrics, tokenKey, declarations, onBroker } = watchers;
  const { settings, logger, shell, signal } = context;
  const running = await runCoordinator({
    ...{ settings, logger, env: shell.env, signal, onBroker },
    ...(metrics === undefined ? {} : { metrics }),
    ...(tokenKey === undefined ? {} : { tokenKey }),
  });
  const { recovery, coordinator } = running;
  printDurability(running, context);
  if (recovery !== undefined) logger.warn(recovery);
  for (const warning of [retentionWarning(settings.retention), await roomWarning(running, settings)])
    if (warning !== undefined) logger.warn({ coordinator: running.id }, warning);

  const stopReporting = reportActivity(running, context);
  const standingBy = standbyNotices(running).subscribe((notice) =>
    logger.info({ coordinator: running.id }, notice),
  );
  const declaring =
    declarations === undefined ? undefined : declareWhenLeading(coordinator, declarations, context);
  let wasConnected: boolean | undefined;
  let failed!: (error: unknown) => void;
  const stopFailed = new Promise<never>((_, reject) => {
    failed = reject;
  });
  const stop = () => {
    logger.info({ coordinator: running.id }, "ending (Ctrl-C again ends the coordinator at once)");
    wasConnected = running.transport.status() === "connected";
    running.stop().catch(failed); // `closed` reports the end
  };
  const stopWatching = running.transport.onStatus((status) => {
    if (status === "closed" && running.transport.closedBy !== undefined) failed(running.transport.closedBy);
  });
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  try {
    const error = await Promise.race([coordinator.closed, stopFailed]);
    if (error !== undefined) throw error;
  } finally {
    stopWatching();
    stopReporting();
    standingBy.unsubscribe();
    declaring?.unsubscribe();
    await running.stop();
  }
  logger.info(lastWords(running, wasConnected === true));
  return exitCodes.ok;
}

/** On stdout: the broker that was found or started. */
function printBroker({ kind, sentence, local }: FoundBroker, { output }: VerbContext): void {
  const record = {
    type: "broker",
    kind,
    sentence,
    ...(local === undefined ? {} : { wasStarted: local.wasStarted }),
  };
  output.datum(record, () => labelled("broker", output.asStarted(sentence), output.columns));
}

function printMetrics({ url, isPublic }: MetricsServer, { output, logger }: VerbContext): void {
  output.datum({ type: "metrics", url }, () => labelled("metrics", url, output.columns));
  if (isPublic)
    logger.warn(
      "the metrics can be read from other machines, without a password: they name kinds, projects and resources",
    );
}

function printDurability({ id, journal }: RunningCoordinator, { output, settings }: VerbContext): void {
  const { class: durability, sentence } = journal.durability;
  const { swarm } = settings;
  output.datum({ type: "journal", coordinator: id, swarm, durability, sentence }, () =>
    [
      labelled(
        "durability",
        `${durabilityText(durability)}; details: ${output.asStarted("waggle doctor")}`,
        output.columns,
      ),
      labelled("coordinator", `${id} of the swarm ${swarm}`, output.columns),
    ].join("\n"),
  );
}

function lastWords({ broker }: RunningCoordinator, wasConnected: boolean): string {
  if (broker.local === undefined || !wasConnected) return "the coordinator has ended";
  return "the coordinator has ended; the broker runs until `waggle down`";
}
