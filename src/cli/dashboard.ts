// `waggle dashboard`: a page in the browser that shows the swarm live. A client like any other: it needs a broker, and
// runs beside the coordinators. `waggle up` runs the same verb as a process of its own (dashboard-process.ts).

import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { pastTurns } from "../audit/past-turns.ts";
import { findBroker } from "../broker/find-broker.ts";
import { connect } from "../client/connect.ts";
import type { Swarm } from "../client/swarm.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { BoundedTransport } from "../dashboard/bounded-transport.ts";
import { type Changes, noChanges } from "../dashboard/changes.ts";
import { type DashboardOptions, type RunningDashboard, startDashboard } from "../dashboard/dashboard.ts";
import { UnauthorizedError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { permissionsOf } from "../protocol/permissions.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { connectNats } from "../transport/nats.ts";
import { describeAddress } from "../transport/server-address.ts";
import { logStatus } from "../transport/status-log.ts";
import { connectionOf } from "./connection.ts";
import { type OpenedChanges, openChanges } from "./dashboard-changes.ts";
import { FROM_UP } from "./dashboard-process.ts";
import { isToken, keptToken } from "./dashboard-token.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { labelled } from "./format.ts";
import { openJournal } from "./readable-journal.ts";
import { UsageError } from "./usage-error.ts";
import { wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageFolder, packageVersion } from "./version.ts";

interface DashboardFlags {
  readonly port?: number;
  readonly host?: string;
  readonly token?: string;
  readonly readOnly?: boolean;
}

/** Help text of `--operator-config`, also for `up`. */
export const operatorConfigHelp =
  "`waggle.config.json` of an operator's credential, with which the page changes the swarm. Required for changes where the server knows its users by keys: the dashboard's own credential only reads. WAGGLE_OPERATOR_CONFIG; default: none";

export function dashboardCommand(program: Program): Command {
  return new Command("dashboard")
    .description(
      "Serves a page that shows the swarm live: health, agents, tasks, fairness, resources, budgets, events. Prints " +
        "the URL to open, and runs until Ctrl-C. `waggle up` serves the same page by itself.",
    )
    .option(
      "--port <n>",
      `port to listen at; 0 takes any free port. Default: ${limits.dashboardPort}, or the next free port`,
      wholeNumber(0, 65_535),
    )
    .option(
      "--host <address>",
      "address to listen at; 0.0.0.0 for all of this machine. Other addresses than 127.0.0.1 require --token. Default 127.0.0.1",
    )
    .option(
      "--token <token>",
      `token in the URL, at least ${limits.dashboardTokenCharactersMin} characters of A–Z a–z 0–9 _ - (WAGGLE_DASHBOARD_TOKEN). Default: a random one, which \`up\` keeps in the data folder`,
    )
    .option("--operator-config <file>", operatorConfigHelp)
    .option("--read-only", "refuse every change from the page")
    .addHelpText("after", examples)
    .action((flags: DashboardFlags, command: Command) =>
      runVerb(program, command, (context) => dashboard(context, flags), { logLevel: "warn" }),
    );
}

const examples = `
Anyone with the URL can watch the swarm, and change it. Nobody can change it with --read-only, or where the
server knows its users by keys and --operator-config is absent. The page is plain HTTP: for other machines,
put a proxy with TLS before it, or use ssh -L ${limits.dashboardPort}:127.0.0.1:${limits.dashboardPort}.

Examples:
  $ waggle dashboard
  $ waggle dashboard --nats nats://prod:4222 --swarm acme --read-only
  $ waggle dashboard --config auditor/waggle.config.json --operator-config operator/waggle.config.json
  $ waggle dashboard --port 8080
  $ WAGGLE_DASHBOARD_TOKEN=$(openssl rand -hex 16) waggle dashboard --host 0.0.0.0`;

async function dashboard(context: VerbContext, flags: DashboardFlags): Promise<ExitCode> {
  const { settings, shell } = context;
  const chosen = optionsOf(flags, shell.env);
  if (settings.projectOnly)
    throw new UsageError(
      `the dashboard shows the whole swarm, and this credential reaches the project ${settings.project} alone: use an auditor's (\`waggle auth add auditor\`)`,
    );
  const kept = shell.env[FROM_UP] === undefined ? undefined : keptToken(settings.dataFolder, systemRandom);
  const options = { ...chosen, token: chosen.token ?? kept };
  const opened: (() => Promise<void>)[] = [];
  try {
    const { running, changes, closed } = await open(context, options, opened);
    print(context, running, { ...options, mayChange: changes.swarm !== undefined });
    const refused = await Promise.race([ended(context), closed]);
    if (refused instanceof UnauthorizedError) throw refused;
  } finally {
    for (const close of opened.reverse()) await close();
  }
  return exitCodes.ok;
}

/** @param opened collects what is to be closed, also before an error */
async function open(
  context: VerbContext,
  options: DashboardOptions,
  opened: (() => Promise<void>)[],
): Promise<{
  readonly running: RunningDashboard;
  readonly changes: Changes;
  /** Settles when the reading connection closes. */
  readonly closed: Swarm["closed"];
}> {
  const { settings, logger, shell } = context;
  const { nats, natsContext, credentials, inboxPrefix, insecure, dataFolder, project, user } = settings;
  const found = await findBroker({
    ...{ mode: "find-only", dataFolder, nats, natsContext, credentials, inboxPrefix, insecure },
    env: shell.env,
  });
  const transport = await connectNats(connectionOf(found, context, "waggle dashboard"));
  opened.push(() => transport.close());
  logStatus(transport, { address: found.address, log: logger });
  const id = swarmId(settings.swarm);
  const auditor = permissionsOf(id, { role: "auditor", inboxPrefix: transport.inboxPrefix });
  const reading = new BoundedTransport(transport, auditor.publish);
  const swarm = await connect({ transport: reading, swarm: id, project, user, logger });
  opened.push(() => swarm.close());
  const verb = shell.env[FROM_UP] === undefined ? "dashboard" : "up";
  const { changes, close } = options.isReadOnly
    ? unchanging
    : await openChanges(context, { found, transport, verb });
  opened.push(close);
  const { name, version } = transport.server();
  const running = await startDashboard(
    {
      ...{ swarm, transport: reading, changes, subjects: subjectsOf(id), logger, project, user },
      ...{ clock: systemClock, random: systemRandom, version: packageVersion() },
      pastTurns: async (moment) => {
        const { reader } = await openJournal(context, undefined);
        try {
          return await pastTurns({ journal: reader, clock: systemClock }, moment);
        } finally {
          await reader.close();
        }
      },
      assetsFolder: join(packageFolder, "dist/dashboard"),
      broker: { url: describeAddress(found.address), name, version },
    },
    options,
  );
  opened.push(() => running.close());
  return { running, changes, closed: swarm.closed };
}

/** With --read-only the gate refuses every change before. */
const unchanging: OpenedChanges = { changes: noChanges("--read-only"), close: async () => undefined };

const REFUSED = "refused, because the login only reads; --operator-config FILE permits them";

interface DashboardNotes {
  readonly host: string;
  readonly isReadOnly: boolean;
  readonly mayChange: boolean;
}

function print(
  { output }: VerbContext,
  { url, port }: RunningDashboard,
  { host, isReadOnly, mayChange }: DashboardNotes,
): void {
  const refused = mayChange || isReadOnly ? [] : [labelled("changes", REFUSED, output.columns)];
  output.datum({ type: "dashboard", url, port, readOnly: isReadOnly, changes: mayChange }, () =>
    [labelled("dashboard", url, undefined), ...refused].join("\n"),
  );
  if (!isLoopback(host))
    output.note(
      `beware: other machines reach the page without encryption. Whoever has the URL may ${mayChange ? "watch and change the swarm; --read-only refuses changes" : "watch the swarm"}`,
    );
}

/** Resolves at Ctrl-C. As a part of `up`, also when `up` is gone: then the input ends. */
async function ended({ signal, shell, output }: VerbContext): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (shell.env[FROM_UP] === undefined) return;
    output.closed.addEventListener("abort", () => resolve(), { once: true });
    shell.stdin.on("end", resolve).on("error", resolve).resume();
  });
}

/** @throws UsageError */
function optionsOf(
  { port, host = LOOPBACK, readOnly = false, ...flags }: DashboardFlags,
  env: VerbContext["shell"]["env"],
) {
  const token = flags.token ?? env["WAGGLE_DASHBOARD_TOKEN"];
  const least = limits.dashboardTokenCharactersMin;
  if (token !== undefined && !isToken(token))
    throw new UsageError(
      `the token must have at least ${least} characters of A–Z a–z 0–9 _ -: whoever guesses it may change the swarm. For example: openssl rand -hex 16`,
      { field: "--token" },
    );
  if (!isLoopback(host) && token === undefined)
    throw new UsageError(
      `--host ${host} lets other machines reach the page: choose a secret for its URL with --token or WAGGLE_DASHBOARD_TOKEN, for example of openssl rand -hex 16`,
      { field: "--host" },
    );
  return {
    ...{ host, port: port ?? limits.dashboardPort, mayMove: port === undefined, isReadOnly: readOnly, token },
    names: isLoopback(host) ? [] : namesOf(host),
  };
}

const LOOPBACK = "127.0.0.1";

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Names in the Host header: the address itself; of a wildcard, every address and the name of the machine. */
function namesOf(host: string): readonly string[] {
  const bracketed = (address: string) => (address.includes(":") ? `[${address}]` : address);
  if (host !== "0.0.0.0" && host !== "::") return [bracketed(host)];
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  return [hostname(), ...addresses.map(({ address }) => bracketed(address))];
}
