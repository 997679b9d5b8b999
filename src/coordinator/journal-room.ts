// How much room the journal has, as last heard: asked for now and then, never waited for.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { Journal, JournalUsage } from "../journal/journal.ts";
import { limits } from "../limits.ts";
import { Lookout } from "./lookout.ts";

/** Whether a batch may find no room: less is free than the largest takes, and than is kept free of tasks. */
export function isFull({ bytes, bytesMax }: JournalUsage): boolean {
  if (bytesMax === undefined) return false;
  const batchBytesMax = limits.turnBytesMax + limits.batchBytesMax;
  return bytesMax - bytes < Math.min(batchBytesMax, bytesMax * (1 - limits.journalFullShare));
}

export class JournalRoom {
  readonly #journal: Journal;
  readonly #logger: Logger;
  readonly #lookout: Lookout;
  #usage: JournalUsage = { bytes: 0, bytesMax: undefined };
  #isShort = false;

  constructor(journal: Journal, clock: Clock, logger: Logger) {
    this.#journal = journal;
    this.#logger = logger;
    this.#lookout = new Lookout({
      clock,
      everyMs: limits.journalUsageMs,
      look: () => this.#look(),
    });
    this.look();
  }

  get usage(): JournalUsage {
    return this.#usage;
  }

  /** Above `limits.journalFullShare` of its bound: no tasks are accepted, results and terms go on. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /** Asks again when the last answer is old. */
  look(): void {
    this.#lookout.look();
  }

  /** Asks however young the last answer is: at once, or at the next look where an answer is awaited. */
  lookAgain(): void {
    this.#lookout.lookSoon();
    this.#lookout.look();
  }

  #look(): Promise<void> {
    return this.#journal.usage().then(
      (usage) => this.#heard(usage),
      () => undefined, // unreachable just now: the last figure stays
    );
  }

  #heard(usage: JournalUsage): void {
    this.#usage = usage;
    const isShort = usage.bytesMax !== undefined && usage.bytes > usage.bytesMax * limits.journalFullShare;
    if (isShort === this.#isShort) return;
    this.#isShort = isShort;
    if (isShort)
      this.#logger.error("the journal is short of room: no tasks are accepted until some is freed");
    else this.#logger.info("the journal has room again: tasks are accepted");
  }
}
