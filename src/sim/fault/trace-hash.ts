// A hash of all events in order: equal hashes mean identical runs. For comparing runs, not for security.

/** FNV-1a over the added words. */
export class TraceHash {
  #low = 0x811c9dc5;
  #high = 0xc9dc5118;
  readonly #float = new Float64Array(1);
  readonly #words = new Uint32Array(this.#float.buffer);

  add(value: number): void {
    this.#float[0] = value;
    this.#mix(this.#words[0] as number);
    this.#mix(this.#words[1] as number);
  }

  addText(text: string): void {
    for (let at = 0; at < text.length; at += 1)
      this.#low = Math.imul(this.#low ^ text.charCodeAt(at), 0x01000193);
    this.#mix(text.length);
  }

  /** 16 hexadecimal digits. */
  digest(): string {
    return hex(this.#high) + hex(this.#low);
  }

  #mix(word: number): void {
    this.#low = Math.imul(this.#low ^ word, 0x01000193);
    this.#high = Math.imul(this.#high ^ this.#low ^ (this.#low >>> 15), 0x85ebca6b);
  }
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
