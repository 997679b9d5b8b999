// Runs once before any suite: compiles dist, which worker threads and child processes run (Node 20 cannot
// load TypeScript), and settles whether suites that need a nats-server can run at all.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findNatsServers } from "./nats-server.ts";

export function setup(): void {
  compile();
  const servers = findNatsServers();
  if (servers.length === 0 && process.env.CI === "true") {
    throw new Error(
      "no nats-server on the PATH or in WAGGLE_NATS_SERVERS. With CI=true that is a failure, because the " +
        "suites that need one would pass without having run. Install it (apt-get install nats-server).",
    );
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Type errors do not stop tsc from writing; they stop CI, not somebody in the middle of a change. */
function compile(): void {
  const tsc = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    cwd: root,
    encoding: "utf8",
  });
  if (tsc.status === 0) return;
  const complaint = `tsc -p tsconfig.build.json ended ${tsc.status}:\n${tsc.stdout}${tsc.stderr}`;
  if (process.env.CI === "true") throw new Error(complaint);
  process.stderr.write(`\n${complaint}\ndist was written all the same; what runs from it may fail.\n\n`);
}
