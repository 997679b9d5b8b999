// What the faults in effect make of each append and each question to the simulated JetStream.

import type { SeededRandom } from "../random.ts";
import type { PublishFate, QuestionFate, StreamFates } from "./jetstream.ts";
import type { Occurrences } from "./occurrences.ts";

/** What goes wrong at present; shares are of appends or questions, in [0, 1]. */
export interface JournalCondition {
  readonly droppedShare: number;
  readonly ackLostShare: number;
  readonly lateShare: number;
  readonly lateMs: number;
  readonly falseRefusalShare: number;
  readonly falseDuplicateShare: number;
  readonly staleShare: number;
  readonly notFoundShare: number;
  readonly isFull: boolean;
  /** Nobody answers, or a server whose journal is off. */
  readonly isAway: boolean;
  readonly isOff: boolean;
  readonly isUnanswered: boolean;
}

/** By how many records a stale answer is behind, at most. */
const STALE_RECORDS = 8;

export class JournalFates implements StreamFates {
  condition: JournalCondition | undefined;
  readonly #random: SeededRandom;
  readonly #occurrences: Occurrences;

  constructor(random: SeededRandom, occurrences: Occurrences) {
    this.#random = random;
    this.#occurrences = occurrences;
  }

  onPublish(): PublishFate {
    const { condition } = this;
    if (condition === undefined) return "store";
    const absence = this.#absence(condition);
    if (absence !== undefined) return absence;
    if (condition.isFull) {
      this.#occurrences.note("storage-full");
      return "full";
    }
    if (this.#random.chance(condition.droppedShare)) return "drop";
    if (this.#random.chance(condition.falseRefusalShare)) {
      this.#occurrences.note("refused-with-an-uncommitted-number");
      return "refuse-uncommitted";
    }
    if (this.#random.chance(condition.falseDuplicateShare)) {
      this.#occurrences.note("called-a-duplicate-and-not-stored");
      return "false-duplicate";
    }
    if (this.#random.chance(condition.lateShare))
      return { lateMs: this.#random.exponential(condition.lateMs) };
    return this.#random.chance(condition.ackLostShare) ? "store-unheard" : "store";
  }

  onQuestion(): QuestionFate {
    const { condition } = this;
    if (condition === undefined) return "answer";
    const absence = this.#absence(condition);
    if (absence !== undefined) return absence;
    if (this.#random.chance(condition.notFoundShare)) {
      this.#occurrences.note("not-found-though-there");
      return "not-found";
    }
    if (!this.#random.chance(condition.staleShare)) return "answer";
    this.#occurrences.note("stale-read");
    return { staleBy: 1 + this.#random.below(STALE_RECORDS) };
  }

  #absence({ isAway, isOff, isUnanswered }: JournalCondition): "nobody" | "off" | undefined {
    if (isUnanswered) return "nobody";
    if (isOff) return "off";
    if (!isAway) return undefined;
    return this.#random.chance(0.5) ? "nobody" : "off";
  }
}
