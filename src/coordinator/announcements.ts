// What other coordinators say of themselves on the subject `coordinator`: who is there, and how far each holds the
// journal. Whoever holds less does not campaign, so that the one that holds more can put back what the journal lost.
//
// The rule: an announcement counts for 2·T after it was heard, by our own clock, and for no longer; so the word of a
// coordinator that died delays an election by no more than that. And words must become deeds: anybody may publish here,
// so when the journal was read to its end five times, each T after the one before, and it still shows nothing of what
// is announced, nobody is waited for any longer, whatever they say and call themselves, until the journal goes on
// (docs/adr/0012-a-journal-that-loses-records.md). While the journal is full, or has less room than who leads
// says that it needs, that one is left to lead for T, as if it had appended. Announcements decide nothing else.

import { limits } from "../limits.ts";
import { isFurther, type JournalPoint } from "../protocol/journal-point.ts";
import type { CoordinatorHeartbeat } from "../protocol/schemas.ts";

export interface Contender {
  readonly beat: CoordinatorHeartbeat;
  /** Whether it is to be waited for. */
  readonly isBelieved: boolean;
}

/** For who holds more of the journal than `own`. */
interface Wait {
  readonly own: JournalPoint;
  /** How often the journal was read meanwhile, and did not go on. */
  times: number;
  countedMonotonicMs: number;
}

interface Said {
  readonly beat: CoordinatorHeartbeat;
  readonly monotonicMs: number;
}

interface Heard extends Said {
  /** With the most of the journal, of what it said lately: a message that comes late takes nothing back. */
  readonly furthest: Said;
  hasLeft: boolean;
}

/** Longer than any announcement counts. */
const SAID_MS = limits.announcementTimeouts * limits.leaderTimeoutMsMax;

export class Announcements {
  /** Longest not heard first. */
  readonly #heardById = new Map<string, Heard>();
  #wait: Wait | undefined;

  /** A coordinator that ends stands by no more; what it held counts on, for a message that comes late takes nothing
   *  back. */
  note(beat: CoordinatorHeartbeat, monotonicMs: number): void {
    if (beat.leaves === true) {
      const known = this.#heardById.get(beat.id);
      if (known !== undefined) known.hasLeft = true;
      return;
    }
    const said = { beat, monotonicMs };
    const before = this.#heardById.get(beat.id)?.furthest;
    const isLess = before !== undefined && isFurther(before.beat, beat);
    const furthest = isLess && monotonicMs - before.monotonicMs <= SAID_MS ? before : said;
    this.#heardById.delete(beat.id);
    this.#heardById.set(beat.id, { ...said, furthest, hasLeft: false });
    const [oldest] = this.#heardById.keys();
    if (this.#heardById.size > limits.announcersMax && oldest !== undefined) this.#heardById.delete(oldest);
  }

  /** Who announced no longer than 2·T ago that it holds more of the journal than `own`: the one with most. To be asked
   *  when the journal was just read to its end, which is `own`. @param timeoutMs T */
  ahead(own: JournalPoint, { now, timeoutMs }: { now: number; timeoutMs: number }): Contender | undefined {
    const beat = this.#furthest(own, now - limits.announcementTimeouts * timeoutMs);
    if (beat === undefined) this.#wait = undefined;
    else if (this.#wait?.own.term !== own.term || this.#wait.own.idx !== own.idx)
      this.#wait = { own: { term: own.term, idx: own.idx }, times: 0, countedMonotonicMs: now };
    else if (now - this.#wait.countedMonotonicMs >= timeoutMs) {
      this.#wait.times += 1;
      this.#wait.countedMonotonicMs = now;
    }
    return beat && { beat, isBelieved: (this.#wait?.times ?? 0) < limits.announcementWaitsMax };
  }

  #furthest(own: JournalPoint, sinceMonotonicMs: number): CoordinatorHeartbeat | undefined {
    let most: CoordinatorHeartbeat | undefined;
    for (const { furthest, ...newest } of this.#heardById.values())
      for (const { beat, monotonicMs } of [furthest, newest])
        if (monotonicMs >= sinceMonotonicMs && isFurther(beat, most ?? own)) most = beat;
    return most;
  }

  /** Whether somebody announced no longer than `withinMs` ago that it leads `term`, or a later one. */
  isLed(term: number, lately: { now: number; withinMs: number }): boolean {
    return this.#leading(term, lately).length > 0;
  }

  /** The largest batch for which one of those says that the journal has no room; 0 where nobody does. */
  neededBytes(term: number, lately: { now: number; withinMs: number }): number {
    return Math.max(0, ...this.#leading(term, lately).map(({ neededBytes = 0 }) => neededBytes));
  }

  #leading(
    term: number,
    { now, withinMs }: { now: number; withinMs: number },
  ): readonly CoordinatorHeartbeat[] {
    return [...this.#heardById.values()]
      .filter(({ beat, monotonicMs }) => beat.leading && beat.term >= term && now - monotonicMs <= withinMs)
      .map(({ beat }) => beat);
  }

  /** Whether anybody announced anything no longer than `withinMs` ago. */
  hasHeard({ now, withinMs }: { now: number; withinMs: number }): boolean {
    return [...this.#heardById.values()].some(({ monotonicMs }) => now - monotonicMs <= withinMs);
  }

  /** Coordinators that were heard no longer than `withinMs` ago and have not left. */
  present({ now, withinMs }: { now: number; withinMs: number }): readonly string[] {
    const all = [...this.#heardById];
    return all.flatMap(([id, { hasLeft, monotonicMs }]) =>
      !hasLeft && now - monotonicMs <= withinMs ? [id] : [],
    );
  }

  /** Who stands by, heard no longer than `withinMs` ago. */
  standbys({ now, withinMs }: { now: number; withinMs: number }): readonly string[] {
    const recent = [...this.#heardById.values()].filter(({ monotonicMs }) => now - monotonicMs <= withinMs);
    return recent.filter(({ beat, hasLeft }) => !beat.leading && !hasLeft).map(({ beat }) => beat.id);
  }
}
