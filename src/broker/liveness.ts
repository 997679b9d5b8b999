// Checks whether the broker of a record answers at its port, or at least runs as a process, and ends such a
// process.

import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../limits.ts";
import { MutualProof } from "../transport/mutual-proof.ts";
import { type BrokerRecord, portOf, serverNameFor } from "./broker-record.ts";
import type { DataFolder } from "./data-folder.ts";
import { configFileOf } from "./launch.ts";
import { type ProbeAnswer, probe } from "./probe.ts";
import { hasEnded, isProcessWith } from "./process-identity.ts";

/** Polling interval while a process starts or ends, because no event reports either. */
const LOOK_MS = 20;

export async function ask(folder: DataFolder, record: BrokerRecord): Promise<ProbeAnswer> {
  const { kind, secret } = record;
  const port = portOf(record);
  return await probe({
    port,
    serverName: serverNameFor(secret),
    credentials:
      kind === "nats-server"
        ? { login: async (nonce) => (await import("./nats.ts")).signNonce(folder, nonce) }
        : new MutualProof({ secret, ports: [port], isRequired: true }),
  });
}

/** Waits briefly for a broker that runs and does not answer yet. */
export async function isAnswering(folder: DataFolder, record: BrokerRecord): Promise<boolean> {
  const deadline = performance.now() + limits.brokerAnswerMs;
  do {
    const answer = await ask(folder, record);
    if (answer.kind === "answers") return true;
    if (answer.kind === "stranger" || !(await isRunning(folder, record))) return false;
    await sleep(LOOK_MS);
  } while (performance.now() < deadline);
  return false;
}

/** True if the record's process lives and is the broker, not a process that reuses the id. */
export async function isRunning(folder: DataFolder, { pid, kind }: BrokerRecord): Promise<boolean> {
  return pid !== null && (await isProcessWith(pid, configFileOf(kind, folder)));
}

/** Asks the process to end, and kills it after a while. Never touches a process that is not the broker. */
export async function endProcess(folder: DataFolder, record: BrokerRecord): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (record.pid === null || !(await isRunning(folder, record))) return;
    sendSignal(record.pid, signal);
    if (await endsInTime(record.pid)) return;
  }
}

async function endsInTime(pid: number): Promise<boolean> {
  const deadline = performance.now() + limits.brokerStopMs;
  while (performance.now() < deadline) {
    if (await hasEnded(pid)) return true;
    await sleep(LOOK_MS);
  }
  return false;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // has ended meanwhile
  }
}
