// Keeps bytes in blocks of memory that are used again. With an array of its own for each piece, V8 counts each array
// that outlives the collections of the young generation. It marks the whole heap after each 64 MiB of such arrays.

import { Buffer } from "node:buffer";

interface Block {
  readonly bytes: Buffer;
  /** Bytes from the begin that were written. */
  used: number;
  /** Number of pieces. */
  kept: number;
}

export interface Piece {
  readonly block: Block;
  readonly from: number;
  readonly to: number;
}

export class ReusedMemory {
  readonly #blockBytes: number;
  /** Takes the next pieces. */
  #block: Block = newBlock(0);
  /** A block without pieces, for later. */
  #spare: Block | undefined;
  #bytes = 0;

  /** @param blockBytes size of a block, ≥ 1; a larger piece gets a block of its size */
  constructor(blockBytes: number) {
    this.#blockBytes = blockBytes;
  }

  /** Size of all pieces. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a copy, until `release`. */
  keep(bytes: Uint8Array): Piece {
    if (this.#block.used + bytes.length > this.#block.bytes.length)
      this.#block = this.#nextBlock(bytes.length);
    const block = this.#block;
    const from = block.used;
    block.bytes.set(bytes, from);
    block.used += bytes.length;
    block.kept += 1;
    this.#bytes += bytes.length;
    return { block, from, to: block.used };
  }

  /** Call once per piece, which may not be read afterwards. */
  release(piece: Piece | undefined): void {
    if (piece === undefined) return;
    const { block, from, to } = piece;
    this.#bytes -= to - from;
    block.kept -= 1;
    if (block.kept > 0 || block === this.#block) return;
    block.used = 0;
    this.#spare = block;
  }

  #nextBlock(bytes: number): Block {
    const spare = this.#spare;
    if (spare === undefined || bytes > spare.bytes.length) return newBlock(Math.max(bytes, this.#blockBytes));
    this.#spare = undefined;
    return spare;
  }
}

/** A copy: the block may be used again. */
export function bytesOf(piece: Piece | undefined): Uint8Array | undefined {
  return piece && Buffer.from(piece.block.bytes.subarray(piece.from, piece.to));
}

function newBlock(bytes: number): Block {
  return { bytes: Buffer.allocUnsafeSlow(bytes), used: 0, kept: 0 };
}
