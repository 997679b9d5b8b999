// Writes JSON in UTF-8 straight into one growing buffer, without a string per value. The bytes are those of
// `JSON.stringify`; property tests hold both equal. Hot messages are written by hand with this writer.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const ASCII_LAST = 0x7f;
const ZERO = 0x30;
const POINT = 0x2e;

/** Longer texts are written by the platform. For short texts a call into the platform costs more than the loop. */
const SHORT_CHARACTERS_MAX = 256;
/** The most bytes of one UTF-16 unit in UTF-8. */
const BYTES_PER_UNIT_MAX = 3;
/** Maximum size of a number that is written digit by digit: 32 bits, a point and four decimals. */
const NUMBER_BYTES_MAX = 16;
const DECIMALS = 1e4;
const BYTES_MIN = 1_024;

/** A constant piece of JSON: names of fields and punctuation. */
export type Piece = Uint8Array;

export function piece(json: string): Piece {
  return Buffer.from(json);
}

export class JsonWriter {
  #bytes = Buffer.allocUnsafe(BYTES_MIN);
  #length = 0;
  /** The piece and the string of the last `contents`: the first byte, and the byte after the last. */
  contentsFrom = -1;
  contentsTo = -1;

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  /** The bytes written so far, valid until `clear`. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Begins a new text in the same memory. */
  clear(): void {
    this.#length = 0;
    this.contentsFrom = -1;
    this.contentsTo = -1;
  }

  /** Adds bytes that are JSON already. */
  raw(json: Uint8Array): void {
    const { length } = json;
    this.#reserve(length);
    const bytes = this.#bytes;
    let at = this.#length;
    // Pieces are short: a call of `set` costs more than the loop.
    for (let n = 0; n < length; n += 1) bytes[at++] = json[n] as number;
    this.#length = at;
  }

  /** Adds a piece, and a string with its quotes. */
  text(before: Piece, value: string): void {
    this.raw(before);
    const { length } = value;
    if (length > SHORT_CHARACTERS_MAX) return this.#stringified(value);
    this.#reserve(2 * length + 2);
    const bytes = this.#bytes;
    let at = this.#length;
    bytes[at++] = QUOTE;
    for (let n = 0; n < length; n += 1) {
      const unit = value.charCodeAt(n);
      if (unit < SPACE || unit > ASCII_LAST) return this.#stringified(value);
      if (unit === QUOTE || unit === BACKSLASH) bytes[at++] = BACKSLASH;
      bytes[at++] = unit;
    }
    bytes[at++] = QUOTE;
    this.#length = at;
  }

  /** As `text`, for a payload or a result. */
  contents(before: Piece, value: string): void {
    this.contentsFrom = this.#length;
    this.text(before, value);
    this.contentsTo = this.#length;
  }

  /** Adds a piece and a number. */
  number(before: Piece, value: number): void {
    this.raw(before);
    this.#reserve(NUMBER_BYTES_MAX);
    if ((value | 0) === value && value >= 0) return this.#digits(value);
    // With so few digits, the shortest form of a number is its only form without trailing zeros.
    const scaled = Math.round(value * DECIMALS);
    if ((scaled | 0) === scaled && scaled > 0 && scaled / DECIMALS === value) return this.#decimals(scaled);
    this.#stringified(value);
  }

  /** Adds a piece and any other value. */
  value(before: Piece, value: object): void {
    this.raw(before);
    this.#stringified(value);
  }

  #stringified(value: object | string | number): void {
    const json = JSON.stringify(value);
    this.#reserve(json.length * BYTES_PER_UNIT_MAX);
    this.#length += this.#bytes.write(json, this.#length);
  }

  #digits(value: number): void {
    const bytes = this.#bytes;
    let end = this.#length + 1;
    for (let rest = value; rest >= 10; rest = (rest / 10) | 0) end += 1;
    this.#length = end;
    let rest = value;
    do {
      const tens = (rest / 10) | 0;
      end -= 1;
      bytes[end] = ZERO + rest - tens * 10;
      rest = tens;
    } while (rest > 0);
  }

  #decimals(scaled: number): void {
    const whole = (scaled / DECIMALS) | 0;
    this.#digits(whole);
    const bytes = this.#bytes;
    let at = this.#length;
    bytes[at++] = POINT;
    let rest = scaled - whole * DECIMALS;
    for (let unit = DECIMALS / 10; rest > 0; unit /= 10) {
      const digit = (rest / unit) | 0;
      bytes[at++] = ZERO + digit;
      rest -= digit * unit;
    }
    this.#length = at;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.written);
    this.#bytes = grown;
  }
}
