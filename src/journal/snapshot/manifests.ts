// The manifests of a store that can be read, and what is removed when snapshots are older than those that are kept.
// That a manifest can be read says nothing of its snapshot's chunks: which ones to keep, only who has read them can
// say.

import { JournalDamagedError } from "../../errors.ts";
import { hashOf } from "../batch.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { decodeManifest, type Manifest } from "./manifest.ts";

/** The part of a logger that snapshots need. */
export interface SnapshotLog {
  error(fields: object, text: string): void;
}

export interface PlacedManifest {
  readonly place: number;
  /** Of the manifest's bytes: a place alone may come again where a store was deleted and made anew. */
  readonly hash: string;
  readonly manifest: Manifest;
}

/** Those that can be read, the one that reaches furthest first; of two that reach as far, the one written last. What
 *  cannot be read is said in the log. @throws UnreachableError */
export async function readManifests(
  store: SnapshotStore,
  logger: SnapshotLog,
): Promise<readonly PlacedManifest[]> {
  const found: PlacedManifest[] = [];
  for (const { place, bytes } of await store.manifests()) {
    try {
      found.push({ place, hash: hashOf(bytes), manifest: decodeManifest(bytes) });
    } catch (cause) {
      if (!(cause instanceof JournalDamagedError)) throw cause;
      logger.error({ err: cause, place }, "a snapshot's manifest cannot be read: passed over");
    }
  }
  return found.sort((a, b) => b.manifest.position.idx - a.manifest.position.idx || b.place - a.place);
}

/** Removes all that lies below the snapshots that are kept; what lies between them stays. @throws UnreachableError */
export async function removeBelow(store: SnapshotStore, kept: readonly Manifest[]): Promise<void> {
  await store.removeBelow(firstPlaceOf(kept));
}

/** Where the first chunk of all of them stands. None of them is without chunks. */
export function firstPlaceOf(manifests: readonly Manifest[]): number {
  const places = manifests.flatMap(({ chunks }) => chunks.map(([place]) => place));
  return places.reduce((first, place) => Math.min(first, place));
}
