// Starts the broker of a data folder, or joins a broker that another process has just started. Everything here
// runs under the start lock. The record is written as soon as the process exists, so that it is found even if
// the starter is killed.

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BrokerError } from "../errors.ts";
import { limits } from "../limits.ts";
import { type BrokerKind, type BrokerRecord, portOf, readRecord, writeRecord } from "./broker-record.ts";
import { type DataFolder, findDataFolder } from "./data-folder.ts";
import { freePort } from "./free-port.ts";
import { type BrokerProgram, type LaunchedBroker, launch } from "./launch.ts";
import { ask, endProcess, isAnswering, isRunning } from "./liveness.ts";
import { findNatsBinary, isRecentEnough, NATS_SERVER_VERSION_MIN } from "./nats-binary.ts";
import type { Environment } from "./nats-context.ts";
import { DEVELOPMENT_BROKER_VERSION } from "./server.ts";
import { acquireStartLock } from "./start-lock.ts";

export interface StartBrokerOptions {
  readonly folder: DataFolder;
  /** Default: the folder's previous kind, else nats-server if available. */
  readonly kind: BrokerKind | undefined;
  readonly env: Environment;
}

export interface StartedBroker {
  readonly record: BrokerRecord;
  /** False when another process started the broker. */
  readonly wasStarted: boolean;
  /** Why this kind was chosen, where a user might expect a different kind. */
  readonly remark?: string | undefined;
}

/** @throws BrokerError when no broker can be started */
export async function startBroker(options: StartBrokerOptions): Promise<StartedBroker> {
  const { folder } = options;
  const lock = await acquireStartLock(folder.path);
  try {
    const previous = readRecord(folder);
    if (previous !== undefined && (await isAnswering(folder, previous))) {
      return { record: previous, wasStarted: false };
    }
    if (previous !== undefined) await endProcess(folder, previous); // hangs, and holds the port
    const { program, remark } = await chooseProgram(options, previous);
    return { record: await startProgram(folder, program, previous), wasStarted: true, remark };
  } finally {
    lock.release();
  }
}

/** Result of restarting a lost broker. */
export type RestartOutcome =
  | { readonly kind: "started"; readonly record: BrokerRecord; readonly endedPid: number }
  | { readonly kind: "answers"; readonly record: BrokerRecord }
  /** The process runs, and holds the port and the store. */
  | { readonly kind: "hangs"; readonly pid: number }
  /** Stopped on purpose with `waggle down`. */
  | { readonly kind: "stopped" }
  /** The folder has no record any more. */
  | { readonly kind: "unknown" };

/** Restarts the broker of a data folder if its process has ended and was not stopped on purpose. Uses the same
 *  port, where the clients look for it, or fails. @throws BrokerError when the broker cannot be started */
export async function restartBroker({
  dataFolder,
  env,
}: {
  readonly dataFolder: string;
  readonly env: Environment;
}): Promise<RestartOutcome> {
  const folder = findDataFolder(dataFolder);
  if (folder === undefined) return { kind: "unknown" };
  const lock = await acquireStartLock(folder.path);
  try {
    const previous = readRecord(folder);
    if (previous === undefined) return { kind: "unknown" };
    if (await isAnswering(folder, previous)) return { kind: "answers", record: previous };
    const { pid } = previous;
    if (pid === null) return { kind: "stopped" };
    if (await isRunning(folder, previous)) return { kind: "hangs", pid };
    const { program } = await chooseProgram({ folder, kind: undefined, env }, previous);
    const record = await tryStart(folder, program, { port: portOf(previous), secret: previous.secret });
    if (record !== undefined) return { kind: "started", record, endedPid: pid };
    writeRecord(folder, previous);
    throw await notStartedError(folder, program);
  } finally {
    lock.release();
  }
}

interface Choice {
  readonly program: BrokerProgram;
  readonly remark?: string | undefined;
}

async function chooseProgram(
  { folder, kind, env }: StartBrokerOptions,
  previous: BrokerRecord | undefined,
): Promise<Choice> {
  const wanted = kind ?? previous?.kind;
  if (wanted === "development") return { program: { kind: "development" } };
  const binary = await findNatsBinary(env["PATH"]);
  if (binary !== undefined && isRecentEnough(binary)) return { program: { kind: "nats-server", binary } };
  const remark =
    binary === undefined
      ? "no nats-server is on the PATH"
      : `the nats-server on the PATH is ${binary.version}, but ${NATS_SERVER_VERSION_MIN} is required`;
  if (wanted === undefined) return { program: { kind: "development" }, remark };
  throw new BrokerError(
    kind === undefined
      ? `the journal of ${folder.path} is in JetStream, and ${remark}: install it, or use a different data folder`
      : `${remark}: install it`,
  );
}

async function startProgram(
  folder: DataFolder,
  program: BrokerProgram,
  previous: BrokerRecord | undefined,
): Promise<BrokerRecord> {
  const secret = previous?.secret ?? randomBytes(24).toString("base64url");
  let port = previous === undefined ? await freePort() : portOf(previous);
  for (let tried = 0; tried < STARTS_MAX; tried += 1) {
    const record = await tryStart(folder, program, { port, secret });
    if (record !== undefined) return record;
    port = await freePort(); // a foreign process may have taken the previous port
  }
  if (previous !== undefined) writeRecord(folder, previous); // the clients look for the broker at the previous port
  throw await notStartedError(folder, program);
}

async function notStartedError(folder: DataFolder, program: BrokerProgram): Promise<BrokerError> {
  return new BrokerError(
    `${nameOf(program)} does not start; ${folder.log} ends with: ${await lastLine(folder)}`,
  );
}

/** @returns undefined when the process ended before its first answer */
async function tryStart(
  folder: DataFolder,
  program: BrokerProgram,
  { port, secret }: { port: number; secret: string },
): Promise<BrokerRecord | undefined> {
  const launched = await launch(program, { folder, port, secret });
  const record: BrokerRecord = {
    kind: program.kind,
    url: `nats://127.0.0.1:${port}`,
    secret,
    pid: launched.pid,
    version: program.kind === "nats-server" ? program.binary.version : DEVELOPMENT_BROKER_VERSION,
    storeDir: program.kind === "nats-server" ? folder.jetStream : null,
  };
  writeRecord(folder, record);
  if (await answersInTime(folder, launched, record)) return record;
  await endProcess(folder, record);
  writeRecord(folder, { ...record, pid: null });
  return undefined;
}

async function answersInTime(
  folder: DataFolder,
  launched: LaunchedBroker,
  record: BrokerRecord,
): Promise<boolean> {
  const deadline = performance.now() + limits.brokerStartMs;
  const isEnded = launched.ended.then(() => true);
  while (performance.now() < deadline) {
    if ((await ask(folder, record)).kind === "answers") return true;
    if (await Promise.race([isEnded, sleep(LOOK_MS, false)])) return false;
  }
  return false;
}

async function lastLine(folder: DataFolder): Promise<string> {
  const lines = (await readFile(folder.log, "utf8")).trimEnd().split("\n");
  return JSON.stringify(lines.at(-1) ?? "");
}

function nameOf(program: BrokerProgram): string {
  return program.kind === "nats-server" ? program.binary.path : "the development broker";
}

const STARTS_MAX = 3;
/** Polling interval while a broker starts. */
const LOOK_MS = 20;
