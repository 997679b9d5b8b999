// Records that the journal lost within, found while nobody here led: remembered, should this coordinator come to lead,
// until it is on record that they are lost. Not here: what is done about it (rescue.ts), nor an end that is lost
// (lost-end.ts).

import type { JournalDamagedError } from "../../errors.ts";

export class SeenHole {
  #error: JournalDamagedError | undefined;

  /** What says that it is there; undefined where none is known that was not rescued. */
  get error(): JournalDamagedError | undefined {
    return this.#error;
  }

  saw(lost: JournalDamagedError): void {
    this.#error = lost;
  }

  /** It is on record that something is lost. */
  forget(): void {
    this.#error = undefined;
  }

  /** What a restart reads is whole. @param before what was known when that was read */
  readWhole(before: JournalDamagedError | undefined): void {
    if (this.#error === before) this.forget();
  }

  /** For whoever leads now and sees to it: nothing is remembered of it any more. */
  take(): JournalDamagedError | undefined {
    const error = this.#error;
    this.forget();
    return error;
  }
}
