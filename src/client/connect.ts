// Finds the server and opens a connection to a swarm: where programs that use Waggle begin. Never starts a
// server; `waggle up` does.

import { type Logger, pino } from "pino";
import {
  abortSignal,
  argument,
  flag,
  having,
  objectOf,
  oneOrSeveral,
  readerOf,
  text,
} from "../agent/options.ts";
import { type PayloadCodec, payloadCodec } from "../agent/payload-codec.ts";
import { StandIn } from "../agent/stand-in.ts";
import { journalFolder } from "../broker/data-folder.ts";
import { type FoundBroker, findBroker } from "../broker/find-broker.ts";
import type { CredentialFiles } from "../broker/named-server.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../clock.ts";
import { type ProgramSettings, programSettings } from "../config/settings.ts";
import { InvalidConfigError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { groupIdSchema, userIdSchema } from "../protocol/schemas.ts";
import { openTelemetry } from "../tracing/open-telemetry.ts";
import { connectNats } from "../transport/nats.ts";
import type { ServerAddress } from "../transport/server-address.ts";
import { logServerError } from "../transport/server-error.ts";
import { logStatus } from "../transport/status-log.ts";
import type { Transport } from "../transport/transport.ts";
import { type Swarm, SwarmClient, type SwarmDeps } from "./swarm.ts";
import { projectName } from "./task-request.ts";
import type { OpenJournal } from "./task-stories.ts";

/** All options are optional. The default is the swarm that `waggle` commands reach from the current folder and
 *  environment. Options take precedence over the environment. `waggle.config.json` is not read. */
export interface ConnectOptions {
  /** `nats://host:4222`, or several servers of a cluster. Default, in order: NATS_URL or NATS_CONTEXT, the
   *  selected NATS context, the broker of the data folder. */
  readonly nats?: string | readonly string[] | undefined;
  /** Name of a NATS context, instead of `nats`. */
  readonly natsContext?: string | undefined;
  /** Paths of credential files. Default: NATS_CREDS, NATS_NKEY, NATS_CA, NATS_CERT, NATS_KEY. */
  readonly credentials?: CredentialFiles | undefined;
  /** Prefix of the subjects on which this connection receives answers, for servers that restrict inboxes:
   *  `_INBOX_ann`. Must begin with `_INBOX`. Default: NATS_INBOX_PREFIX, the NATS context's, or `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  /** Default: WAGGLE_SWARM, or `default`. */
  readonly swarm?: string | undefined;
  /** Project of tasks that name no project. Default: WAGGLE_PROJECT, or `default`. */
  readonly project?: string | undefined;
  /** True: this user may ask about `project` alone (`waggle auth add submitter` and `owner`). Other requests are
   *  refused here with WAGGLE_FORBIDDEN, and the server logs no violation. Default: false. */
  readonly projectOnly?: boolean | undefined;
  /** True: this user may not read the journal's streams, and `replayAssignment` asks coordinators at once (all roles of
   *  `waggle auth` but coordinator). Default: false. */
  readonly queriesOnly?: boolean | undefined;
  /** User of tasks that name no user. Default: WAGGLE_USER, or none. */
  readonly user?: string | undefined;
  /** Group of the agents of this connection, including the agent that acquires slots. Agents of a group share a
   *  credential. Default: none. */
  readonly group?: string | undefined;
  /** True: a password or token may go to another machine without encryption. Keys and creds never need it. Default:
   *  WAGGLE_INSECURE=1, or false. */
  readonly insecure?: boolean | undefined;
  /** Seals the payloads of tasks submitted here and opens their results; agents of this connection do the reverse.
   *  Submitters and agents need equal codecs; servers, coordinators and the journal see sealed bytes. Default: none. */
  readonly codec?: PayloadCodec | undefined;
  /** Folder in which `waggle up` keeps its broker's address. Default: WAGGLE_DATA_FOLDER, or `.waggle`. */
  readonly dataFolder?: string | undefined;
  /** Default: silent. Never receives payloads or credentials. */
  readonly logger?: Logger | undefined;
  /** Aborts connecting. `connect` then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Open connection to use, for tests. Stays open when the swarm is closed. */
  readonly transport?: Transport | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** Opens a connection. Close the swarm with `close()`, or declare it with `await using`.
 *  @throws UnreachableError when no server is found or answers
 *  @throws InvalidConfigError when an option, or an environment variable, is wrong */
export async function connect(given?: ConnectOptions): Promise<Swarm> {
  const options = readOptions("connect", given);
  const { logger = pino({ level: "silent" }) } = options;
  const settings = settingsOf(options);
  const { swarm, project, user } = settings;
  argument(["connect", "project"], project, projectName, InvalidConfigError); // may come from the environment
  // Loading the package takes real time, and only at its first use: under a simulated clock no course would repeat.
  const tracing = options.clock === undefined ? await openTelemetry() : undefined;
  return new SwarmClient({
    ...(await openWire(options, settings, logger)),
    ...(tracing === undefined ? {} : { tracing }),
    swarm: swarmId(swarm),
    project,
    projectOnly: options.projectOnly,
    user,
    ...(options.group === undefined ? {} : { group: options.group }),
    codec: options.codec,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    logger,
  });
}

const tlsFiles = objectOf<NonNullable<CredentialFiles["tls"]>>({
  each: { ca: text, cert: text, key: text },
  example: '{ ca: "ca.pem" }',
});

const readOptions = readerOf<ConnectOptions>(
  {
    each: {
      nats: oneOrSeveral,
      natsContext: text,
      credentials: objectOf<CredentialFiles>({
        each: { creds: text, nkey: text, tls: tlsFiles },
        example: '{ creds: "me.creds" }',
      }),
      inboxPrefix: text,
      insecure: flag,
      swarm: text,
      project: projectName,
      projectOnly: flag,
      queriesOnly: flag,
      user: userIdSchema,
      group: groupIdSchema,
      codec: payloadCodec,
      dataFolder: text,
      logger: having<Logger>("a pino logger", "child", "isLevelEnabled", "info", "warn", "error"),
      signal: abortSignal,
      transport: having<Transport>("a transport", "subscribe", "request", "publish"),
      clock: having<Clock>("a clock", "now", "monotonicMs", "after", "soon"),
      random: having<Random>("a source of chance", "next", "id"),
    },
    otherwise: { url: "nats", urls: "nats", server: "nats", servers: "nats" },
    example: '{ nats: "nats://127.0.0.1:4222" }',
  },
  InvalidConfigError,
);

type Wire = Pick<SwarmDeps, "transport" | "agentConnection" | "openJournal" | "onClose">;

async function openWire(options: ConnectOptions, settings: ProgramSettings, logger: Logger): Promise<Wire> {
  const { transport } = options;
  if (transport !== undefined) {
    return { transport, onClose: async () => undefined };
  }
  const found = await findBroker({ mode: "find-only", ...settings });
  const server = serverOf(found);
  const opened = await connectNats({
    ...server,
    name: "waggle-client",
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    onError: (error) => logServerError(logger, error),
  });
  logStatus(opened, { address: server, log: logger });
  const standIn = new StandIn(server, logger);
  return {
    transport: opened,
    agentConnection: { kind: "transport", transport: opened, standIn },
    ...(options.queriesOnly === true ? {} : { openJournal: journalOpener(found, settings) }),
    onClose: () => opened.close(),
  };
}

function serverOf({ address, inboxPrefix }: FoundBroker): ServerAddress & { readonly inboxPrefix?: string } {
  return { ...address, ...(inboxPrefix === undefined ? {} : { inboxPrefix }) };
}

/** Over a connection of its own, loaded at the first use: few programs read the journal. */
function journalOpener(found: FoundBroker, { dataFolder, swarm }: ProgramSettings): OpenJournal {
  if (found.kind === "development")
    return async () => {
      const { openFileJournalReader } = await import("../journal/file/reader.ts");
      return await openFileJournalReader(journalFolder({ dataFolder, swarm }));
    };
  return async (signal) => {
    const { openNatsJournal } = await import("../journal/nats.ts");
    const connection = { ...serverOf(found), name: "waggle journal" };
    return await openNatsJournal({ connection, swarm: swarmId(swarm), signal });
  };
}

/** @throws InvalidConfigError */
function settingsOf(options: ConnectOptions): ProgramSettings {
  const { nats, natsContext, credentials, inboxPrefix, swarm, project, user, dataFolder } = options;
  const settings = programSettings({
    options: {
      nats: typeof nats === "string" || nats === undefined ? nats : nats.join(","),
      natsContext,
      creds: credentials?.creds,
      nkey: credentials?.nkey,
      tlsCa: credentials?.tls?.ca,
      tlsCert: credentials?.tls?.cert,
      tlsKey: credentials?.tls?.key,
      inboxPrefix,
      swarm,
      project,
      user,
      dataFolder,
    },
    env: process.env,
    cwd: process.cwd(),
  });
  return { ...settings, insecure: options.insecure ?? settings.insecure };
}
