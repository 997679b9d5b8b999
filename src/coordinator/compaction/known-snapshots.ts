// What a leader knows of its journal's snapshots: the newest, which can be read, since when they stand, and what is
// wrong. Asks nothing itself: who makes, looks for or saves one says so here.

import { messageOf } from "../../errors.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { SnapshotsLostError } from "../../journal/snapshot/losses.ts";
import { factsOf, type SnapshotFacts, type SnapshotMade } from "../../journal/snapshot/make.ts";
import { type Manifest, nameOf } from "../../journal/snapshot/manifest.ts";
import type { PlacedManifest } from "../../journal/snapshot/manifests.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import type { SyncedSnapshots } from "./synced-snapshots.ts";

export interface CompactionStatus {
  /** The newest snapshot that is not known to be unreadable, as far as this leader knows. */
  readonly newest: SnapshotFacts | undefined;
  /** What is wrong with snapshots: that the last one could not be made, until one is; or that one cannot be read, until
   *  the next is made without that. */
  readonly failure: string | undefined;
}

export interface KnownSnapshotsDeps {
  /** What this coordinator found when it read the journal. */
  readonly foundSnapshots: FoundSnapshots;
  /** Where it is noted what is read. */
  readonly readable: Pick<ReadableSnapshots, "found">;
  readonly synced: SyncedSnapshots;
}

export class KnownSnapshots {
  readonly #deps: KnownSnapshotsDeps;
  #newest: SnapshotFacts | undefined;
  #found: FoundSnapshots;
  #isNewestLost = false;
  #failure: string | undefined;

  constructor(deps: KnownSnapshotsDeps) {
    this.#deps = deps;
    this.#found = deps.foundSnapshots;
  }

  get newest(): SnapshotFacts | undefined {
    return this.#newest;
  }

  /** The last time that they were looked for. */
  get found(): FoundSnapshots {
    return this.#found;
  }

  /** Whether the newest cannot be read, so that another is due. */
  get isNewestLost(): boolean {
    return this.#isNewestLost;
  }

  get status(): CompactionStatus {
    return { newest: this.#newest, failure: this.#failure ?? this.#found.unreadable[0]?.why };
  }

  /** What stands at the beginning of the term. @param manifests the furthest first */
  inherited(manifests: readonly PlacedManifest[]): void {
    const { read, unreadable } = this.#found;
    const isUnreadable = (at: number) => unreadable.some(({ place }) => place === at);
    const isThere = (at: number) => manifests.some(({ place }) => place === at);
    const furthest = manifests.find(({ place }) => !isUnreadable(place));
    if (furthest !== undefined) {
      this.#newest = factsOf(furthest.manifest);
      this.#deps.synced.stands(nameOf(furthest.manifest));
    }
    this.#found = {
      read: read && isThere(read.place) ? read : undefined,
      unreadable: unreadable.filter(({ place }) => isThere(place)),
    };
    this.#isNewestLost = this.#found.unreadable.length > 0;
  }

  /** They were looked for. */
  saw(found: FoundSnapshots): void {
    this.#found = found;
    this.#isNewestLost = found.unreadable.length > 0;
    this.#deps.readable.found(found);
    if (found.read !== undefined) this.#deps.synced.stands(found.read);
  }

  made({ found, name, idx, at, bytes }: SnapshotMade): void {
    this.#newest = { idx, at, bytes };
    this.saw(found);
    this.#deps.synced.stands(name);
    this.#failure = undefined;
    this.#isNewestLost = false;
  }

  /** The leader saved its own state. */
  saved(manifest: Manifest): void {
    this.#deps.synced.stands(nameOf(manifest));
    this.#newest = factsOf(manifest);
    this.#failure = undefined;
    this.#isNewestLost = false;
    this.#found = { ...this.#found, unreadable: [] };
  }

  /** The server was away, or does not answer: what it had not synced it may have lost. */
  forgetStanding(): void {
    this.#deps.synced.forget();
  }

  couldNotBeMade(cause: unknown): void {
    this.#failure = `the last one could not be made: ${messageOf(cause)}`;
  }

  /** None that can be read leads to where the journal begins. */
  lost(cause: SnapshotsLostError): void {
    this.#failure = cause.message;
    this.#found = { read: undefined, unreadable: [] };
  }
}
