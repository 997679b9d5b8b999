// One swarm on its own servers under load, with the means to cause faults: the object of a part's rounds. Knows
// the leader and the observed journal, and waits for the conditions of a round.

import { mkdirSync, rmSync } from "node:fs";
import { connect } from "../../src/client/connect.ts";
import { swarmId } from "../../src/ids.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { Observation } from "../../src/sim/history/observation.ts";
import { SeededRandom } from "../../src/sim/random.ts";
import { connectNats } from "../../src/transport/nats.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { committedLog } from "./committed-log.ts";
import type { Fault } from "./figures.ts";
import { readHistory } from "./history-file.ts";
import { monotonicMs } from "./monotonic.ts";
import { type Target, TcpProxy } from "./proxy.ts";
import { PublishTap } from "./publish-tap.ts";
import { withContents } from "./published-contents.ts";
import type { Reaper } from "./reaper.ts";
import type { ServerMember, Servers } from "./servers.ts";
import { StreamAdmin } from "./stream-admin.ts";
import { StreamBallast } from "./stream-ballast.ts";
import { type Member, SwarmProcesses } from "./swarm-processes.ts";
import { within } from "./within.ts";
import { readLog, type SeenEvent, Witness } from "./witness.ts";

const POLL_MS = 20;
const RESTART_MS = 1_000;
const WARM_UP_MS = 2_000;
const KEPT_MS = 5 * 60_000;
/** For work that ends within seconds, or never. */
const CLOSE_MS = 60_000;
/** For all records of a leg, read one by one where the log has gaps. */
const READ_LOG_MS = 5 * 60_000;

/** `tapped`: only coordinators, with a record of everything they send to the journal. */
export type Proxied = "nobody" | "everybody" | "tapped";

export interface FieldPlan {
  readonly swarm: string;
  readonly folder: string;
  readonly seed: string;
  readonly servers: Servers;
  readonly leaderTimeoutMs: number;
  readonly coordinators: number;
  readonly agents: number;
  readonly clients: number;
  readonly ratePerSecond: number;
  readonly payloadBytes: number;
  /** Records one task in this many. Unless every task is recorded, the witness keeps minutes instead of
   *  everything. */
  readonly recordsEvery: number;
  /** Nodes with a separate proxy before each server. */
  readonly proxied: Proxied;
  /** True to record the nodes' memory use once per minute. */
  readonly samplesMemory: boolean;
  /** How long ended tasks are remembered, ms. Default: a day. */
  readonly rememberMs?: number;
  readonly reaper: Reaper;
}

export class Field {
  readonly plan: FieldPlan;
  readonly random: SeededRandom;
  readonly processes: SwarmProcesses;
  readonly admin: StreamAdmin;
  readonly ballast: StreamBallast;
  readonly faults: Fault[] = [];
  /** The server with the damaged store, of three servers. */
  damaged: ServerMember | undefined;
  /** The actions in order, for readers of a failure. */
  readonly log: string[] = [];
  readonly #transport: Transport;
  readonly #proxiesByNode: ReadonlyMap<string, readonly TcpProxy[]>;
  /** Messages of coordinators to the journal through tapped proxies. */
  readonly #tapped: readonly Uint8Array[];
  readonly #startedMs = monotonicMs();
  readonly #supervised = new Set<Member>();
  #witness: Witness | undefined;
  #supervising: NodeJS.Timeout | undefined;

  private constructor(plan: FieldPlan, transport: Transport, { proxiesByNode, tapped }: Proxies) {
    this.plan = plan;
    this.#tapped = tapped;
    this.random = new SeededRandom(plan.seed);
    this.#transport = transport;
    this.#proxiesByNode = proxiesByNode;
    this.admin = new StreamAdmin(transport, swarmId(plan.swarm));
    this.ballast = new StreamBallast(transport, swarmId(plan.swarm));
    const { leaderTimeoutMs, servers, ...rest } = plan;
    const urlsFor = (node: string) => proxiesByNode.get(node)?.map(({ url }) => url) ?? servers.urls;
    const leaderTimeout = `${leaderTimeoutMs}ms`;
    const replicas = servers.members.length;
    this.processes = new SwarmProcesses({ ...rest, leaderTimeout, replicas, urlsFor }, transport);
  }

  /** Resolves when a coordinator leads, agents serve and tasks are accepted. @throws NotBegunError */
  static async open(plan: FieldPlan): Promise<Field> {
    mkdirSync(plan.folder, { recursive: true });
    const transport = await connectNats({ urls: plan.servers.urls, name: "chaos" });
    const field = new Field(plan, transport, await proxiesFor(plan));
    try {
      await field.#start();
      return field;
    } catch (cause) {
      await field.close();
      throw new NotBegunError(`the swarm did not begin: ${String(cause)}`, { cause });
    }
  }

  async #start(): Promise<void> {
    const [first, ...others] = this.processes.coordinators;
    first?.start();
    await this.until("a coordinator leads", () => this.processes.leader() !== undefined, 40_000);
    await this.#setPolicy();
    this.#witness = new Witness({
      transport: this.#transport,
      urls: this.plan.servers.urls,
      swarm: this.plan.swarm,
      keptMs: this.plan.recordsEvery === 1 ? Number.POSITIVE_INFINITY : KEPT_MS,
    });
    for (const member of [...others, ...this.processes.agents, ...this.processes.clients]) member.start();
    for (const member of this.processes.coordinators) this.#supervised.add(member);
    this.#supervising = setInterval(() => this.#supervise(), RESTART_MS);
    await this.accepted(monotonicMs());
    await pause(WARM_UP_MS); // until every node has heard of the leader
  }

  async #setPolicy(): Promise<void> {
    const { swarm, rememberMs } = this.plan;
    if (rememberMs === undefined) return;
    const operator = await connect({ transport: this.#transport, swarm });
    await operator.setPolicy({ rememberMs });
    await operator.close();
  }

  get witness(): Witness {
    if (this.#witness === undefined) throw new Error("the field is not open");
    return this.#witness;
  }

  note(sentence: string): void {
    this.log.push(`${((monotonicMs() - this.#startedMs) / 1_000).toFixed(3)} s  ${sentence}`);
  }

  /** Begins a measured fault. */
  mark(fault: Omit<Fault, "atMs">): Fault {
    const marked = { ...fault, atMs: monotonicMs() };
    this.faults.push(marked);
    this.note(fault.figure);
    return marked;
  }

  /** The leader, as soon as a coordinator leads. */
  async leader(): Promise<{ readonly member: Member; readonly term: number }> {
    const isThere = () => this.processes.leader() !== undefined;
    await this.until("a coordinator leads", isThere, 60_000);
    return this.processes.leader() as { member: Member; term: number };
  }

  /** Restarts a killed member, in place of a supervisor. */
  async killed(member: Member, whileDown: () => Promise<unknown>): Promise<void> {
    this.#supervised.delete(member);
    await member.kill();
    try {
      await whileDown();
    } finally {
      member.start();
      this.#supervised.add(member);
    }
  }

  /** Restarts servers while all coordinators are stopped (SIGSTOP keeps their state), until the witness hears
   *  the servers. Clients and agents connect first. */
  async restartedAlone(restart: () => Promise<void>): Promise<void> {
    for (const member of this.processes.coordinators) member.signal("SIGSTOP");
    try {
      await restart();
      await this.until("the driver is connected", () => this.#transport.status() === "connected", 30_000);
      await within(CLOSE_MS, "the server hears the driver", this.#transport.flush());
    } finally {
      for (const member of this.processes.coordinators) member.signal("SIGCONT");
    }
  }

  /** Restarts the damaged server of three with an empty store, which the peers fill, as after a replacement by
   *  an operator. */
  async replaceDamaged(): Promise<void> {
    const server = this.damaged;
    if (server === undefined) return;
    this.note(`${server.name} is started with an empty store`);
    await server.kill("SIGKILL");
    rmSync(server.storeDir, { recursive: true });
    await server.restart();
    await this.until("all servers are up to date", () => this.admin.isWhole(), 60_000);
  }

  /** Waits until a task was accepted after a moment, in a later term than the given, according to the journal.
   *  With a client, only a task of the client counts. */
  async accepted(sinceMs: number, { afterTerm = 0, withinMs = 60_000, by }: Accepting = {}): Promise<void> {
    const prefix = by === undefined ? "" : `${by.name}-`;
    const isSo = () => {
      for (const { event, term } of this.witness.eventsSince(sinceMs))
        if (event.type === "TaskSubmitted" && term > afterTerm && event.task.id.startsWith(prefix))
          return true;
      return false;
    };
    await this.until("a task is accepted", isSo, withinMs);
  }

  /** @throws Error that names the missing condition */
  async until(what: string, isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
    const giveUpMs = monotonicMs() + withinMs;
    while (!(await isSo())) {
      if (monotonicMs() > giveUpMs)
        throw new StuckError(`after ${Math.round(withinMs / 1_000)} s it is still not so that ${what}`);
      await pause(POLL_MS);
    }
  }

  async between(fromMs: number, toMs: number): Promise<void> {
    await pause(fromMs + this.random.fraction() * (toMs - fromMs));
  }

  /** All proxies between a node and the servers. */
  proxiesOf(node: string): readonly TcpProxy[] {
    return this.#proxiesByNode.get(node) ?? [];
  }

  heal(): void {
    for (const proxy of [...this.#proxiesByNode.values()].flat()) proxy.heal();
    for (const member of this.processes.all) member.signal("SIGCONT");
    const { mounting } = this.plan.servers;
    if (mounting?.kind === "mounted") mounting.disk.makeRoom();
  }

  /** Heals everything, stops new submissions, and gives open tasks time to end. */
  async quiesce(withinMs: number): Promise<void> {
    this.heal();
    if (this.plan.servers.mounting !== undefined) await this.ballast.remove();
    for (const client of this.processes.clients) client.order({ type: "stop-submitting" });
    await pause(500);
    await this.until("no task is open", () => this.processes.counts.open === 0, withinMs);
  }

  /** All observations and the journal's content. Ends clients and agents, so that their records are complete. */
  async collect(): Promise<{
    readonly observations: readonly Observation[];
    readonly seen: readonly SeenEvent[];
    readonly line: ReturnType<typeof committedLog>;
  }> {
    const { urls, members } = this.plan.servers;
    const revive = async () => {
      this.note(
        "the server ended as the journal was read: it is started again, and the journal read one by one",
      );
      await Promise.all(members.map((member) => member.restart()));
    };
    const opened = new Set(this.witness.opened.map(({ segment }) => segment));
    const reading = readLog({ urls, swarm: this.plan.swarm, revive, opened });
    const log = await within(READ_LOG_MS, "the journal is read", reading);
    const seen = [...this.witness.eventsSince(Number.NEGATIVE_INFINITY)];
    const sent = [...this.witness.sent, ...this.#tapped];
    const observations = readHistory(this.plan.folder);
    const publishedByIdx = withContents(this.witness.publishedByIdx, observations);
    const unseen = { opened: this.witness.opened, publishedByIdx };
    return { observations, seen, line: committedLog([...this.witness.seen, ...log], sent, unseen) };
  }

  async endNodes(): Promise<void> {
    clearInterval(this.#supervising);
    await this.processes.end();
  }

  async close(): Promise<void> {
    clearInterval(this.#supervising);
    await this.processes.end();
    if (this.#witness !== undefined) await within(CLOSE_MS, "the witness ends", this.#witness.stop());
    await this.admin.remove();
    await within(CLOSE_MS, "the driver's connection is closed", this.#transport.close());
    const proxies = [...this.#proxiesByNode.values()].flat().map((proxy) => proxy.close());
    await within(CLOSE_MS, "the proxies are closed", Promise.all(proxies));
  }

  /** Restarts ended coordinators, like a supervisor. */
  #supervise(): void {
    for (const member of this.#supervised) {
      if (member.isRunning) continue;
      this.note(
        `${member.name} had ended and is started again: ${member.log.slice(-3).join(" | ").slice(0, 600)}`,
      );
      member.start();
    }
  }
}

interface Accepting {
  readonly afterTerm?: number;
  readonly withinMs?: number;
  readonly by?: Member;
}

/** The swarm did not come back, or gave up: a finding, not a fault of the tool. */
export class StuckError extends Error {
  override readonly name = "StuckError";
}

/** Leftovers of earlier legs on the servers prevent a start. */
export class NotBegunError extends Error {
  override readonly name = "NotBegunError";
}

interface Proxies {
  readonly proxiesByNode: ReadonlyMap<string, readonly TcpProxy[]>;
  readonly tapped: readonly Uint8Array[];
}

const proxiedNodes = {
  nobody: [],
  everybody: ["coordinator", "agent", "client"],
  tapped: ["coordinator"],
} as const;

async function proxiesFor(plan: FieldPlan): Promise<Proxies> {
  const ofSegments = subjectsOf(swarmId(plan.swarm)).segment("*").slice(0, -1);
  const isRecord = (subject: string) => subject.startsWith(ofSegments);
  const tapped: Uint8Array[] = [];
  const tap = () => new PublishTap(isRecord, (payload) => tapped.push(payload));
  const nodes = proxiedNodes[plan.proxied].flatMap((prefix) =>
    Array.from({ length: plan[`${prefix}s`] }, (_, n) => `${prefix}${n + 1}`),
  );
  const proxiesByNode = new Map<string, readonly TcpProxy[]>();
  for (const node of nodes) {
    const targets = plan.servers.members.map(({ port }) => ({ host: "127.0.0.1", port }));
    const start = (target: Target) => TcpProxy.start(target, plan.proxied === "tapped" ? tap : undefined);
    proxiesByNode.set(node, await Promise.all(targets.map(start)));
  }
  return { proxiesByNode, tapped };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
