// The demo's own data folder, `.waggle/demo/swarm`: empty at the start of each run, for one run at a time. A
// run removes what a killed run left in the folder, and stops the broker of that run.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDataFolder } from "../../broker/data-folder.ts";
import { isProcessWith } from "../../broker/process-identity.ts";
import { stopBroker } from "../../broker/stop-broker.ts";
import type { Settings } from "../../config/settings.ts";
import { BrokerError } from "../../errors.ts";
import { limits } from "../../limits.ts";

/** The settings with a swarm, a server and a data folder of the demo's own. */
export function demoSettings(settings: Settings): Settings {
  return {
    ...settings,
    nats: undefined,
    natsContext: undefined,
    inboxPrefix: undefined,
    credentials: undefined,
    replicas: undefined,
    swarm: "demo",
    dataFolder: join(settings.dataFolder, "demo", "swarm"),
  };
}

/** @param dataFolder the demo's data folder @returns a function that releases the folder
 *  @throws BrokerError if another demo runs in the folder */
export async function takeFolder(userFolder: string, dataFolder: string): Promise<() => void> {
  makeDataFolder(userFolder);
  mkdirSync(dirname(dataFolder), { recursive: true });
  const lock = join(dirname(dataFolder), "running");
  await lockOrThrow(lock, dataFolder);
  try {
    await stopBroker(dataFolder);
    rmSync(dataFolder, { recursive: true, force: true, maxRetries: limits.demoRemoveRetriesMax });
  } catch (error) {
    rmSync(lock, { force: true });
    throw error;
  }
  return () => rmSync(lock, { force: true });
}

async function lockOrThrow(lock: string, dataFolder: string): Promise<void> {
  for (let tries = 0; tries < 2; tries += 1) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const pid = Number(readFileSync(lock, "utf8"));
    // The system reuses process ids: only a process with `demo` in its command line is a demo.
    if (pid !== process.pid && (await isProcessWith(pid, "demo"))) break;
    rmSync(lock, { force: true });
  }
  throw new BrokerError(
    `a second demo uses ${dataFolder}: wait for its end, or name a different --data-folder`,
  );
}
