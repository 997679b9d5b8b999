// Ensures one broker per data folder: only the holder of the folder's lock port may start a broker. The lock is
// a port, because the kernel frees a port however its holder ends, even by kill -9; a lock file could be stale.
// Two servers on one JetStream store would destroy the store, so the broker's own port would be too late as a
// lock.
//
// The port is derived from the folder's path. A foreign program may occupy the port. A Waggle process that
// holds the lock sends a greeting; other Waggle processes recognise the greeting and wait until the connection
// closes.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { BrokerError } from "../errors.ts";
import { limits } from "../limits.ts";

export interface StartLock {
  release(): void;
}

/** Waits for the present holder, up to `limits.brokerStartMs`. @throws BrokerError after the wait */
export async function acquireStartLock(folderPath: string): Promise<StartLock> {
  const deadline = performance.now() + limits.brokerStartMs;
  while (performance.now() < deadline) {
    const lock = await tryPorts(folderPath, deadline);
    if (lock !== undefined) return lock;
  }
  throw new BrokerError(
    `another process has been starting the broker of ${folderPath} for ${limits.brokerStartMs / 1000} s: ` +
      "end that process and try again",
  );
}

/** @returns undefined when another holder was there, and has released the lock or used up the time */
async function tryPorts(folderPath: string, deadline: number): Promise<StartLock | undefined> {
  const greeting = `waggle start ${digest(folderPath).toString("hex")}\n`;
  for (const port of lockPortsFor(folderPath)) {
    const server = await listenAt(port, greeting);
    if (server !== undefined) return server;
    if (await waitedForRival(port, greeting, deadline)) return undefined;
  }
  throw new BrokerError(
    `none of the ports ${lockPortsFor(folderPath).join(", ")} is free to lock ${folderPath}: ` +
      "end a program that listens on one of them, and try again",
  );
}

/** Possible ports for the lock of a folder, below the ports that systems assign automatically. */
export function lockPortsFor(folderPath: string): number[] {
  const first = 10_240 + (digest(folderPath).readUInt32BE(0) % 20_000);
  return Array.from({ length: PORTS_TRIED }, (_, at) => first + at);
}

async function listenAt(port: number, greeting: string): Promise<StartLock | undefined> {
  const rivals = new Set<Socket>();
  const server: Server = createServer((rival) => {
    rivals.add(rival);
    rival.on("error", () => rival.destroy()); // the other process stopped waiting
    rival.write(greeting);
  });
  server.listen({ host: "127.0.0.1", port, exclusive: true });
  try {
    await once(server, "listening");
  } catch {
    return undefined; // the port is taken: the greeting shows whether by a Waggle process
  }
  const release = () => {
    server.close();
    for (const rival of rivals) rival.destroy();
  };
  return { release };
}

/** Waits until the holder releases the lock. @returns false when a foreign process has the port */
async function waitedForRival(port: number, greeting: string, deadline: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port }).setEncoding("latin1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const untilGreeted = setTimeout(() => socket.destroy(), limits.brokerAnswerMs);
  const untilDeadline = setTimeout(() => socket.destroy(), deadline - performance.now());
  let isRival = true; // a closed port means a released lock; a wrong greeting means a foreign process
  socket.once("connect", () => {
    isRival = false;
  });
  socket.on("error", () => socket.destroy()); // `close` follows
  socket.once("data", (text: string) => {
    isRival = text === greeting;
    if (isRival) clearTimeout(untilGreeted);
    else socket.destroy();
  });
  await closed;
  clearTimeout(untilGreeted);
  clearTimeout(untilDeadline);
  return isRival;
}

function digest(folderPath: string): Buffer {
  return createHash("sha256").update(folderPath).digest();
}

const PORTS_TRIED = 8;
