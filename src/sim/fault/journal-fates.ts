// The fate of each append and API request to the simulated JetStream under the active faults.

import type { SeededRandom } from "../random.ts";
import type { PublishFate, QuestionFate, StreamFates } from "./jetstream.ts";
import type { Occurrences } from "./occurrences.ts";

/** The active faults of the journal; shares are of appends or requests, in [0, 1]. */
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
  /** The server does not answer (`isAway`), or answers that JetStream is off. */
  readonly isAway: boolean;
  readonly isOff: boolean;
  readonly isUnanswered: boolean;
}

/** Most records that a stale answer may lack. */
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
