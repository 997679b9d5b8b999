// What the nemesis asks of JetStream itself: who leads the journal's stream, that it be created with little room or
// given more, that it be gone.

import type { SwarmId } from "../../src/ids.ts";
import { type StreamPurpose, streamConfigOf, streamNameOf } from "../../src/journal/stream/settings.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { Transport } from "../../src/transport/transport.ts";

const ASK_MS = 2_000;

interface StreamAnswer {
  readonly error?: { readonly description: string };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { readonly current?: boolean; readonly offline?: boolean }[];
  };
  readonly config?: Readonly<Record<string, unknown>>;
  readonly state?: { readonly bytes: number };
}

export class StreamAdmin {
  readonly #transport: Transport;
  readonly #swarm: SwarmId;

  constructor(transport: Transport, swarm: SwarmId) {
    this.#transport = transport;
    this.#swarm = swarm;
  }

  /** The server's name; undefined while there is none, or nobody says. */
  async leader(): Promise<string | undefined> {
    const leader = (await this.#ask("INFO"))?.cluster?.leader;
    return leader === "" ? undefined : leader;
  }

  /** Whether it has a leader, and every other server is up to date with it. */
  async isWhole(): Promise<boolean> {
    const cluster = (await this.#ask("INFO"))?.cluster;
    const others = cluster?.replicas ?? [];
    return (
      cluster?.leader !== undefined &&
      others.every(({ current, offline }) => current === true && offline !== true)
    );
  }

  /** Another server leads then, where there is one. */
  async stepDown(): Promise<void> {
    await this.#ask("LEADER.STEPDOWN");
  }

  async create({ bytesMax }: { readonly bytesMax: number }): Promise<void> {
    await this.#must("CREATE", streamConfigOf({ swarm: this.#swarm, purpose: "journal", bytesMax }));
  }

  async setBytesMax(bytesMax: number): Promise<void> {
    const config = (await this.#must("INFO")).config;
    await this.#must("UPDATE", { ...config, max_bytes: bytesMax });
  }

  async bytes(): Promise<number> {
    return (await this.#must("INFO")).state?.bytes ?? 0;
  }

  /** With its snapshots; also where there is neither. */
  async remove(): Promise<void> {
    await this.#ask("DELETE");
    await this.#ask("DELETE", undefined, "snapshots");
  }

  /** Until it is answered: after a start JetStream needs a moment, and three servers need a majority. */
  async #must(verb: string, body?: unknown): Promise<StreamAnswer> {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#ask(verb, body);
      if (answer !== undefined && answer.error === undefined) return answer;
      if (tries === 20)
        throw new Error(`${verb} of the stream: ${answer?.error?.description ?? "no answer"}`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  async #ask(
    verb: string,
    body?: unknown,
    purpose: StreamPurpose = "journal",
  ): Promise<StreamAnswer | undefined> {
    const stream = streamNameOf({ swarm: this.#swarm, purpose });
    const subject = `$JS.API.STREAM.${verb}.${stream}`;
    const bytes = body === undefined ? new Uint8Array() : encode(body);
    const outcome = await this.#transport.request(subject, bytes, { timeoutMs: ASK_MS });
    if (outcome.kind !== "answered") return undefined;
    return JSON.parse(Buffer.from(outcome.data).toString()) as StreamAnswer;
  }
}
