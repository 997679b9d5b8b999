// The work of `waggle down`: ends the broker of a data folder. The record stays, without a process id, so that
// the next broker takes the same port and secret.

import { BrokerError } from "../errors.ts";
import { readRecord, writeRecord } from "./broker-record.ts";
import { findDataFolder } from "./data-folder.ts";
import { ask, endProcess, isRunning } from "./liveness.ts";
import { acquireStartLock } from "./start-lock.ts";

export interface StoppedBroker {
  /** False when no broker ran, which is not an error. */
  readonly wasRunning: boolean;
  /** Describes the result for users. */
  readonly sentence: string;
}

/** @param dataFolder absolute path of the folder (`.waggle`)
 *  @throws BrokerError when the record is damaged, or the broker answers and its process cannot be identified */
export async function stopBroker(dataFolder: string): Promise<StoppedBroker> {
  const nothing = { wasRunning: false, sentence: `no broker runs for ${dataFolder}` };
  const folder = findDataFolder(dataFolder);
  if (folder === undefined || readRecord(folder) === undefined) return nothing;

  const lock = await acquireStartLock(folder.path);
  try {
    const record = readRecord(folder);
    if (record === undefined) return nothing;
    if (await isRunning(folder, record)) {
      await endProcess(folder, record);
      writeRecord(folder, { ...record, pid: null });
      const what = record.kind === "nats-server" ? `nats-server ${record.version}` : "the development broker";
      return { wasRunning: true, sentence: `stopped ${what} at ${record.url} (process ${record.pid})` };
    }
    if ((await ask(folder, record)).kind !== "answers") {
      writeRecord(folder, { ...record, pid: null }); // or a coordinator would restart a killed broker
      return nothing;
    }
    throw new BrokerError(
      `the broker at ${record.url} answers, but process ${record.pid} is a different process: find the process that listens ` +
        "at that address, and end it",
    );
  } finally {
    lock.release();
  }
}
