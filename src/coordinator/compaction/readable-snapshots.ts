// Whether a snapshot is there that can be read, and not only its manifest: a manifest says that its snapshot was whole
// when it was written, and nothing of what the storage gives back of it now.
//
// All chunks are asked for, once for each snapshot; what this process read itself, or its thread, counts as asked. One
// that rots afterwards is found by the leader (compactor.ts), who is told of one that is met here.

import type { Clock } from "../../clock.ts";
import type { ChainPosition } from "../../journal/replay.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import { type PlacedManifest, readManifests, type SnapshotLog } from "../../journal/snapshot/manifests.ts";
import { faultIn } from "../../journal/snapshot/read.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { Listeners } from "../../listeners.ts";

type Name = Pick<PlacedManifest, "place" | "hash">;
type Reach = Pick<ChainPosition, "term" | "idx" | "seq">;

/** Whether a snapshot reaches further than what was read. One of an earlier term that does is of a line that nobody
 *  went on with. */
export function reachesBehind({ term, idx, seq }: Reach, own: Reach): boolean {
  return term >= own.term && (idx > own.idx || (idx === own.idx && seq > own.seq));
}

export interface ReadableSnapshotsDeps {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly logger: SnapshotLog;
}

export class ReadableSnapshots {
  readonly #store: SnapshotStore | undefined;
  readonly #deps: ReadableSnapshotsDeps;
  readonly #faultListeners = new Listeners();
  #foundMonotonicMs = Number.NEGATIVE_INFINITY;
  /** Names of those that were read, as many as the store had manifests at the last look. */
  #read = new Set<string>();

  /** @param store absent where there are none */
  constructor(store: SnapshotStore | undefined, deps: ReadableSnapshotsDeps) {
    this.#store = store;
    this.#deps = deps;
  }

  /** Whether snapshots are made at all. */
  get areKept(): boolean {
    return this.#store !== undefined;
  }

  /** When it was last looked which of them a restart would begin at, whoever led then. */
  get foundMonotonicMs(): number {
    return this.#foundMonotonicMs;
  }

  /** Tells of each that is met and cannot be read, but not of what `found` says. @returns a function that ends it */
  onFault(listener: () => void): () => void {
    return this.#faultListeners.add(listener);
  }

  /** Takes note of which was read in whole, and which cannot be read any more. */
  found({ read, unreadable }: FoundSnapshots): void {
    this.#foundMonotonicMs = this.#deps.clock.monotonicMs();
    for (const { place } of unreadable)
      for (const name of this.#read) if (name.startsWith(`${place} `)) this.#read.delete(name);
    if (read !== undefined) this.#read.add(nameOf(read));
  }

  /** Whether there is one that can be read, of those that reach where it is asked for. @throws UnreachableError */
  async has(isReaching: (position: ChainPosition) => boolean): Promise<boolean> {
    for await (const _ of this.reaching(isReaching)) return true;
    return false;
  }

  /** Whether there is one that leads to where the journal begins. @throws UnreachableError */
  leadsTo(firstSeq: number): Promise<boolean> {
    return this.has(({ seq }) => seq >= firstSeq - 1);
  }

  /** Whether who starts would begin behind `own`: at the furthest that can be read. None is read that does not reach so
   *  far. @throws UnreachableError */
  async beginBehind(own: Reach): Promise<boolean> {
    const store = this.#store;
    if (store === undefined) return false;
    for (const each of await readManifests(store, this.#deps.logger)) {
      const { position } = each.manifest;
      if (position.term < own.term) continue;
      if (!reachesBehind(position, own)) return false;
      if (await this.#isReadable(each, store)) return true;
    }
    return false;
  }

  /** Those that can be read, of those that reach where it is asked for, the furthest first. @throws UnreachableError */
  async *reaching(isReaching: (position: ChainPosition) => boolean): AsyncGenerator<Manifest> {
    const store = this.#store;
    if (store === undefined) return;
    const placed = await readManifests(store, this.#deps.logger);
    this.#read = new Set(placed.map(nameOf).filter((name) => this.#read.has(name)));
    for (const each of placed.filter(({ manifest }) => isReaching(manifest.position)))
      if (await this.#isReadable(each, store)) yield each.manifest;
  }

  async #isReadable(placed: PlacedManifest, store: SnapshotStore): Promise<boolean> {
    const name = nameOf(placed);
    if (this.#read.has(name)) return true;
    const fault = await faultIn(placed.manifest, store);
    if (fault === undefined) {
      this.#read.add(name);
      return true;
    }
    const { idx } = placed.manifest.position;
    this.#deps.logger.error({ err: fault, idx }, "a snapshot cannot be read");
    this.#faultListeners.tell();
    return false;
  }
}

function nameOf({ place, hash }: Name): string {
  return `${place} ${hash}`;
}
