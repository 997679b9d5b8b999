// Which snapshots a power failure leaves: those that have stood for so long that the server synced them.
//
// The one rule of whatever removes something, of the journal (purge.ts, room-maker.ts) or of older snapshots
// (journal/snapshot/make.ts): it goes only behind a snapshot that stood for `limits.snapshotSyncMs`. What a server is
// told to remove is gone from its disk at once; what it is given it has by default in its page cache for up to two
// minutes. Removed any sooner, a power failure could take both, and with them the swarm. Where what is stored is synced
// before it is acknowledged, or all is gone with the process anyway, nothing is waited for.
//
// It counts by this coordinator's own monotonic clock from when it first saw that the snapshot stands. No manifest's
// time is believed, for it is another machine's; so a new leader waits once more for what it inherits. And whatever the
// server may have lost while it was away counts anew.

import type { Clock } from "../../clock.ts";
import type { Durability } from "../../journal/journal.ts";
import type { SnapshotName } from "../../journal/snapshot/manifest.ts";
import { limits } from "../../limits.ts";

interface SyncedSnapshotsOptions {
  readonly durability: Durability;
  readonly clock: Clock;
  /** In which what was put is synced. Default `limits.snapshotSyncMs`. */
  readonly syncMs?: number | undefined;
}

export class SyncedSnapshots {
  readonly #clock: Clock;
  readonly #syncMs: number;
  readonly #standing = new Map<string, { readonly seq: number; readonly sinceMs: number }>();

  constructor({ durability, clock, syncMs = limits.snapshotSyncMs }: SyncedSnapshotsOptions) {
    const mayBeUnsynced = durability.class === "page-cache" || durability.class === "replicated";
    this.#clock = clock;
    this.#syncMs = mayBeUnsynced ? syncMs : 0;
  }

  /** Its manifest, which is written last, was just seen. */
  stands({ hash, seq }: Pick<SnapshotName, "hash" | "seq">): void {
    if (this.#standing.has(hash)) return;
    this.#standing.set(hash, { seq, sinceMs: this.#clock.monotonicMs() });
    const [oldest] = this.#standing.keys();
    if (this.#standing.size > limits.snapshotsKnownMax && oldest !== undefined) this.#standing.delete(oldest);
  }

  /** The server was away: what it had not synced it may have lost. */
  forget(): void {
    this.#standing.clear();
  }

  isSynced({ hash }: Pick<SnapshotName, "hash">): boolean {
    return this.hashes.includes(hash);
  }

  /** Of those that are synced. */
  get hashes(): readonly string[] {
    return this.#synced().map(([hash]) => hash);
  }

  /** The one that reaches furthest is not synced yet. */
  get isAwaited(): boolean {
    const furthest = Math.max(0, ...[...this.#standing.values()].map(({ seq }) => seq));
    return furthest > Math.max(0, ...this.#synced().map(([, { seq }]) => seq));
  }

  #synced() {
    const now = this.#clock.monotonicMs();
    return [...this.#standing].filter(([, { sinceMs }]) => now - sinceMs >= this.#syncMs);
  }
}
