// The facts that segments stand on, on three servers of one version. Each version has a file of its own, for most of
// the time passes in waiting. A stream sealed by its setting is asked about on 2.15 alone: 2.9 does not restart with
// one, and a lagging replica of 2.10 loses records by it (docs/adr/0024-segments-on-real-servers.md).

import { natsServersFor } from "../support/nats-server.ts";
import { skipSuite } from "../support/programs.ts";
import { describeGround } from "./facts.ts";

/** @param nth of the versions that are found, oldest first, from 0 */
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
