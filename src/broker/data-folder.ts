// The files of a broker in a data folder (`.waggle`). The path identifies the broker: a process is recognised
// by the configuration file on its command line.

import { mkdirSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface DataFolder {
  /** Absolute, with links resolved. */
  readonly path: string;
  readonly record: string;
  /** Output of started brokers. */
  readonly log: string;
  readonly natsServerConfig: string;
  readonly developmentConfig: string;
  readonly jetStream: string;
}

/** The folder's files, or undefined when the folder does not exist. */
export function findDataFolder(path: string): DataFolder | undefined {
  try {
    return filesOf(realpathSync(path));
  } catch {
    return undefined; // absent, or not accessible: no broker of this user is there
  }
}

/** Creates the folder if missing: readable only to its owner and ignored by git, because it holds secrets. */
export function makeDataFolder(path: string): DataFolder {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (made !== undefined) writeFileSync(join(path, ".gitignore"), "*\n");
  return filesOf(realpathSync(path));
}

/** Atomic, and readable only to the owner, because the files hold the secret. */
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
