// Places of the journal that are lost: it counts a record there and never finds it again, as a store does that a power
// failure or a flipped bit damaged. Asked by a leader for the place of a batch whose outcome it does not know.
//
// The rule: lost is what was not found for `limits.readBackPatienceMs`, with an answer each time: a server that just
// took over may answer from before. Those right behind are asked for at the same time, so that a hole of many records
// takes no longer than one of few. What was acknowledged is asked for by read-back.ts.

import type { Clock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import type { Journal } from "../../journal/journal.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";

export interface LostPlacesDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly isOver: () => boolean;
}

export class LostPlaces {
  readonly #deps: LostPlacesDeps;
  /** The last one that is known to be lost; 0 when none is. */
  #knownSeq = 0;

  constructor(deps: LostPlacesDeps) {
    this.#deps = deps;
  }

  /** To be asked where a record was not found, in order of `seq`. False as soon as one is found, or the journal ends
   *  before it, or was purged of it. @throws UnreachableError, JournalDamagedError */
  async isLost(seq: number): Promise<boolean> {
    const { journal, clock, isOver } = this.#deps;
    let patienceBySeq: ReadonlyMap<number, Endurance> = new Map();
    while (!isOver()) {
      const { firstSeq, lastSeq } = await journal.position();
      this.#knownSeq = Math.min(this.#knownSeq, lastSeq); // a server may cut a damaged store at its next start
      if (seq < firstSeq || seq > lastSeq) return false;
      if (seq <= this.#knownSeq) return true;
      const missing = await this.#missingFrom(seq, lastSeq);
      if (!missing.has(seq)) return false;
      const before = patienceBySeq;
      const patienceFor = (each: number) =>
        before.get(each) ?? new Endurance(clock, limits.readBackPatienceMs);
      patienceBySeq = new Map([...missing].map((each) => [each, patienceFor(each)]));
      const lost = new Set([...missing].filter((each) => patienceBySeq.get(each)?.isBelieved()));
      for (let next = seq; lost.has(next); next += 1) this.#knownSeq = next;
      if (lost.has(seq)) return true;
      await pause(clock, limits.appendRetryMs);
    }
    return false;
  }

  /** Which of the next places nothing is found at. */
  async #missingFrom(seq: number, lastSeq: number): Promise<ReadonlySet<number>> {
    const { journal } = this.#deps;
    const count = Math.min(limits.lostPlacesAtOnce, lastSeq - seq + 1);
    const places = Array.from({ length: count }, (_, at) => seq + at);
    const found = await Promise.all(places.map((each) => journal.read(each)));
    return new Set(places.filter((_, at) => found[at] === undefined));
  }
}
