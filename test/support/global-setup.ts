// Runs once before any suite. Compiles dist, which worker threads and child processes run, because Node 20 cannot
// load TypeScript. Checks whether suites that need a nats-server can run. All temporary folders of the suites lie in
// one folder, which is removed at the end.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "../../scripts/build.ts";
import { findNatsServers } from "./nats-server.ts";

/** @returns what to call after the last suite */
export function setup(): () => void {
  compile();
  const servers = findNatsServers();
  if (servers.length === 0 && process.env.CI === "true") {
    throw new Error(
      "no nats-server on the PATH or in WAGGLE_NATS_SERVERS. With CI=true that is a failure, because the " +
        "suites that need one would pass without having run. Install it (apt-get install nats-server).",
    );
  }
  const folder = mkdtempSync(join(tmpdir(), "waggle-tests-"));
  process.env.TMPDIR = folder; // inherited by the workers
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** The compiler writes output despite type errors. Type errors stop CI, but not a developer in the middle of a change.
 */
function compile(): void {
  const { ok, printed } = build(fileURLToPath(new URL("../..", import.meta.url)));
  if (ok) return;
  const complaint = `npm run build failed:\n${printed}`;
  if (process.env.CI === "true") throw new Error(complaint);
  process.stderr.write(`\n${complaint}\ndist was written all the same; what runs from it may fail.\n\n`);
}
