// An agent of the swarm that the settings name, in this process: what `agent` and the demo run. It needs no
// client: the agent has a connection of its own.

import type { Logger } from "pino";
import { type Agent, type AgentOptions, startAgent } from "../agent/agent.ts";
import { findBroker } from "../broker/find-broker.ts";
import type { Settings } from "../config/settings.ts";
import { swarmId } from "../ids.ts";

export interface JoinDeps {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Resolves when a leader has accepted it; waits for one if there is none.
 *  @throws UnreachableError when there is no server; InvalidConfigError; the reason of `options.signal` */
export async function joinAgent(options: AgentOptions, { settings, logger, env }: JoinDeps): Promise<Agent> {
  const { address, inboxPrefix } = await findBroker({ mode: "find-only", ...settings, env });
  const server = { ...address, ...(inboxPrefix === undefined ? {} : { inboxPrefix }) };
  const connection = { kind: "server", server } as const;
  return await startAgent(options, { swarm: swarmId(settings.swarm), connection, logger });
}
