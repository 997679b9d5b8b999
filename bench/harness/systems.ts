// The measured systems. Each has its server, two worker processes and one client process; Waggle also has a
// coordinator. Systems on NATS share one server. Systems that wait cost next to nothing.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Order, PeerConfig, Timing } from "../peers/peer.ts";
import type { Children, PeerProcess } from "./children.ts";
import { type LogRecord, startCoordinator } from "./coordinator.ts";
import type { Pids } from "./machine.ts";
import {
  MissingServerError,
  type Server,
  type ServerContext,
  startNats,
  startNatsCluster,
  startPostgres,
  startRabbitmq,
  startRedis,
} from "./servers.ts";

/** A started system. */
export interface System {
  readonly name: string;
  readonly pids: Pids;
  ask(order: Order, timeoutMs?: number): Promise<Timing>;
  /** The process of the followers, if the system was started with one. */
  readonly followers?: Pick<PeerProcess, "ask">;
  stop(): Promise<void>;
}

/** A process with options of Node, such as `--cpu-prof`. */
export type NodeOptionsByRole = Readonly<
  Partial<Record<"coordinator" | "worker" | "client", readonly string[]>>
>;

type Settings = Partial<Omit<PeerConfig, "sdk" | "socket" | "swarm">>;
type ServerName = "nats" | "nats-always" | "nats-r3" | "redis" | "postgres" | "rabbitmq";

interface PeerKind {
  readonly server: ServerName;
  readonly peer: string;
  readonly workers: number;
  readonly settings?: Settings;
}

interface WaggleKind {
  readonly waggle: true;
  /** Undefined: the development broker. */
  readonly server: ServerName | undefined;
  readonly upArguments?: readonly string[];
  readonly settings?: Settings;
}

export interface SystemKind {
  /** For tables and charts. */
  readonly title: string;
  /** What survives the end of all processes. */
  readonly keeps: string;
  readonly start: PeerKind | WaggleKind;
}

const nothing = "nothing";

/** In the order of their turns. */
export const systemKinds = {
  append: {
    title: "one append to JetStream",
    keeps: "each record, in files",
    start: { server: "nats", peer: "append", workers: 0 },
  },
  inbox: {
    title: "NATS, publish + own inbox",
    keeps: nothing,
    start: { server: "nats", peer: "inbox", workers: 2 },
  },
  bare: { title: "NATS request/reply", keeps: nothing, start: { server: "nats", peer: "bare", workers: 2 } },
  moleculer: {
    title: "Moleculer on NATS",
    keeps: nothing,
    start: { server: "nats", peer: "moleculer", workers: 2 },
  },
  "js-queue": {
    title: "JetStream work queue by hand",
    keeps: "waiting tasks, in files",
    start: { server: "nats", peer: "js-queue", workers: 2 },
  },
  bullmq: {
    title: "BullMQ on Redis",
    keeps: "waiting tasks, fsync every second",
    start: { server: "redis", peer: "bullmq", workers: 2 },
  },
  graphile: {
    title: "graphile-worker on PostgreSQL",
    keeps: "waiting tasks, fsync at commit",
    start: { server: "postgres", peer: "graphile", workers: 2 },
  },
  rabbitmq: {
    title: "RabbitMQ, durable with confirms",
    keeps: "waiting tasks, in files",
    start: { server: "rabbitmq", peer: "rabbitmq", workers: 2, settings: { queueVersion: 2 } },
  },
  waggle: {
    title: "Waggle on JetStream",
    keeps: "every decision and outcome, in files",
    start: { waggle: true, server: "nats" },
  },
  "waggle-always": {
    title: "Waggle, fsync on every append",
    keeps: "every decision and outcome, fsync",
    start: { waggle: true, server: "nats-always" },
  },
  "waggle-r3": {
    title: "Waggle on three servers",
    keeps: "every decision and outcome, on three servers",
    start: { waggle: true, server: "nats-r3", upArguments: ["--replicas", "3"] },
  },
  "waggle-dev": {
    title: "Waggle on the development broker",
    keeps: "every decision and outcome, in files",
    start: { waggle: true, server: undefined },
  },
} as const satisfies Readonly<Record<string, SystemKind>>;

export type SystemName = keyof typeof systemKinds;

/** Without the forms of Waggle that the growth case `durability` compares. */
export const mainSystems = (Object.keys(systemKinds) as SystemName[]).filter(
  (name) => !name.startsWith("waggle-"),
);

export function titleOf(name: string): string {
  return name in systemKinds ? systemKinds[name as SystemName].title : name;
}

export interface SystemsContext {
  readonly children: Children;
  /** Exists. PostgreSQL's user must be able to enter the folder. */
  readonly folder: string;
  /** Undefined if there is none. */
  readonly natsServer: string | undefined;
  /** Root of the measured checkout of Waggle, built. */
  readonly checkout: string;
}

export interface StartMore {
  readonly settings?: Settings;
  readonly nodeOptions?: NodeOptionsByRole;
  /** Waggle also has a process for connections that follow all events. */
  readonly hasFollowers?: boolean;
  /** In addition to the present environment. */
  readonly coordinatorEnv?: NodeJS.ProcessEnv;
  /** Called for each record of the coordinator's log. */
  readonly onLog?: (record: LogRecord) => void;
}

/** Starts systems, and servers with their first system. */
export class Systems {
  readonly #context: SystemsContext;
  readonly #servers = new Map<ServerName, Promise<Server>>();
  #swarms = 0;

  constructor(context: SystemsContext) {
    this.#context = context;
  }

  /** @param name name of the started system, also in the names of its files
   *  @throws MissingServerError when a program is not installed */
  async start(kind: SystemKind, name: string, more: StartMore = {}): Promise<System> {
    return "waggle" in kind.start
      ? await this.#startWaggle(name, kind.start, more)
      : await this.#startPeer(name, kind.start, more);
  }

  async stopServers(): Promise<void> {
    for (const server of this.#servers.values())
      await server.then(
        (started) => started.stop(),
        () => undefined, // never started
      );
  }

  async #startPeer(name: string, kind: PeerKind, { settings }: StartMore): Promise<System> {
    const { children } = this.#context;
    const server = await this.#server(kind.server);
    const config = this.#config(name, { ...server.at, ...kind.settings, ...settings });
    const started: PeerProcess[] = [];
    await children.startPeer("setup", kind.peer, config);
    for (let n = 0; n < kind.workers; n += 1)
      started.push(await children.startPeer("worker", kind.peer, config));
    const client = await children.startPeer("client", kind.peer, config);
    return {
      name,
      pids: { server: server.pids, workers: started.map(({ pid }) => pid), client: [client.pid] },
      ask: async (order, timeoutMs) => await client.ask(order, timeoutMs),
      stop: async () => {
        for (const { child } of [client, ...started]) await children.stop(child);
      },
    };
  }

  async #startWaggle(name: string, kind: WaggleKind, more: StartMore): Promise<System> {
    const { children } = this.#context;
    const { nodeOptions = {} } = more;
    const folder = join(this.#context.folder, name);
    mkdirSync(folder, { recursive: true });
    const dataFolder = join(folder, "data");
    const server = kind.server === undefined ? undefined : await this.#server(kind.server);
    const config = this.#config(name, {
      ...(server?.at ?? { dataFolder }),
      ...kind.settings,
      ...more.settings,
    });
    let isStopped = false;
    // `waggle up` leaves its development broker to others.
    if (server === undefined) children.ownDetached(() => (isStopped ? undefined : brokerPid(dataFolder)));
    const where = server === undefined ? ["--data-folder", dataFolder] : ["--nats", config.url ?? ""];
    const coordinator = await startCoordinator(children, {
      checkout: this.#context.checkout,
      cwd: folder,
      upArguments: ["--swarm", config.swarm, ...where, ...(kind.upArguments ?? [])],
      // Without a nats-server on the PATH, `waggle up` starts the development broker.
      env: { NATS_URL: "", ...(server === undefined ? { PATH: "" } : {}), ...more.coordinatorEnv },
      ...(nodeOptions.coordinator === undefined ? {} : { execArgv: nodeOptions.coordinator }),
      ...(more.onLog === undefined ? {} : { onLog: more.onLog }),
    });
    const broker = server?.pids ?? [brokerPid(dataFolder)];
    const workers: PeerProcess[] = [];
    for (let n = 0; n < 2; n += 1)
      // Options of Node serve one agent process: two profiles of the same work tell no more.
      workers.push(await children.startPeer("worker", "waggle", config, n === 0 ? nodeOptions.worker : []));
    const client = await children.startPeer("client", "waggle", config, nodeOptions.client);
    const followers = more.hasFollowers ? await children.startPeer("followers", "waggle", config) : undefined;
    return {
      name,
      pids: {
        server: broker,
        coordinator: [coordinator.pid ?? 0],
        workers: workers.map(({ pid }) => pid),
        client: [client.pid],
        ...(followers === undefined ? {} : { followers: [followers.pid] }),
      },
      ask: async (order, timeoutMs) => await client.ask(order, timeoutMs),
      ...(followers === undefined ? {} : { followers }),
      stop: async () => {
        for (const { child } of [followers ?? [], client, workers].flat()) await children.stop(child);
        await children.stop(coordinator);
        isStopped = true;
        if (server === undefined) for (const pid of broker) process.kill(pid, "SIGTERM");
      },
    };
  }

  #config(name: string, settings: Settings): PeerConfig {
    this.#swarms += 1;
    return {
      payloadBytes: 100,
      socket: join(this.#context.folder, `${name}.sock`),
      sdk: pathToFileURL(join(this.#context.checkout, "dist", "src", "index.js")).href,
      swarm: `bench-${this.#swarms}`,
      ...settings,
    };
  }

  async #server(name: ServerName): Promise<Server> {
    const known = this.#servers.get(name);
    if (known !== undefined) return await known;
    const folder = join(this.#context.folder, name);
    mkdirSync(folder);
    const starting = this.#startServer(name, { children: this.#context.children, folder });
    this.#servers.set(name, starting);
    return await starting;
  }

  async #startServer(name: ServerName, context: ServerContext): Promise<Server> {
    switch (name) {
      case "nats":
        return await startNats(context, { binary: this.#natsServer() });
      case "nats-always":
        return await startNats(context, { binary: this.#natsServer(), syncsAlways: true });
      case "nats-r3":
        return await startNatsCluster(context, { binary: this.#natsServer() });
      case "redis":
        return await startRedis(context);
      case "postgres":
        return await startPostgres(context);
      case "rabbitmq":
        return await startRabbitmq(context);
    }
  }

  #natsServer(): string {
    const { natsServer } = this.#context;
    if (natsServer === undefined) throw new MissingServerError("nats-server", "nats-server");
    return natsServer;
  }
}

function brokerPid(dataFolder: string): number {
  return (JSON.parse(readFileSync(join(dataFolder, "broker.json"), "utf8")) as { readonly pid: number }).pid;
}
