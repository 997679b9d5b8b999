// The facts that segments rely on, on three servers of one version. Each version that keeps replicas has a separate
// file, because most of the time passes in waiting. Only 2.15 is asked about streams sealed by their setting: a lagging
// replica of 2.10 loses records (docs/adr/0024-segments-on-real-servers.md).

import { replicatingServersFor } from "../support/nats-server.ts";
import { skipSuite } from "../support/programs.ts";
import { describeGround } from "./facts.ts";

/** @param nth index among the installed versions that keep replicas, from 0 */
export function describeThreeServers(nth: number): void {
  const suite = "the ground on three servers";
  const servers = replicatingServersFor(suite);
  const server = servers[nth];
  if (server === undefined) {
    if (servers.length > 0)
      skipSuite(suite, `${suite}: ${servers.length} version of nats-server that keeps replicas was found`);
    return;
  }
  const { path, version } = server;
  describeGround(`three servers of ${version}`, {
    binary: path,
    replicas: 3,
    keepsSealed: !version.startsWith("2.10."),
  });
}
