// The lock of a folder: the next holder after a dead holder, and strangers on the holder's port.

import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockFolder } from "../../src/journal/file/folder-lock.ts";

let folder: string;
let lockPath: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-lock-"));
  lockPath = join(folder, "lock.json");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const NONCE = "11111111-2222-4333-8444-555555555555";
const HEIR = "99999999-2222-4333-8444-555555555555";
/** Beyond the largest pid. */
const DEAD_PID = 2 ** 22 + 1;

function leaveLock(holder: { nonce?: string; pid?: number; port: number }, name = "lock.json"): void {
  const { nonce = NONCE, pid = DEAD_PID, port } = holder;
  writeFileSync(join(folder, name), `${JSON.stringify({ nonce, pid, port })}\n`);
}

async function aServer(answer: string | undefined) {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    if (answer !== undefined) socket.end(answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const asked = once(server, "connection");
  return { port: (server.address() as AddressInfo).port, asked, close: () => server.close() };
}

describe("the lock of a folder", () => {
  it("names the holder's process in lock.json, and leaves nothing behind", async () => {
    const lock = await lockFolder(folder);
    expect(JSON.parse(readFileSync(lockPath, "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(folder)).toEqual(["lock.json"]);
    await lock.release();
    await lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is refused while held, even to the same process, and free afterwards", async () => {
    const lock = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_LOCKED" });
    await expect(lockFolder(folder)).rejects.toThrow(`process ${process.pid} `);
    expect(readdirSync(folder)).toEqual(["lock.json"]);
    await lock.release();
    await (await lockFolder(folder)).release();
  });

  it("goes to exactly one of many contenders", async () => {
    for (let round = 0; round < 5; round++) {
      if (round > 0) leaveLock({ port: 1 });
      const attempts = await Promise.allSettled(Array.from({ length: 12 }, () => lockFolder(folder)));
      const locks = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
      expect(locks).toHaveLength(1);
      expect(readdirSync(folder)).toEqual(["lock.json"]);
      for (const lock of locks) await lock.release();
    }
  });

  it("passes from a dead holder to a contender", async () => {
    leaveLock({ port: 1 });
    const lock = await lockFolder(folder);
    expect(JSON.parse(readFileSync(lockPath, "utf8"))).toMatchObject({ pid: process.pid });
    await lock.release();
  });

  it("passes on from a contender that died while taking over", async () => {
    leaveLock({ port: 1 });
    leaveLock({ port: 1, nonce: HEIR }, `lock.${NONCE}.json`);
    const lock = await lockFolder(folder);
    expect(readdirSync(folder)).toEqual(["lock.json"]);
    await expect(lockFolder(folder)).rejects.toThrow(`process ${process.pid} `);
    await lock.release();
  });

  it("stays with a live contender that is taking over", async () => {
    const server = await aServer(`waggle journal lock ${HEIR} held by process 4242\n`);
    leaveLock({ port: 1 });
    leaveLock({ port: server.port, nonce: HEIR, pid: 4242 }, `lock.${NONCE}.json`);
    await expect(lockFolder(folder)).rejects.toThrow("process 4242 ");
    server.close();
  });

  it.each([
    ["speaks of something else", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["hangs up", ""],
    ["holds the lock of another folder", `waggle journal lock 99999999-0000 held by process ${DEAD_PID}\n`],
    ["talks without end", "x".repeat(100_000)],
  ])("is not held by a stranger who has the port now and %s", async (_, answer) => {
    const stranger = await aServer(answer);
    leaveLock({ port: stranger.port });
    await (await lockFolder(folder)).release();
    stranger.close();
  });

  it("counts as held if the port is silent and the process lives, and as free if the process is dead", async () => {
    const silent = await aServer(undefined);
    leaveLock({ port: silent.port, pid: process.ppid });
    await expect(lockFolder(folder)).rejects.toThrow(`process ${process.ppid} `);
    leaveLock({ port: silent.port, pid: DEAD_PID });
    await (await lockFolder(folder)).release();
    silent.close();
  });

  it("is left alone by a late contender: the lock passed on while the dead holder's port was asked", async () => {
    const silent = await aServer(undefined);
    const live = await aServer(`waggle journal lock ${HEIR} held by process 4242\n`);
    leaveLock({ port: silent.port });
    const attempt = lockFolder(folder);
    attempt.catch(() => undefined); // looked at below
    await silent.asked;
    leaveLock({ port: live.port, nonce: HEIR, pid: 4242 });
    await expect(attempt).rejects.toThrow("process 4242 ");
    expect(readdirSync(folder)).toEqual(["lock.json"]);
    silent.close();
    live.close();
  });

  it.each([
    ["empty", ""],
    ["cut", '{"nonce":"1111'],
    ["foreign", "hello"],
  ])("is free when its record is %s, which only a power failure leaves", async (_, text) => {
    writeFileSync(lockPath, text);
    const lock = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toThrow(`process ${process.pid} `);
    await lock.release();
  });
});
