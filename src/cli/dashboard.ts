// `waggle dashboard`: a page in the browser that shows the swarm live. A client like any other: it needs a broker, and
// runs beside the coordinators. `waggle up` runs the same verb as a process of its own (dashboard-process.ts).

import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { pastTurns } from "../audit/past-turns.ts";
import { findBroker } from "../broker/find-broker.ts";
import { connect } from "../client/connect.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { startDashboard } from "../dashboard/dashboard.ts";
import { swarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import { connectNats } from "../transport/nats.ts";
import { describeAddress } from "../transport/server-address.ts";
import { logServerError } from "../transport/server-error.ts";
import { logStatus } from "../transport/status-log.ts";
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

export function dashboardCommand(program: Program): Command {
  return new Command("dashboard")
    .summary("show the swarm live in a browser")
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
    .option("--read-only", "refuse every change from the page")
    .addHelpText("after", examples)
    .action((flags: DashboardFlags, command: Command) =>
      runVerb(program, command, (context) => dashboard(context, flags), { logLevel: "warn" }),
    );
}

const examples = `
Whoever has the URL may watch and, without --read-only, cancel, retry and submit. The page is plain HTTP: for other
machines, put a proxy with TLS before it, or use ssh -L ${limits.dashboardPort}:127.0.0.1:${limits.dashboardPort}.

Examples:
  $ waggle dashboard
  $ waggle dashboard --nats nats://prod:4222 --swarm acme --read-only
  $ waggle dashboard --port 8080
  $ WAGGLE_DASHBOARD_TOKEN=$(openssl rand -hex 16) waggle dashboard --host 0.0.0.0`;

async function dashboard(context: VerbContext, flags: DashboardFlags): Promise<ExitCode> {
  const { settings, logger, output, shell, signal } = context;
  const chosen = optionsOf(flags, shell.env);
  const { nats, natsContext, credentials, inboxPrefix, insecure, dataFolder, project, projectOnly, user } =
    settings;
  const found = await findBroker({
    ...{ mode: "find-only", dataFolder, nats, natsContext, credentials, inboxPrefix, insecure },
    env: shell.env,
  });
  const kept = shell.env[FROM_UP] === undefined ? undefined : keptToken(dataFolder, systemRandom);
  const options = { ...chosen, token: chosen.token ?? kept };
  const transport = await connectNats({
    ...found.address,
    ...(found.inboxPrefix === undefined ? {} : { inboxPrefix: found.inboxPrefix }),
    ...{ name: "waggle dashboard", signal, onError: (error) => logServerError(logger, error) },
  });
  logStatus(transport, { address: found.address, log: logger });
  const swarm = await connect({ transport, swarm: settings.swarm, project, projectOnly, user, logger });
  const { name, version } = transport.server();
  const running = await startDashboard(
    {
      ...{ swarm, transport, subjects: subjectsOf(swarmId(settings.swarm)), logger, project, user },
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
  ).catch(async (error: unknown) => {
    await swarm.close();
    await transport.close();
    throw error;
  });
  try {
    const { url, port } = running;
    output.datum({ type: "dashboard", url, port, readOnly: options.isReadOnly }, () =>
      labelled("dashboard", url, undefined),
    );
    if (!isLoopback(options.host))
      output.note(
        `beware: other machines reach this page without encryption. Whoever has the URL may ${options.isReadOnly ? "watch the swarm" : "watch and change the swarm; --read-only refuses changes"}`,
      );
    await ended(context);
  } finally {
    await running.close();
    await swarm.close();
    await transport.close();
  }
  return exitCodes.ok;
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
