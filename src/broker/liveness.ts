// Whether the broker of a record is there: answering at its port, or at least running as a process; and how
// such a process is ended.

import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../limits.ts";
import { type BrokerRecord, portOf, serverNameFor } from "./broker-record.ts";
import type { DataFolder } from "./data-folder.ts";
import { configFileOf } from "./launch.ts";
import { type ProbeAnswer, probe } from "./probe.ts";
import { hasEnded, isProcessWith } from "./process-identity.ts";

/** Between two looks at a process that starts or ends: nothing tells of it. */
const LOOK_MS = 20;

export async function ask(record: BrokerRecord): Promise<ProbeAnswer> {
  const { secret } = record;
  return await probe({ port: portOf(record), secret, serverName: serverNameFor(secret) });
}

/** Waits a little for one that runs and does not answer yet. */
export async function isAnswering(folder: DataFolder, record: BrokerRecord): Promise<boolean> {
  const deadline = performance.now() + limits.brokerAnswerMs;
  do {
    const answer = await ask(record);
    if (answer.kind === "answers") return true;
    if (answer.kind === "stranger" || !(await isRunning(folder, record))) return false;
    await sleep(LOOK_MS);
  } while (performance.now() < deadline);
  return false;
}

/** Whether the record's process lives and is that broker, not another one with the same number. */
export async function isRunning(folder: DataFolder, { pid, kind }: BrokerRecord): Promise<boolean> {
  return pid !== null && (await isProcessWith(pid, configFileOf(kind, folder)));
}

/** Asks the process to end, and kills it when it does not. Nothing happens to one that is not the broker. */
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
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // it has ended meanwhile
  }
}
