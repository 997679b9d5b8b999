// Whether a starting coordinator could restart from the journal: the newest live segment leads back to a readable base,
// or to the first segment. A removal that ends this possibility is found at once, without waiting for a restart. So the
// seed shows the removal at fault. Losses by faults are excepted.

import { decodeRecord, hashOf } from "../../journal/records.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalTruth } from "./journal-truth.ts";

export class RestartWatch {
  readonly #habitat: Habitat;
  readonly #truth: JournalTruth;
  #segments = 0;
  #wasPossible = true;

  constructor(habitat: Habitat, truth: JournalTruth) {
    this.#habitat = habitat;
    this.#truth = truth;
    const before = habitat.onStored;
    habitat.onStored = () => {
      before();
      this.#look();
    };
  }

  get isPossible(): boolean {
    const { live } = this.#truth;
    return live === undefined || this.#leadsBack(live);
  }

  /** Checks after every removal of a segment: without faults only removals take records. */
  #look(): void {
    const { length } = this.#habitat.segmentNumbers();
    const wasRemoved = length < this.#segments;
    this.#segments = length;
    if (!wasRemoved) return;
    const isPossible = this.isPossible;
    if (this.#wasPossible && !isPossible && this.#truth.isWhole)
      this.#habitat.found(
        "a-restart-is-possible",
        `segment ${this.#truth.segment} leads back to no readable base`,
      );
    this.#wasPossible = isPossible;
  }

  #leadsBack(live: LiveSegment): boolean {
    if (this.#hasBase(live)) return true;
    const { previous, tail } = live.opened;
    if (previous === undefined) return tail.idx === 0;
    const before = this.#truth.liveOf(previous.segment);
    return before !== undefined && this.#leadsBack(before);
  }

  #hasBase({ number, opened }: LiveSegment): boolean {
    const stream = this.#habitat.segmentStream(number);
    if (stream === undefined || opened.base === undefined) return false;
    const bytes = stream.at(opened.base.position);
    const manifest = bytes && decodeRecord(bytes);
    if (bytes === undefined || manifest?.kind !== "manifest" || hashOf(bytes) !== opened.base.hash)
      return false;
    return manifest.chunks.every(([position, , hash]) => {
      const stored = stream.at(position);
      const chunk = stored && decodeRecord(stored);
      return chunk?.kind === "chunk" && chunk.session === manifest.session && hashOf(chunk.bytes) === hash;
    });
  }
}
