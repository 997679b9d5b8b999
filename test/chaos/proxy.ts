// A TCP proxy between a node and a server that can be cut, or stalled in one direction or both: what a network does,
// without a network. In this process. Bytes that it holds back are not lost but late, as in TCP.

import { connect, createServer, type Server, type Socket } from "node:net";

/** `up`: what the node sends does not arrive. `down`: what the server sends does not. */
export type Direction = "up" | "down";

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Is told what a node sends on one connection, once it is passed on. */
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
    // Half-open is one of the faults: an end on one side is passed on and closes nothing by itself.
    this.#server = createServer({ allowHalfOpen: true }, (node) => this.#accept(node));
  }

  /** @param tap makes one for each connection */
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

  /** Connections that are open through it. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Every connection is reset, and new ones are until `heal`. */
  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) end(pair);
  }

  /** Bytes in this direction wait from now on, on connections that are open and on new ones, until `heal`. */
  stall(direction: Direction): void {
    this.#stalled.add(direction);
    for (const pair of this.#pairs) this.#hold(pair);
  }

  /** Everything passes again; what was held back arrives now. */
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

/** By hand: `pipe` resumes by itself whatever was paused. */
function forward(from: Socket, to: Socket): void {
  from.on("data", (bytes: Buffer) => void to.write(bytes));
  from.on("end", () => to.end());
}

function end({ node, server }: Pair): void {
  node.resetAndDestroy();
  server.resetAndDestroy();
}

function ignored(): void {
  // a reset connection is one of the faults; its `close` follows
}
