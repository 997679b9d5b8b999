// Checks that consecutive batches form one log, without gaps and without a rewritten past. Not here: hashes, known to
// `verify` and not to a reader.

import { JournalDamagedError } from "../errors.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { LossError } from "../protocol/loss-error.ts";
import type { JournalBatch } from "./journal-pages.ts";

export class BatchSequence {
  #last: JournalPoint | undefined;

  get last(): JournalPoint | undefined {
    return this.#last;
  }

  /** @throws JournalDamagedError when batches are missing or terms fall
   *  @throws LossError when a term begins inside the read part: its first batch replaced a batch read before */
  append(batch: JournalBatch): void {
    const last = this.#last;
    if (last !== undefined) {
      if (batch.idx !== last.idx + 1) {
        throw new JournalDamagedError(
          `After batch ${last.idx} comes batch ${batch.idx}: the batches between are no longer kept`,
        );
      }
      if (batch.term < last.term) {
        throw new JournalDamagedError(
          `Batch ${batch.idx} is of term ${batch.term}, its predecessor of term ${last.term}`,
        );
      }
      const beginsTerm = batch.events.some((event) => event.type === "TermStarted");
      if (batch.term > last.term && !beginsTerm) throw new LossError(last, batch);
    }
    this.#last = { term: batch.term, idx: batch.idx };
  }
}
