// The newest records of a journal as they were read or stored, kept to be appended again, byte for byte, should the
// journal lose its end. Dead records are among them: who comes behind must stand where it stood.
//
// Bounded by age and by bytes, whichever is reached first. Beyond that a lost end cannot be put back.

import { limits } from "../limits.ts";
import type { JournalRecord } from "./journal.ts";

interface Kept {
  readonly bytes: Uint8Array;
  readonly keptMonotonicMs: number;
  /** As it was read last. */
  isDead: boolean;
}

export class RecentRecords {
  /** Of the first one kept. */
  #firstSeq = 1;
  /** Contiguous; those before `#head` are dropped and let go, and their places cut off now and then. */
  #kept: (Kept | undefined)[] = [];
  #head = 0;
  #bytes = 0;

  /** Of the first one kept, or to be. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  /** 0 when nothing was ever kept. */
  get lastSeq(): number {
    return this.#firstSeq + this.#kept.length - this.#head - 1;
  }

  /** Of the newest one that is not dead. 0 when none is kept. */
  get lastLiveSeq(): number {
    return this.lastLiveUntil(this.lastSeq);
  }

  /** Of the newest one up to `untilSeq` that is not dead. 0 when none is kept. */
  lastLiveUntil(untilSeq: number): number {
    for (let seq = Math.min(untilSeq, this.lastSeq); seq >= this.#firstSeq; seq -= 1)
      if (this.#keptAt(seq)?.isDead === false) return seq;
    return 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Behind which record all that came up to `seq` could be put back: the oldest that is not dead, for one of those has
   *  to be compared. Infinite where that is not held. */
  heldFromSeq(seq: number): number {
    if (this.lastSeq < seq) return Number.POSITIVE_INFINITY;
    const oldestLive = this.#kept.findIndex((kept) => kept?.isDead === false);
    return oldestLive < 0 ? Number.POSITIVE_INFINITY : this.#firstSeq + oldestLive - this.#head;
  }

  at(seq: number): JournalRecord | undefined {
    const kept = this.#keptAt(seq);
    return kept === undefined ? undefined : { seq, bytes: kept.bytes };
  }

  /** The newest one of which `isIt` holds. */
  findLast(isIt: (record: JournalRecord) => boolean): JournalRecord | undefined {
    for (let seq = this.lastSeq; seq >= this.#firstSeq; seq -= 1) {
      const record = this.at(seq);
      if (record !== undefined && isIt(record)) return record;
    }
    return undefined;
  }

  /** What stood behind a record stands there no more. */
  forgetBehind(seq: number): void {
    if (seq < this.#firstSeq - 1) return this.#restart(seq + 1);
    while (this.lastSeq > seq) this.#bytes -= this.#kept.pop()?.bytes.length ?? 0;
  }

  /** Keeps a record that stands in the journal. One that was kept before stays; another one in its place takes that of
   *  all behind it, too; and one that stands further than right behind the last, or before the first, of all. */
  add({ seq, bytes }: JournalRecord, monotonicMs: number, { isDead } = { isDead: false }): void {
    const before = this.#keptAt(seq);
    if (before !== undefined && isSameBytes(before.bytes, bytes)) {
      before.isDead = isDead;
      return;
    }
    if (before !== undefined) this.forgetBehind(seq - 1);
    if (seq !== this.lastSeq + 1) this.#restart(seq);
    this.#kept.push({ bytes, keptMonotonicMs: monotonicMs, isDead });
    this.#bytes += bytes.length;
    this.#drop(monotonicMs);
  }

  #keptAt(seq: number): Kept | undefined {
    return seq < this.#firstSeq ? undefined : this.#kept[this.#head + seq - this.#firstSeq];
  }

  #restart(seq: number): void {
    this.#firstSeq = seq;
    this.#kept = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  /** What is too old or too much; never the last one, which shows where the journal ends. */
  #drop(monotonicMs: number): void {
    for (; this.#head < this.#kept.length - 1; this.#head += 1) {
      const oldest = this.#kept[this.#head] as Kept;
      const isOld = monotonicMs - oldest.keptMonotonicMs > limits.recentRecordsMs;
      if (!isOld && this.#bytes <= limits.recentRecordsBytes) break;
      this.#kept[this.#head] = undefined;
      this.#bytes -= oldest.bytes.length;
      this.#firstSeq += 1;
    }
    if (this.#head <= 1024 || this.#head * 2 <= this.#kept.length) return;
    this.#kept = this.#kept.slice(this.#head);
    this.#head = 0;
  }
}

export function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}
