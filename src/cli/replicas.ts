// What is said where the journal cannot have as many replicas as were asked for: they need a cluster of servers.

import { InvalidConfigError } from "../errors.ts";
import { StreamApiError } from "../journal/stream/api.ts";

/** What JetStream calls a server that is no member of a cluster, asked for a stream with replicas. */
const NOT_CLUSTERED = 10074;

const nameCluster = "name a cluster of NATS servers with --nats";

/** @throws InvalidConfigError where more than one replica is asked for of a journal in files */
export function requireNoReplicas(replicas = 1): void {
  if (replicas <= 1) return;
  const sentence = `replicas: the development broker keeps the journal in a file of this machine, so there are no ${replicas} copies; ${nameCluster}`;
  throw new InvalidConfigError(sentence, { field: "replicas" });
}

/** In place of an error that the server's refusal is the cause of, one that says only that. */
export function replicasError(error: unknown, replicas = 1): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof StreamApiError) || cause.errCode !== NOT_CLUSTERED) return error;
  const sentence = `replicas: this NATS server is not in a cluster, so the journal cannot be kept on ${replicas} servers; leave --replicas out, or ${nameCluster}`;
  return new InvalidConfigError(sentence, { field: "replicas", cause: error });
}
