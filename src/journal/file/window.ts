// Reads records of a segment's file through a window, so that at most one window is in memory. Only bytes below an end
// are read. Such bytes are written once, so the window stays true.

import { type JournalFile, reachingDisk } from "./handle.ts";
import { HEAD_BYTES, isBodyOf, parseHead, type RecordHead } from "./record.ts";

export interface WholeRecord {
  readonly head: RecordHead;
  /** Good until the next call. */
  readonly body: Buffer;
}

export class FileWindow {
  readonly #file: JournalFile;
  readonly #windowBytes: number;
  /** Memory of the window, used again for each position of the window. */
  #memory: Buffer = Buffer.alloc(0);
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(file: JournalFile, windowBytes: number) {
    this.#file = file;
    this.#windowBytes = windowBytes;
  }

  /** Undefined when there is no whole head. */
  async headAt(offset: number, end: number): Promise<RecordHead | undefined> {
    return parseHead(await this.view(offset, { length: HEAD_BYTES, end }));
  }

  /** Undefined when the record is not whole. */
  async recordAt(offset: number, end: number): Promise<WholeRecord | undefined> {
    const head = await this.headAt(offset, end);
    if (head === undefined) return undefined;
    const body = await this.view(offset + HEAD_BYTES, { length: head.length, end });
    return isBodyOf(head, body) ? { head, body } : undefined;
  }

  /** At most `length` bytes, fewer where `end` or the file's end is nearer. Good until the next call. */
  async view(offset: number, { length, end }: { length: number; end: number }): Promise<Buffer> {
    const wanted = Math.max(Math.min(length, end - offset), 0);
    const isHeld = offset >= this.#start && offset + wanted <= this.#start + this.#bytes.length;
    if (!isHeld) await this.#move(offset, Math.min(Math.max(wanted, this.#windowBytes), end - offset));
    return this.#bytes.subarray(offset - this.#start, offset - this.#start + wanted);
  }

  async #move(offset: number, length: number): Promise<void> {
    const held = this.#bytes.subarray(Math.min(Math.max(offset - this.#start, 0), this.#bytes.length));
    let filled = offset < this.#start ? 0 : held.length;
    const target = this.#memory.length < length ? Buffer.allocUnsafeSlow(length) : this.#memory;
    target.set(held.subarray(0, filled));
    this.#memory = target;
    this.#bytes = target.subarray(0, 0); // until the read ends
    while (filled < length) {
      const reading = () => this.#file.read(target, filled, length - filled, offset + filled);
      const { bytesRead } = await reachingDisk(reading);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    this.#bytes = target.subarray(0, filled);
    this.#start = offset;
  }
}
