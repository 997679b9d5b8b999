// What the journal lost, found while nobody here led: remembered, should this coordinator come to lead, until it is on
// record that it is lost. Not here: what is done about it (rescue.ts, lost-end.ts).

import type { TrimReason } from "../core/event.ts";
import type { JournalDamagedError } from "../errors.ts";
import type { BatchIndex } from "../ids.ts";

export interface Losses {
  /** Not rescued by the leader of then, as far as is known. */
  readonly hole: JournalDamagedError | undefined;
  /** The last batch of an end that is lost for good, until it is on record that it is. */
  readonly lostEnd: BatchIndex | undefined;
}

export class SeenLosses {
  #hole: JournalDamagedError | undefined;
  #lostEnd: BatchIndex | undefined;

  get hole(): JournalDamagedError | undefined {
    return this.#hole;
  }

  sawHole(lost: JournalDamagedError): void {
    this.#hole = lost;
  }

  sawLostEnd(lastIdx: BatchIndex): void {
    this.#lostEnd = lastIdx;
  }

  /** It is on record that something is lost. */
  recorded(reason: TrimReason): void {
    if (reason === "hole") this.#hole = undefined;
    if (reason === "tail-lost") this.#lostEnd = undefined;
  }

  /** What a restart reads is whole. @param before the hole that was known when that was read */
  readWhole(before: JournalDamagedError | undefined): void {
    if (this.#hole === before) this.#hole = undefined;
  }

  /** For whoever leads now and sees to them: nothing is remembered of them any more. */
  take(): Losses {
    const losses = { hole: this.#hole, lostEnd: this.#lostEnd };
    this.#hole = undefined;
    this.#lostEnd = undefined;
    return losses;
  }
}
