// Whether a coordinator that starts can begin: read the journal from its first batch, or a snapshot that leads to where
// the journal begins. A purge or a removal that ends this is found, and nobody is ended then (victims.ts), so that the
// seed shows what did it. What faults took is excepted: a snapshot that rotted, an end or records that were lost.

import { hashOf } from "../../journal/batch.ts";
import { type ChunkRef, decodeManifest, type Manifest } from "../../journal/snapshot/manifest.ts";
import { limits } from "../../limits.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalTruth } from "./journal-truth.ts";
import { SLOW_MAX } from "./life.ts";

/** From reading a snapshot, on which what is made beside it relies, until what goes by it is gone: the server is asked
 *  until patience ends. */
const UNDER_WAY_MS_MAX = (2 * limits.snapshotReadMs + limits.journalSilenceMsMax) * SLOW_MAX;
const NO_BYTES = new Uint8Array();

export class RestartWatch {
  readonly #habitat: Habitat;
  readonly #truth: JournalTruth;
  /** Where the journal began when it was last looked at. */
  #firstSeq = 1;
  #wasPossible = true;
  /** Since it was last possible. */
  #hasRotted = false;
  readonly #rotten: { readonly manifest: Manifest; readonly sinceMs: number }[] = [];

  constructor(habitat: Habitat, truth: JournalTruth) {
    this.#habitat = habitat;
    this.#truth = truth;
    habitat.snapshotStream.onChanged = () => this.#look();
    habitat.stream.onChanged = ({ firstSeq }) => {
      if (firstSeq > this.#firstSeq) this.#look();
      this.#firstSeq = firstSeq;
    };
  }

  get isPossible(): boolean {
    const { firstSeq } = this.#habitat.stream;
    const { savedIdx } = this.#truth;
    return (
      (firstSeq <= 1 && savedIdx === 0) ||
      this.wholeSnapshots().some(({ position }) => {
        const isReaching = position.seq >= firstSeq - 1 && position.idx >= savedIdx;
        return isReaching && !this.#truth.isOfAnotherLine(position);
      })
    );
  }

  /** Those of which every part is as it was written, the one that reaches furthest first. */
  wholeSnapshots(): Manifest[] {
    const { snapshotStream, swarm } = this.#habitat;
    const isWhole = ([place, , hash]: ChunkRef) => hashOf(snapshotStream.at(place) ?? NO_BYTES) === hash;
    return snapshotStream
      .under(subjectsOf(swarm).snapshotManifest)
      .map(decodeManifest)
      .filter(({ chunks }) => chunks.every(isWhole))
      .toSorted((one, other) => other.position.idx - one.position.idx);
  }

  /** A part of a snapshot is lost: a purge or a removal may be under way by who has read it before. */
  rotted(manifest: Manifest): void {
    this.#hasRotted = true;
    this.#rotten.push({ manifest, sinceMs: this.#habitat.engine.nowMs });
  }

  /** Whether one leads to where the journal begins that somebody may have taken for whole. */
  get #isReliedOn(): boolean {
    const { engine, stream, snapshotStream } = this.#habitat;
    return this.#rotten.some(
      ({ manifest: { position, chunks }, sinceMs }) =>
        engine.nowMs - sinceMs < UNDER_WAY_MS_MAX &&
        position.seq >= stream.firstSeq - 1 &&
        chunks.every(([place]) => snapshotStream.at(place) !== undefined),
    );
  }

  #look(): void {
    const { isPossible } = this;
    const isFault = this.#hasRotted || this.#isReliedOn || !this.#truth.isWhole;
    if (this.#wasPossible && !isPossible && !isFault)
      this.#habitat.found(
        "a-restart-is-possible",
        `no whole snapshot leads to record ${this.#habitat.stream.firstSeq}, at which the journal begins now`,
      );
    this.#wasPossible = isPossible;
    if (isPossible) this.#hasRotted = false;
  }
}
