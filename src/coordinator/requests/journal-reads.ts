// All that clients have read from the journal, bounded: reads never starve appends. Pages that are asked for at the
// same time, from the same record on, share one read. A few reads run at once, a few more wait, and every further one
// is refused with BackpressureError. So is what exceeds the budget of a project or of all. Not here: what is answered
// from memory, and what a page holds (audit-reader.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { BackpressureError } from "../../errors.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import { OpenReadings } from "../../journal/open-readings.ts";
import { limits } from "../../limits.ts";
import { ReadBudget } from "./read-budget.ts";
import { ReadSlots } from "./read-slots.ts";

export interface JournalReadsDeps {
  readonly journal: Journal;
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
  readonly #recordSlots: ReadSlots;
  /** Under way, or read just now. */
  readonly #pageBySeq = new Map<number, Promise<readonly JournalRecord[]>>();
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
    this.#recordSlots = new ReadSlots({
      atOnce: () => limits.outcomeReadsAtOnce,
      waitingMax: limits.outcomeReadsWaitingMax,
    });
  }

  /** The records of a page, dead ones included. @throws BackpressureError, UnreachableError, JournalDamagedError */
  async page(fromSeq: number): Promise<readonly JournalRecord[]> {
    const shared = this.#pageBySeq.get(fromSeq);
    if (shared !== undefined) return await shared;
    const page = this.slot(() => this.#readings.read(fromSeq, limits.queryPageBytesMax));
    this.#pageBySeq.set(fromSeq, page);
    const forget = () => this.#pageBySeq.delete(fromSeq);
    page.then(() => {
      if (this.#pageBySeq.size > limits.pagesSharedMax) forget();
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

  /** One record. @throws BackpressureError, UnreachableError, JournalDamagedError */
  async record(seq: number): Promise<JournalRecord | undefined> {
    return await this.#recordSlots.run(() => this.#deps.journal.read(seq));
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
