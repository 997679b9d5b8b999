// Joins an agent to the swarm of the settings, in this process, for `agent` and the demo. The agent has its own
// connection and needs no client.

import type { Logger } from "pino";
import { type Agent, type AgentOptions, startAgent } from "../agent/agent.ts";
import { findBroker } from "../broker/find-broker.ts";
import type { Settings } from "../config/settings.ts";
import { swarmId } from "../ids.ts";
import { openTelemetry } from "../tracing/open-telemetry.ts";

export interface JoinDeps {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Resolves when a leader has accepted the agent; waits while there is no leader.
 *  @throws UnreachableError without a server; InvalidConfigError; the reason of `options.signal` */
export async function joinAgent(options: AgentOptions, { settings, logger, env }: JoinDeps): Promise<Agent> {
  const { address, inboxPrefix } = await findBroker({ mode: "find-only", ...settings, env });
  const server = { ...address, ...(inboxPrefix === undefined ? {} : { inboxPrefix }) };
  const connection = { kind: "server", server } as const;
  const tracing = await openTelemetry();
  const deps = { swarm: swarmId(settings.swarm), connection, logger };
  return await startAgent(options, tracing === undefined ? deps : { ...deps, tracing });
}
