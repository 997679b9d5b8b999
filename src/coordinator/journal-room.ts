// How much room the journal has, as last heard: asked for now and then, never waited for.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { Journal, JournalUsage } from "../journal/journal.ts";
import { limits } from "../limits.ts";

/** Whether a batch may find no room: less is free than the largest takes, and than is kept free of tasks. */
export function isFull({ bytes, bytesMax }: JournalUsage): boolean {
  if (bytesMax === undefined) return false;
  const batchBytesMax = limits.turnBytesMax + limits.batchBytesMax;
  return bytesMax - bytes < Math.min(batchBytesMax, bytesMax * (1 - limits.journalFullShare));
}

export class JournalRoom {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #usage: JournalUsage = { bytes: 0, bytesMax: undefined };
  #askedMonotonicMs = Number.NEGATIVE_INFINITY;
  #isShort = false;

  constructor(journal: Journal, clock: Clock, logger: Logger) {
    this.#journal = journal;
    this.#clock = clock;
    this.#logger = logger;
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
    const now = this.#clock.monotonicMs();
    if (now - this.#askedMonotonicMs < limits.journalUsageMs) return;
    this.#askedMonotonicMs = now;
    this.#journal.usage().then(
      (usage) => this.#heard(usage),
      () => undefined, // unreachable just now: the last figure stays
    );
  }

  /** Asks at once: much has changed. */
  lookAgain(): void {
    this.#askedMonotonicMs = Number.NEGATIVE_INFINITY;
    this.look();
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
