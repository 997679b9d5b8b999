// The nats-servers of a run: one, or a cluster of three with replicas. Built on the tests' server support; adds
// clusters and the leader of a stream.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { freePort } from "../../src/broker/free-port.ts";
import { type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import type { Reaper } from "./reaper.ts";
import { type Mounting, SmallDisk } from "./small-disk.ts";

export interface ServerMember extends RunningNatsServer {
  /** The server's own name: `s1`. */
  readonly name: string;
}

export interface Servers {
  readonly members: readonly ServerMember[];
  readonly urls: readonly string[];
  /** The disk of a single server's store, if a small disk was requested. */
  readonly mounting: Mounting | undefined;
  stop(): Promise<void>;
}

export interface ServersOptions {
  /** Ends the servers when the driver is killed. */
  readonly reaper?: Reaper;
  /** Gives the single server a disk of this size if mounting is permitted, and a bound of its own in any case. */
  readonly room?: { readonly diskBytes: number; readonly storeBytesMax: number };
}

/** Resolves when all servers accept connections; JetStream of three servers is ready a moment later. @param
 *  count 1 or 3 */
export async function startServers(
  binary: string,
  count: number,
  { reaper, room }: ServersOptions = {},
): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-chaos-"));
  reaper?.removes(folder);
  const mounting = room && SmallDisk.mount(join(folder, "s1"), room.diskBytes, reaper);
  const ports = await freePorts(2 * count);
  const clientPorts = ports.slice(0, count);
  const routePorts = ports.slice(count);
  const members = await Promise.all(
    clientPorts.map(async (port, place): Promise<ServerMember> => {
      await delay(place * STAGGER_MS);
      const name = `s${place + 1}`;
      const extraConfig = count === 1 ? "" : clusterConfig(name, routePorts[place] ?? 0, routePorts);
      const storeDir = join(folder, name);
      const server = await startNatsServer({
        binary,
        jetstream: room === undefined,
        port,
        storeDir,
        ownGroup: true,
        extraConfig: room === undefined ? extraConfig : boundedConfig(storeDir, room.storeBytesMax),
      });
      reaper?.minds(server.pid);
      const restart = async () => {
        await server.restart();
        reaper?.minds(server.pid);
      };
      return {
        name,
        port: server.port,
        url: server.url,
        storeDir: server.storeDir,
        get pid() {
          return server.pid; // changes with each restart
        },
        get isRunning() {
          return server.isRunning;
        },
        log: server.log,
        kill: server.kill,
        restart,
        stop: server.stop,
      };
    }),
  );
  return {
    members,
    urls: members.map(({ url }) => url),
    mounting,
    stop: async () => {
      await Promise.all(members.map((member) => member.stop()));
      if (mounting?.kind === "mounted") mounting.disk.unmount();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Between the starts of a cluster's servers. Servers that connect to each other at the same moment close routes as
 *  duplicates, and every fifth cluster of 2.10.27 then found no "suitable peers". */
const STAGGER_MS = 400;

/** Three servers that can place a stream. About one cluster of 2.10.27 in twelve never finds "suitable peers",
 *  but a new cluster may. @throws Error when none of several clusters can */
export async function startReadyServers(binary: string, reaper?: Reaper): Promise<Servers> {
  for (let tries = 1; tries <= CLUSTERS_MAX; tries += 1) {
    const servers = await startServers(binary, 3, reaper === undefined ? {} : { reaper });
    if (await canPlace(servers)) return servers;
    await servers.stop();
  }
  throw new Error(`of ${CLUSTERS_MAX} clusters of ${binary} none can place a stream of three replicas`);
}

const CLUSTERS_MAX = 5;
const PLACING_MS = 20_000;

async function canPlace({ urls }: Servers): Promise<boolean> {
  const connection = await connect({ servers: [...urls] });
  const probe = { name: "PROBE", subjects: ["probe"], storage: "file", num_replicas: 3 };
  const ask = async (verb: string, payload: object) => {
    const answer = await connection.request(`$JS.API.STREAM.${verb}.PROBE`, JSON.stringify(payload), {
      timeout: 5_000,
    });
    return answer.json<{ readonly error?: unknown }>().error === undefined;
  };
  try {
    const endMs = performance.now() + PLACING_MS;
    while (performance.now() < endMs) {
      if (await ask("CREATE", probe).catch(() => false)) return await ask("DELETE", {});
      await delay(250);
    }
    return false;
  } finally {
    await connection.close();
  }
}

/** The replicas of a stream beside the leader's. */
export interface Replica {
  readonly name?: string;
  readonly current?: boolean;
  readonly offline?: boolean;
}

/** A cluster is back within seconds; 2.10 took up to 8.8 s for a fail-over. */
const CURRENT_MS = 20_000;

/** Resolves when both other servers have the whole stream. A server whose route for replicas did not come back after a
 *  restart lags for good (nats-server, pull requests 8454 and 8527), so it is restarted once more.
 *  @throws Error with the last answer and the logs */
export async function untilCurrent(
  { members }: Servers,
  replicas: () => Promise<readonly Replica[]>,
): Promise<void> {
  for (const isLast of [false, true]) {
    const endMs = performance.now() + CURRENT_MS;
    let found: readonly Replica[] = [];
    while (performance.now() < endMs) {
      found = await replicas();
      if (found.length === 2 && found.every(isCurrent)) return;
      await delay(100);
    }
    const logs = members.map((member) => member.log()).join("\n");
    if (isLast) throw new Error(`replicas stay behind: ${JSON.stringify(found)}\n${logs}`);
    const behind = members.filter(({ name }) => found.some((each) => each.name === name && !isCurrent(each)));
    for (const member of behind) await member.restart();
  }
}

export function isCurrent({ current, offline }: Replica): boolean {
  return current === true && offline !== true;
}

/** Without advertising, nodes know only the given addresses, which may be a proxy's. */
function clusterConfig(name: string, routePort: number, routePorts: readonly number[]): string {
  const routes = routePorts.map((port) => `nats://127.0.0.1:${port}`).join(", ");
  return `server_name: ${name}
cluster { name: chaos, host: 127.0.0.1, port: ${routePort}, no_advertise: true, routes: [${routes}] }`;
}

function boundedConfig(storeDir: string, storeBytesMax: number): string {
  return `jetstream { store_dir: ${JSON.stringify(storeDir)}, max_file_store: ${storeBytesMax} }`;
}

/** Distinct ports. */
async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
