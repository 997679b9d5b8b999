// The newest batches of a log in memory, for pages of the audit and for copying into the next segment. Bounded by age
// and by bytes.

import { limits } from "../limits.ts";
import { bytesOf, type Piece, ReusedMemory } from "../reused-memory.ts";

interface Kept {
  readonly piece: Piece;
  readonly keptMonotonicMs: number;
}

export class RecentBatches {
  #memory = new ReusedMemory(limits.recentBlockBytes);
  #firstIdx = 1;
  /** Contiguous. Entries before `#head` are dropped, and removed from the array now and then. */
  #kept: (Kept | undefined)[] = [];
  #head = 0;

  get bytes(): number {
    return this.#memory.bytes;
  }

  /** Index of the oldest kept batch. If no batch is kept: the newest batch's index + 1. */
  get firstIdx(): number {
    return this.#firstIdx;
  }

  at(idx: number): Uint8Array | undefined {
    return idx < this.#firstIdx ? undefined : bytesOf(this.#kept[this.#head + idx - this.#firstIdx]?.piece);
  }

  /** Adds the next batch of the log. A batch with a different index clears the list first. */
  add(idx: number, bytes: Uint8Array, monotonicMs: number): void {
    if (idx !== this.#firstIdx + this.#kept.length - this.#head) {
      this.#memory = new ReusedMemory(limits.recentBlockBytes);
      this.#firstIdx = idx;
      this.#kept = [];
      this.#head = 0;
    }
    this.#kept.push({ piece: this.#memory.keep(bytes), keptMonotonicMs: monotonicMs });
    this.#drop(monotonicMs);
  }

  /** Drops the uncommitted batches after `idx`. */
  dropBehind(idx: number): void {
    for (; this.#kept.length > this.#head && this.#firstIdx + this.#kept.length - this.#head - 1 > idx; )
      this.#memory.release(this.#kept.pop()?.piece);
  }

  #drop(monotonicMs: number): void {
    for (; this.#head < this.#kept.length - 1; this.#head += 1) {
      const oldest = this.#kept[this.#head] as Kept;
      const isOld = monotonicMs - oldest.keptMonotonicMs > limits.recentRecordsMs;
      if (!isOld && this.bytes <= limits.recentRecordsBytes) break;
      this.#kept[this.#head] = undefined;
      this.#memory.release(oldest.piece);
      this.#firstIdx += 1;
    }
    if (this.#head <= 1024 || this.#head * 2 <= this.#kept.length) return;
    this.#kept = this.#kept.slice(this.#head);
    this.#head = 0;
  }
}
