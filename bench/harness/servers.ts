// The real servers of the measured systems. Each has loopback ports and a folder of its own, and is stopped by its
// process id. A server that is not installed is an error with the command that installs it.

import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { freePort } from "../../src/broker/free-port.ts";
import type { PeerConfig } from "../peers/peer.ts";
import { type Children, listens, until } from "./children.ts";

export interface Server {
  readonly at: Pick<PeerConfig, "url" | "port">;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

export interface ServerContext {
  readonly children: Children;
  /** Exists, and is empty. */
  readonly folder: string;
}

/** Says which command installs a missing program. */
export class MissingServerError extends Error {
  constructor(program: string, debianPackage: string) {
    super(`${program} is not installed; on Debian: apt-get install --no-install-recommends ${debianPackage}`);
  }
}

export interface NatsOptions {
  readonly binary: string;
  /** fsync on every append. nats-server 2.10 and newer. */
  readonly syncsAlways?: boolean;
}

export async function startNats({ children, folder }: ServerContext, options: NatsOptions): Promise<Server> {
  return await natsServer(children, folder, options, await freePort());
}

/** Three servers that store each record together. */
export async function startNatsCluster(
  { children, folder }: ServerContext,
  options: NatsOptions,
): Promise<Server> {
  const routes = [await freePort(), await freePort(), await freePort()];
  const servers: Server[] = [];
  for (const [at, route] of routes.entries()) {
    const own = join(folder, `server-${at}`);
    mkdirSync(own);
    const urls = routes.map((port) => `nats://127.0.0.1:${port}`).join(", ");
    const cluster = `cluster { name: bench, listen: 127.0.0.1:${route}, routes: [${urls}] }`;
    servers.push(await natsServer(children, own, options, await freePort(), cluster));
  }
  const logs = routes.map((_, at) => join(folder, `server-${at}`, "log"));
  await until("the leader of the NATS cluster", () =>
    logs.some((log) => readFileSync(log, "utf8").includes("new metadata leader")),
  );
  return {
    at: { url: servers.map((server) => server.at.url).join(",") },
    pids: servers.flatMap(({ pids }) => pids),
    stop: async () => {
      for (const server of servers) await server.stop();
    },
  };
}

async function natsServer(
  children: Children,
  folder: string,
  { binary, syncsAlways = false }: NatsOptions,
  port: number,
  cluster = "",
): Promise<Server> {
  const sync = syncsAlways ? ", sync_interval: always" : "";
  const config = join(folder, "nats.conf");
  writeFileSync(
    config,
    `listen: 127.0.0.1:${port}
server_name: bench-${port}
jetstream { store_dir: "${join(folder, "js")}", max_memory_store: 1G, max_file_store: 100G${sync} }
${cluster}
`,
  );
  const child = children.start(binary, ["-c", config], { log: join(folder, "log") });
  await until("nats-server", () => {
    if (child.exitCode !== null)
      throw new Error(
        `${binary} does not accept its settings${syncsAlways ? "; fsync on every append needs 2.10 or newer (WAGGLE_NATS_SERVERS)" : ""}`,
      );
    return listens(port);
  });
  return {
    at: { url: `nats://127.0.0.1:${port}` },
    pids: [child.pid ?? 0],
    stop: () => children.stop(child),
  };
}

/** As the production pages of Redis and BullMQ say: append-only file, fsync every second, no eviction. */
export async function startRedis({ children, folder }: ServerContext): Promise<Server> {
  const program = programOf("redis-server", "redis-server");
  const port = await freePort();
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    appendonly: "yes",
    appendfsync: "everysec",
    save: "",
    "maxmemory-policy": "noeviction",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = children.start(program, args, { log: join(folder, "log") });
  await until("redis-server", () => listens(port));
  return { at: { port }, pids: [child.pid ?? 0], stop: () => children.stop(child) };
}

/** Durable commits as by default; memory and checkpoints for a busy server. Root may not run PostgreSQL: then its own
 *  user does. */
export async function startPostgres({ children, folder }: ServerContext): Promise<Server> {
  const bin = postgresFolder();
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? { uid: idOfPostgres("-u"), gid: idOfPostgres("-g") } : {};
  if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid);
  const records = join(folder, "records");
  execFileSync(
    join(bin, "initdb"),
    ["-D", records, "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--no-sync"],
    {
      ...as,
      cwd: folder,
      stdio: "ignore",
    },
  );
  const port = await freePort();
  const settings = {
    shared_buffers: "512MB",
    max_wal_size: "4GB",
    checkpoint_timeout: "15min",
    max_connections: "300",
    unix_socket_directories: folder,
  };
  const child = children.start(
    join(bin, "postgres"),
    [
      "-D",
      records,
      "-p",
      String(port),
      "-h",
      "127.0.0.1",
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    { ...as, cwd: folder, log: join(folder, "log"), stopSignal: "SIGINT" },
  );
  await until("postgres", () => readFileSync(join(folder, "log"), "utf8").includes("ready to accept"));
  return {
    at: { url: `postgres://postgres@127.0.0.1:${port}/postgres` },
    pids: [child.pid ?? 0],
    stop: () => children.stop(child),
  };
}

export async function startRabbitmq({ children, folder }: ServerContext): Promise<Server> {
  // The script on the PATH changes the user and reads the files of the service.
  const program = ["/usr/lib/rabbitmq/bin/rabbitmq-server", ...paths("rabbitmq-server")].find(existsSync);
  if (program === undefined) throw new MissingServerError("rabbitmq-server", "rabbitmq-server");
  const [port, namesPort, clusterPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    LANG: "C.UTF-8",
    ERL_EPMD_PORT: String(namesPort),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `bench-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(clusterPort),
    RABBITMQ_MNESIA_BASE: join(folder, "mnesia"),
    RABBITMQ_LOG_BASE: join(folder, "logs"),
    RABBITMQ_PID_FILE: join(folder, "pid"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq"),
    // The script becomes the server, instead of a parent whose end the server outlives.
    RUNNING_UNDER_SYSTEMD: "true",
  };
  writeFileSync(join(folder, "plugins"), "[].\n");
  writeFileSync(join(folder, "rabbitmq.conf"), "");
  const names = children.start("epmd", ["-port", String(namesPort), "-address", "127.0.0.1"], {
    env,
    log: join(folder, "names-log"),
  });
  await until("epmd", () => listens(namesPort));
  const child = children.start(program, [], { env, log: join(folder, "log") });
  await until("rabbitmq-server", () => listens(port));
  return {
    at: { url: `amqp://guest:guest@127.0.0.1:${port}` },
    pids: [child.pid ?? 0],
    stop: async () => {
      await children.stop(child);
      await children.stop(names);
    },
  };
}

/** Versions as their programs print them; only of installed servers. */
export function serverVersions(natsServer: string | undefined): Readonly<Record<string, string>> {
  const versionOf = (read: () => string) => {
    try {
      return /\d+(?:\.\d+)+/.exec(read())?.[0];
    } catch {
      return undefined;
    }
  };
  const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: "utf8" });
  const found = {
    "nats-server": natsServer === undefined ? undefined : versionOf(() => run(natsServer, "--version")),
    "redis-server": versionOf(() => run(programOf("redis-server", ""), "--version")),
    postgres: versionOf(() => run(join(postgresFolder(), "postgres"), "--version")),
    "rabbitmq-server": rabbitmqVersion(),
  };
  return Object.fromEntries(
    Object.entries(found).flatMap(([name, v]) => (v === undefined ? [] : [[name, v]])),
  );
}

/** The folder of the libraries names the version; asking the program takes a second. */
function rabbitmqVersion(): string | undefined {
  const folder = "/usr/lib/rabbitmq/lib";
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder).flatMap((name) => /^rabbitmq_server-(.*)$/.exec(name)?.[1] ?? [])[0];
}

function postgresFolder(): string {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...pathFolders()];
  const folder = folders.find(
    (each) => existsSync(join(each, "postgres")) && existsSync(join(each, "initdb")),
  );
  if (folder === undefined) throw new MissingServerError("postgres", "postgresql");
  return folder;
}

function idOfPostgres(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
}

function programOf(name: string, debianPackage: string): string {
  const path = paths(name).find(existsSync);
  if (path === undefined) throw new MissingServerError(name, debianPackage);
  return path;
}

function paths(name: string): string[] {
  return pathFolders().map((folder) => join(folder, name));
}

function pathFolders(): string[] {
  return (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
}
