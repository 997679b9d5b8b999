// The files of `.waggle/auth`: keys, certificates and a server's configuration. Only this user can read the folder.

import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { InvalidConfigError } from "../errors.ts";

export interface AuthFolder {
  readonly path: string;
  /** Roster of swarms and credentials, with the keys that sign. */
  readonly roster: string;
  readonly serverConfig: string;
  readonly pidFile: string;
  readonly store: string;
  readonly authorityCertificate: string;
  readonly authorityKey: string;
  readonly serverCertificate: string;
  readonly serverKey: string;
}

export function authFolderOf(dataFolder: string): AuthFolder {
  const path = join(dataFolder, "auth");
  const file = (name: string) => join(path, name);
  return {
    path,
    roster: file("auth.json"),
    serverConfig: file("nats-server.conf"),
    pidFile: file("nats-server.pid"),
    store: file("jetstream"),
    authorityCertificate: file("ca.pem"),
    authorityKey: file("ca.key"),
    serverCertificate: file("server.pem"),
    serverKey: file("server.key"),
  };
}

/** The folder to hand to the holder of a credential. */
export function holderFolderOf({ path }: AuthFolder, swarm: string, name: string): string {
  return join(path, "credentials", swarm, name);
}

/** Atomic; mode 0600. A link in the place of the file is replaced, not followed. */
export function writeSecret(file: string, content: string): void {
  const draft = `${file}.${process.pid}.new`;
  rmSync(draft, { force: true });
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const handle = openSync(draft, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    writeSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
}

export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** @throws InvalidConfigError if the folder exists, and others may read or write it, or own it */
export function requirePrivate(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  const own = process.getuid?.();
  if (found === undefined || own === undefined) return; // Windows has no user ids
  if (found.isDirectory() && found.uid === own && (found.mode & OTHERS) === 0) return;
  throw new InvalidConfigError(
    `${path} holds keys, and must belong to this user alone (mode 700): look at the files, then run ` +
      `\`chmod -R go= ${path}\`, or name a folder of your own with --data-folder`,
    { field: "dataFolder" },
  );
}

/** Rights of the group and of all others. */
const OTHERS = 0o077;

export function isThere(path: string): boolean {
  return existsSync(path);
}

/** Undefined if the file does not exist. @throws InvalidConfigError if the file cannot be read */
export function readSecret(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new InvalidConfigError(`cannot read ${file}: only its owner may read it`, { cause });
  }
}
