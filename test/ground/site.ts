// The servers of the ground tests: one nats-server, or three that replicate a stream, with a way to kill the
// stream's leader.

import { setTimeout as delay } from "node:timers/promises";
import { type Servers, startReadyServers, startServers, untilCurrent } from "../chaos/servers.ts";
import { type Said, StreamProbe } from "./stream-probe.ts";

/** A cluster is back within seconds; 2.10 took up to 8.8 s for a fail-over. */
const INSIST_MS = 45_000;

/** Of a fail-over: no suitable peers, JetStream unavailable, no leader of the cluster, the stream is not ready. */
const passingCodes: ReadonlySet<number> = new Set([10005, 10008, 10009, 10118, 10202]);

export class Site {
  readonly replicas: number;
  readonly #servers: Servers;
  readonly #probes: StreamProbe[] = [];
  #struck: Servers["members"][number] | undefined;
  #streams = 0;

  private constructor(servers: Servers, replicas: number) {
    this.#servers = servers;
    this.replicas = replicas;
  }

  static async open(binary: string, replicas: 1 | 3): Promise<Site> {
    const servers = replicas === 1 ? await startServers(binary, 1) : await startReadyServers(binary);
    return new Site(servers, replicas);
  }

  /** A name that no stream had before. */
  newName(): string {
    this.#streams += 1;
    return `G_${this.#streams}`;
  }

  async probe(stream: string): Promise<StreamProbe> {
    const probe = await StreamProbe.connect(this.#servers.urls, stream, this.replicas);
    this.#probes.push(probe);
    return probe;
  }

  /** Kills (-9) the stream's leader. A single server restarts at once; of three servers, two go on until
   *  `mend`. */
  async strike(stream: string): Promise<void> {
    const { members } = this.#servers;
    const [only] = members;
    if (this.replicas === 1) return await only?.restart();
    const leader = await this.#leader(stream);
    this.#struck = members.find(({ name }) => name === leader);
    if (this.#struck === undefined) throw new Error(`no server is called ${leader}`);
    await this.#struck.kill("SIGKILL");
  }

  /** Restarts the killed server. With `stream`, resolves when every server has the whole stream. */
  async mend(stream?: string): Promise<void> {
    await this.#struck?.restart();
    this.#struck = undefined;
    if (stream === undefined || this.replicas === 1) return;
    const probe = await this.probe(stream);
    await untilCurrent(this.#servers, async () => {
      const said = await probe.info();
      return said.kind === "done" ? (said.body.cluster?.replicas ?? []) : [];
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#probes.map((probe) => probe.close()));
    await this.#servers.stop();
  }

  async #leader(stream: string): Promise<string | undefined> {
    const probe = await this.probe(stream);
    const said = await insist(
      () => probe.info(),
      (answer) => answer.kind === "done" && !!answer.body.cluster?.leader,
    );
    return said.kind === "done" ? said.body.cluster?.leader : undefined;
  }
}

/** Asks until a server gives a definite answer: no silence, and no error of a fail-over.
 *  @param isEnough an additional condition */
export async function insist<Answer extends Said>(
  ask: () => Promise<Answer>,
  isEnough: (answer: Answer) => boolean = () => true,
): Promise<Answer> {
  const endMs = performance.now() + INSIST_MS;
  for (;;) {
    const said = await ask();
    const isFinal = said.kind === "done" || (said.kind === "refused" && !passingCodes.has(said.code));
    if (isFinal && isEnough(said)) return said;
    if (performance.now() > endMs)
      throw new Error(`no final answer within ${INSIST_MS} ms: ${JSON.stringify(said)}`);
    await delay(20);
  }
}

/** All texts of a stream. After an interruption by a fail-over, opens a new reader. */
export async function readWhole(probe: StreamProbe): Promise<string[]> {
  const endMs = performance.now() + INSIST_MS;
  for (;;) {
    try {
      return await probe.readAll();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
  }
}
