// The manifests of a store that can be read, and which snapshots are kept.

import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { SnapshotStore } from "../snapshot-store.ts";
import { decodeManifest, type Manifest } from "./manifest.ts";

/** The part of a logger that snapshots need. */
export interface SnapshotLog {
  error(fields: object, text: string): void;
}

export interface PlacedManifest {
  readonly place: number;
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
      found.push({ place, manifest: decodeManifest(bytes) });
    } catch (cause) {
      if (!(cause instanceof JournalDamagedError)) throw cause;
      logger.error({ err: cause, place }, "a snapshot's manifest cannot be read: passed over");
    }
  }
  return found.sort((a, b) => b.manifest.position.idx - a.manifest.position.idx || b.place - a.place);
}

/** Removes all snapshots of a journal but the `limits.snapshotsKept` that reach furthest, and what lies between them.
 *  @returns those that are kept, the furthest first @throws UnreachableError */
export async function removeOldSnapshots(
  store: SnapshotStore,
  journal: string,
  logger: SnapshotLog,
): Promise<readonly Manifest[]> {
  const ours = (await readManifests(store, logger)).filter(
    ({ manifest }) => manifest.position.journal === journal,
  );
  const kept = ours.slice(0, limits.snapshotsKept);
  if (kept.length === limits.snapshotsKept) await store.removeBelow(Math.min(...kept.map(firstPlaceOf)));
  return kept.map(({ manifest }) => manifest);
}

function firstPlaceOf({ place, manifest }: PlacedManifest): number {
  return manifest.chunks.reduce((first, [chunk]) => Math.min(first, chunk), place);
}
