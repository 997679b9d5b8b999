// Connects verbs to the swarm of the settings. These verbs find a broker and never start one: only `up` and the demo
// do.

import { connect } from "../client/connect.ts";
import type { Swarm } from "../client/swarm.ts";
import type { VerbContext } from "./verb.ts";

/** Runs `use` with a connection, then closes the connection. @throws UnreachableError, and the errors of `use` */
export async function withSwarm<Value>(
  context: VerbContext,
  use: (swarm: Swarm) => Promise<Value>,
): Promise<Value> {
  const swarm = await openSwarm(context);
  try {
    return await use(swarm);
  } finally {
    await swarm.close();
  }
}

/** The caller closes the swarm. Silent without a logger. @throws UnreachableError */
export async function openSwarm({
  settings,
  logger,
  signal,
}: Pick<VerbContext, "settings" | "signal"> & Partial<Pick<VerbContext, "logger">>): Promise<Swarm> {
  const { nats, natsContext, credentials, inboxPrefix, insecure, dataFolder } = settings;
  const server = { nats, natsContext, credentials, inboxPrefix, insecure, dataFolder };
  const { swarm, project, projectOnly, queriesOnly, user } = settings;
  return await connect({ ...server, swarm, project, projectOnly, queriesOnly, user, logger, signal });
}
