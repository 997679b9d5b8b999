// Starts a broker as a process in its own session. So neither kill -9 of the parent nor Ctrl-C in its terminal
// ends the swarm's server. The secret is passed in a file, never on the command line.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import { createRequire } from "node:module";
import { unreachable } from "../assert.ts";
import { BrokerError, messageOf } from "../errors.ts";
import { type BrokerKind, PASSWORD_USER, serverNameFor } from "./broker-record.ts";
import { type DataFolder, openLog, writePrivately } from "./data-folder.ts";
import type { NatsBinary } from "./nats-binary.ts";

export type BrokerProgram =
  | { readonly kind: "nats-server"; readonly binary: NatsBinary }
  | { readonly kind: "development" };

export interface LaunchOptions {
  readonly folder: DataFolder;
  readonly port: number;
  readonly secret: string;
}

export interface LaunchedBroker {
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
}

/** Does not wait for the first answer. @throws BrokerError when the program cannot be run */
export async function launch(program: BrokerProgram, options: LaunchOptions): Promise<LaunchedBroker> {
  const { folder } = options;
  switch (program.kind) {
    case "nats-server":
      writePrivately(folder.natsServerConfig, await natsServerConfig(options));
      return await spawnDetached(program.binary.path, ["--config", folder.natsServerConfig], folder);
    case "development":
      writePrivately(folder.developmentConfig, await developmentConfig(options));
      return await spawnDetached(
        process.execPath,
        [developmentMain(), "--config", folder.developmentConfig],
        folder,
      );
    default:
      return unreachable(program);
  }
}

/** The file on a broker's command line, which identifies its process. */
export function configFileOf(kind: BrokerKind, folder: DataFolder): string {
  return kind === "nats-server" ? folder.natsServerConfig : folder.developmentConfig;
}

/** Two ways to log in: the user's key, and a password for clients without keys. */
async function natsServerConfig({ folder, port, secret }: LaunchOptions): Promise<string> {
  const { userKeyOf } = await import("./nats.ts");
  return [
    "# Written by waggle at each start of this broker.",
    "host: 127.0.0.1",
    `port: ${port}`,
    `server_name: ${JSON.stringify(serverNameFor(secret))}`,
    "authorization { users: [",
    `  { nkey: ${userKeyOf(folder)} }`,
    `  { user: ${PASSWORD_USER}, password: ${JSON.stringify(secret)} }`,
    "] }",
    `jetstream { store_dir: ${JSON.stringify(folder.jetStream)} }`,
    "",
  ].join("\n");
}

async function developmentConfig({ folder, port, secret }: LaunchOptions): Promise<string> {
  const { userKeyOf } = await import("./nats.ts");
  const config = { port, secret, serverName: serverNameFor(secret), userKey: userKeyOf(folder) };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** The compiled entry, found by the package's own name: the same from `src` in a test and from `dist`. */
function developmentMain(): string {
  return createRequire(import.meta.url).resolve("waggledance/broker-main");
}

async function spawnDetached(command: string, args: string[], folder: DataFolder): Promise<LaunchedBroker> {
  const log = openLog(folder.log);
  try {
    const child = spawn(command, args, { cwd: folder.path, detached: true, stdio: ["ignore", log, log] });
    await spawned(child, command);
    child.unref();
    const ended = once(child, "exit").then(() => undefined);
    return { pid: child.pid ?? 0, ended };
  } finally {
    closeSync(log);
  }
}

async function spawned(child: ChildProcess, command: string): Promise<void> {
  try {
    await once(child, "spawn"); // rejects on "error"
  } catch (cause) {
    throw new BrokerError(
      `cannot run ${command} (${messageOf(cause)}): let this user execute the file, or name a running server with --nats`,
      { cause },
    );
  }
}
