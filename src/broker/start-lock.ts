// One broker for one data folder: only who holds the folder's lock port may start it. A port, because the
// kernel frees it whatever becomes of its holder, kill -9 included; a file would have to be judged stale.
// Two servers on one JetStream store would destroy it, so the broker's own port would be too late a lock.
//
// The port follows from the folder's path. A program of somebody else may have it; ours greets, by which its
// rivals know it, and wait until its connection closes.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { BrokerError } from "../errors.ts";
import { limits } from "../limits.ts";

export interface StartLock {
  release(): void;
}

/** Waits for whoever holds it, up to `limits.brokerStartMs`. @throws BrokerError after that */
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

/** @returns undefined when a rival held the lock, and has let go of it or run out of time */
async function tryPorts(folderPath: string, deadline: number): Promise<StartLock | undefined> {
  const greeting = `waggle start ${digest(folderPath).toString("hex")}\n`;
  for (const port of lockPortsFor(folderPath)) {
    const server = await listenAt(port, greeting);
    if (server !== undefined) return server;
    if (await waitedForRival(port, greeting, deadline)) return undefined;
  }
  throw new BrokerError(
    `none of the ports ${lockPortsFor(folderPath).join(", ")} is free to lock ${folderPath}`,
  );
}

/** Where the lock of a folder may be: below the ports that systems give out by themselves. */
export function lockPortsFor(folderPath: string): number[] {
  const first = 10_240 + (digest(folderPath).readUInt32BE(0) % 20_000);
  return Array.from({ length: PORTS_TRIED }, (_, at) => first + at);
}

async function listenAt(port: number, greeting: string): Promise<StartLock | undefined> {
  const rivals = new Set<Socket>();
  const server: Server = createServer((rival) => {
    rivals.add(rival);
    rival.on("error", () => rival.destroy()); // it stopped waiting
    rival.write(greeting);
  });
  server.listen({ host: "127.0.0.1", port, exclusive: true });
  try {
    await once(server, "listening");
  } catch {
    return undefined; // somebody has the port: whether a rival, its greeting tells
  }
  const release = () => {
    server.close();
    for (const rival of rivals) rival.destroy();
  };
  return { release };
}

/** Waits until the rival lets go. @returns false when it is no rival who has the port */
async function waitedForRival(port: number, greeting: string, deadline: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port }).setEncoding("latin1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const untilGreeted = setTimeout(() => socket.destroy(), limits.brokerAnswerMs);
  const untilDeadline = setTimeout(() => socket.destroy(), deadline - performance.now());
  let isRival = true; // it let go of the port, unless it takes the connection and says something else
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
