// Whether what a coordinator holds of a journal that went on differently is safe all the same: another one saved it as
// a snapshot, where nobody put back the end that the journal had lost, and the journal goes on behind that
// (lost-end.ts, rescue.ts). Then nothing that was committed is lost, only where it stood.
//
// The rule: the line that stands in the journal goes through a batch that is asked for, or through one that continues
// it. That a snapshot of such a one is there does not say so, for it may be our own, and somebody who knew of neither
// have written the line. So either the snapshot is of that very batch, and what stands behind it continues it; or it is
// of a later batch of another's, and says that the batch stands where it is found, stood behind where the journal goes
// on now, or, of a later term, stands nowhere any more.

import { decodeBatch, hashOf } from "../../journal/batch.ts";
import { BatchPlaces } from "../../journal/batch-places.ts";
import type { Journal } from "../../journal/journal.ts";
import { type ChainTail, deathOf } from "../../journal/replay.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";

/** What whoever asks holds of the line, oldest first, each batch continuing the one before. */
export interface HeldEnd {
  /** From the last one on that the journal took: those behind it only snapshots of who asks hold, and nobody was told
   *  of them. */
  readonly committed: readonly ChainTail[];
  /** Sent behind them. Who asks may have saved its state up to one of these, too. */
  readonly inFlight?: readonly ChainTail[];
}

/** Whether the line that stands in the journal goes through the first of what was committed, wherever that stood.
 *  @throws UnreachableError, JournalDamagedError */
export type SavedCheck = (held: HeldEnd) => Promise<boolean>;

export interface SavedEndDeps {
  readonly journal: Pick<Journal, "read" | "position">;
  readonly readable: Pick<ReadableSnapshots, "reaching">;
}

/** What a committer asks; undefined where no snapshots are made, so that nobody can have saved anything. */
export function savedCheck(
  deps: SavedEndDeps & { readonly readable: Pick<ReadableSnapshots, "areKept"> },
): SavedCheck | undefined {
  return deps.readable.areKept ? (held) => isSavedByAnother(held, deps) : undefined;
}

/** That it is not proves nothing at once: a server that lags knows neither the newest snapshot nor what stands behind
 *  it. @throws UnreachableError, JournalDamagedError */
export async function isSavedByAnother(
  { committed, inFlight = [] }: HeldEnd,
  { journal, readable }: SavedEndDeps,
): Promise<boolean> {
  const ownHashes = new Set([...committed, ...inFlight].map(({ hash }) => hash));
  const before = ({ idx, term }: ChainTail) => committed.filter((own) => idx > own.idx && term >= own.term);
  const isReaching = (position: ChainTail) => ownHashes.has(position.hash) || before(position).length > 0;
  for await (const manifest of readable.reaching(isReaching)) {
    if (!ownHashes.has(manifest.position.hash)) {
      for (const own of before(manifest.position)) if (await isPassedBy(own, manifest, journal)) return true;
    } else if (await isGoneOnWith(manifest, journal)) return true;
  }
  return false;
}

async function isGoneOnWith({ position }: Manifest, journal: SavedEndDeps["journal"]): Promise<boolean> {
  for (let seq = position.seq + 1; ; seq += 1) {
    const record = await journal.read(seq);
    if (record === undefined) return false;
    const batch = decodeBatch(record.bytes);
    if (batch === undefined) continue;
    if (deathOf(batch, position) === undefined) return true;
    if (batch.term > position.term) return false; // the first record of a term continues a line, and it is not this one
  }
}

async function isPassedBy(
  own: ChainTail,
  { runs, position }: Manifest,
  journal: SavedEndDeps["journal"],
): Promise<boolean> {
  const seq = new BatchPlaces(runs).seqOf(own.idx);
  if (seq === undefined) return position.term > own.term;
  if (seq > position.seq) return true;
  const record = await journal.read(seq);
  if (record !== undefined) return hashOf(record.bytes) === own.hash;
  const { firstSeq } = await journal.position();
  return seq < firstSeq; // purged since
}
