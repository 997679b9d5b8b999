// The processes of a swarm under test: coordinators, clients and agents, each restartable after a kill. Also
// tells the leader, as reported by the coordinators.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { swarmId } from "../../src/ids.ts";
import { decode } from "../../src/protocol/codec.ts";
import { coordinatorHeartbeatSchema } from "../../src/protocol/schemas.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { historyFile } from "./history-file.ts";
import { inUseFileOf } from "./memory.ts";
import { monotonicMs } from "./monotonic.ts";
import type { ClientOrders, ClientReport, ProcessStart } from "./processes/start.ts";
import type { Reaper } from "./reaper.ts";
import { within } from "./within.ts";

const launcher = fileURLToPath(new URL("../../bin/waggle.js", import.meta.url));
const probe = new URL("./processes/in-use-probe.mjs", import.meta.url).href;
const LOG_LINES_KEPT = 200;
/** A base is due after a second of load, without the wait for the server's sync. So the journal changes its segment
 *  every few seconds, and faults meet such changes. */
const pace = { WAGGLE_BASE_EVENTS: "400", WAGGLE_BASE_SYNC: "1ms" };
const SEGMENT_READY = "the next segment is ready, with a base";
const SEGMENT_CHANGED = "the journal continues in a new segment";
/** From SIGKILL to the end of the process: only a stuck machine takes longer. */
const KILL_MS = 30_000;

/** A process under one name, over its restarts. */
export class Member {
  readonly name: string;
  readonly #spawn: () => ChildProcess;
  readonly #reaper: Reaper;
  readonly #onSaid: (line: string) => void;
  readonly log: string[] = [];
  child: ChildProcess | undefined;

  constructor(
    name: string,
    reaper: Reaper,
    start: () => ChildProcess,
    onSaid: (line: string) => void = () => undefined,
  ) {
    this.name = name;
    this.#reaper = reaper;
    this.#spawn = start;
    this.#onSaid = onSaid;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Does not outlive the driver. Leads a process group, so that Ctrl-C reaches only the driver. */
  start(): ChildProcess {
    const child = this.#spawn();
    this.child = child;
    this.#reaper.minds(child.pid);
    const killWithUs = () => child.kill("SIGKILL");
    process.once("exit", killWithUs);
    child.once("exit", () => process.off("exit", killWithUs));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8");
      stream?.on("data", (text: string) => this.#said(text));
    }
    return child;
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  async kill(): Promise<void> {
    if (this.child === undefined || !this.isRunning) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await within(KILL_MS, `${this.name} ends when it is killed`, ended);
  }

  /** @param ms until the kill */
  async endWithin(ms: number): Promise<void> {
    if (this.child === undefined || !this.isRunning) return;
    const ended = once(this.child, "exit");
    const timer = setTimeout(() => this.signal("SIGKILL"), ms);
    await within(ms + KILL_MS, `${this.name} ends`, ended);
    clearTimeout(timer);
  }

  order(order: ClientOrders): void {
    if (this.child?.connected === true) this.child.send(order);
  }

  #said(text: string): void {
    for (const line of text.split("\n")) {
      if (line === "") continue;
      this.log.push(line);
      this.#onSaid(line);
    }
    if (this.log.length > 2 * LOG_LINES_KEPT) this.log.splice(0, this.log.length - LOG_LINES_KEPT);
  }
}

export interface SwarmPlan {
  readonly swarm: string;
  readonly folder: string;
  readonly seed: string;
  /** Server addresses of each node. */
  readonly urlsFor: (node: string) => readonly string[];
  readonly coordinators: number;
  readonly agents: number;
  readonly clients: number;
  readonly ratePerSecond: number;
  readonly payloadBytes: number;
  readonly recordsEvery: number;
  /** True to record the nodes' memory use once per minute. */
  readonly samplesMemory: boolean;
  /** In the form of the flag: `1s`. */
  readonly leaderTimeout: string;
  readonly replicas: number;
  readonly reaper: Reaper;
}

export interface ClientCounts {
  readonly accepted: number;
  readonly ended: number;
  readonly unknown: number;
  readonly refused: number;
  readonly open: number;
}

export class SwarmProcesses {
  readonly coordinators: readonly Member[];
  readonly agents: readonly Member[];
  readonly clients: readonly Member[];
  /** Notable messages of nodes: losses, fenced agents. */
  readonly troubles: string[] = [];
  readonly #plan: SwarmPlan;
  readonly #coordinatorById = new Map<string, Member>();
  readonly #countsByClient = new Map<string, ClientCounts>();
  /** Segments that were ready for a planned change, and the changes. */
  segmentsReady = 0;
  segmentChanges = 0;
  #leader: { readonly id: string; readonly term: number; readonly heardMs: number } | undefined;

  constructor(plan: SwarmPlan, transport: Transport) {
    this.#plan = plan;
    const named = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`);
    this.coordinators = named("coordinator", plan.coordinators).map((name) => this.#coordinator(name));
    this.agents = named("agent", plan.agents).map((name) => this.#node(name, "agent-main", 0));
    const share = plan.ratePerSecond / Math.max(1, plan.clients);
    this.clients = named("client", plan.clients).map((name) => this.#node(name, "client-main", share));
    transport.subscribe(subjectsOf(swarmId(plan.swarm)).coordinator, ({ data }) => this.#heartbeat(data));
  }

  get all(): readonly Member[] {
    return [...this.coordinators, ...this.agents, ...this.clients];
  }

  /** The latest coordinator to report the lead in the highest term, if it lives and reported within `withinMs`. */
  leader(withinMs = 2_000): { readonly member: Member; readonly term: number } | undefined {
    if (this.#leader === undefined || monotonicMs() - this.#leader.heardMs > withinMs) return undefined;
    const member = this.#coordinatorById.get(this.#leader.id);
    return member?.isRunning === true ? { member, term: this.#leader.term } : undefined;
  }

  get counts(): ClientCounts {
    const sum = { accepted: 0, ended: 0, unknown: 0, refused: 0, open: 0 };
    for (const counts of this.#countsByClient.values())
      for (const key of Object.keys(sum) as (keyof ClientCounts)[]) sum[key] += counts[key];
    return sum;
  }

  async end(): Promise<void> {
    for (const member of [...this.clients, ...this.agents]) {
      member.signal("SIGCONT");
      member.order({ type: "end" });
    }
    await Promise.all([...this.clients, ...this.agents].map((member) => member.endWithin(2_000)));
    for (const member of this.coordinators) {
      member.signal("SIGCONT");
      member.signal("SIGTERM");
    }
    await Promise.all(this.coordinators.map((member) => member.endWithin(5_000)));
  }

  #coordinator(name: string): Member {
    const { swarm, leaderTimeout, replicas, urlsFor, reaper } = this.#plan;
    const member: Member = new Member(
      name,
      reaper,
      () => {
        const flags = ["--nats", urlsFor(name).join(","), "--swarm", swarm, "--json"];
        const more = ["--leader-timeout", leaderTimeout, "--replicas", String(replicas)];
        return spawn(
          process.execPath,
          [...this.#probe, launcher, "up", "--no-dashboard", ...flags, ...more],
          {
            cwd: this.#plan.folder,
            env: { ...this.#env(name), ...pace },
            stdio: ["ignore", "pipe", "pipe"],
            detached: true,
          },
        );
      },
      (line) => this.#noteCoordinator(member, line),
    );
    return member;
  }

  /** Each restart of a coordinator has a new name. */
  #noteCoordinator(member: Member, line: string): void {
    if (!line.startsWith("{")) return;
    try {
      const said = JSON.parse(line) as { type?: string; coordinator?: string; msg?: string };
      if (said.msg === SEGMENT_READY) this.segmentsReady += 1;
      if (said.msg === SEGMENT_CHANGED) this.segmentChanges += 1;
      if (said.type === "journal" && said.coordinator !== undefined)
        this.#coordinatorById.set(said.coordinator, member);
    } catch {
      // half a line: a process was killed while writing
    }
  }

  #node(name: string, main: string, ratePerSecond: number): Member {
    const { swarm, folder, seed, urlsFor, payloadBytes, recordsEvery, reaper } = this.#plan;
    return new Member(name, reaper, () => {
      const start: ProcessStart = {
        node: name,
        urls: urlsFor(name),
        swarm,
        seed,
        historyFile: historyFile(folder, name),
        ratePerSecond,
        openMax: 2_000,
        payloadBytes,
        recordsEvery,
      };
      const file = fileURLToPath(new URL(`./processes/${main}.ts`, import.meta.url));
      const execArgv = [...this.#probe, "--import", "tsx"];
      const options = { execArgv, env: this.#env(name), silent: true, detached: true };
      const child = fork(file, [JSON.stringify(start)], options);
      child.on("message", (report: ClientReport) => this.#heard(name, report));
      return child;
    });
  }

  get #probe(): readonly string[] {
    return this.#plan.samplesMemory ? ["--import", probe] : [];
  }

  #env(node: string): NodeJS.ProcessEnv {
    if (!this.#plan.samplesMemory) return process.env;
    return { ...process.env, IN_USE_FILE: inUseFileOf(this.#plan.folder, node) };
  }

  #heard(name: string, report: ClientReport): void {
    if (report.type === "trouble") this.troubles.push(`${name}: ${report.sentence}`);
    if (report.type === "counts") this.#countsByClient.set(name, report);
  }

  #heartbeat(bytes: Uint8Array): void {
    const heartbeat = decode(bytes, coordinatorHeartbeatSchema);
    if (!heartbeat.ok || !heartbeat.value.leading || heartbeat.value.term < (this.#leader?.term ?? 0)) return;
    this.#leader = { id: heartbeat.value.id, term: heartbeat.value.term, heardMs: monotonicMs() };
  }
}
