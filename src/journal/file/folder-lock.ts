// The lock of a folder: one process at a time writes there. The lock is a TCP port on loopback, which the kernel frees
// however the holder ends; `lock.json` names the port, the holder's pid and a nonce.
//
// A dead holder's lock passes to exactly one contender. Each contender creates `lock.<nonce of the dead holder>.json`
// as a hard link, which succeeds for one contender. Then the winner's own record replaces `lock.json`. If the winner
// dies in between, the link is the lock, and the next contender inherits from the dead winner. So the lock is the end
// of a chain from `lock.json`.
//
// The port answers with nonce and pid, so a stranger on the same port is told apart. A port that accepts and stays
// silent may be a stopped holder, and counts as held while the holder's process lives. Loopback reaches no second
// machine or container.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { link, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";

export interface FolderLock {
  /** Idempotent. */
  release(): Promise<void>;
}

interface Holder {
  readonly nonce: string;
  readonly pid: number;
  readonly port: number;
}

const LOCK_FILE = "lock.json";
/** A longer text is no banner of a lock. */
const BANNER_CHARACTERS_MAX = 256;
const HOLDER_PATTERN = /^\{"nonce":"(?<nonce>[0-9a-f-]+)","pid":(?<pid>\d+),"port":(?<port>\d+)\}\n$/;

/** The error that names the holder of the lock. */
export type LockRefusal = (pid: number) => WaggleError;

/** @param refusal the error for a folder that is not a journal's
 *  @throws WaggleError WAGGLE_JOURNAL_LOCKED, or `refusal`, naming the process that holds the lock */
export async function lockFolder(
  folder: string,
  refusal: LockRefusal = (pid) => lockedError(folder, pid),
): Promise<FolderLock> {
  const nonce = randomUUID();
  const server = await serveBanner(nonce);
  const holder: Holder = { nonce, pid: process.pid, port: portOf(server) };
  const draft = join(folder, `lock.${nonce}.draft`);
  try {
    await writeFile(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600, flag: "wx" });
    while (!(await tryToHold(folder, draft, refusal))) await delay(limits.lockAnswerMs / 100);
    await becomeFirst(folder, draft);
  } catch (error) {
    server.close();
    await rm(draft, { force: true });
    throw error;
  }
  return { release: () => release(folder, holder, server) };
}

/** False when the chain of locks changed meanwhile: try again. */
async function tryToHold(folder: string, draft: string, refusal: LockRefusal): Promise<boolean> {
  const first = await readHolder(join(folder, LOCK_FILE));
  if (first === undefined) return await linkUnlessThere(draft, join(folder, LOCK_FILE));

  const last = await endOfChain(folder, first);
  if (await isAlive(last)) throw refusal(last.pid);
  const heritage = heritageOf(folder, last);
  if (!(await linkUnlessThere(draft, heritage))) return false;
  const firstNow = await readHolder(join(folder, LOCK_FILE));
  if (firstNow?.nonce === first.nonce) return true;
  await rm(heritage, { force: true }); // the chain that ended here was no longer the lock
  return false;
}

/** Replaces the chain of locks by this lock. */
async function becomeFirst(folder: string, draft: string): Promise<void> {
  await rename(draft, join(folder, LOCK_FILE));
  // Renaming does nothing when both names are links to one file.
  await rm(draft, { force: true });
  for (const name of await readdir(folder)) {
    if (/^lock\..+\.json$/.test(name)) await rm(join(folder, name), { force: true });
  }
}

async function release(folder: string, { nonce }: Holder, server: Server): Promise<void> {
  const path = join(folder, LOCK_FILE);
  if ((await readHolder(path))?.nonce === nonce) await rm(path, { force: true });
  server.close();
}

async function endOfChain(folder: string, first: Holder): Promise<Holder> {
  let last = first;
  for (;;) {
    const heir = await readHolder(heritageOf(folder, last));
    if (heir === undefined) return last;
    last = heir;
  }
}

function heritageOf(folder: string, { nonce }: Holder): string {
  return join(folder, `lock.${nonce}.json`);
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    return parseHolder(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** A record is whole before it gets the name `lock.json`: only a power loss leaves an unreadable record, and no holder
 *  survives a power loss. */
function parseHolder(text: string): Holder {
  const holder = HOLDER_PATTERN.exec(text)?.groups;
  if (holder === undefined) return { nonce: "unreadable", pid: 0, port: 0 };
  return { nonce: holder["nonce"] ?? "", pid: Number(holder["pid"]), port: Number(holder["port"]) };
}

async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function bannerOf({ nonce, pid }: { nonce: string; pid: number }): string {
  return `waggle journal lock ${nonce} held by process ${pid}\n`;
}

async function serveBanner(nonce: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy()); // the contender is gone; nothing is lost
    socket.end(bannerOf({ nonce, pid: process.pid }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

async function isAlive(holder: Holder): Promise<boolean> {
  const answer = await askPort(holder.port);
  if (answer === "silence") return isProcess(holder.pid);
  return answer === bannerOf(holder);
}

/** The text that the port sends until it hangs up. `silence`: the port accepts and sends nothing in time. "": no
 *  process listens. */
async function askPort(port: number): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, timeout: limits.lockAnswerMs });
  let heard = "";
  socket.setEncoding("latin1");
  const outcome = new Promise<string>((resolve) => {
    socket.once("error", () => resolve(heard));
    socket.once("timeout", () => resolve(heard === "" ? "silence" : heard));
    socket.once("end", () => resolve(heard));
    socket.on("data", (text: string) => {
      heard += text;
      if (heard.length > BANNER_CHARACTERS_MAX) resolve(heard);
    });
  });
  try {
    return await outcome;
  } finally {
    socket.destroy();
  }
}

function isProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // another user's process, but alive
  }
}

function lockedError(folder: string, pid: number): WaggleError {
  return new WaggleError(
    "WAGGLE_JOURNAL_LOCKED",
    `process ${pid} writes the journal in ${folder}, and a file journal has one coordinator; stop that process first, or ` +
      "use a NATS server with JetStream, where other coordinators may stand by",
  );
}
