// The room of the journal: the usage by the last answer of the storage, plus all bytes stored since. Usage is asked
// for from time to time, and no caller waits. The added bytes matter in a small journal: the journal could be full
// before the next answer.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { Journal, JournalUsage } from "../journal/journal.ts";
import { limits } from "../limits.ts";
import { ThrottledPoll } from "./throttled-poll.ts";

/** Whether a batch may find no room: less is free than the largest batch takes, and less than is kept free of
 *  tasks, or than the leader announces to need. */
export function isFull({ bytes, bytesMax }: JournalUsage, neededBytes = 0): boolean {
  if (bytesMax === undefined) return false;
  const keptBytes = bytesMax * (1 - limits.journalFullShare);
  const takenBytes = neededBytes + limits.journalRecordOverheadBytes;
  const takenBytesMax = limits.turnBytesMax + limits.batchBytesMax + limits.journalRecordOverheadBytes;
  return bytesMax - bytes < Math.min(takenBytesMax, Math.max(keptBytes, takenBytes));
}

export type BoundedUsage = JournalUsage & { readonly bytesMax: number };

export class JournalRoom {
  readonly #journal: Journal;
  readonly #logger: Logger;
  readonly #throttledPoll: ThrottledPoll;
  #usage: JournalUsage = { bytes: 0, bytesMax: undefined };
  #isShort = false;
  /** Bytes stored since the last question. The answer may or may not count them. */
  #bytesSinceAsked = 0;

  constructor(journal: Journal, clock: Clock, logger: Logger) {
    this.#journal = journal;
    this.#logger = logger;
    this.#throttledPoll = new ThrottledPoll({
      clock,
      everyMs: limits.journalUsageMs,
      look: () => this.#look(),
    });
    this.look();
  }

  get usage(): JournalUsage {
    return this.#usage;
  }

  /** Above `limits.journalFullShare` of the bound: no tasks are accepted; results and terms go on. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /** Above `limits.journalUnassignedShare` of the bound: nothing is assigned, to leave room for results of running
   *  tasks. */
  get isTight(): boolean {
    return this.tightUsage !== undefined;
  }

  /** Undefined unless room is tight. */
  get tightUsage(): BoundedUsage | undefined {
    const usage = this.#usage;
    return isAbove(usage, limits.journalUnassignedShare) ? usage : undefined;
  }

  /** A record of so many bytes was stored. */
  stored(bytes: number): void {
    const more = bytes + limits.journalRecordOverheadBytes;
    this.#bytesSinceAsked += more;
    this.#take({ ...this.#usage, bytes: this.#usage.bytes + more });
  }

  /** Asks again when the last answer is old. */
  look(): void {
    this.#throttledPoll.look();
  }

  /** Asks however young the last answer is: at once, or at the next look where an answer is awaited. */
  lookAgain(): void {
    this.#throttledPoll.lookSoon();
    this.#throttledPoll.look();
  }

  #look(): Promise<void> {
    this.#bytesSinceAsked = 0;
    return this.#journal.usage().then(
      (usage) => this.#take({ ...usage, bytes: usage.bytes + this.#bytesSinceAsked }),
      () => undefined, // unreachable just now: the last figure stays
    );
  }

  #take(usage: JournalUsage): void {
    this.#usage = usage;
    const isShort = isAbove(usage, limits.journalFullShare);
    if (isShort === this.#isShort) return;
    this.#isShort = isShort;
    if (isShort)
      this.#logger.error(
        roomFields(usage),
        "the journal is short of room: no tasks are accepted until some is freed",
      );
    else this.#logger.info("the journal has room again: tasks are accepted");
  }
}

/** Usage, bound and remedy, for the log. */
export function roomFields({ bytes, bytesMax, remedy }: JournalUsage): Partial<JournalUsage> {
  return { bytes, bytesMax, ...(remedy === undefined ? {} : { remedy }) };
}

function isAbove(usage: JournalUsage, share: number): usage is BoundedUsage {
  const { bytes, bytesMax } = usage;
  return bytesMax !== undefined && bytes > bytesMax * share;
}
