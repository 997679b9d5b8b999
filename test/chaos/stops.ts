// SIGSTOP and SIGCONT of agents and clients. Agents stop for less, and for more, than the silence after which
// an agent is lost; clients for about as long. Each must return by itself. An agent need not get work at once:
// its attempts took longer because of the stop, so agents with free capacity are preferred.

import { limits } from "../../src/limits.ts";
import { type Field, StuckError } from "./field.ts";
import { openAt } from "./figures.ts";
import { monotonicMs } from "./monotonic.ts";
import type { Member } from "./swarm-processes.ts";

/** Longer than any attempt runs. */
const RECENT_MS = 1_000;
const BUSY_MS = 30_000;
/** The last heartbeat before the stop may be a second old, and the next takes time on a busy machine. */
const IN_TIME_MS = limits.agentLostMs - 3 * limits.heartbeatMs;
const CLIENT_STOPPED_MS = 1.5 * limits.agentLostMs;

/** Three sorts of stops, in turn. */
export async function stopNode(field: Field, round: number): Promise<void> {
  const stops = [stopAgentTooLong, stopAgentInTime, stopClient] as const;
  await stops[round % stops.length]?.(field);
  await field.between(500, 1_500);
}

async function stopAgentTooLong(field: Field): Promise<void> {
  const agent = await busyAgent(field);
  const { atMs } = field.mark({ figure: "agent stopped → reassigned", agent: agent.name });
  agent.signal("SIGSTOP");
  await isGivenUp(field, agent, atMs);
  await field.between(0, limits.agentLostMs / 2);
  agent.signal("SIGCONT");
  field.note(`${agent.name} was given up, and continues`);
  const hasJoined = () => happened(field, "AgentJoined", agent, atMs);
  await field.until(`${agent.name} has joined again`, hasJoined, BUSY_MS);
}

/** @throws StuckError when the agent is declared lost nevertheless */
async function stopAgentInTime(field: Field): Promise<void> {
  const agent = await busyAgent(field);
  const stoppedMs = monotonicMs();
  field.note(`${agent.name} stopped`);
  agent.signal("SIGSTOP");
  await field.between(limits.heartbeatMs, IN_TIME_MS);
  agent.signal("SIGCONT");
  const silentMs = Math.round(monotonicMs() - stoppedMs);
  field.note(`${agent.name} continues after ${silentMs} ms`);
  await field.between(limits.agentLostMs, limits.agentLostMs + 2_000);
  if (happened(field, "AgentLeft", agent, stoppedMs))
    throw new StuckError(`${agent.name} was given up, though it was stopped for ${silentMs} ms only`);
  const isDoubted = happened(field, "AgentUnresponsive", agent, stoppedMs);
  if (isDoubted && !happened(field, "AgentResponsive", agent, stoppedMs))
    throw new StuckError(`${agent.name} is not responsive again ${limits.agentLostMs} ms after it continued`);
}

async function stopClient(field: Field): Promise<void> {
  const client = field.random.pick(field.processes.clients);
  field.note(`${client.name} stopped`);
  client.signal("SIGSTOP");
  await field.between(500, CLIENT_STOPPED_MS);
  const { atMs } = field.mark({ figure: "client continued → its next accept", client: client.name });
  client.signal("SIGCONT");
  await field.accepted(atMs, { by: client });
}

/** An agent with work, as soon as one exists. */
export async function busyAgent(field: Field): Promise<Member> {
  const busy = () => field.processes.agents.filter((agent) => hasWork(field, agent));
  await field.until("an agent has work", () => busy().length > 0, BUSY_MS);
  return field.random.pick(busy());
}

function hasWork(field: Field, { name }: Member): boolean {
  return openAt(name, field.witness.eventsSince(monotonicMs() - RECENT_MS)).size > 2;
}

export async function isGivenUp(field: Field, agent: Member, sinceMs: number): Promise<void> {
  await field.until(`${agent.name} is given up`, () => happened(field, "AgentLeft", agent, sinceMs), 30_000);
}

type AgentEvent = "AgentLeft" | "AgentJoined" | "AgentUnresponsive" | "AgentResponsive";

function happened(field: Field, type: AgentEvent, { name }: Member, sinceMs: number): boolean {
  for (const { event } of field.witness.eventsSince(sinceMs))
    if (event.type === type && event.agent === name) return true;
  return false;
}
