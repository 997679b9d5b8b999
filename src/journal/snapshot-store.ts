// The port of the snapshot store: where the chunks and manifests of snapshots are kept, apart from the journal.
// Not here: what stands in them, which snapshot is read, and when one may be removed; bytes go in and come out.
// The one thing to know: a put is durable when it resolves, and only the place that it returned counts. One that
// was repeated on the way may have left a copy at another place; nobody refers to it, and it is removed with the rest.

import type { JournalUsage } from "./journal.ts";

export interface StoredManifest {
  readonly place: number;
  readonly bytes: Uint8Array;
}

export interface SnapshotStore {
  /** Stores a part of a snapshot, at most `limits.snapshotPartBytesMax`. Returns its place, from 1: greater than
   *  that of anything that was stored, by whomever, when the put began; places may be left out.
   *  @throws UnreachableError when it is not known to be stored after all patience; WaggleError WAGGLE_JOURNAL_FULL */
  putChunk(bytes: Uint8Array): Promise<number>;

  /** Stores a manifest, like a chunk. Whoever writes a snapshot writes its manifest last. @throws as `putChunk` */
  putManifest(bytes: Uint8Array): Promise<number>;

  /** All that are there, by place: the newest is the last one. Bytes are as the storage gives them back, which may
   *  be damaged. @throws UnreachableError */
  manifests(): Promise<readonly StoredManifest[]>;

  /** What the storage holds at a place, or undefined where no chunk is. May be damaged. @throws UnreachableError */
  chunk(place: number): Promise<Uint8Array | undefined>;

  /** Removes all chunks and manifests below a place. Idempotent. @throws UnreachableError */
  removeBelow(place: number): Promise<void>;

  /** @throws UnreachableError */
  usage(): Promise<JournalUsage>;

  /** Releases sockets and files. Puts under way end with an error. Idempotent. */
  close(): Promise<void>;
}
