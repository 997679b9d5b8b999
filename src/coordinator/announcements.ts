// Announcements of peer coordinators on the subject `coordinator`: present coordinators, and their positions in the
// journal. A coordinator with fewer batches does not campaign, so that a coordinator with more batches can restore lost
// records.
//
// The rule: an announcement counts for 2·T after its arrival, by the monotonic clock. So a dead coordinator delays an
// election by at most 2·T. Any client may publish announcements, so the journal must confirm them: it is read to the
// end five times, T apart. If the announced records never appear, no coordinator waits any longer until the journal
// grows (docs/adr/0012-a-journal-that-loses-records.md).
//
// While the journal is full, or has less room than the leader announces to need, an announcement of the leader counts
// like an append for T. Announcements decide nothing else.

import { limits } from "../limits.ts";
import { isFurther, type JournalPoint } from "../protocol/journal-point.ts";
import type { CoordinatorHeartbeat } from "../protocol/schemas.ts";

export interface Contender {
  readonly announcement: CoordinatorHeartbeat;
  /** Whether to wait for the coordinator. */
  readonly isBelieved: boolean;
}

/** The wait for a coordinator with more of the journal than `own`. */
interface Wait {
  readonly own: JournalPoint;
  /** How often the journal was read meanwhile, and did not go on. */
  times: number;
  countedMonotonicMs: number;
}

interface Said {
  readonly announcement: CoordinatorHeartbeat;
  readonly monotonicMs: number;
}

interface Heard extends Said {
  /** The announcement with the most of the journal, among recent ones: a late message takes nothing back. */
  readonly furthest: Said;
  hasLeft: boolean;
}

/** Longer than any announcement counts. */
const SAID_MS = limits.announcementTimeouts * limits.leaderTimeoutMsMax;

export class Announcements {
  /** Longest not heard first. */
  readonly #heardById = new Map<string, Heard>();
  #wait: Wait | undefined;

  /** Notes an announcement. A leaving coordinator is no longer a standby; its position still counts. */
  note(announcement: CoordinatorHeartbeat, monotonicMs: number): void {
    if (announcement.leaves === true) {
      const known = this.#heardById.get(announcement.id);
      if (known !== undefined) known.hasLeft = true;
      return;
    }
    const said = { announcement, monotonicMs };
    const before = this.#heardById.get(announcement.id)?.furthest;
    const isLess = before !== undefined && isFurther(before.announcement, announcement);
    const furthest = isLess && monotonicMs - before.monotonicMs <= SAID_MS ? before : said;
    this.#heardById.delete(announcement.id);
    this.#heardById.set(announcement.id, { ...said, furthest, hasLeft: false });
    const [oldest] = this.#heardById.keys();
    if (this.#heardById.size > limits.announcersMax && oldest !== undefined) this.#heardById.delete(oldest);
  }

  /** The coordinator with the most of the journal announced within 2·T, if more than `own`. To be asked right after
   *  a read of the journal to its end, `own`. @param timeoutMs T */
  ahead(own: JournalPoint, { now, timeoutMs }: { now: number; timeoutMs: number }): Contender | undefined {
    const announcement = this.#furthest(own, now - limits.announcementTimeouts * timeoutMs);
    if (announcement === undefined) this.#wait = undefined;
    else if (this.#wait?.own.term !== own.term || this.#wait.own.idx !== own.idx)
      this.#wait = { own: { term: own.term, idx: own.idx }, times: 0, countedMonotonicMs: now };
    else if (now - this.#wait.countedMonotonicMs >= timeoutMs) {
      this.#wait.times += 1;
      this.#wait.countedMonotonicMs = now;
    }
    return (
      announcement && { announcement, isBelieved: (this.#wait?.times ?? 0) < limits.announcementWaitsMax }
    );
  }

  #furthest(own: JournalPoint, sinceMonotonicMs: number): CoordinatorHeartbeat | undefined {
    let most: CoordinatorHeartbeat | undefined;
    for (const { furthest, ...newest } of this.#heardById.values())
      for (const { announcement, monotonicMs } of [furthest, newest])
        if (monotonicMs >= sinceMonotonicMs && isFurther(announcement, most ?? own)) most = announcement;
    return most;
  }

  /** The coordinator that announced within `withinMs` to lead the highest term, `term` or later. */
  leader(term: number, lately: { now: number; withinMs: number }): CoordinatorHeartbeat | undefined {
    return [...this.#leading(term, lately)].sort((a, b) => b.term - a.term)[0];
  }

  /** The largest batch without room by announcements of leaders; 0 without one. */
  neededBytes(term: number, lately: { now: number; withinMs: number }): number {
    return Math.max(0, ...this.#leading(term, lately).map(({ neededBytes = 0 }) => neededBytes));
  }

  #leading(
    term: number,
    { now, withinMs }: { now: number; withinMs: number },
  ): readonly CoordinatorHeartbeat[] {
    return [...this.#heardById.values()]
      .filter(
        ({ announcement, monotonicMs }) =>
          announcement.leading && announcement.term >= term && now - monotonicMs <= withinMs,
      )
      .map(({ announcement }) => announcement);
  }

  /** Whether any coordinator announced anything within `withinMs`. */
  hasHeard({ now, withinMs }: { now: number; withinMs: number }): boolean {
    return [...this.#heardById.values()].some(({ monotonicMs }) => now - monotonicMs <= withinMs);
  }

  /** Coordinators heard within `withinMs`, except for those gone. */
  present({ now, withinMs }: { now: number; withinMs: number }): readonly string[] {
    const all = [...this.#heardById];
    return all.flatMap(([id, { hasLeft, monotonicMs }]) =>
      !hasLeft && now - monotonicMs <= withinMs ? [id] : [],
    );
  }

  /** Standbys heard within `withinMs`. */
  standbys({ now, withinMs }: { now: number; withinMs: number }): readonly string[] {
    const recent = [...this.#heardById.values()].filter(({ monotonicMs }) => now - monotonicMs <= withinMs);
    return recent
      .filter(({ announcement, hasLeft }) => !announcement.leading && !hasLeft)
      .map(({ announcement }) => announcement.id);
  }
}
