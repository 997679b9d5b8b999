// The swarm the settings name, for verbs that need one. They find a broker and never start one: only `up`
// and the demo do.

import { connect } from "../client/connect.ts";
import type { Swarm } from "../client/swarm.ts";
import type { VerbContext } from "./verb.ts";

/** Runs `use` with a connection and closes it. @throws UnreachableError and whatever `use` throws */
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

/** The caller closes it. Silent without a logger. @throws UnreachableError */
export async function openSwarm({
  settings,
  logger,
  signal,
}: Pick<VerbContext, "settings" | "signal"> & Partial<Pick<VerbContext, "logger">>): Promise<Swarm> {
  const { nats, natsContext, credentials, inboxPrefix, swarm, project, user, dataFolder } = settings;
  const server = { nats, natsContext, credentials, inboxPrefix, dataFolder };
  return await connect({ ...server, swarm, project, user, logger, signal });
}
