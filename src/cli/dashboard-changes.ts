// Who performs the changes of a dashboard. Its own login only reads. Where the server knows its users, changes go over
// a second connection, with the credential of an operator. Where every client may change the swarm, the page may too.

import { dirname } from "node:path";
import { type FoundBroker, findBroker } from "../broker/find-broker.ts";
import { connect } from "../client/connect.ts";
import type { Swarm } from "../client/swarm.ts";
import { loadSettings, type Settings } from "../config/settings.ts";
import { BoundedTransport } from "../dashboard/bounded-transport.ts";
import { type Changes, noChanges } from "../dashboard/changes.ts";
import { InvalidConfigError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { permissionsOf } from "../protocol/permissions.ts";
import { connectNats } from "../transport/nats.ts";
import type { ServerCredentials } from "../transport/server-address.ts";
import { logStatus } from "../transport/status-log.ts";
import type { Transport } from "../transport/transport.ts";
import { connectionOf } from "./connection.ts";
import type { VerbContext } from "./verb.ts";

export interface OpenedChanges {
  readonly changes: Changes;
  close(): Promise<void>;
}

export interface DashboardLogin {
  /** The server of the dashboard's own connection. */
  readonly found: FoundBroker;
  readonly transport: Transport;
  /** The verb that serves the page, for the refusal. */
  readonly verb: "up" | "dashboard";
}

/** The operator's connection, if there is one.
 *  @throws InvalidConfigError for a file that is not an operator's; UnreachableError when the server refuses it */
export async function openChanges(context: VerbContext, login: DashboardLogin): Promise<OpenedChanges> {
  const { operatorConfig } = context.settings;
  if (operatorConfig !== undefined) return await openOperator(context, operatorConfig);
  const { found, transport, verb } = login;
  if (found.kind === "named" && isOwnUser(found.address.credentials?.kind))
    return { changes: withoutOperator(verb), close: async () => undefined };
  const swarm = await swarmOver(transport, context);
  return { changes: { swarm, refusals: {} }, close: () => swarm.close() };
}

/** Whether the login is one of a server that tells its users apart by keys. */
function isOwnUser(kind: ServerCredentials["kind"] | undefined): boolean {
  return kind === "creds" || kind === "nkey-file" || kind === "nkey" || kind === "jwt";
}

function withoutOperator(verb: DashboardLogin["verb"]): Changes {
  const { refusals, ...none } = noChanges(refusalOf(verb));
  return { ...none, refusals: { ...refusals, submit: `This dashboard only reads. ${NOT_SUBMITTED}` } };
}

function refusalOf(verb: DashboardLogin["verb"]): string {
  return (
    `This dashboard only reads. To change the swarm from the page, start \`waggle ${verb}\` with --operator-config FILE: ` +
    "the waggle.config.json of an operator's credential (`waggle auth add operator`). Or run the command in a terminal, as an operator"
  );
}

/** Over the server of the file, else over the dashboard's own server. */
async function openOperator(context: VerbContext, file: string): Promise<OpenedChanges> {
  const { settings, logger, shell } = context;
  const operator = loadSettings({ flags: { config: file }, env: {}, cwd: dirname(file) });
  refuseOthers(operator, settings, file);
  const named = isNamed(operator) ? operator : settings;
  const { credentials, inboxPrefix, queriesOnly } = operator;
  const found = await findBroker({
    ...{ mode: "find-only", nats: named.nats, natsContext: named.natsContext, credentials, inboxPrefix },
    ...{ dataFolder: settings.dataFolder, insecure: settings.insecure, env: shell.env },
  });
  const transport = await connectNats(connectionOf(found, context, "waggle dashboard, changes"));
  logStatus(transport, { address: found.address, log: logger });
  const { publish } = permissionsOf(swarmId(settings.swarm), {
    role: "operator",
    inboxPrefix: transport.inboxPrefix,
  });
  const swarm = await swarmOver(queriesOnly ? new BoundedTransport(transport, publish) : transport, context);
  return {
    changes: { swarm, refusals: queriesOnly ? { submit: NOT_SUBMITTED } : {} },
    close: async () => {
      await swarm.close();
      await transport.close();
    },
  };
}

const NOT_SUBMITTED =
  "An operator's credential repairs tasks and submits none. Run the command in a terminal, with a submitter's credential";

function isNamed({ nats, natsContext }: Settings): boolean {
  return nats !== undefined || natsContext !== undefined;
}

/** @throws InvalidConfigError */
function refuseOthers(operator: Settings, { swarm }: Settings, file: string): void {
  const refused = (message: string) =>
    new InvalidConfigError(`--operator-config: ${file} ${message}`, { field: "--operator-config" });
  if (operator.projectOnly)
    throw refused(
      `is a credential of the project ${operator.project} alone: name an operator's, made by \`waggle auth add operator\``,
    );
  if (operator.queriesOnly && operator.swarm !== swarm)
    throw refused(`is of the swarm ${operator.swarm}, and the dashboard shows ${swarm}`);
}

async function swarmOver(transport: Transport, { settings, logger }: VerbContext): Promise<Swarm> {
  const { swarm, project, user } = settings;
  return await connect({ transport, swarm, project, user, logger });
}
