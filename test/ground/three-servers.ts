// The facts that segments rely on, on three servers of one version. Each version has a separate file, because
// most of the time passes in waiting. Only 2.15 is asked about streams sealed by their setting: 2.9 does not
// restart with a sealed stream, and a lagging replica of 2.10 loses records
// (docs/adr/0024-segments-on-real-servers.md).

import { natsServersFor } from "../support/nats-server.ts";
import { skipSuite } from "../support/programs.ts";
import { describeGround } from "./facts.ts";

/** @param nth index of the installed version, oldest first, from 0 */
export function describeThreeServers(nth: number): void {
  const suite = "the ground on three servers";
  const servers = natsServersFor(suite);
  const server = servers[nth];
  if (server === undefined) {
    if (servers.length > 0)
      skipSuite(suite, `${suite}: ${servers.length} versions of nats-server were found`);
    return;
  }
  const { path, version } = server;
  describeGround(`three servers of ${version}`, {
    binary: path,
    replicas: 3,
    keepsSealed: !/^2\.(9|10)\./.test(version),
  });
}
