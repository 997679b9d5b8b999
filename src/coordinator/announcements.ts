// What other coordinators say of themselves on the subject `coordinator`: who is there, and how far each holds the
// journal. Whoever holds less does not campaign, so that the one that holds more can put back what the journal lost.
//
// The rule: an announcement counts for 2·T after it was heard, by our own clock, and for no longer; so a word that is
// wrong, or of a coordinator that died, delays an election by no more than that. While the
// journal is full, who says that it leads is left to lead for T, as if it had appended. It decides nothing else.

import { limits } from "../limits.ts";
import type { CoordinatorBeat } from "../protocol/schemas.ts";

export interface Progress {
  readonly term: number;
  readonly idx: number;
}

interface Heard {
  readonly beat: CoordinatorBeat;
  readonly monotonicMs: number;
}

export class Announcements {
  /** Longest not heard first. */
  readonly #heardById = new Map<string, Heard>();

  note(beat: CoordinatorBeat, monotonicMs: number): void {
    this.#heardById.delete(beat.id);
    this.#heardById.set(beat.id, { beat, monotonicMs });
    const [oldest] = this.#heardById.keys();
    if (this.#heardById.size > limits.announcersMax && oldest !== undefined) this.#heardById.delete(oldest);
  }

  /** Who announced no longer than `withinMs` ago that it holds more of the journal than `own`: the one with most. */
  ahead(own: Progress, { now, withinMs }: { now: number; withinMs: number }): CoordinatorBeat | undefined {
    let most: CoordinatorBeat | undefined;
    for (const { beat, monotonicMs } of this.#heardById.values())
      if (now - monotonicMs <= withinMs && isFurther(beat, most ?? own)) most = beat;
    return most;
  }

  /** Whether somebody announced no longer than `withinMs` ago that it leads `term`, or a later one. */
  isLed(term: number, { now, withinMs }: { now: number; withinMs: number }): boolean {
    return [...this.#heardById.values()].some(
      ({ beat, monotonicMs }) => beat.leading && beat.term >= term && now - monotonicMs <= withinMs,
    );
  }

  /** Who stands by, heard no longer than `withinMs` ago. */
  standbys({ now, withinMs }: { now: number; withinMs: number }): readonly string[] {
    const recent = [...this.#heardById.values()].filter(({ monotonicMs }) => now - monotonicMs <= withinMs);
    return recent.filter(({ beat }) => !beat.leading).map(({ beat }) => beat.id);
  }
}

function isFurther(one: Progress, other: Progress): boolean {
  return one.term > other.term || (one.term === other.term && one.idx > other.idx);
}
