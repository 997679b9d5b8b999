// Reads a node's messages on some subjects from the bytes sent to a nats-server. Knows only where messages
// begin and end: `PUB <subject> [reply] <bytes>`, `HPUB <subject> [reply] <headers> <bytes>`.

const LINE_END = "\r\n";

/** For one connection from its beginning. */
export class PublishTap {
  readonly #isWanted: (subject: string) => boolean;
  readonly #onPayload: (payload: Uint8Array) => void;
  #pending: Buffer = Buffer.alloc(0);

  constructor(isWanted: (subject: string) => boolean, onPayload: (payload: Uint8Array) => void) {
    this.#isWanted = isWanted;
    this.#onPayload = onPayload;
  }

  /** Accepts any cuts between bytes. */
  push(bytes: Buffer): void {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    for (let length = this.#take(); length > 0; length = this.#take())
      this.#pending = this.#pending.subarray(length);
  }

  /** @returns the length of the first operation; 0 while incomplete */
  #take(): number {
    const lineLength = this.#pending.indexOf(LINE_END);
    if (lineLength === -1) return 0;
    const from = lineLength + LINE_END.length;
    const publish = publishIn(this.#pending.toString("latin1", 0, lineLength));
    if (publish === undefined) return from;
    const to = from + publish.bytes;
    if (this.#pending.length < to + LINE_END.length) return 0;
    if (this.#isWanted(publish.subject))
      this.#onPayload(Uint8Array.from(this.#pending.subarray(from + publish.headerBytes, to)));
    return to + LINE_END.length;
  }
}

interface Publish {
  readonly subject: string;
  readonly headerBytes: number;
  /** Of headers and payload. */
  readonly bytes: number;
}

function publishIn(line: string): Publish | undefined {
  const [verb, subject = "", ...rest] = line.split(" ");
  const bytes = Number(rest.at(-1));
  if (verb === "PUB") return { subject, headerBytes: 0, bytes };
  if (verb === "HPUB") return { subject, headerBytes: Number(rest.at(-2)), bytes };
  return undefined;
}
