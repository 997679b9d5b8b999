// Real nats-servers for tests: finds the binaries, starts servers on loopback with their own configuration file, and
// stops servers by pid. The product starts servers elsewhere (src/broker/): they outlive the process. Servers of tests
// do not: the process kills all servers at its exit.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../../src/broker/free-port.ts";
import { threadStates } from "./processes.ts";
import { pathsOf, skipSuite } from "./programs.ts";

/** A server not ready by then never will be: on a damaged store, for example. */
const READY_MS = 60_000;
const STARTS_MAX = 3;

export interface NatsServerBinary {
  readonly path: string;
  /** As printed by the binary, without the `v`: `2.9.10`. */
  readonly version: string;
}

export interface NatsServerOptions {
  readonly binary: string;
  /** Default false. */
  readonly jetstream?: boolean;
  /** Default: a fresh temporary directory, removed by `stop()`. A directory given here is left alone. */
  readonly storeDir?: string;
  /** Default: a free port, kept over `restart()`. */
  readonly port?: number;
  /** Lines of nats-server configuration, appended: `authorization { token: "x" }`, `max_payload: 1024`. */
  readonly extraConfig?: string;
  /** The server leads its own process group, out of reach of Ctrl-C in the terminal. Default false: the server
   *  ends with the test process. */
  readonly ownGroup?: boolean;
}

export interface RunningNatsServer {
  /** Without credentials: `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  /** Id of the process now running; changes with `restart()`. */
  readonly pid: number;
  readonly isRunning: boolean;
  /** The server's log so far, over all starts. */
  log(): string;
  /** Sends a signal. Resolves at the exit of the process, or at once for signals that do not end the process. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Kills the process if it runs (SIGKILL), then starts a new one on the same port and store. */
  restart(): Promise<void>;
  /** Ends the process and removes the files created here. Idempotent. */
  stop(): Promise<void>;
}

/** Binaries of `WAGGLE_NATS_SERVERS` (separated like PATH) and the binary on the PATH, without repetition. */
export function findNatsServers(): NatsServerBinary[] {
  const named = (process.env.WAGGLE_NATS_SERVERS ?? "").split(delimiter).filter((path) => path !== "");
  const found = new Map<string, NatsServerBinary>();
  for (const path of [...named, ...pathsOf("nats-server").slice(0, 1)]) {
    const real = realpathSync(path);
    if (!found.has(real)) found.set(real, { path, version: versionOf(path) });
  }
  return [...found.values()];
}

/** The servers for a suite. Without a server: prints the reason, registers one skipped test, because vitest fails a
 *  file without tests, and returns `[]`. With CI=true a missing server is a failure. @throws Error in CI without a
 *  server */
export function natsServersFor(suite: string): NatsServerBinary[] {
  const servers = findNatsServers();
  if (servers.length > 0) return servers;
  const sentence = `${suite}: no nats-server on the PATH or in WAGGLE_NATS_SERVERS`;
  skipSuite(suite, `${sentence}: install nats-server`);
  return [];
}

/** Whether `waggle up --replicas 3` accepts the version. */
export function keepsReplicas({ version }: NatsServerBinary): boolean {
  return Number(version.split(".")[1]) >= 10;
}

/** The servers that keep a journal on three replicas: 2.10 and newer. As `natsServersFor`. */
export function replicatingServersFor(suite: string): NatsServerBinary[] {
  const servers = findNatsServers().filter(keepsReplicas);
  if (servers.length > 0) return servers;
  skipSuite(suite, `${suite}: no nats-server of 2.10 or newer on the PATH or in WAGGLE_NATS_SERVERS`);
  return [];
}

/** Resolves when the server accepts connections. @throws Error with its log if the server exits first, or is not ready
 *  in time */
export async function startNatsServer(options: NatsServerOptions): Promise<RunningNatsServer> {
  const scratch = mkdtempSync(join(tmpdir(), "waggle-nats-"));
  const storeDir = options.storeDir ?? join(scratch, "store");
  const configFile = join(scratch, "server.conf");
  const log: string[] = [];

  const start = async (port: number) => {
    writeFileSync(configFile, configuration({ ...options, storeDir, port }));
    const { binary, ownGroup = false } = options;
    return await launch({ binary, configFile, log, ownGroup });
  };
  let session = options.port === undefined ? await startAnywhere(start) : await start(options.port);

  const kill = async (signal: NodeJS.Signals) => {
    if (hasExited(session.child)) return;
    const ended = endingSignals.has(signal) ? once(session.child, "exit") : undefined;
    session.child.kill(signal);
    if (signal === "SIGSTOP") waitUntilStopped(session.child.pid);
    await ended;
  };
  const { port } = session;
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    storeDir,
    get pid() {
      return session.pid;
    },
    get isRunning() {
      return !hasExited(session.child);
    },
    log: () => log.join("\n"),
    kill,
    restart: async () => {
      await kill("SIGKILL");
      session = await start(port);
    },
    stop: async () => {
      await kill("SIGKILL");
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

const endingSignals: ReadonlySet<NodeJS.Signals> = new Set(["SIGKILL", "SIGTERM", "SIGINT"]);

function versionOf(path: string): string {
  const printed = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout;
  const version = /v(\d+\.\d+\.\d+\S*)/.exec(printed ?? "")?.[1];
  if (version === undefined) throw new Error(`${path} --version printed ${JSON.stringify(printed)}`);
  return version;
}

function configuration(options: NatsServerOptions & { storeDir: string; port: number }): string {
  const lines = ["host: 127.0.0.1", `port: ${options.port}`];
  if (options.jetstream) lines.push(`jetstream { store_dir: ${JSON.stringify(options.storeDir)} }`);
  if (options.extraConfig !== undefined) lines.push(options.extraConfig);
  return `${lines.join("\n")}\n`;
}

interface RunningServer {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
}

/** Another process may take a port between its choice and the start. */
async function startAnywhere(start: (port: number) => Promise<RunningServer>): Promise<RunningServer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (tries === STARTS_MAX || !String(error).includes("address already in use")) throw error;
    }
  }
}

/** Readiness is read from the log: no polling. */
async function launch(from: {
  binary: string;
  configFile: string;
  log: string[];
  ownGroup: boolean;
}): Promise<RunningServer> {
  const child = spawn(from.binary, ["-c", from.configFile], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: from.ownGroup,
  });
  const killWithUs = () => child.kill("SIGKILL");
  process.once("exit", killWithUs);
  child.once("exit", () => process.off("exit", killWithUs));

  return await new Promise<RunningServer>((resolve, reject) => {
    let port: number | undefined;
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`nats-server was not ready after ${READY_MS / 1_000} s:\n${from.log.join("\n")}`));
    }, READY_MS);
    createInterface({ input: child.stderr }).on("line", (line) => {
      from.log.push(line);
      port ??= portIn(line);
      if (line.includes("Server is ready") && port !== undefined && child.pid !== undefined) {
        clearTimeout(timer);
        resolve({ child, pid: child.pid, port });
      }
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`nats-server ended (${code ?? signal}) before it was ready:\n${from.log.join("\n")}`));
    });
  });
}

function portIn(line: string): number | undefined {
  const digits = /Listening for client connections on \S+:(\d+)/.exec(line)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Each thread receives a signal in its own time: returns when all threads have stopped, or none is left. */
function waitUntilStopped(pid: number | undefined): void {
  for (;;) {
    if (pid === undefined || threadStates(pid).every((state) => state === "T" || state === "Z")) return;
  }
}
