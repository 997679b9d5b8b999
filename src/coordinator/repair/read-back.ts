// Reads back what the journal acknowledged: a server whose store is damaged may count a record, say so, and never find
// it again. The newest record is asked for now and then, and compared with the bytes that were sent.
//
// The rule: that a record is not found is a doubt at once, and believed after `limits.readBackPatienceMs`, for a server
// that just lost its lead may answer from before. A doubted record is asked for until it is found, or until what it
// holds is safe elsewhere (`forgive`); so is one in whose place another batch stands. Not here: what is done about it
// (rescue.ts).

import type { Clock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { JournalDamagedError } from "../../errors.ts";
import { decodeBatch } from "../../journal/batch.ts";
import type { Journal } from "../../journal/journal.ts";
import { forkError, unreadableError } from "../../journal/journal-errors.ts";
import { isSameBytes, type RecentRecords } from "../../journal/recent-records.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import { Lookout } from "../lookout.ts";

export interface ReadBackDeps {
  readonly journal: Journal;
  readonly recent: RecentRecords;
  /** Of the newest committed batch: what dead records behind it become is no loss. */
  readonly committedSeq: () => number;
  readonly clock: Clock;
}

export interface ReadBackHooks {
  /** The newest record was not found, for the first time. */
  readonly onDoubt: () => void;
  /** It was found, doubted before or not. */
  readonly onFound: () => void;
  /** It is not there, however often it is asked for. Called again while it is not. */
  readonly onUnreadable: (error: JournalDamagedError) => void;
  /** The journal cannot be led on. */
  readonly onDamaged: (error: JournalDamagedError) => void;
}

export class ReadBack {
  readonly #deps: ReadBackDeps;
  readonly #hooks: ReadBackHooks;
  readonly #lookout: Lookout;
  #doubtedSeq: number | undefined;
  #isOver = false;

  constructor(deps: ReadBackDeps, hooks: ReadBackHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#lookout = new Lookout({
      clock: deps.clock,
      everyMs: limits.journalLookMs,
      look: () => this.#look(),
    });
  }

  /** Asks when the last answer is old. */
  look(): void {
    if (!this.#isOver) this.#lookout.look();
  }

  /** The server may have lost something: the next look asks, however young the last answer is. */
  lookSoon(): void {
    this.#lookout.lookSoon();
  }

  /** What was doubted is safe elsewhere. */
  forgive(): void {
    this.#doubtedSeq = undefined;
  }

  /** Whether every record from `fromSeq` to the newest one is found. @throws JournalDamagedError */
  async areKept(fromSeq: number): Promise<boolean> {
    for (let seq = fromSeq; seq <= this.#deps.recent.lastSeq; seq += 1)
      if (!(await this.#isKept(seq, () => undefined))) return false;
    return true;
  }

  /** No further call to a hook. */
  stop(): void {
    this.#isOver = true;
  }

  async #look(): Promise<void> {
    const seq = this.#doubtedSeq ?? this.#deps.committedSeq();
    if (seq === 0) return; // nothing stands there, and a server that is asked for that does not say so
    try {
      const isKept = await this.#isKept(seq, () => {
        this.#doubtedSeq = seq;
        this.#hooks.onDoubt();
      });
      const isForgiven = !isKept && this.#doubtedSeq === undefined;
      if (this.#isOver || isForgiven) return;
      if (!isKept) return this.#hooks.onUnreadable(unreadableError(seq));
      this.#doubtedSeq = undefined;
      this.#hooks.onFound();
    } catch (cause) {
      if (!(cause instanceof JournalDamagedError) || this.#isOver) return;
      this.#doubtedSeq = seq;
      this.#hooks.onDamaged(cause);
    }
  }

  /** Asks until it is found or patience is over; while nobody answers, for ever. @throws JournalDamagedError */
  async #isKept(seq: number, onDoubt: () => void): Promise<boolean> {
    const { clock } = this.#deps;
    const patience = new Endurance(clock, limits.readBackPatienceMs, limits.lossLooksMin);
    let isDoubted = false;
    while (!this.#isOver) {
      const isFound = await this.#isFound(seq);
      if (isFound === true) return true;
      if (isFound === undefined) patience.renew();
      else if (!this.#isOver) {
        if (!isDoubted) onDoubt();
        isDoubted = true;
        if (patience.isBelieved()) return false;
      }
      await pause(clock, limits.appendRetryMs);
    }
    return false;
  }

  /** @returns undefined when nobody answers
   *  @throws JournalDamagedError when another batch stands there */
  async #isFound(seq: number): Promise<boolean | undefined> {
    const { journal, recent } = this.#deps;
    const held = recent.at(seq);
    try {
      const found = await journal.read(seq);
      if (found === undefined || held === undefined) return found !== undefined;
      if (isSameBytes(found.bytes, held.bytes)) return true;
      if (decodeBatch(found.bytes) !== undefined) throw forkError(seq);
      return false; // rotten, or alien: what stood there is gone
    } catch (cause) {
      if (cause instanceof JournalDamagedError) throw cause;
      return undefined;
    }
  }
}
