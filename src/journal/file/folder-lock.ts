// One process at a time may write the journal of a folder. The lock is a TCP port on loopback, which the
// kernel frees however its holder ends; `lock.json` says which port, whose and under which nonce.
//
// A lock whose holder is gone must pass to exactly one of those who notice. Who wants it creates
// `lock.<nonce of the dead one>.json`, as a hard link, which succeeds for one only; then the winner's own
// record replaces `lock.json`. If he dies in between, his link is the lock, and the next one inherits from
// him: so the lock is the end of the chain that begins at `lock.json`.
//
// Who asks the port gets nonce and pid, so that a stranger who has the port now is told apart. A port that takes
// the call and says nothing may be a stopped holder, and counts as held while his process lives.
// Reaches as far as loopback: not two machines or two containers that share a folder.

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
/** More than that is no banner of ours. */
const BANNER_CHARACTERS_MAX = 256;
const HOLDER_PATTERN = /^\{"nonce":"(?<nonce>[0-9a-f-]+)","pid":(?<pid>\d+),"port":(?<port>\d+)\}\n$/;

/** Why the process `pid` keeps others out. */
export type LockRefusal = (pid: number) => WaggleError;

/** @param refusal of a folder that is not a journal's
 *  @throws WaggleError WAGGLE_JOURNAL_LOCKED, or `refusal`, naming the process that holds it */
export async function lockFolder(
  folder: string,
  refusal: LockRefusal = (pid) => lockedError(folder, pid),
): Promise<FolderLock> {
  const nonce = randomUUID();
  const server = await serveBanner(nonce);
  const holder: Holder = { nonce, pid: process.pid, port: portOf(server) };
  const draft = join(folder, `lock.${nonce}.draft`);
  try {
    await writeFile(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    while (!(await tryToHold(folder, draft, refusal))) await delay(limits.lockAnswerMs / 100);
    await becomeFirst(folder, draft);
  } catch (error) {
    server.close();
    await rm(draft, { force: true });
    throw error;
  }
  return { release: () => release(folder, holder, server) };
}

/** False when others moved meanwhile and all must be looked at again. */
async function tryToHold(folder: string, draft: string, refusal: LockRefusal): Promise<boolean> {
  const first = await readHolder(join(folder, LOCK_FILE));
  if (first === undefined) return await linkUnlessThere(draft, join(folder, LOCK_FILE));

  const last = await endOfChain(folder, first);
  if (await isAlive(last)) throw refusal(last.pid);
  const heritage = heritageOf(folder, last);
  if (!(await linkUnlessThere(draft, heritage))) return false;
  const firstNow = await readHolder(join(folder, LOCK_FILE));
  if (firstNow?.nonce === first.nonce) return true;
  await rm(heritage, { force: true }); // the chain we ended was no longer the lock
  return false;
}

/** From now on the chain begins, and ends, with us. */
async function becomeFirst(folder: string, draft: string): Promise<void> {
  await rename(draft, join(folder, LOCK_FILE));
  // Renaming does nothing where both names are links to one file.
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

/** A record is whole before it gets its name, so one that cannot be read was left by a power failure, which
 *  nobody survived. */
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
    socket.on("error", () => socket.destroy()); // the asker is gone; nothing is lost
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

/** What the port says until it hangs up; nothing at all in time is `silence`, and nobody there is "". */
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
    return (error as NodeJS.ErrnoException).code === "EPERM"; // somebody else's, but alive
  }
}

function lockedError(folder: string, pid: number): WaggleError {
  return new WaggleError(
    "WAGGLE_JOURNAL_LOCKED",
    `process ${pid} writes the journal in ${folder}, and a journal in a file has one coordinator; stop that one ` +
      "first, or use a NATS server with JetStream, where others may stand by",
  );
}
