// Lines as chunks of bytes, and chunks as lines again. A full chunk ends even within a line or a character, so no chunk
// exceeds the storage's bound on a record, however long a line is.

import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";

const LINE_BREAK = "\n";
const LINE_BREAK_BYTE = 0x0a;

export class ChunkCutter {
  #text = "";
  #rest: Uint8Array = new Uint8Array();

  /** Takes a line without line break. @returns the full chunks */
  add(line: string): readonly Uint8Array[] {
    this.#text += line + LINE_BREAK;
    return this.#text.length < limits.baseChunkBytesMax ? [] : this.#cut();
  }

  /** The remaining chunks, after the last line. */
  end(): readonly Uint8Array[] {
    const chunks = this.#cut();
    return this.#rest.length === 0 ? chunks : [...chunks, this.#rest];
  }

  #cut(): Uint8Array[] {
    const bytes = Buffer.concat([this.#rest, Buffer.from(this.#text)]);
    const chunks: Uint8Array[] = [];
    let at = 0;
    for (; at + limits.baseChunkBytesMax <= bytes.length; at += limits.baseChunkBytesMax)
      chunks.push(bytes.subarray(at, at + limits.baseChunkBytesMax));
    this.#text = "";
    this.#rest = bytes.subarray(at);
    return chunks;
  }
}

export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** Bytes of the line that has no end so far. */
  #rest: Uint8Array[] = [];

  /** The lines completed by a chunk. @throws JournalDamagedError if the lines are not UTF-8 */
  take(chunk: Uint8Array): readonly string[] {
    const end = chunk.lastIndexOf(LINE_BREAK_BYTE);
    if (end === -1) {
      this.#rest.push(chunk);
      return [];
    }
    const text = this.#text(Buffer.concat([...this.#rest, chunk.subarray(0, end)]));
    this.#rest = end + 1 === chunk.length ? [] : [chunk.subarray(end + 1)];
    return text.split(LINE_BREAK);
  }

  /** @throws JournalDamagedError when the last line has no end */
  end(): void {
    if (this.#rest.length > 0) throw new JournalDamagedError("a base ends within a line");
  }

  /** Whole lines are decoded in one go: a decoder that keeps a character's first bytes takes five times as long. */
  #text(bytes: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes);
    } catch (cause) {
      throw new JournalDamagedError("a chunk of a base is no text", { cause });
    }
  }
}
