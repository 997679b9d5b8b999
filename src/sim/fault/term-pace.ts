// Checks that journal time keeps pace with true time within a term, whatever wall clocks show. Uses the time of each
// batch's first send, for a late store does not change the batch's timestamp.

import { hashOf } from "../../journal/records.ts";

/** Highest rate of journal time per true ms: the drift of monotonic clocks and the correction of a skew. */
const PACE_MAX = 1.05;
/** …and the largest additional lead, ms. */
const AHEAD_MS_MAX = 6_000;
/**
 * Number of first batches of a term that may define its begin. Each may be sent long after its decision. The election
 * waits for an answer of the journal, the second batch while the leader listens for a rival, and the next batches for
 * the second.
 */
const STARTS = 4;

interface Stamp {
  readonly term: number;
  readonly at: number;
  readonly sentMs: number;
}

/** The timestamp of a batch. */
interface Stamped {
  readonly term: number;
  readonly at: number;
  readonly hash: string;
}

export class TermPace {
  readonly #sentMsByHash = new Map<string, number>();
  #start: Stamp | undefined;
  #last: Stamp | undefined;
  /** Number of batches of the current term. */
  #batches = 0;

  /** A node sends a record, perhaps again. */
  sent(bytes: Uint8Array, nowMs: number): void {
    const hash = hashOf(bytes);
    if (!this.#sentMsByHash.has(hash)) this.#sentMsByHash.set(hash, nowMs);
  }

  /**
   * Time of the decision of the journal's next batch, virtual ms. A batch is sent only after its predecessor is stored.
   * Undefined for a batch never sent.
   */
  decidedMs({ term, at, hash }: Stamped): number | undefined {
    const sentMs = this.#sentMsByHash.get(hash);
    if (sentMs === undefined || this.#last?.term !== term) return sentMs;
    return Math.min(sentMs, this.#last.sentMs + at - this.#last.at);
  }

  /** The error in the timestamp of the journal's next batch, if any. A batch never sent is not checked. */
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

  /** The first batch with the shortest delay between decision and send defines the begin of the term. */
  #startWith(next: Stamp): Stamp {
    const start = this.#start?.term === next.term ? this.#start : undefined;
    this.#batches = start === undefined ? 1 : this.#batches + 1;
    const isSooner = start === undefined || next.sentMs - next.at < start.sentMs - start.at;
    this.#start = isSooner && this.#batches <= STARTS ? next : start;
    return this.#start ?? next;
  }
}
