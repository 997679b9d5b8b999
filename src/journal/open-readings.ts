// Open readings of a log: a client that asks for page after page uses a single reading instead of one per page. On a
// NATS server each reading is a consumer, so their number is bounded. A reading is closed after
// `limits.journalReadingIdleMs` without use.

import { assert } from "../assert.ts";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { LogReader, StoredBatch } from "./log-reader.ts";

/** A stored batch, compared with its successor as far as the reading goes. */
export interface ReadBatch extends Pick<StoredBatch, "header" | "bytes"> {
  /** The next batch names another hash: this batch is not as it was written. */
  readonly isChanged: boolean;
}

export interface OpenReadingsDeps {
  readonly logReader: Pick<LogReader, "replay">;
  readonly clock: Pick<Clock, "after">;
  /** The present bound on open readings; at most `limits.pageReadsAtOnce`. */
  readonly atOnce: () => number;
}

export class OpenReadings {
  readonly #deps: OpenReadingsDeps;
  readonly #busy = new Set<Reading>();
  /** Least recently used first. */
  #idle: Reading[] = [];
  #cancelClosing: (() => void) | undefined;
  #isOver = false;

  constructor(deps: OpenReadingsDeps) {
    this.#deps = deps;
  }

  /** Batches from `from` on, in order, up to `bytesMax`; the first batch may be larger. Empty if the log ends before
   *  `from`. At most `atOnce()` callers at a time.
   *  @throws UnreachableError, JournalDamagedError */
  async read(from: number, bytesMax: number): Promise<readonly ReadBatch[]> {
    const reading = this.#take(from);
    try {
      if (this.#busy.size + this.#idle.length > this.#deps.atOnce()) await this.#idle.shift()?.close();
      const batches = await reading.take(bytesMax);
      if (reading.hasEnded) await reading.close();
      else this.#keep(reading);
      return batches;
    } finally {
      this.#busy.delete(reading);
    }
  }

  /** Closes idle readings, and from now on every reading after use. Idempotent. */
  stop(): void {
    this.#isOver = true;
    void this.#closeIdle();
  }

  #take(from: number): Reading {
    const standing = this.#idle.find(({ nextIdx }) => nextIdx === from);
    const reading = standing ?? new Reading(this.#deps.logReader, from);
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

/** A reading of the log, with the first batch that did not fit the last page. */
class Reading {
  readonly #batches: AsyncIterator<StoredBatch>;
  #held: StoredBatch | undefined;
  nextIdx: number;
  hasEnded = false;

  constructor(logReader: Pick<LogReader, "replay">, from: number) {
    this.nextIdx = from;
    this.#batches = logReader
      .replay(from, { aheadBytes: limits.pageAheadBytes, patienceMs: limits.requestTimeoutMs })
      [Symbol.asyncIterator]();
  }

  async take(bytesMax: number): Promise<ReadBatch[]> {
    const taken: ReadBatch[] = [];
    for (let bytes = 0; ; ) {
      const stored = this.#held ?? (await this.#next());
      if (stored === undefined) return taken;
      const { header, breaksChain } = stored;
      const last = taken.pop();
      if (last !== undefined) taken.push(breaksChain === true ? { ...last, isChanged: true } : last);
      bytes += stored.bytes.length;
      this.#held = stored;
      if (taken.length > 0 && bytes > bytesMax) return taken;
      this.#held = undefined;
      this.nextIdx = header.idx + 1;
      taken.push({ header, bytes: stored.bytes, isChanged: false });
    }
  }

  async close(): Promise<void> {
    await this.#batches.return?.();
  }

  async #next(): Promise<StoredBatch | undefined> {
    const { done, value } = await this.#batches.next();
    this.hasEnded = done === true;
    return this.hasEnded ? undefined : value;
  }
}
