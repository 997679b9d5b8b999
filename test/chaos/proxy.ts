// A TCP proxy between a node and a server, which can be cut, or stalled in one or both directions, to simulate
// network faults. Runs in the driver's process. Stalled bytes are late, not lost, as in TCP.

import { connect, createServer, type Server, type Socket } from "node:net";

/** `up`: data of the node does not arrive. `down`: data of the server does not arrive. */
export type Direction = "up" | "down";

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Called with a node's data on one connection, after passing it on. */
export interface Tap {
  push(bytes: Buffer): void;
}

interface Pair {
  readonly node: Socket;
  readonly server: Socket;
}

export class TcpProxy {
  readonly #server: Server;
  readonly #target: Target;
  readonly #tap: (() => Tap) | undefined;
  readonly #pairs = new Set<Pair>();
  readonly #stalled = new Set<Direction>();
  #isCut = false;

  private constructor(target: Target, tap: (() => Tap) | undefined) {
    this.#target = target;
    this.#tap = tap;
    // Half-open connections are among the faults: an end on one side is passed on and closes nothing else.
    this.#server = createServer({ allowHalfOpen: true }, (node) => this.#accept(node));
  }

  /** @param tap creates a tap per connection */
  static async start(target: Target, tap?: () => Tap): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, tap);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return address.port;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Resets every connection, and new connections until `heal`. */
  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) end(pair);
  }

  /** Stalls data in the direction, on open and new connections, until `heal`. */
  stall(direction: Direction): void {
    this.#stalled.add(direction);
    for (const pair of this.#pairs) this.#hold(pair);
  }

  /** Passes everything again; stalled data arrives now. */
  heal(): void {
    this.#isCut = false;
    this.#stalled.clear();
    for (const { node, server } of this.#pairs) {
      node.resume();
      server.resume();
    }
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) end(pair);
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(node: Socket): void {
    if (this.#isCut) {
      node.on("error", ignored);
      node.resetAndDestroy();
      return;
    }
    const pair: Pair = { node, server: connect({ ...this.#target, allowHalfOpen: true }) };
    this.#pairs.add(pair);
    forward(node, pair.server);
    forward(pair.server, node);
    const tap = this.#tap?.();
    if (tap !== undefined) node.on("data", (bytes: Buffer) => tap.push(bytes));
    for (const socket of [node, pair.server]) {
      socket.setNoDelay(true);
      socket.on("error", ignored);
      socket.once("close", () => {
        this.#pairs.delete(pair);
        end(pair);
      });
    }
    this.#hold(pair);
  }

  #hold({ node, server }: Pair): void {
    if (this.#stalled.has("up")) node.pause();
    if (this.#stalled.has("down")) server.pause();
  }
}

/** By hand: `pipe` would resume paused streams. */
function forward(from: Socket, to: Socket): void {
  from.on("data", (bytes: Buffer) => void to.write(bytes));
  from.on("end", () => to.end());
}

function end({ node, server }: Pair): void {
  node.resetAndDestroy();
  server.resetAndDestroy();
}

function ignored(): void {
  // a reset connection is among the faults; `close` follows
}
