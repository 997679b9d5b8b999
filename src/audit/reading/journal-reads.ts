// Bounds all reads of the journal for clients, so that reads never starve appends. Concurrent requests for pages from
// one batch on share a read. A few reads run at once, a few more wait, and every further read is refused with
// BackpressureError. So is a read above the budget of its project, or of all projects. Not here: batches in memory,
// and contents of a page (audit-reader.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { formatCount } from "../../count-text.ts";
import { BackpressureError } from "../../errors.ts";
import type { LogReader } from "../../journal/log-reader.ts";
import { OpenReadings, type ReadBatch } from "../../journal/open-readings.ts";
import type { Batch } from "../../journal/records.ts";
import { limits } from "../../limits.ts";

export interface JournalReadsDeps {
  readonly logReader: LogReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly isLeading: () => boolean;
  /** Whether another coordinator leads, by its announcements. A standby then leaves reads to the leader, because
   *  all reads load the same server. Without a leader a standby reads one page at a time. */
  readonly isLed: () => boolean;
}

export class JournalReads {
  readonly budget: ReadBudget;
  readonly #deps: JournalReadsDeps;
  readonly #readings: OpenReadings;
  readonly #pageSlots: ReadSlots;
  readonly #batchSlots: ReadSlots;
  /** Under way, or read just now. */
  readonly #pageByIdx = new Map<number, Promise<readonly ReadBatch[]>>();
  /** Refused since the last line of the log. */
  #refused = 0;
  #cancelLine: (() => void) | undefined;

  constructor(deps: JournalReadsDeps) {
    this.#deps = deps;
    this.budget = new ReadBudget(deps.clock);
    const atOnce = () => (deps.isLeading() ? limits.pageReadsAtOnce : 1);
    this.#readings = new OpenReadings({ ...deps, atOnce });
    this.#pageSlots = new ReadSlots({
      atOnce,
      waitingMax: limits.pageReadsWaitingMax,
    });
    this.#batchSlots = new ReadSlots({
      atOnce: () => limits.outcomeReadsAtOnce,
      waitingMax: limits.outcomeReadsWaitingMax,
    });
  }

  /** The batches of a page. @throws BackpressureError, UnreachableError, JournalDamagedError */
  async page(from: number): Promise<readonly ReadBatch[]> {
    const shared = this.#pageByIdx.get(from);
    if (shared !== undefined) return await shared;
    const page = this.slot(() => this.#readings.read(from, limits.queryPageBytesMax));
    this.#pageByIdx.set(from, page);
    const forget = () => this.#pageByIdx.delete(from);
    page.then(() => {
      if (this.#pageByIdx.size > limits.pagesSharedMax) forget();
      else this.#deps.clock.after(limits.pageSharedMs, forget);
    }, forget);
    return await page;
  }

  /** Runs a read of a page's length. @throws BackpressureError when too many wait, or another coordinator leads */
  async slot<Read>(read: () => Promise<Read>): Promise<Read> {
    if (!this.#deps.isLeading() && this.#deps.isLed())
      throw new BackpressureError("the leader reads the journal for clients", limits.retryAfterMs);
    return await this.#pageSlots.run(read);
  }

  /** One batch. @throws BackpressureError, UnreachableError, JournalDamagedError */
  async batch(idx: number): Promise<Batch | undefined> {
    return await this.#batchSlots.run(() => this.#deps.logReader.batch(idx));
  }

  /** A request was refused: says so at once, and then once a minute of all. */
  refused(project: string): void {
    this.#refused += 1;
    if (this.#cancelLine === undefined) this.#log(project);
  }

  /** Idempotent. */
  stop(): void {
    this.#readings.stop();
    this.#cancelLine?.();
  }

  #log(project: string): void {
    this.#cancelLine = undefined;
    if (this.#refused === 0) return;
    this.#deps.logger.warn(
      { project, requests: this.#refused },
      "clients ask for more of the journal than is read for them: requests are refused, and readers wait",
    );
    this.#refused = 0;
    this.#cancelLine = this.#deps.clock.after(limits.readsRefusedQuietMs, () => this.#log(project));
  }
}

interface ReadSlotsOptions {
  /** Concurrent reads, now. */
  readonly atOnce: () => number;
  /** Reads that may wait for a slot. */
  readonly waitingMax: number;
}

/** Limits how many reads of the journal run at once. A limited number waits, in order; every further read is
 *  refused. */
class ReadSlots {
  readonly #options: ReadSlotsOptions;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: ReadSlotsOptions) {
    this.#options = options;
  }

  /** Runs a read when a slot is free. @throws BackpressureError when too many wait; whatever `read` throws */
  async run<Read>(read: () => Promise<Read>): Promise<Read> {
    const { atOnce, waitingMax } = this.#options;
    if (this.#running >= atOnce()) {
      if (this.#waiting.length >= waitingMax)
        throw new BackpressureError(
          `${formatCount(waitingMax)} reads of the journal wait, the maximum: try again later`,
          limits.retryAfterMs,
        );
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running += 1;
    try {
      return await read();
    } finally {
      this.#passOn();
    }
  }

  /** Passes the slot to the longest waiting read. */
  #passOn(): void {
    const next = this.#running > this.#options.atOnce() ? undefined : this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}

interface Bucket {
  /** Below 0 where a page cost more than was expected. */
  left: number;
  filledMonotonicMs: number;
}

/** Key of the bucket that all projects share; no project has this name. */
const EVERYBODY = "*";

/** Limits how many bytes of the journal are read per project, and for all projects together: two token buckets.
 *  Each record costs its bytes and a fixed overhead, so a page of many small records costs more than a page of one
 *  large record. A small page may fit the budget where a whole page does not: followers of the journal's end are
 *  served while a flood of whole pages is held back. */
export class ReadBudget {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** By project; the longest unused first. */
  readonly #bucketByProject = new Map<string, Bucket>();

  readonly #what: "journal" | "answers";

  /** @param what is bounded */
  constructor(clock: Pick<Clock, "monotonicMs">, what: "journal" | "answers" = "journal") {
    this.#clock = clock;
    this.#what = what;
  }

  /** Takes the cost of a read, at least `limits.pageCostMin`. @throws BackpressureError when too little is left */
  take(project: string, cost: number): void {
    const taken = Math.max(cost, limits.pageCostMin);
    const { pageBytesPerSecond: ofProject, pageBytesPerSecondOfAll: ofAll } = limits;
    const buckets = [
      { bucket: this.#filled(EVERYBODY, ofAll), perSecond: ofAll },
      { bucket: this.#filled(project, ofProject), perSecond: ofProject },
    ];
    const waitMs = Math.max(
      ...buckets.map(({ bucket, perSecond }) => ((taken - bucket.left) / perSecond) * 1_000),
    );
    if (waitMs > 0)
      throw new BackpressureError(
        this.#what === "journal"
          ? "more of the journal is asked for than is read for a project in a second: try again later"
          : "more is asked about a project than is answered in a second: try again later",
        Math.max(limits.pageRetryMsMin, Math.ceil(waitMs)),
      );
    for (const { bucket } of buckets) bucket.left -= taken;
  }

  /** Corrects the cost of a read. */
  settle(project: string, { taken, cost }: { readonly taken: number; readonly cost: number }): void {
    const back = Math.max(taken, limits.pageCostMin) - Math.max(cost, limits.pageCostMin);
    this.#filled(EVERYBODY, limits.pageBytesPerSecondOfAll).left += back;
    this.#filled(project, limits.pageBytesPerSecond).left += back;
  }

  /** A bucket holds the bytes of `limits.pageBurstMs`. */
  #filled(key: string, perSecond: number): Bucket {
    const now = this.#clock.monotonicMs();
    const most = (perSecond * limits.pageBurstMs) / 1_000;
    const bucket = this.#bucketByProject.get(key) ?? { left: most, filledMonotonicMs: now };
    bucket.left = Math.min(most, bucket.left + (perSecond * (now - bucket.filledMonotonicMs)) / 1_000);
    bucket.filledMonotonicMs = now;
    this.#bucketByProject.delete(key);
    this.#bucketByProject.set(key, bucket);
    const [oldest] = this.#bucketByProject.keys();
    if (this.#bucketByProject.size > limits.readBudgetsMax && oldest !== undefined)
      this.#bucketByProject.delete(oldest);
    return bucket;
  }
}

/** The cost of a page. */
export function costOf(records: readonly Uint8Array[]): number {
  return records.reduce((sum, { length }) => sum + length, records.length * limits.recordCost);
}
