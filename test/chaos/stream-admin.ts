// The nemesis' requests to JetStream: the leader of the newest segment's stream, the state of replicas,
// deletion of streams.

import type { SwarmId } from "../../src/ids.ts";
import { segmentNumberIn, streamNameOf } from "../../src/journal/stream/settings.ts";
import { encode } from "../../src/protocol/codec.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { isCurrent, type Replica } from "./servers.ts";

const ASK_MS = 2_000;

interface StreamAnswer {
  readonly error?: { readonly description: string };
  readonly streams?: readonly string[] | null;
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly Replica[];
  };
}

export class StreamAdmin {
  readonly #transport: Transport;
  readonly #swarm: SwarmId;

  constructor(transport: Transport, swarm: SwarmId) {
    this.#transport = transport;
    this.#swarm = swarm;
  }

  /** The leader's name; undefined without a leader or an answering server. */
  async leader(): Promise<string | undefined> {
    const newest = (await this.#numbers()).at(-1);
    const leader = newest === undefined ? "" : ((await this.#ask("INFO", newest))?.cluster?.leader ?? "");
    return leader === "" ? undefined : leader;
  }

  /** True if each segment has a leader, and all replicas are up to date. */
  async isWhole(): Promise<boolean> {
    const numbers = await this.#numbers();
    const clusters = await Promise.all(
      numbers.map(async (number) => (await this.#ask("INFO", number))?.cluster),
    );
    return numbers.length > 0 && clusters.every(isUpToDate);
  }

  /** A replica takes the lead, if any. */
  async stepDown(): Promise<void> {
    const newest = (await this.#numbers()).at(-1);
    if (newest !== undefined) await this.#ask("LEADER.STEPDOWN", newest);
  }

  /** Succeeds without a stream as well. */
  async remove(): Promise<void> {
    for (const number of await this.#numbers()) await this.#ask("DELETE", number);
  }

  /** The stream of the segment that the leader writes. */
  async removeNewest(): Promise<void> {
    const newest = (await this.#numbers()).at(-1);
    if (newest !== undefined) await this.#ask("DELETE", newest);
  }

  /** Ascending; empty when no server answers. */
  async #numbers(): Promise<number[]> {
    const answer = await this.#request("NAMES", { subject: subjectsOf(this.#swarm).segment("*") });
    const numbers = (answer?.streams ?? []).flatMap((stream) => segmentNumberIn(stream, this.#swarm) ?? []);
    return numbers.sort((one, other) => one - other);
  }

  async #ask(verb: string, number: number): Promise<StreamAnswer | undefined> {
    return await this.#request(`${verb}.${streamNameOf({ swarm: this.#swarm, number })}`);
  }

  async #request(verb: string, body?: unknown): Promise<StreamAnswer | undefined> {
    const bytes = body === undefined ? new Uint8Array() : encode(body);
    const outcome = await this.#transport.request(`$JS.API.STREAM.${verb}`, bytes, { timeoutMs: ASK_MS });
    if (outcome.kind !== "answered") return undefined;
    return JSON.parse(Buffer.from(outcome.data).toString()) as StreamAnswer;
  }
}

function isUpToDate(cluster: StreamAnswer["cluster"]): boolean {
  return (cluster?.leader ?? "") !== "" && (cluster?.replicas ?? []).every(isCurrent);
}
