// The lock that admits one starter of a folder's broker.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { acquireStartLock, lockPortsFor } from "../../src/broker/start-lock.ts";

const closing: (() => void)[] = [];
let folders = 0;

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** The folder does not exist: only the path counts. */
function aFolder(): string {
  folders += 1;
  return `/nowhere/${process.pid}/${folders}`;
}

async function occupy(port: number, greeting: string): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => socket.destroy()));
    socket.write(greeting);
  }).listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
}

/** Takes the lock once, and records the times of acquisition and release. */
async function takeTurn(folder: string, notes: string[]): Promise<void> {
  const lock = await acquireStartLock(folder);
  notes.push("taken");
  await new Promise((resolve) => setImmediate(resolve));
  notes.push("released");
  lock.release();
}

describe("the start lock", () => {
  it("has one holder at a time, and every process gets it in the end", async () => {
    const folder = aFolder();
    const notes: string[] = [];
    await Promise.all(Array.from({ length: 6 }, () => takeTurn(folder, notes)));
    expect(notes).toEqual(Array(6).fill(["taken", "released"]).flat());
  });

  it("of a folder does not wait for the lock of a different folder", async () => {
    const locks = [await acquireStartLock(aFolder()), await acquireStartLock(aFolder())];
    for (const lock of locks) lock.release();
  });

  it("stays a single lock when a foreign process has its port", async () => {
    const folder = aFolder();
    await occupy(lockPortsFor(folder)[0] ?? 0, "220 mail.example ESMTP\r\n");
    const notes: string[] = [];
    await Promise.all(Array.from({ length: 3 }, () => takeTurn(folder, notes)));
    expect(notes).toEqual(Array(3).fill(["taken", "released"]).flat());
  });

  it("is free at once when the process that held it is killed", async () => {
    const folder = aFolder();
    const module = fileURLToPath(new URL("../../src/broker/start-lock.ts", import.meta.url));
    const code = `
      import { acquireStartLock } from ${JSON.stringify(module)};
      await acquireStartLock(${JSON.stringify(folder)});
      console.log("taken");
    `;
    const holder = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    closing.push(() => holder.kill("SIGKILL"));
    await once(holder.stdout, "data");
    let isTaken = false;
    const taking = acquireStartLock(folder).then((lock) => {
      isTaken = true;
      lock.release();
    });
    await expect(
      Promise.race([taking, acquireStartLock(aFolder()).then((lock) => lock.release())]),
    ).resolves.toBe(undefined);
    expect(isTaken).toBe(false);
    holder.kill("SIGKILL");
    await taking;
  });
});
