// Refuses replicas of a journal in files: replicas need a cluster of servers.

import { InvalidConfigError } from "../errors.ts";

const nameCluster = "name a cluster of NATS servers with --nats";

/** @throws InvalidConfigError for more than one replica of a journal in files */
export function requireNoReplicas(replicas = 1): void {
  if (replicas <= 1) return;
  const sentence = `replicas: the development broker keeps the journal in one file on this machine and cannot keep ${replicas} replicas; ${nameCluster}`;
  throw new InvalidConfigError(sentence, { field: "replicas" });
}
