// Checks that batches, as they are read, form one line: without gaps, and without a past that was rewritten
// behind the reader. What a reader can see of it; `verify` sees more, since it has the hashes.

import { JournalDamagedError } from "../errors.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { LossError } from "../protocol/loss-error.ts";
import type { JournalBatch } from "./journal-pages.ts";

export class BatchLine {
  #last: JournalPoint | undefined;

  get last(): JournalPoint | undefined {
    return this.#last;
  }

  /** @throws JournalDamagedError when batches are missing or terms fall
   *  @throws LossError when a term begins in the middle: what it began with replaced something read before */
  append(batch: JournalBatch): void {
    const last = this.#last;
    if (last !== undefined) {
      if (batch.idx !== last.idx + 1) {
        throw new JournalDamagedError(
          `After batch ${last.idx} comes batch ${batch.idx}: what lies between is no longer kept`,
        );
      }
      if (batch.term < last.term) {
        throw new JournalDamagedError(
          `Batch ${batch.idx} is of term ${batch.term}, the one before of term ${last.term}`,
        );
      }
      const beginsTerm = batch.events.some((event) => event.type === "TermStarted");
      if (batch.term > last.term && !beginsTerm) throw new LossError(last, batch);
    }
    this.#last = { term: batch.term, idx: batch.idx };
  }
}
