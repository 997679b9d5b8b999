// Lines as chunks of bytes, and chunks as lines again. A full chunk ends even within a line or a character, so no chunk
// exceeds the storage's bound on a record, however long a line is.

import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";

const LINE_BREAK = "\n";

export class ChunkCutter {
  #text = "";
  #rest: Uint8Array = new Uint8Array();

  /** Takes a line without line break. @returns the full chunks */
  add(line: string): readonly Uint8Array[] {
    this.#text += line + LINE_BREAK;
    return this.#text.length < limits.snapshotChunkBytesMax ? [] : this.#cut();
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
    for (; at + limits.snapshotChunkBytesMax <= bytes.length; at += limits.snapshotChunkBytesMax)
      chunks.push(bytes.subarray(at, at + limits.snapshotChunkBytesMax));
    this.#text = "";
    this.#rest = bytes.subarray(at);
    return chunks;
  }
}

export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #rest = "";

  /** The lines completed by a chunk. @throws JournalDamagedError if the chunk is not UTF-8 */
  take(chunk: Uint8Array): readonly string[] {
    const lines = (this.#rest + this.#text(chunk)).split(LINE_BREAK);
    this.#rest = lines.pop() ?? "";
    return lines;
  }

  /** @throws JournalDamagedError when the last line has no end */
  end(): void {
    if (this.#rest !== "") throw new JournalDamagedError("a base ends within a line");
  }

  #text(chunk: Uint8Array): string {
    try {
      return this.#decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw new JournalDamagedError("a chunk of a base is no text", { cause });
    }
  }
}
