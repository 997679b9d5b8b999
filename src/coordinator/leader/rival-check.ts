// Before a leader appends that was out of touch with the journal for T or longer: does another lead by now?
//
// As a rule the journal says so, for the other's records stand in the place that is expected. But a journal that lost
// its end in a power failure may have lost them, and takes what a former leader sends in their place: two lines, of
// which one is lost. So a leader that was out of touch listens first, as a standby does before it campaigns:
//
//   somebody says that it is in a later term → waits until the journal shows it, or that is no longer believed
//                                              (announcements.ts)
//   somebody says something else             → appends
//   nobody says anything                     → appends after 2·T; at once where nobody was heard for minutes, for then
//                                              nobody is there
//
// Where the journal goes on meanwhile, that is read first, and it listens on: by records that everybody skips it would
// else be kept from appending for as long as somebody writes them. Once it has listened for 2·T and nobody says that it
// is in a later term, what was read is sent behind at once.
//
// Not here: what the journal says (committer.ts).

import type { Clock } from "../../clock.ts";
import type { Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import { standsBatch } from "../../journal/standing-batch.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { Announcements } from "../announcements.ts";
import type { Timing } from "../timing.ts";

export interface RivalCheckDeps {
  readonly journal: Journal;
  readonly announcements: Announcements;
  readonly clock: Clock;
  readonly timing: Timing;
  readonly term: Term;
  /** Which journal it is. */
  readonly of: () => string;
  /** When the newest append was sent that was acknowledged. */
  readonly provenMonotonicMs: () => number;
  readonly isOver: () => boolean;
}

export class RivalCheck {
  readonly #deps: RivalCheckDeps;
  #passedMonotonicMs = Number.NEGATIVE_INFINITY;
  /** Since when it listens, to a journal that answers. */
  #listeningMonotonicMs: number | undefined;
  /** When it was last asked who says that it leads. */
  #askedMonotonicMs = Number.POSITIVE_INFINITY;

  constructor(deps: RivalCheckDeps) {
    this.#deps = deps;
  }

  /** Whether another may have been elected since the journal was last heard of, and since this was last asked. */
  get isDue(): boolean {
    const { journal, timing } = this.#deps;
    return journal.sharable && this.#now - this.#sureMonotonicMs >= timing.timeoutMs;
  }

  /** Resolves when it may append behind `lastSeq`. False where the journal does not end there: what it holds is to be
   *  read first, and what was listened counts the next time. */
  async pass(lastSeq: number): Promise<boolean> {
    const { clock, timing, announcements, provenMonotonicMs, isOver } = this.#deps;
    if (this.#askedMonotonicMs <= provenMonotonicMs()) announcements.countAnew(); // the journal went on by ours
    if ((this.#listeningMonotonicMs ?? 0) <= this.#sureMonotonicMs) this.#listeningMonotonicMs = undefined;
    let hasJustRead = this.#listeningMonotonicMs !== undefined;
    let mayBeRivalled = this.#hasHeard(this.#now - limits.recentRecordsMs);
    while (mayBeRivalled && !isOver()) {
      if (!hasJustRead) await pause(clock, timing.beatMs);
      hasJustRead = false;
      const endSeq = await this.#endOfJournal();
      // Out of reach, it may be the server that was, and nobody was heard.
      if (endSeq === undefined) this.#listeningMonotonicMs = undefined;
      else this.#listeningMonotonicMs ??= this.#now - timing.beatMs;
      const sinceMonotonicMs = this.#listeningMonotonicMs;
      if (endSeq === undefined || sinceMonotonicMs === undefined) continue;
      if (endSeq !== lastSeq) {
        await this.#lookBehind(endSeq, sinceMonotonicMs);
        return false;
      }
      mayBeRivalled = this.#isRivalled(sinceMonotonicMs);
    }
    this.#passedMonotonicMs = this.#now;
    return true;
  }

  /** Where nobody answers, nobody was heard: what was listened, and that it passed, count no more. */
  unanswered(): void {
    this.#listeningMonotonicMs = undefined;
    this.#passedMonotonicMs = Number.NEGATIVE_INFINITY;
  }

  /** When it was last known that nobody else led. */
  get #sureMonotonicMs(): number {
    return Math.max(this.#deps.provenMonotonicMs(), this.#passedMonotonicMs);
  }

  /** To be asked when the journal was just found to end where it did. */
  #isRivalled(sinceMonotonicMs: number): boolean {
    const { announcements, timing } = this.#deps;
    this.#askedMonotonicMs = this.#now;
    const claim = announcements.ahead(this.#anyOfOurs, { now: this.#now, timeoutMs: timing.timeoutMs });
    if (claim !== undefined) return claim.isBelieved;
    return !this.#hasHeard(sinceMonotonicMs) && this.#now - sinceMonotonicMs < this.#heardMs;
  }

  /** The journal was just found to end elsewhere. Where a batch stands there, or may, words may have been followed by
   *  deeds, and are counted anew; what somebody else writes says nothing. Where that one writes on and on the journal
   *  never ends where it was read to: once it has listened for long, what is read next is sent behind. */
  async #lookBehind(endSeq: number, sinceMonotonicMs: number): Promise<void> {
    const { journal, announcements, of } = this.#deps;
    const isBatch = await standsBatch(endSeq, of(), journal);
    if (isBatch !== false) announcements.countAnew();
    if (isBatch === undefined) return this.unanswered();
    const lately = { now: this.#now, withinMs: this.#heardMs };
    const isRivalled = isBatch
      ? announcements.isMoreHeld(this.#anyOfOurs, lately)
      : this.#isRivalled(sinceMonotonicMs);
    const hasListened = this.#now - sinceMonotonicMs >= this.#heardMs;
    if (hasListened && !isRivalled) this.#passedMonotonicMs = this.#now;
  }

  /** For how long an announcement counts: 2·T. */
  get #heardMs(): number {
    return limits.announcementTimeouts * this.#deps.timing.timeoutMs;
  }

  get #anyOfOurs(): JournalPoint {
    return { term: this.#deps.term, idx: Number.MAX_SAFE_INTEGER };
  }

  async #endOfJournal(): Promise<number | undefined> {
    try {
      return (await this.#deps.journal.position()).lastSeq;
    } catch {
      return undefined; // whoever appends or reads says why
    }
  }

  #hasHeard(sinceMonotonicMs: number): boolean {
    return this.#deps.announcements.hasHeard({ now: this.#now, withinMs: this.#now - sinceMonotonicMs });
  }

  get #now(): number {
    return this.#deps.clock.monotonicMs();
  }
}
