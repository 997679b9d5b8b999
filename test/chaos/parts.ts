// The parts of `npm run chaos`: each repeats one kind of fault, round by round, on a swarm under load. A round
// restores everything: killed processes run again, cut connections are healed, tasks are accepted.

import { swarmId } from "../../src/ids.ts";
import { type Damage, damageStream, segmentStreams } from "./damage.ts";
import { type Field, type Proxied, StuckError } from "./field.ts";
import { fillServer, fullServerRoom } from "./full-server.ts";
import { monotonicMs } from "./monotonic.ts";
import type { Direction } from "./proxy.ts";
import type { ServerMember, ServersOptions } from "./servers.ts";
import { soakMinute } from "./soak.ts";
import { busyAgent, isGivenUp, stopNode } from "./stops.ts";

export interface Part {
  readonly name: string;
  readonly about: string;
  readonly servers: 1 | 3;
  /** Number of rounds in total, and per swarm before its history is judged. */
  readonly rounds: number;
  readonly roundsPerLeg: number;
  /** Each round takes a minute. */
  readonly isTimed?: true;
  /** Default: no node. */
  readonly proxied?: Proxied;
  /** The only server has little space of its own. */
  readonly room?: ServersOptions["room"];
  /** Tasks per second. Default 100. */
  readonly ratePerSecond?: number;
  readonly payloadBytes?: number;
  readonly samplesMemory?: true;
  /** A server with a damaged store may find its data only after a restart. */
  readonly restartsServersToRead?: true;
  /** Records one task in this many. Default: every task. */
  readonly recordsEvery?: number;
  /** How long ended tasks are remembered, ms: longer than clients repeat requests. Default: a day. */
  readonly rememberMs?: number;
  readonly round: (field: Field, round: number) => Promise<void>;
}

/** Each leader transfers the lead to one of two standbys. */
const STEPS_MAX = 6;
export const parts: readonly Part[] = [
  {
    name: "leader-kills",
    about: "kill -9 of the coordinator that leads",
    servers: 1,
    rounds: 200,
    roundsPerLeg: 20,
    round: killLeader,
  },
  {
    name: "segment-changes",
    about:
      "planned changes of segment; every other time kill -9 of the leader when the next segment is ready",
    servers: 1,
    rounds: 40,
    roundsPerLeg: 10,
    round: changeSegment,
  },
  {
    name: "leader-stops",
    about: "SIGSTOP of the coordinator that leads for one to three T, then SIGCONT",
    servers: 1,
    rounds: 60,
    roundsPerLeg: 12,
    round: stopLeader,
  },
  {
    name: "agent-kills",
    about: "kill -9 of an agent that has work",
    servers: 1,
    rounds: 40,
    roundsPerLeg: 8,
    round: killAgent,
  },
  {
    name: "agent-stops",
    about: "SIGSTOP of agents for less and for more than the time after which they are lost, and of clients",
    servers: 1,
    rounds: 60,
    roundsPerLeg: 9,
    round: stopNode,
  },
  {
    name: "stream-leader",
    about: "kill -9 or SIGSTOP of the server that leads the journal's stream, of three with replicas",
    servers: 3,
    rounds: 60,
    roundsPerLeg: 6,
    round: strikeStreamLeader,
  },
  {
    name: "network",
    about: "connections reset, refused, or stalled in one direction, of coordinators, agents and clients",
    servers: 1,
    rounds: 100,
    roundsPerLeg: 12,
    proxied: "everybody",
    round: cutOff,
  },
  {
    name: "network-3",
    about: "the same, and whole servers out of reach, of three with replicas",
    servers: 3,
    rounds: 60,
    roundsPerLeg: 8,
    proxied: "everybody",
    round: cutOff,
  },
  {
    name: "store-damage",
    about:
      "the server killed, its store cut short or a bit in it flipped, and started again; coordinators live on, and " +
      "every other time run on",
    servers: 1,
    rounds: 50,
    roundsPerLeg: 6,
    proxied: "tapped",
    restartsServersToRead: true,
    round: damageStore,
  },
  {
    name: "store-damage-3",
    about: "the same of one of three servers with replicas, always the same; nobody else is struck",
    servers: 3,
    rounds: 60,
    roundsPerLeg: 6,
    proxied: "tapped",
    restartsServersToRead: true,
    round: damageOneStore,
  },
  {
    name: "server-full",
    about:
      "the server's disk is full (ENOSPC), or its own max_file_store is reached, and there is room again",
    servers: 1,
    rounds: 20,
    roundsPerLeg: 4,
    proxied: "tapped",
    room: fullServerRoom,
    restartsServersToRead: true,
    round: fillServer,
  },
  {
    name: "soak",
    about: "200 tasks a second with a fault a minute; a round is a minute; memory is sampled",
    servers: 1,
    isTimed: true,
    rounds: 60,
    roundsPerLeg: Number.POSITIVE_INFINITY,
    proxied: "everybody",
    ratePerSecond: 200,
    samplesMemory: true,
    recordsEvery: 10,
    rememberMs: 2 * 60_000, // a day of ended tasks would be an hour's growth
    round: soakMinute,
  },
];

async function killLeader(field: Field): Promise<void> {
  const { member, term } = await field.leader();
  const { atMs } = field.mark({ figure: "leader killed → next accept", endedTerm: term });
  await field.killed(member, () => field.accepted(atMs, { afterTerm: term }));
  await field.between(1_000, 2_500);
}

async function changeSegment(field: Field, round: number): Promise<void> {
  const { processes } = field;
  const { segmentChanges } = processes;
  const isChanged = () => processes.segmentChanges > segmentChanges;
  await field.until("the journal continues in a new segment", isChanged, 60_000);
  if (round % 2 === 1) {
    const { segmentsReady } = processes;
    await field.until("the next segment is ready", () => processes.segmentsReady > segmentsReady, 60_000);
    await killLeader(field);
  }
  await field.accepted(monotonicMs());
}

async function stopLeader(field: Field): Promise<void> {
  const { member, term } = await field.leader();
  const { leaderTimeoutMs } = field.plan;
  const { atMs } = field.mark({ figure: "leader stopped → next accept", endedTerm: term });
  member.signal("SIGSTOP");
  await field.accepted(atMs, { afterTerm: term });
  await field.between(0, 2 * leaderTimeoutMs);
  member.signal("SIGCONT");
  await field.between(500, 1_500);
}

async function killAgent(field: Field): Promise<void> {
  const agent = await busyAgent(field);
  field.mark({ figure: "agent killed → reassigned", agent: agent.name });
  await agent.kill();
  await isGivenUp(field, agent, monotonicMs());
  await field.between(500, 1_000);
  agent.start();
  await field.between(2_000, 3_000);
}

async function strikeStreamLeader(field: Field, round: number): Promise<void> {
  const server = await streamLeader(field);
  const isKill = round % 2 === 0;
  const figure = `stream leader ${isKill ? "killed" : "stopped"} → next accept` as const;
  const { atMs } = field.mark({ figure });
  await server.kill(isKill ? "SIGKILL" : "SIGSTOP");
  try {
    await field.accepted(atMs);
    await field.between(0, 3_000);
  } finally {
    if (isKill) await server.restart();
    else await server.kill("SIGCONT");
  }
  await field.until("all servers are up to date", () => field.admin.isWhole(), 60_000);
  await field.accepted(monotonicMs());
}

async function streamLeader(field: Field): Promise<ServerMember> {
  let name: string | undefined;
  const isKnown = async () => {
    name = await field.admin.leader();
    return name !== undefined;
  };
  await field.until("the stream has a leader", isKnown, 60_000);
  const server = field.plan.servers.members.find((member) => member.name === name);
  if (server === undefined) throw new Error(`no server is called ${name}`);
  return server;
}

/** Some nodes, some of their connections, in one of four manners. */
async function cutOff(field: Field): Promise<void> {
  const { random, processes } = field;
  const manner = random.pick(["cut", "up", "down", "both"] as const);
  const isServerGone = field.plan.servers.members.length > 1 && random.chance(0.3);
  const place = random.below(field.plan.servers.members.length);
  const nodes = isServerGone ? processes.all : processes.all.filter(() => random.chance(0.3));
  const leader = processes.leader()?.member;
  const struck = nodes.length > 0 || leader === undefined ? nodes : [leader];
  const proxies = struck.flatMap(({ name }) => {
    const all = field.proxiesOf(name);
    return isServerGone ? all.slice(place, place + 1) : all;
  });
  field.note(
    `${manner} of ${isServerGone ? `server ${place + 1} for all` : struck.map(({ name }) => name).join(", ")}`,
  );
  const directions: readonly Direction[] =
    manner === "both" ? ["up", "down"] : manner === "cut" ? [] : [manner];
  for (const proxy of proxies) {
    if (manner === "cut") proxy.cut();
    for (const direction of directions) proxy.stall(direction);
  }
  await field.between(200, 3 * field.plan.leaderTimeoutMs);
  field.mark({ figure: "healed → next accept" });
  field.heal();
  await field.accepted(monotonicMs());
  await field.between(500, 1_500);
}

/** Alternates: all coordinators are stopped until the server and the driver are back, or run on. */
async function damageStore(field: Field, round: number): Promise<void> {
  const [server] = field.plan.servers.members;
  if (server === undefined) throw new Error("there is no server");
  await server.kill("SIGKILL");
  const undo = damageStoreOf(server, field);
  const start = () => startDamaged(server, field, undo);
  if (round % 2 === 0) {
    field.mark({ figure: "store damaged → next accept" });
    await field.restartedAlone(start);
  } else {
    field.mark({ figure: "store damaged, coordinators run → next accept" });
    await start();
  }
  await field.accepted(monotonicMs(), { withinMs: 90_000 });
  await field.between(2_000, 4_000);
}

/** With three servers, always damages the same server, like a bad disk. When killed, the server alternately
 *  leads the journal's stream or follows. It then leads with the damaged store. The two peers are spared: they
 *  are a majority, and the load goes on. */
async function damageOneStore(field: Field, round: number): Promise<void> {
  field.damaged ??= field.random.pick(field.plan.servers.members);
  const server = field.damaged;
  const isLeader = await letLead(field, server, round % 2 === 0);
  const who = isLeader ? "stream leader" : "follower";
  const { atMs } = field.mark({ figure: `${who} killed, its store damaged → next accept` });
  await server.kill("SIGKILL");
  const undo = damageStoreOf(server, field);
  if (field.random.chance(0.5)) await field.accepted(atMs); // by the two peers, before the third server is back
  await startDamaged(server, field, undo);
  field.note(`${server.name} runs again`);
  await field.accepted(atMs);
  await isWholeAgain(field, server);
  if (!(await letLead(field, server, true))) return;
  await field.accepted(field.mark({ figure: "damaged store leads → next accept" }).atMs);
  await field.between(2_000, 4_000);
  await field.accepted(monotonicMs());
}

/** As far as possible: a leader that steps down does not choose its successor.
 *  @returns true if the server leads the journal's stream */
async function letLead(field: Field, server: ServerMember, isToLead: boolean): Promise<boolean> {
  const leads = async () => (await streamLeader(field)) === server;
  for (let tries = 0; tries < STEPS_MAX && (await leads()) !== isToLead; tries += 1) {
    await field.admin.stepDown();
    await field.between(1_000, 1_500);
  }
  const isLeader = await leads();
  field.note(`${server.name} ${isLeader ? "leads" : "follows"}`);
  return isLeader;
}

/** With some damage (2.10.27, a flipped bit) a server never catches up with its peers. It is replaced;
 *  otherwise the next round would find it further behind. */
async function isWholeAgain(field: Field, server: ServerMember): Promise<void> {
  try {
    await field.until("all servers are up to date", () => field.admin.isWhole(), 60_000);
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    field.note(`${server.name} does not catch up with the others`);
    await field.replaceDamaged();
  }
}

/** @returns a function that undoes the damage */
function damageStoreOf(server: ServerMember, field: Field): () => void {
  const damage = field.random.pick<Damage>(["truncate", "truncate", "flip", "drop-index"]);
  const streams = segmentStreams(server.storeDir, swarmId(field.plan.swarm));
  // Usually the segment of the leader; sometimes a segment that only a restart reads.
  const stream = field.random.chance(0.75) ? streams.at(-1) : field.random.pick(streams);
  if (stream === undefined) throw new Error("the journal has no segment");
  const { sentence, undo } = damageStream(server.storeDir, stream, damage, field.random);
  field.note(sentence);
  return undo;
}

async function startDamaged(server: ServerMember, field: Field, undo: () => void): Promise<void> {
  await server.restart().catch(async () => {
    field.note("the server does not start on that: it is undone");
    undo();
    await server.restart();
  });
}
