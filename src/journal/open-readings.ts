// Readings of a journal that stay open for whoever goes on where one stopped: a reader of page after page needs one
// reading, and not one per page. On a NATS server each is a consumer, so there are never more than a few. One that
// nobody uses for `limits.journalReadingIdleMs` is closed.

import { assert } from "../assert.ts";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Journal, JournalRecord } from "./journal.ts";

export interface OpenReadingsDeps {
  readonly journal: Pick<Journal, "replay">;
  readonly clock: Pick<Clock, "after">;
  /** Readings that may be open at the same time, now; at most `limits.pageReadsAtOnce`. */
  readonly atOnce: () => number;
}

export class OpenReadings {
  readonly #deps: OpenReadingsDeps;
  readonly #busy = new Set<Reading>();
  /** The one used longest ago first. */
  #idle: Reading[] = [];
  #cancelClosing: (() => void) | undefined;
  #isOver = false;

  constructor(deps: OpenReadingsDeps) {
    this.#deps = deps;
  }

  /** Records from `fromSeq` on, in order, as long as their bytes fit; always the first one. None when the journal ends
   *  before. At most `atOnce()` callers at a time.
   *  @throws UnreachableError, JournalDamagedError */
  async read(fromSeq: number, bytesMax: number): Promise<readonly JournalRecord[]> {
    const reading = this.#take(fromSeq);
    try {
      if (this.#busy.size + this.#idle.length > this.#deps.atOnce()) await this.#idle.shift()?.close();
      const records = await reading.take(bytesMax);
      if (reading.hasEnded) await reading.close();
      else this.#keep(reading);
      return records;
    } finally {
      this.#busy.delete(reading);
    }
  }

  /** Closes what is idle, and keeps nothing any more. Idempotent. */
  stop(): void {
    this.#isOver = true;
    void this.#closeIdle();
  }

  #take(fromSeq: number): Reading {
    const standing = this.#idle.find(({ nextSeq }) => nextSeq === fromSeq);
    const reading = standing ?? new Reading(this.#deps.journal, fromSeq);
    this.#idle = this.#idle.filter((each) => each !== standing);
    this.#busy.add(reading);
    assert(this.#busy.size <= limits.pageReadsAtOnce, "there is a reading for each caller");
    return reading;
  }

  #keep(reading: Reading): void {
    if (this.#isOver) return void reading.close();
    this.#idle.push(reading);
    this.#cancelClosing?.();
    const { clock } = this.#deps;
    this.#cancelClosing = clock.after(limits.journalReadingIdleMs, () => void this.#closeIdle());
  }

  async #closeIdle(): Promise<void> {
    this.#cancelClosing?.();
    const closing = this.#idle;
    this.#idle = [];
    await Promise.all(closing.map((reading) => reading.close()));
  }
}

/** A reading of the journal, and the record that did not fit any more. */
class Reading {
  readonly #records: AsyncIterator<JournalRecord>;
  #held: JournalRecord | undefined;
  nextSeq: number;
  hasEnded = false;

  constructor(journal: Pick<Journal, "replay">, fromSeq: number) {
    this.nextSeq = fromSeq;
    this.#records = journal
      .replay(fromSeq, { aheadBytes: limits.pageAheadBytes, patienceMs: limits.requestTimeoutMs })
      [Symbol.asyncIterator]();
  }

  async take(bytesMax: number): Promise<JournalRecord[]> {
    const taken: JournalRecord[] = [];
    for (let bytes = 0; ; ) {
      const record = this.#held ?? (await this.#next());
      if (record === undefined) return taken;
      bytes += record.bytes.length;
      this.#held = record;
      if (taken.length > 0 && bytes > bytesMax) return taken;
      this.#held = undefined;
      this.nextSeq = record.seq + 1;
      taken.push(record);
    }
  }

  async close(): Promise<void> {
    await this.#records.return?.();
  }

  async #next(): Promise<JournalRecord | undefined> {
    const { done, value } = await this.#records.next();
    this.hasEnded = done === true;
    return this.hasEnded ? undefined : value;
  }
}
