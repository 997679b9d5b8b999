// One party's connection to a simulated JetStream server: the port that the production journal uses (StreamWire), over
// a line that delays, loses and breaks as the simulation says.

import type { Clock } from "../../clock.ts";
import type { AskOptions, Listening, StreamMessage, StreamWire } from "../../journal/stream/wire.ts";
import { Listeners } from "../../listeners.ts";
import { ended, OpenRequests } from "../../transport/open-requests.ts";
import type { RequestOutcome } from "../../transport/transport.ts";
import type { Delivery, SimJetStream } from "./jetstream.ts";

/** A way between one party and the server. */
export interface Line {
  readonly status: StreamWire["status"];
  /** Runs `arrive` at the other end after the journey, in the order of the calls of one direction, or never. */
  carry(direction: "there" | "back", arrive: () => void): void;
  /** Calls `listener` at each change of `status`. Returns a function that stops it. */
  onStatus(listener: () => void): () => void;
}

export interface SimStreamWireOptions {
  readonly server: SimJetStream;
  readonly line: Line;
  /** As whom it asks for records. */
  readonly reader: string;
  /** The party's own. */
  readonly clock: Clock;
  readonly maxPayloadBytes: number;
}

export class SimStreamWire implements StreamWire {
  readonly maxPayloadBytes: number;
  readonly #server: SimJetStream;
  readonly #line: Line;
  readonly #reader: string;
  readonly #requests: OpenRequests;
  readonly #inboxes = new Map<string, (message: StreamMessage) => void>();
  readonly #listeners = new Listeners();
  readonly #stopStatus: () => void;
  #inboxesEver = 0;
  #isClosed = false;

  constructor({ server, line, reader, clock, maxPayloadBytes }: SimStreamWireOptions) {
    this.maxPayloadBytes = maxPayloadBytes;
    this.#server = server;
    this.#line = line;
    this.#reader = reader;
    this.#requests = new OpenRequests(clock);
    this.#stopStatus = line.onStatus(() => this.#changed());
  }

  get status(): StreamWire["status"] {
    return this.#isClosed ? "closed" : this.#line.status;
  }

  async ask(subject: string, data: Uint8Array, options: AskOptions): Promise<RequestOutcome> {
    if (this.status !== "connected") return ended.disconnected;
    const { token, outcome } = this.#requests.open({ timeoutMs: options.timeoutMs });
    const sent = { tailLosses: this.#server.tailLossesOf(subject) };
    const reply = (answer: object | "nobody") => this.#answer(token, answer);
    this.#line.carry("there", () => this.#server.handle(subject, data, options.headers ?? {}, reply, sent));
    return await outcome;
  }

  publish(subject: string, data: Uint8Array, reply: string): void {
    if (this.status !== "connected") return;
    this.#line.carry("there", () =>
      this.#server.pull(subject, data, this.#reader, (delivery) => this.#deliver(reply, delivery)),
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
    this.#line.carry("back", () => {
      const outcome: RequestOutcome =
        answer === "nobody"
          ? ended["no-responders"]
          : { kind: "answered", data: new TextEncoder().encode(JSON.stringify(answer)) };
      this.#requests.settle(token, outcome);
    });
  }

  #deliver(inbox: string, { status, ...message }: Delivery): void {
    this.#line.carry("back", () => {
      if (!this.#isClosed) this.#inboxes.get(inbox)?.({ ...message, status });
    });
  }

  #changed(): void {
    if (this.status !== "connected") this.#requests.settleAll("disconnected");
    this.#listeners.tell();
  }
}
