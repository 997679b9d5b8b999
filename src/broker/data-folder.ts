// The files of a broker in a data folder (`.waggle`). The path identifies the broker: a process is recognised
// by the configuration file on its command line.
//
// The folder holds secrets and the configuration of processes. So it must belong to this user, and no other user
// may write to it: a file planted there could name another user's server, or lead a write elsewhere.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { BrokerError } from "../errors.ts";

export interface DataFolder {
  /** Absolute, with links resolved. */
  readonly path: string;
  readonly record: string;
  /** Output of started brokers. */
  readonly log: string;
  readonly natsServerConfig: string;
  readonly developmentConfig: string;
  /** Seed of the key (nkey) with which this user's programs log in. */
  readonly userKey: string;
  readonly jetStream: string;
}

/** The folder's files, or undefined when the folder does not exist.
 *  @throws BrokerError when the folder belongs to another user, or other users may write to it */
export function findDataFolder(path: string): DataFolder | undefined {
  const folder = realPathOf(path);
  if (folder === undefined) return undefined;
  checkOwner(path, lstatSync(path));
  checkOwner(folder, statSync(folder));
  checkMode(folder, statSync(folder));
  return filesOf(folder);
}

/** Creates the folder if missing: readable only to its owner and ignored by git, because it holds secrets.
 *  @throws BrokerError when the folder belongs to another user, or other users may write to it */
export function makeDataFolder(path: string): DataFolder {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  const folder = findDataFolder(path);
  if (folder === undefined)
    throw new BrokerError(`${path} was removed while a broker was started: run \`waggle up\` again`);
  if (made !== undefined) writeNew(join(folder.path, ".gitignore"), "*\n");
  return folder;
}

/** Folder of a journal in files. One per swarm: swarms of one data folder share a broker, but no journal. */
export function journalFolder({
  dataFolder,
  swarm,
}: {
  readonly dataFolder: string;
  readonly swarm: string;
}): string {
  return join(dataFolder, "journals", swarm);
}

/** Atomic, and readable only to the owner, because the files hold the secret. */
export function writePrivately(file: string, content: string): void {
  const draft = `${file}.${randomBytes(6).toString("hex")}.new`;
  writeNew(draft, content);
  try {
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Readable only to the owner. @returns a file descriptor
 *  @throws BrokerError when the file is a link, or not writable */
export function openLog(file: string): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  try {
    return openSync(file, O_WRONLY | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), 0o600);
  } catch (cause) {
    throw new BrokerError(`cannot write to ${file}: it must be a file of this user, and no link`, { cause });
  }
}

/** Fails if the file exists, also as a link to a file that does not. */
function writeNew(file: string, content: string): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const descriptor = openSync(file, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600);
  try {
    writeFileSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined; // absent, or not accessible: no broker of this user is there
  }
}

/** The owner of a link decides where the link leads. */
function checkOwner(path: string, { uid }: Stats): void {
  const own = process.getuid?.();
  if (own === undefined || uid === own) return; // Windows has no user ids
  throw new BrokerError(
    `${path} belongs to another user (id ${uid}, this user's is ${own}), who could redirect this command to a ` +
      "different swarm: name a folder of your own with --data-folder",
  );
}

function checkMode(path: string, { mode }: Stats): void {
  if (process.getuid === undefined || (mode & WRITABLE_BY_OTHERS) === 0) return;
  throw new BrokerError(
    `other users may write to ${path} (mode ${(mode & 0o777).toString(8)}), and could redirect this command to ` +
      `a different swarm: look at the files, then run \`chmod go-w ${path}\``,
  );
}

const WRITABLE_BY_OTHERS = 0o022;

function filesOf(path: string): DataFolder {
  return {
    path,
    record: join(path, "broker.json"),
    log: join(path, "broker.log"),
    natsServerConfig: join(path, "nats-server.conf"),
    developmentConfig: join(path, "development-broker.json"),
    userKey: join(path, "user.nk"),
    jetStream: join(path, "jetstream"),
  };
}
