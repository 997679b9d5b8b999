// Pending output of one client: gathered during a turn of the event loop and written at once. Throughput
// depends on this: a write to a socket costs as much as parsing dozens of messages.
//
// Small messages are copied into a slab, one after the other. Large payloads are passed on in place, without a
// copy.

import type { Socket } from "node:net";
import type { PublishFrame } from "./protocol-parser.ts";

export class Outbox {
  readonly #socket: Socket;
  #slab = Buffer.alloc(0);
  /** Positions in the slab: end of the sealed part, and end of the filled part. */
  #sealed = 0;
  #filled = 0;
  #slabBytes = SLAB_BYTES_MIN;
  #sealedParts: Buffer[] = [];
  #waitingBytes = 0;
  /** Bytes given to the socket and not yet accepted by the kernel, as of the last flush. */
  #socketBytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("drain", () => {
      this.#socketBytes = 0;
    });
  }

  /** Bytes that the client has not read. */
  get pendingBytes(): number {
    return this.#waitingBytes + this.#socketBytes;
  }

  /** `MSG <subject> <sid> [<reply> ]<size>\r\n<payload>\r\n`, or HMSG: the frame except for its beginning. */
  message(frame: PublishFrame, sid: Uint8Array): void {
    const { buffer, subjectStart, subjectEnd, end } = frame;
    const operation = frame.hasHeaders ? HMSG : MSG;
    const headBytes = operation.length + (subjectEnd - subjectStart) + 1 + sid.length;
    const tailBytes = end - subjectEnd;
    const isCopied = tailBytes <= COPY_BYTES_MAX;
    this.#makeRoom(isCopied ? headBytes + tailBytes : headBytes);
    this.#copy(operation, 0, operation.length);
    this.#copy(buffer, subjectStart, subjectEnd);
    this.#slab[this.#filled] = SPACE;
    this.#filled += 1;
    this.#copy(sid, 0, sid.length);
    if (isCopied) this.#copy(buffer, subjectEnd, end);
    else this.#pass(buffer.subarray(subjectEnd, end));
    this.#waitingBytes += headBytes + tailBytes;
  }

  /** A line of the protocol, or several. */
  text(text: string): void {
    this.#pass(Buffer.from(text, "latin1"));
    this.#waitingBytes += text.length;
  }

  /** Hands all output to the socket. */
  flush(): void {
    this.#seal();
    const parts = this.#sealedParts;
    if (parts.length === 0) return;
    this.#sealedParts = [];
    this.#waitingBytes = 0;
    if (parts.length > 1) this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    if (parts.length > 1) this.#socket.uncork();
    this.#socketBytes = this.#socket.writableLength;
  }

  #makeRoom(bytes: number): void {
    if (this.#slab.length - this.#filled >= bytes) return;
    this.#seal();
    this.#slab = Buffer.allocUnsafeSlow(Math.max(bytes, this.#slabBytes));
    this.#slabBytes = Math.min(this.#slabBytes * 2, SLAB_BYTES_MAX);
    this.#sealed = 0;
    this.#filled = 0;
  }

  #copy(from: Uint8Array, start: number, end: number): void {
    const bytes = end - start;
    if (bytes > LOOP_BYTES_MAX) {
      this.#slab.set(from.subarray(start, end), this.#filled);
    } else {
      const slab = this.#slab;
      for (let at = 0; at < bytes; at += 1) slab[this.#filled + at] = from[start + at] as number;
    }
    this.#filled += bytes;
  }

  #pass(part: Buffer): void {
    this.#seal();
    this.#sealedParts.push(part);
  }

  #seal(): void {
    if (this.#filled === this.#sealed) return;
    this.#sealedParts.push(this.#slab.subarray(this.#sealed, this.#filled));
    this.#sealed = this.#filled;
  }
}

const MSG = Buffer.from("MSG ");
const HMSG = Buffer.from("HMSG ");
const SPACE = 32;

/** Slabs begin small, for clients with little output, and double for clients with much. */
const SLAB_BYTES_MIN = 4 * 1024;
const SLAB_BYTES_MAX = 64 * 1024;
/** Above this size, one more part in a gathered write is cheaper than a copy. */
const COPY_BYTES_MAX = 16 * 1024;
/** Below this size, a loop is faster than a call into the engine. */
const LOOP_BYTES_MAX = 64;
