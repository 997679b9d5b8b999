// The connection of a node to the simulated JetStream: the port of the production journal (StreamWire), over a line
// with simulated delays, losses and breaks.

import type { Clock } from "../../clock.ts";
import type { AskOptions, Listening, StreamMessage, StreamWire } from "../../journal/stream/wire.ts";
import { Listeners } from "../../listeners.ts";
import { ended, OpenRequests } from "../../transport/open-requests.ts";
import type { RequestOutcome } from "../../transport/transport.ts";
import type { SimJetStream } from "./jetstream.ts";
import type { Delivery } from "./stream.ts";

/** The link between a node and the server. */
export interface Line {
  readonly status: StreamWire["status"];
  /** Runs `arrive` at the other end after a delay, in the order of the calls per direction, or never. */
  carry(direction: "there" | "back", arrive: () => void): void;
  /** Calls `listener` at each change of `status`. Returns a function to stop the calls. */
  onStatus(listener: () => void): () => void;
}

export interface SimStreamWireOptions {
  readonly server: SimJetStream;
  readonly line: Line;
  /** Name of the node, for its consumers. */
  readonly reader: string;
  /** The node's clock. */
  readonly clock: Clock;
  readonly maxPayloadBytes: number;
  readonly servers: StreamWire["servers"];
}

export class SimStreamWire implements StreamWire {
  readonly maxPayloadBytes: number;
  readonly servers: StreamWire["servers"];
  readonly serverVersion = "2.10.0";
  readonly #options: SimStreamWireOptions;
  readonly #requests: OpenRequests;
  readonly #inboxes = new Map<string, (message: StreamMessage) => void>();
  readonly #listeners = new Listeners();
  readonly #stopStatus: () => void;
  #inboxesEver = 0;
  #isClosed = false;

  constructor(options: SimStreamWireOptions) {
    this.maxPayloadBytes = options.maxPayloadBytes;
    this.servers = options.servers;
    this.#options = options;
    this.#requests = new OpenRequests(options.clock);
    this.#stopStatus = options.line.onStatus(() => this.#changed());
  }

  get status(): StreamWire["status"] {
    return this.#isClosed ? "closed" : this.#options.line.status;
  }

  async ask(subject: string, data: Uint8Array, options: AskOptions): Promise<RequestOutcome> {
    if (this.status !== "connected") return ended.disconnected;
    const { server, line } = this.#options;
    const { token, outcome } = this.#requests.open({ timeoutMs: options.timeoutMs });
    const { losses } = server;
    const reply = (answer: object | "nobody") => this.#answer(token, answer);
    const bytes = Uint8Array.from(data);
    line.carry("there", () => server.handle(subject, bytes, options.headers ?? {}, reply, losses));
    return await outcome;
  }

  publish(subject: string, data: Uint8Array, reply: string): void {
    if (this.status !== "connected") return;
    const { server, line, reader } = this.#options;
    line.carry("there", () =>
      server.pull(subject, data, reader, (delivery) => this.#deliver(reply, delivery)),
    );
  }

  listen(handler: (message: StreamMessage) => void): Listening {
    this.#inboxesEver += 1;
    const inbox = `_INBOX.${this.#inboxesEver}`;
    this.#inboxes.set(inbox, handler);
    return { inbox, stop: () => this.#inboxes.delete(inbox) };
  }

  onStatus(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopStatus();
    this.#changed();
  }

  #answer(token: string, answer: object | "nobody"): void {
    this.#options.line.carry("back", () => {
      const outcome: RequestOutcome =
        answer === "nobody"
          ? ended["no-responders"]
          : { kind: "answered", data: new TextEncoder().encode(JSON.stringify(answer)) };
      this.#requests.settle(token, outcome);
    });
  }

  #deliver(inbox: string, { status, ...message }: Delivery): void {
    this.#options.line.carry("back", () => {
      if (!this.#isClosed) this.#inboxes.get(inbox)?.({ ...message, status });
    });
  }

  #changed(): void {
    if (this.status !== "connected") this.#requests.settleAll("disconnected");
    this.#listeners.notify();
  }
}
