// Before a candidate sends its election, and each time that it sends it again after a pause: does another hold more of
// the journal by now, and does the journal end with the records that the candidate read, from the last batch on?
//
// It asked the first before it campaigned (silence-look.ts), and read to the end. But where the journal is full, or
// cannot be reached, it goes on sending for as long as that lasts, and reads nothing meanwhile. A power failure may
// take the end of the journal. What another wrote who was elected: then the journal would take the election in its
// place, two leaders of one term, and one's batches lost. Or a dead record, in whose place the leader writes a batch:
// then the journal, which counts records and does not compare them, would take the election behind a line that it does
// not continue.
//
//   somebody says that it holds more → waits until the journal goes on, or that is no longer believed
//                                      (announcements.ts)
//   another record stands in a place → the campaign is lost
//   none is found there              → looks again, until that is believed
//   the journal goes on              → what stands there is read first
//   none of these                    → sends
//
// Not here: a leader that was out of touch (rival-check.ts), and what the journal says (committer.ts).

import type { Clock } from "../../clock.ts";
import { type Endurance, lossEndurance } from "../../endurance.ts";
import type { Journal } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import { isSameLine } from "../../journal/refill.ts";
import { standsBatch } from "../../journal/standing-batch.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { Announcements } from "../announcements.ts";
import type { Timing } from "../timing.ts";

export interface CandidateCheckDeps {
  readonly journal: Journal;
  readonly announcements: Announcements;
  readonly clock: Clock;
  /** Of the term that it followed. */
  readonly timing: Timing;
  /** Up to where it has read the journal, and which one that is; "" before its first batch. */
  readonly held: JournalPoint & { readonly journal: string };
  readonly recent: RecentRecords;
  readonly isOver: () => boolean;
}

export class CandidateCheck {
  /** That a record is not found that was read: the committer goes on with it. */
  readonly miss: Endurance;
  readonly #deps: CandidateCheckDeps;
  #passedMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(deps: CandidateCheckDeps) {
    this.#deps = deps;
    this.miss = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
  }

  /** Wherever anybody else may write; but not where the election was refused right after it passed: where somebody
   *  else writes on and on, more stands there by the time that all is compared, each time. What is sent again is
   *  compared before it counts (committer.ts). */
  get isDue(): boolean {
    const { journal, clock } = this.#deps;
    return journal.sharable && clock.monotonicMs() - this.#passedMonotonicMs >= limits.appendRetryMs;
  }

  /** Resolves when it may send behind `lastSeq`; also where the journal has lacked what was read up to it for so long
   *  that it is believed, which whoever sends finds out. False where the journal goes on behind that, which is to be
   *  read first.
   *  @throws UnreachableError; JournalDamagedError when other records stand up to `lastSeq` than were read there */
  async pass(lastSeq: number): Promise<boolean> {
    const { journal, recent, announcements, held, clock, timing, isOver } = this.#deps;
    while (!isOver()) {
      const endSeq = await this.#endOfJournal();
      if (endSeq !== undefined) {
        const isFound = await isSameLine(journal, recent, lastSeq, this.miss);
        const goesOn = endSeq > lastSeq;
        if (goesOn && (await standsBatch(endSeq, held.journal, journal)) !== false) announcements.countAnew();
        const isPassed = isFound && !this.#isLeftToAnother(goesOn);
        if (isPassed) this.#passedMonotonicMs = clock.monotonicMs();
        if (isPassed || goesOn) return !goesOn;
      }
      await pause(clock, timing.beatMs);
    }
    return false;
  }

  unanswered(): void {
    this.#passedMonotonicMs = Number.NEGATIVE_INFINITY;
  }

  /** Words count as empty only where the journal ends with what is held: behind that there may be what they tell of. */
  #isLeftToAnother(goesOn: boolean): boolean {
    const { announcements, held } = this.#deps;
    const { now, timeoutMs } = this.#lately;
    if (!goesOn) return announcements.ahead(held, { now, timeoutMs })?.isBelieved === true;
    return announcements.isMoreHeld(held, { now, withinMs: limits.announcementTimeouts * timeoutMs });
  }

  async #endOfJournal(): Promise<number | undefined> {
    try {
      return (await this.#deps.journal.position()).lastSeq;
    } catch {
      this.miss.renew();
      return undefined; // asked again; of a journal that is gone others say so (journal-watch.ts)
    }
  }

  get #lately() {
    const { clock, timing } = this.#deps;
    return { now: clock.monotonicMs(), timeoutMs: timing.timeoutMs };
  }
}
