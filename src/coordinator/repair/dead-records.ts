// What is said of records that everybody skips. Those that leaders leave behind when they change are part of life;
// one that no coordinator of this journal wrote is an alarm. Of each sort a line at once and then one a minute, with
// how many there were since: whoever writes there may write on and on.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import { type DeadReason, isAlien } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";

/** The last record of a sort, and why it is dead. */
interface Dead {
  readonly seq: number;
  readonly reason: DeadReason;
}

export class DeadRecordLog {
  readonly #aliens: QuietLine;
  readonly #leftBehind: QuietLine;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#aliens = new QuietLine(clock, (fields) =>
      logger.error(
        fields,
        "a record that is not ours stands in the journal: everybody skips it; find out who may write there (`waggle doctor`)",
      ),
    );
    this.#leftBehind = new QuietLine(clock, (fields) =>
      logger.warn(
        fields,
        "a record that a former leader left behind stands in the journal: everybody skips it",
      ),
    );
  }

  tell({ seq }: JournalRecord, reason: DeadReason): void {
    const line = isAlien(reason) ? this.#aliens : this.#leftBehind;
    line.say({ seq, reason });
  }

  /** What waits to be said is not. Idempotent. */
  stop(): void {
    this.#aliens.stop();
    this.#leftBehind.stop();
  }
}

class QuietLine {
  readonly #clock: Clock;
  readonly #write: (fields: Dead & { readonly records: number }) => void;
  /** Not said yet. */
  #records = 0;
  #last: Dead | undefined;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, write: (fields: Dead & { readonly records: number }) => void) {
    this.#clock = clock;
    this.#write = write;
  }

  say(dead: Dead): void {
    this.#records += 1;
    this.#last = dead;
    if (this.#cancel === undefined) this.#sayAll();
  }

  stop(): void {
    this.#cancel?.();
  }

  #sayAll(): void {
    this.#cancel = undefined;
    if (this.#last === undefined || this.#records === 0) return;
    this.#write({ ...this.#last, records: this.#records });
    this.#records = 0;
    this.#cancel = this.#clock.after(limits.deadRecordsQuietMs, () => this.#sayAll());
  }
}
