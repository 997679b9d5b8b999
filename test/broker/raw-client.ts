// A client of the broker on a plain socket: the test controls every byte.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { clientAnswer } from "../../src/transport/mutual-proof.ts";

export class RawClient {
  readonly #socket: Socket;
  /** The broker's random text, from its first INFO. */
  #nonce = "";
  #received = "";
  #isClosed = false;
  #onChange: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#received += text;
      this.#onChange();
    });
    socket.on("error", () => socket.destroy()); // the broker hung up: `close` follows
    socket.on("close", () => {
      this.#isClosed = true;
      this.#onChange();
    });
  }

  /** Connected, with INFO read. */
  static async open(port: number): Promise<RawClient> {
    const socket = connect({ host: "127.0.0.1", port });
    const client = new RawClient(socket);
    await once(socket, "connect");
    const info = /^INFO (.*)\r\n/.exec(await client.until(/^INFO .*\r\n/))?.[1] ?? "{}";
    client.#nonce = (JSON.parse(info) as { nonce?: string }).nonce ?? "";
    return client;
  }

  /** Connected, authorized, and everything so far read. */
  static async login(
    port: number,
    { secret, ...options }: Record<string, unknown> & { readonly secret: string },
  ): Promise<RawClient> {
    const client = await RawClient.open(port);
    const connect = { verbose: false, headers: true, auth_token: client.answerWith(secret), ...options };
    client.send(`CONNECT ${JSON.stringify(connect)}\r\nPING\r\n`);
    await client.until(/PONG\r\n/);
    client.clear();
    return client;
  }

  get nonce(): string {
    return this.#nonce;
  }

  /** The `auth_token` for this connection. */
  answerWith(secret: string, challenge = ""): string {
    return clientAnswer({ secret, nonce: this.#nonce, challenge });
  }

  send(text: string | Uint8Array): void {
    this.#socket.write(text);
  }

  /** Input since the last `clear`. */
  get received(): string {
    return this.#received;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  clear(): void {
    this.#received = "";
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves when the input matches. @throws Error when the broker hangs up before */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#received)) {
      if (this.#isClosed) throw new Error(`closed after ${JSON.stringify(this.#received.slice(0, 500))}`);
      await this.#change();
    }
    return this.#received;
  }

  /** Resolves after a number of bytes since the last `clear`. @throws Error when the broker hangs up before */
  async untilLength(characters: number): Promise<string> {
    while (this.#received.length < characters) {
      if (this.#isClosed) throw new Error(`closed after ${this.#received.length} characters`);
      await this.#change();
    }
    return this.#received;
  }

  /** All output of the broker up to its answer to a PING. */
  async settled(): Promise<string> {
    this.send("PING\r\n");
    const received = await this.until(/PONG\r\n$/);
    this.clear();
    return received.replace(/PONG\r\n$/, "");
  }

  /** Input until the broker hung up. */
  async untilClosed(): Promise<string> {
    while (!this.#isClosed) await this.#change();
    return this.#received;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    await this.untilClosed();
  }

  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onChange = resolve;
    });
  }
}
