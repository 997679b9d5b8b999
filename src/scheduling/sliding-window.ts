// Use within the last so many seconds, at any moment: a window that slides, unlike the budget document's
// (exact/rate-limit-window.ts). It counts in `limits.windowBuckets` buckets and keeps one more, so it never counts
// too little: what it says was used is what was used in the window and at most one bucket (1/60) before it.
// So no true window ever holds more than was let through, and a full one frees at most 1/60 of its length late.

import { InvalidValueError } from "../errors.ts";
import { limits } from "../limits.ts";

export interface SlidingWindowOptions {
  /** Length, in whatever unit `now` has; > 0. */
  readonly length: number;
  /** What may be used within it, ≥ 0. */
  readonly most: number;
}

/** Stateful: `record` alone changes it. A `now` before the newest recorded one counts as that. */
export class SlidingWindow {
  readonly length: number;
  readonly most: number;
  /** Bucket n holds what was recorded in [n · bucketLength, (n + 1) · bucketLength). Oldest first. */
  readonly #usedByBucket = new Map<number, number>();
  #newest = Number.NEGATIVE_INFINITY;

  /** @throws InvalidValueError for a length that is not above 0, or a bound that is negative or no number */
  constructor({ length, most }: SlidingWindowOptions) {
    if (!(Number.isFinite(length) && length > 0)) {
      throw new InvalidValueError(`a window's length is a number above 0, not ${length}`, {
        field: "length",
      });
    }
    if (!(Number.isFinite(most) && most >= 0)) {
      throw new InvalidValueError(`a window's bound is 0 or more, not ${most}`, { field: "most" });
    }
    this.length = length;
    this.most = most;
  }

  /** @throws InvalidValueError for an amount that is negative or no number */
  record(amount: number, now: number): void {
    if (!(Number.isFinite(amount) && amount >= 0)) {
      throw new InvalidValueError(`what is used is 0 or more, not ${amount}`, { field: "amount" });
    }
    const bucket = this.#bucketOf(now);
    this.#newest = bucket;
    for (const old of this.#usedByBucket.keys()) {
      if (old >= this.#oldestCounted(bucket)) break;
      this.#usedByBucket.delete(old);
    }
    this.#usedByBucket.set(bucket, (this.#usedByBucket.get(bucket) ?? 0) + amount);
  }

  /** Within `length` before `now`, and at most 1/60 of it longer. */
  usedAt(now: number): number {
    const oldest = this.#oldestCounted(this.#bucketOf(now));
    let used = 0;
    for (const [bucket, amount] of this.#usedByBucket) if (bucket >= oldest) used += amount;
    return used;
  }

  isExceeded(now: number): boolean {
    return this.usedAt(now) >= this.most;
  }

  /** How long until `isExceeded` is false, when nothing more is used; 0 when it is, infinite when it never is. */
  untilFree(now: number): number {
    let used = this.usedAt(now);
    if (used < this.most) return 0;
    const oldest = this.#oldestCounted(this.#bucketOf(now));
    for (const [bucket, amount] of this.#usedByBucket) {
      if (bucket < oldest) continue;
      used -= amount;
      if (used < this.most) return Math.max(0, this.#leavesAt(bucket) - now);
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The first moment at which a bucket is not counted any more. */
  #leavesAt(bucket: number): number {
    return (bucket + limits.windowBuckets + 1) * this.#bucketLength;
  }

  #oldestCounted(bucket: number): number {
    return bucket - limits.windowBuckets;
  }

  #bucketOf(now: number): number {
    return Math.max(this.#newest, Math.floor(now / this.#bucketLength));
  }

  get #bucketLength(): number {
    return this.length / limits.windowBuckets;
  }
}
