// Reads a journal's file through a window, so that no more than one window of it is ever in memory.
// Only bytes below `end` are read: those are written once and never change, so what the window holds stays true.

import type { JournalFile } from "./handle.ts";

export class FileWindow {
  readonly #file: JournalFile;
  readonly #windowBytes: number;
  #buffer: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(file: JournalFile, windowBytes: number) {
    this.#file = file;
    this.#windowBytes = windowBytes;
  }

  /** The bytes from `position`, at most `length`, fewer where `end` or the file cuts them short. Good until
   *  the next call. */
  async view(position: number, { length, end }: { length: number; end: number }): Promise<Buffer> {
    const wanted = Math.min(length, end - position);
    if (!this.#holds(position, wanted)) await this.#move(position, { wanted, end });
    const offset = position - this.#start;
    return this.#buffer.subarray(offset, offset + wanted);
  }

  #holds(position: number, length: number): boolean {
    return position >= this.#start && position + length <= this.#start + this.#buffer.length;
  }

  async #move(position: number, { wanted, end }: { wanted: number; end: number }): Promise<void> {
    const target = Buffer.allocUnsafe(Math.min(Math.max(wanted, this.#windowBytes), end - position));
    let filled = 0;
    while (filled < target.length) {
      const count = await this.#file.read(target.subarray(filled), position + filled);
      if (count === 0) break;
      filled += count;
    }
    this.#buffer = target.subarray(0, filled);
    this.#start = position;
  }
}
