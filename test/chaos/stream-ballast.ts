// Fills a nats-server to its own bound (`max_file_store`) with a foreign stream, like a neighbour on the same
// server. The stream has no bound, so no space is reserved for it, and the journal lacks the space it takes.

import type { SwarmId } from "../../src/ids.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { Transport } from "../../src/transport/transport.ts";

/** Message sizes in turn, each until refused, so that not even the smallest fits. */
const SIZES = [512 * 1024, 32 * 1024, 1024, 1] as const;
const ASK_MS = 5_000;

interface Answer {
  readonly error?: { readonly description: string };
}

export class StreamBallast {
  readonly #transport: Transport;
  readonly #stream: string;
  readonly #subject: string;

  constructor(transport: Transport, swarm: SwarmId) {
    this.#transport = transport;
    this.#stream = `BALLAST_${swarm}`;
    this.#subject = `ballast.${swarm}`;
  }

  /** @returns the server's refusal */
  async fill(): Promise<string> {
    const config = { name: this.#stream, subjects: [this.#subject], storage: "file", num_replicas: 1 };
    const created = await this.#ask(`$JS.API.STREAM.CREATE.${this.#stream}`, encode(config));
    if (created !== undefined) throw new Error(`there is no stream to fill the server with: ${created}`);
    let refusal = "";
    for (const bytes of SIZES) refusal = await this.#publishUntilRefused(new Uint8Array(bytes));
    return refusal;
  }

  /** @returns the reason when the stream still exists */
  async remove(): Promise<string | undefined> {
    return await this.#ask(`$JS.API.STREAM.DELETE.${this.#stream}`, new Uint8Array());
  }

  async #publishUntilRefused(payload: Uint8Array): Promise<string> {
    for (;;) {
      const refusal = await this.#ask(this.#subject, payload);
      if (refusal !== undefined) return refusal;
    }
  }

  /** @returns undefined on success */
  async #ask(subject: string, body: Uint8Array): Promise<string | undefined> {
    const outcome = await this.#transport.request(subject, body, { timeoutMs: ASK_MS });
    if (outcome.kind !== "answered") return "no answer";
    return (JSON.parse(Buffer.from(outcome.data).toString()) as Answer).error?.description;
  }
}
