// Parses the NATS client protocol from chunks of bytes cut anywhere. connection.ts performs the operations.
//
// A publish that lies completely within a chunk is passed on in place: no copy, no string. A divided publish is
// gathered in a buffer of its exact size, so a large payload is copied once.

import { limits } from "../limits.ts";

/** Errors that nats-server sends, in its words, before it disconnects a client. */
export type Violation =
  | "Unknown Protocol Operation"
  | "Maximum Control Line Exceeded"
  | "Maximum Payload Violation"
  | "Authorization Violation";

/** A publish in place in `buffer`, in exactly the form `PUB <subject> [<reply> ]<size>\r\n<payload>\r\n` (HPUB:
 *  `[<reply> ]<header size> <size>`). Valid during the call that receives it; `buffer` is never reused. */
export interface PublishFrame {
  readonly buffer: Buffer;
  readonly hasHeaders: boolean;
  readonly subjectStart: number;
  readonly subjectEnd: number;
  /** Both -1 without a reply subject. */
  readonly replyStart: number;
  readonly replyEnd: number;
  readonly headerBytes: number;
  readonly payloadStart: number;
  /** After the final line break. */
  readonly end: number;
}

export interface ProtocolSink {
  connect(json: string): void;
  publish(frame: PublishFrame): void;
  subscribe(subscription: {
    readonly subject: string;
    readonly queue: string | undefined;
    readonly sid: string;
  }): void;
  /** @param max total number of deliveries after which the subscription ends; 0: at once */
  unsubscribe(sid: string, max: number): void;
  ping(): void;
  pong(): void;
  /** Nothing is parsed afterwards. */
  violation(violation: Violation): void;
}

export class ProtocolParser {
  /** Until the client is authorized, any operation but CONNECT is a violation, and no payload is awaited. */
  isAuthorized = false;
  readonly #sink: ProtocolSink;
  readonly #maxPayloadBytes: number;
  readonly #frame = new Frame();
  /** The beginning of an incomplete operation. */
  #held: Held | undefined;
  #isOver = false;

  constructor(sink: ProtocolSink, maxPayloadBytes: number) {
    this.#sink = sink;
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  /** @param chunk must not be modified afterwards */
  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#isOver) {
      at = this.#held === undefined ? this.#parseNext(chunk, at) : this.#resume(this.#held, chunk, at);
    }
  }

  /** Ignores all further input. */
  stop(): void {
    this.#isOver = true;
    this.#held = undefined;
  }

  /** @returns the beginning of the next operation */
  #parseNext(buffer: Buffer, at: number): number {
    // Checked first, so that the verdict does not depend on the cut between chunks.
    if (!isFirstByte(buffer[at])) return this.#violate("Unknown Protocol Operation");
    const lineFeed = buffer.indexOf(LF, at);
    if (lineFeed < 0) return this.#holdLine(buffer, at);
    if (lineFeed - at > limits.controlLineBytesMax) return this.#violate("Maximum Control Line Exceeded");
    if (isPublish(buffer, at)) return this.#parsePublish(buffer, at, lineFeed);
    const lineEnd = buffer[lineFeed - 1] === CR ? lineFeed - 1 : lineFeed;
    this.#parseLine(buffer.toString("latin1", at, Math.max(at, lineEnd)));
    return lineFeed + 1;
  }

  #parsePublish(buffer: Buffer, at: number, lineFeed: number): number {
    if (!this.isAuthorized) return this.#violate("Authorization Violation");
    if (!this.#frame.readLine(buffer, at, lineFeed)) return this.#parseUnusualPublish(buffer, at, lineFeed);
    const { payloadBytes, headerBytes, end } = this.#frame;
    if (payloadBytes > this.#maxPayloadBytes) return this.#violate("Maximum Payload Violation");
    if (headerBytes > payloadBytes) return this.#violate("Unknown Protocol Operation");
    if (end > buffer.length) return this.#holdPublish(buffer, at, end - at);
    if (buffer[end - 2] !== CR || buffer[end - 1] !== LF) return this.#violate("Unknown Protocol Operation");
    this.#sink.publish(this.#frame);
    return end;
  }

  /** Lower case, tabs, several spaces, or a bare line feed: rewritten in the usual form, then parsed. */
  #parseUnusualPublish(buffer: Buffer, at: number, lineFeed: number): number {
    const [operation = "", ...words] = wordsOf(buffer.toString("latin1", at, lineFeed));
    const usual = Buffer.from(`${[operation.toUpperCase(), ...words].join(" ")}\r\n`, "latin1");
    if (!this.#frame.readLine(usual, 0, usual.length - 1)) return this.#violate("Unknown Protocol Operation");
    this.#parseNext(usual, 0); // keeps the line, because the payload is still in `buffer`
    return lineFeed + 1;
  }

  #parseLine(line: string): void {
    const [operation = "", ...words] = wordsOf(line);
    const name = operation.toUpperCase();
    if (name === "CONNECT") this.#sink.connect(line.slice(line.indexOf(operation) + operation.length).trim());
    else if (!this.isAuthorized) this.#violate("Authorization Violation");
    else if (name === "PING") this.#sink.ping();
    else if (name === "PONG") this.#sink.pong();
    else if (name === "SUB") this.#subscribe(words);
    else if (name === "UNSUB") this.#unsubscribe(words);
    else this.#violate("Unknown Protocol Operation");
  }

  #subscribe(words: readonly string[]): void {
    const [subject, second, third] = words;
    if (subject === undefined || second === undefined || words.length > 3) {
      this.#violate("Unknown Protocol Operation");
    } else if (third === undefined) {
      this.#sink.subscribe({ subject, queue: undefined, sid: second });
    } else {
      this.#sink.subscribe({ subject, queue: second, sid: third });
    }
  }

  #unsubscribe(words: readonly string[]): void {
    const [sid, max = "0"] = words;
    if (sid === undefined || words.length > 2 || !/^\d{1,9}$/.test(max)) {
      this.#violate("Unknown Protocol Operation");
    } else {
      this.#sink.unsubscribe(sid, Number(max));
    }
  }

  #holdLine(buffer: Buffer, at: number): number {
    if (buffer.length - at > limits.controlLineBytesMax) {
      return this.#violate("Maximum Control Line Exceeded");
    }
    this.#held = heldLine();
    return this.#held.append(buffer, at, buffer.length);
  }

  #holdPublish(buffer: Buffer, at: number, bytes: number): number {
    this.#held = new Held(Buffer.allocUnsafeSlow(bytes), true);
    return this.#held.append(buffer, at, buffer.length);
  }

  /** Completes the held operation, and parses it when complete. */
  #resume(held: Held, chunk: Buffer, at: number): number {
    if (!held.isPublish) return this.#resumeLine(held, chunk, at);
    const next = held.append(chunk, at, chunk.length);
    if (held.isFull()) this.#parseHeld(held);
    return next;
  }

  #resumeLine(held: Held, chunk: Buffer, at: number): number {
    const lineFeed = chunk.indexOf(LF, at);
    const lineEnd = lineFeed < 0 ? chunk.length : lineFeed + 1;
    if (held.bytes + lineEnd - at > limits.controlLineBytesMax + 1) {
      return this.#violate("Maximum Control Line Exceeded");
    }
    held.append(chunk, at, lineEnd);
    if (lineFeed >= 0) this.#parseHeld(held);
    return lineEnd;
  }

  #parseHeld(held: Held): void {
    this.#held = undefined;
    this.#parseNext(held.buffer.subarray(0, held.bytes), 0);
  }

  /** @returns a position beyond the input, so that parsing ends */
  #violate(violation: Violation): number {
    this.stop();
    this.#sink.violation(violation);
    return Number.MAX_SAFE_INTEGER;
  }
}

/** A line, or a publish of known size. */
class Held {
  readonly buffer: Buffer;
  readonly isPublish: boolean;
  bytes = 0;

  constructor(buffer: Buffer, isPublish: boolean) {
    this.buffer = buffer;
    this.isPublish = isPublish;
  }

  /** Takes as many bytes as fit. @returns the position of the first byte not taken */
  append(from: Buffer, start: number, end: number): number {
    const taken = Math.min(end - start, this.buffer.length - this.bytes);
    from.copy(this.buffer, this.bytes, start, start + taken);
    this.bytes += taken;
    return start + taken;
  }

  isFull(): boolean {
    return this.bytes === this.buffer.length;
  }
}

function heldLine(): Held {
  return new Held(Buffer.allocUnsafeSlow(limits.controlLineBytesMax + 1), false);
}

/** The parser's only frame, reused for each publish. */
class Frame implements PublishFrame {
  buffer: Buffer = Buffer.alloc(0);
  hasHeaders = false;
  subjectStart = 0;
  subjectEnd = 0;
  replyStart = -1;
  replyEnd = -1;
  headerBytes = 0;
  /** Includes headers. */
  payloadBytes = 0;
  payloadStart = 0;
  end = 0;

  readonly #wordEnds = new Int32Array(4);

  /** Reads the line from `at` to `lineFeed`, known to begin with PUB or HPUB in any case.
   *  @returns false unless the line has the usual form; the frame is then invalid */
  readLine(buffer: Buffer, at: number, lineFeed: number): boolean {
    this.hasHeaders = buffer[at] === UPPER_H;
    const operation = this.hasHeaders ? at + 1 : at;
    if (buffer[lineFeed - 1] !== CR || !isUsualPublish(buffer, operation)) return false;
    const words = this.#splitWords(buffer, operation + 4, lineFeed - 1);
    const wordsWithoutReply = this.hasHeaders ? 3 : 2;
    if (words !== wordsWithoutReply && words !== wordsWithoutReply + 1) return false;
    return this.#setFrom(buffer, operation + 4, { words, hasReply: words > wordsWithoutReply, lineFeed });
  }

  /** @returns the number of words separated by single spaces; 0 for any other form */
  #splitWords(buffer: Buffer, start: number, end: number): number {
    let words = 0;
    let wordStart = start;
    for (let at = start; at <= end; at += 1) {
      const byte = buffer[at] ?? 0;
      if (byte > SPACE) continue;
      if (at === wordStart || words === 4 || (byte !== SPACE && at !== end)) return 0;
      this.#wordEnds[words] = at;
      words += 1;
      wordStart = at + 1;
    }
    return words;
  }

  #setFrom(
    buffer: Buffer,
    start: number,
    { words, hasReply, lineFeed }: { words: number; hasReply: boolean; lineFeed: number },
  ): boolean {
    const end = (word: number) => this.#wordEnds[word] ?? 0;
    this.buffer = buffer;
    this.subjectStart = start;
    this.subjectEnd = end(0);
    this.replyStart = hasReply ? end(0) + 1 : -1;
    this.replyEnd = hasReply ? end(1) : -1;
    this.headerBytes = this.hasHeaders ? numberIn(buffer, end(words - 3) + 1, end(words - 2)) : 0;
    this.payloadBytes = numberIn(buffer, end(words - 2) + 1, end(words - 1));
    this.payloadStart = lineFeed + 1;
    this.end = this.payloadStart + this.payloadBytes + 2;
    return this.headerBytes >= 0 && this.payloadBytes >= 0;
  }
}

const LF = 10;
const CR = 13;
const SPACE = 32;
const TAB = 9;
const UPPER_H = 72;

/** @returns -1 unless the text is a decimal number of at most 9 digits */
function numberIn(buffer: Buffer, start: number, end: number): number {
  if (end <= start || end - start > 9) return -1;
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const digit = (buffer[at] ?? 0) - 48;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}

function isUsualPublish(buffer: Buffer, at: number): boolean {
  return buffer[at] === 80 && buffer[at + 1] === 85 && buffer[at + 2] === 66 && buffer[at + 3] === SPACE;
}

/** True if a PUB or HPUB begins at `at`, in any case. */
function isPublish(buffer: Buffer, at: number): boolean {
  const start = lower(buffer[at]) === 104 ? at + 1 : at;
  const isNamed =
    lower(buffer[start]) === 112 && lower(buffer[start + 1]) === 117 && lower(buffer[start + 2]) === 98;
  return isNamed && (buffer[start + 3] === SPACE || buffer[start + 3] === TAB);
}

function lower(byte: number | undefined): number {
  return (byte ?? 0) | 32;
}

/** True for the first byte of an operation: C, H, P, S, U. */
function isFirstByte(byte: number | undefined): boolean {
  return "chpsu".includes(String.fromCharCode(lower(byte)));
}

function wordsOf(line: string): string[] {
  return line.split(/[ \t\r]+/).filter((word) => word !== "");
}
