// Whether journal time keeps pace with true time within a term, whatever wall clocks show. Knows when each batch was
// first sent, because one that is stored late is stamped no later for it.

import { hashOf } from "../../journal/records.ts";

/** How fast journal time may run, per true ms: the drift of monotonic clocks and what is taken up of a skew. */
const PACE_MAX = 1.05;
/** …and how far it may be ahead beside that, ms. */
const AHEAD_MS_MAX = 6_000;
/** So many of a term's first batches may say when it began. The election waits for a journal that answers, the second
 *  while its leader listens for a rival, and those behind it for the second: each may be sent long after it was
 *  decided. */
const STARTS = 4;

interface Stamp {
  readonly term: number;
  readonly at: number;
  readonly sentMs: number;
}

/** What a batch says of its time. */
interface Stamped {
  readonly term: number;
  readonly at: number;
  readonly hash: string;
}

export class TermPace {
  readonly #sentMsByHash = new Map<string, number>();
  #start: Stamp | undefined;
  #last: Stamp | undefined;
  /** Of its term, up to the last. */
  #batches = 0;

  /** Somebody sends a record, not always for the first time. */
  sent(bytes: Uint8Array, nowMs: number): void {
    const hash = hashOf(bytes);
    if (!this.#sentMsByHash.has(hash)) this.#sentMsByHash.set(hash, nowMs);
  }

  /** When the next batch of the journal was decided, virtual ms: it may wait for the one before it to be stored, and
   *  is sent only then. Undefined of one nobody sent. */
  decidedMs({ term, at, hash }: Stamped): number | undefined {
    const sentMs = this.#sentMsByHash.get(hash);
    if (sentMs === undefined || this.#last?.term !== term) return sentMs;
    return Math.min(sentMs, this.#last.sentMs + at - this.#last.at);
  }

  /** What is wrong with the time of the next batch of the journal, if anything. Of one nobody sent nothing is known. */
  check({ term, at, hash }: Stamped): string | undefined {
    const sentMs = this.#sentMsByHash.get(hash);
    if (sentMs === undefined) return undefined;
    this.#last = { term, at, sentMs };
    const start = this.#startWith(this.#last);
    const trueMs = sentMs - start.sentMs;
    const journalMs = at - start.at;
    if (journalMs <= trueMs * PACE_MAX + AHEAD_MS_MAX) return undefined;
    return `${journalMs} ms of journal time went by in term ${term} while ${Math.round(trueMs)} ms did`;
  }

  /** Of the term's first batches, the one that was sent soonest after it was decided says when the term began. */
  #startWith(next: Stamp): Stamp {
    const start = this.#start?.term === next.term ? this.#start : undefined;
    this.#batches = start === undefined ? 1 : this.#batches + 1;
    const isSooner = start === undefined || next.sentMs - next.at < start.sentMs - start.at;
    this.#start = isSooner && this.#batches <= STARTS ? next : start;
    return this.#start ?? next;
  }
}
