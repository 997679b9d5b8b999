// What a benchmark needs before it starts: compiled code, the peers' packages and drivers, a nats-server.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findNatsServers } from "../../test/support/nats-server.ts";

export interface PrepareOptions {
  /** False: only the drivers that need no packages of bench/peers will be used (append, bare, inbox, waggle). */
  readonly withPackages?: boolean;
}

/** Installs the packages of bench/peers once, and compiles the drivers. */
export function preparePeers(root: string, { withPackages = true }: PrepareOptions = {}): void {
  const peersFolder = join(root, "bench", "peers");
  if (process.platform !== "linux")
    throw new Error("npm run bench needs Linux: it reads CPU time from /proc");
  if (!existsSync(join(root, "dist", "src", "index.js")))
    throw new Error("dist is missing: run npm run build");
  if (withPackages && !existsSync(join(peersFolder, "node_modules"))) {
    console.error("installing the packages of bench/peers (npm ci)");
    const { status } = spawnSync("npm", ["ci", "--silent"], {
      cwd: peersFolder,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (status !== 0) console.error("! npm ci failed: peers without their packages are left out");
  }
  // Emits even where a package is missing.
  const { stdout } = spawnSync("npx", ["tsc", "-p", peersFolder], { cwd: root, encoding: "utf8" });
  if (withPackages && stdout.trim() !== "") console.error(`! ${stdout.trim()}`);
}

/** The newest server among that on the PATH and those of WAGGLE_NATS_SERVERS. */
export function newestNatsServer(): string | undefined {
  const servers = findNatsServers().toSorted((a, b) =>
    b.version.localeCompare(a.version, "en", { numeric: true }),
  );
  return servers[0]?.path;
}

/** The measured code. Pages print version and date; files of results also keep the commit. */
export interface CodeName {
  readonly version: string;
  /** Day of the commit, as in 2026-11-27. */
  readonly codeDate: string;
  /** As `git describe` names it. */
  readonly commit: string;
}

/** @param folder a checkout */
export function codeNameOf(folder: string): CodeName {
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const git = (...words: readonly string[]) => {
    try {
      return execFileSync("git", ["-C", folder, ...words], { encoding: "utf8" }).trim();
    } catch {
      return "without git";
    }
  };
  return {
    version,
    codeDate: git("log", "-1", "--format=%cs"),
    commit: git("describe", "--always", "--dirty"),
  };
}
