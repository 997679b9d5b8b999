// Finds the server of a swarm. First comes the server that the user names (flag, NATS_URL, NATS context), then the
// broker of the data folder. Without either, a nats-server from the PATH is started for the data folder, or else the
// development broker. Connecting is in transport/nats.ts, stopping in stop-broker.ts.
//
// A data folder keeps its kind of broker, port and secret. Port and secret let agents find the next broker
// after a loss. The kind is kept because the journal is there, in JetStream or in a file.

import { NoBrokerError } from "../errors.ts";
import { describeAddress, type ServerAddress } from "../transport/server-address.ts";
import { type BrokerKind, type BrokerRecord, credentialsFor, readRecord } from "./broker-record.ts";
import { type DataFolder, findDataFolder, makeDataFolder } from "./data-folder.ts";
import { isAnswering, isRunning } from "./liveness.ts";
import { findNamedServer, type NamedServerOptions } from "./named-server.ts";

export interface FindBrokerOptions extends NamedServerOptions {
  /** `find-or-start` is for commands that run a swarm; all others only look. */
  readonly mode: "find-only" | "find-or-start";
  /** Absolute path of the folder (`.waggle`); created when a broker is started there. */
  readonly dataFolder: string;
  /** Takes precedence over a NATS context. */
  readonly inboxPrefix?: string | undefined;
  /** Kind of broker to start, whatever the data folder had. A running broker is joined in any case. */
  readonly kind?: BrokerKind | undefined;
}

export interface FoundBroker {
  /** `named`: a server named by the user, which may have JetStream. `nats-server`: Waggle's own, with
   *  JetStream. `development`: without JetStream, so the journal is a file. */
  readonly kind: "named" | BrokerKind;
  /** For `connectNats`. */
  readonly address: ServerAddress;
  /** As given, or from a NATS context. */
  readonly inboxPrefix: string | undefined;
  /** Describes the server for users; contains no secrets. */
  readonly sentence: string;
  /** The data folder's broker; undefined for a named server. */
  readonly local: LocalBroker | undefined;
}

export interface LocalBroker {
  /** `nats://127.0.0.1:<port>` */
  readonly url: string;
  readonly pid: number | null;
  readonly version: string;
  /** JetStream's storage folder; null without JetStream. */
  readonly storeDir: string | null;
  /** True if this call started the broker. */
  readonly wasStarted: boolean;
}

/** @throws InvalidConfigError when the named server is not usable
 *  @throws UnreachableError in mode `find-only` when no broker runs
 *  @throws BrokerError when no broker can be started, or the data folder's record is damaged */
export async function findBroker(options: FindBrokerOptions): Promise<FoundBroker> {
  const found = await find(options);
  return { ...found, inboxPrefix: options.inboxPrefix ?? found.inboxPrefix };
}

async function find(options: FindBrokerOptions): Promise<FoundBroker> {
  const named = await findNamedServer(options);
  if (named !== undefined) return { kind: "named", local: undefined, ...named };

  if (options.mode === "find-only") return await findRunning(options.dataFolder);
  const folder = makeDataFolder(options.dataFolder);
  // Loaded where a broker may start: most verbs only look.
  const { startBroker } = await import("./start-broker.ts");
  const started = await startBroker({
    folder,
    kind: options.kind,
    env: options.env ?? process.env,
  });
  return describe(folder, started.record, started);
}

async function findRunning(dataFolder: string): Promise<FoundBroker> {
  const folder = findDataFolder(dataFolder);
  const record = folder === undefined ? undefined : readRecord(folder);
  if (folder === undefined || record === undefined)
    throw new NoBrokerError(
      `no broker runs for ${dataFolder}: start a swarm with \`waggle up\`, or name a NATS server with --nats`,
    );
  if (await isAnswering(folder, record)) return describe(folder, record, { wasStarted: false });
  throw new NoBrokerError(whyAway(record, { dataFolder, isRunning: await isRunning(folder, record) }));
}

/** Says that the swarm is not lost: its data is not in the process. */
function whyAway(
  { pid, url }: BrokerRecord,
  { dataFolder, isRunning }: { readonly dataFolder: string; readonly isRunning: boolean },
): string {
  const again = "`waggle up` starts it again, with all its data";
  if (pid === null) return `the broker of ${dataFolder} was stopped: ${again}`;
  if (isRunning)
    return `the broker of ${dataFolder} (process ${pid}) runs and does not answer at ${url}: ${again}`;
  return `the broker of ${dataFolder} (process ${pid}) has ended: a running coordinator restarts it within seconds; without one, ${again}`;
}

function describe(
  folder: DataFolder,
  record: BrokerRecord,
  { wasStarted, remark }: { readonly wasStarted: boolean; readonly remark?: string | undefined },
): FoundBroker {
  const address: ServerAddress = {
    urls: [record.url],
    credentials: credentialsFor(folder, record),
  };
  const what =
    record.kind === "nats-server" ? `nats-server ${record.version} with JetStream` : "the development broker";
  const how = wasStarted ? "started for this data folder" : "already running for this data folder";
  const why = remark === undefined ? "" : ` (${remark})`;
  return {
    kind: record.kind,
    address,
    inboxPrefix: undefined,
    sentence: `${what} at ${describeAddress(address)}, ${how}${why}; \`waggle down\` stops it`,
    local: {
      url: record.url,
      pid: record.pid,
      version: record.version,
      storeDir: record.storeDir,
      wasStarted,
    },
  };
}
