// All that clients have read from the journal, bounded: reads never starve appends. Pages that are asked for at the
// same time, from the same batch on, share one read. A few reads run at once, a few more wait, and every further one
// is refused with BackpressureError. So is what exceeds the budget of a project or of all. Not here: what is answered
// from memory, and what a page holds (audit-reader.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { BackpressureError } from "../../errors.ts";
import type { LogReader, StoredBatch } from "../../journal/log-reader.ts";
import { OpenReadings } from "../../journal/open-readings.ts";
import type { Batch } from "../../journal/records.ts";
import { limits } from "../../limits.ts";
import { ReadBudget } from "./read-budget.ts";
import { ReadSlots } from "./read-slots.ts";

export interface JournalReadsDeps {
  readonly logReader: LogReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly isLeading: () => boolean;
  /** Whether another coordinator leads, by its own announcements. A standby leaves what must be read to that leader:
   *  each coordinator's readings weigh on the same server. Without a leader a standby reads one page at a time. */
  readonly isLed: () => boolean;
}

export class JournalReads {
  readonly budget: ReadBudget;
  readonly #deps: JournalReadsDeps;
  readonly #readings: OpenReadings;
  readonly #pageSlots: ReadSlots;
  readonly #batchSlots: ReadSlots;
  /** Under way, or read just now. */
  readonly #pageByIdx = new Map<number, Promise<readonly StoredBatch[]>>();
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
  async page(from: number): Promise<readonly StoredBatch[]> {
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

  /** Runs a read that takes as long as a page. @throws BackpressureError when too many wait, or another leads */
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
    if (this.#cancelLine === undefined) this.#tell(project);
  }

  /** Idempotent. */
  stop(): void {
    this.#readings.stop();
    this.#cancelLine?.();
  }

  #tell(project: string): void {
    this.#cancelLine = undefined;
    if (this.#refused === 0) return;
    this.#deps.logger.warn(
      { project, requests: this.#refused },
      "clients ask for more of the journal than is read for them: requests are refused, and readers wait",
    );
    this.#refused = 0;
    this.#cancelLine = this.#deps.clock.after(limits.readsRefusedQuietMs, () => this.#tell(project));
  }
}
