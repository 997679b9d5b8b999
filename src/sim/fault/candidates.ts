// Notes what becomes interesting when coordinators stand for election, from what they send to the journal.

import { decodeBatch } from "../../journal/batch.ts";
import type { Occurrences } from "./occurrences.ts";

/** No election is longer: more need not be read. */
const ELECTION_BYTES_MAX = 1_024;

interface Election {
  readonly campaign: string;
  readonly expectedSeq: number;
  readonly sentMs: number;
}

export class Candidates {
  readonly #occurrences: Occurrences;
  /** The newest of each coordinator. */
  readonly #electionById = new Map<string, Election>();

  constructor(occurrences: Occurrences) {
    this.#occurrences = occurrences;
  }

  /** A coordinator sends a record, not always for the first time, to stand behind `expectedSeq`. What it puts back of
   *  another one's is no election of its own. */
  sent(id: string, bytes: Uint8Array, { expectedSeq, nowMs }: { expectedSeq: number; nowMs: number }): void {
    if (bytes.length > ELECTION_BYTES_MAX) return;
    const [started] = decodeBatch(bytes)?.events ?? [];
    if (started?.type !== "TermStarted" || started.leader !== id) return;
    const before = this.#electionById.get(id);
    if (before?.campaign !== started.campaign) {
      this.#electionById.set(id, { campaign: started.campaign, expectedSeq, sentMs: nowMs });
      if (this.#hasRival(id, expectedSeq)) this.#occurrences.note("standbys-racing");
    } else if (nowMs - before.sentMs > started.timeoutMs) this.#occurrences.note("election-sent-for-long");
  }

  /** All that start on an empty journal stand for election at once. */
  #hasRival(id: string, expectedSeq: number): boolean {
    if (expectedSeq === 0) return false;
    return [...this.#electionById].some(
      ([other, election]) => other !== id && election.expectedSeq === expectedSeq,
    );
  }
}
