// Finds a usable nats-server on the PATH.

import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

export interface NatsBinary {
  readonly path: string;
  /** Without the `v`. */
  readonly version: string;
}

/** Oldest server that the tests run against. */
export const NATS_SERVER_VERSION_MIN = "2.9.10";

/** The first nats-server on the PATH, as in a shell; undefined when absent or not runnable. */
export async function findNatsBinary(pathVariable: string | undefined): Promise<NatsBinary | undefined> {
  const folders = (pathVariable ?? "").split(delimiter).filter((folder) => folder !== "");
  for (const path of folders.map((folder) => join(folder, "nats-server"))) {
    if (await isExecutable(path)) return await withVersion(path);
  }
  return undefined;
}

export function isRecentEnough({ version }: Pick<NatsBinary, "version">): boolean {
  return version.localeCompare(NATS_SERVER_VERSION_MIN, "en", { numeric: true }) >= 0;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent, or not executable for this user
  }
}

async function withVersion(path: string): Promise<NatsBinary | undefined> {
  try {
    const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: VERSION_MS });
    const version = /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
    return version === undefined ? undefined : { path, version };
  } catch {
    return undefined; // does not run here: as good as absent
  }
}

const VERSION_MS = 10_000;
