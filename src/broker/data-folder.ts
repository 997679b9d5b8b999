// The files of a broker in a data folder (`.waggle`). Its path is their identity: a broker is recognised by
// the configuration file that it was started with.

import { mkdirSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface DataFolder {
  /** Absolute, links resolved. */
  readonly path: string;
  readonly record: string;
  /** What spawned brokers print. */
  readonly log: string;
  readonly natsServerConfig: string;
  readonly developmentConfig: string;
  readonly jetStream: string;
}

/** The folder's files, or undefined when there is no such folder. */
export function findDataFolder(path: string): DataFolder | undefined {
  try {
    return filesOf(realpathSync(path));
  } catch {
    return undefined; // absent, or not ours to enter: no broker of ours is there
  }
}

/** Makes the folder when it is missing: readable to its owner only, and ignored by git, for it holds secrets. */
export function makeDataFolder(path: string): DataFolder {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (made !== undefined) writeFileSync(join(path, ".gitignore"), "*\n");
  return filesOf(realpathSync(path));
}

/** Whole or not at all, and readable to its owner only: these files hold the secret. */
export function writePrivately(file: string, content: string): void {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, file);
}

function filesOf(path: string): DataFolder {
  return {
    path,
    record: join(path, "broker.json"),
    log: join(path, "broker.log"),
    natsServerConfig: join(path, "nats-server.conf"),
    developmentConfig: join(path, "development-broker.json"),
    jetStream: join(path, "jetstream"),
  };
}
