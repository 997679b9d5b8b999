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
import { type ChainTail, deathOf, stoodThere } from "../../journal/replay.ts";
import { isOfThoseBefore } from "../../journal/snapshot/left-out.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import { limits } from "../../limits.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";

/** What whoever asks holds of the line, oldest first, each batch continuing the one before. */
export interface HeldEnd {
  /** From the last one on that somebody may have been told of: of those behind it, which snapshots of who asks may hold
   *  alone, nobody was. */
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
    const isOwn = ownHashes.has(manifest.position.hash);
    if (isOwn && (await isGoneOnWith(manifest, journal))) return true;
    if (!isOwn && (await isAnyPassedBy(manifest, before(manifest.position), journal))) return true;
  }
  return false;
}

/** Whether the line goes on behind a snapshot. What was in flight as the journal lost its end may stand there and
 *  continue it, though others went on from before: the first record of a later term shows which, or one that is further
 *  on than that. Or others, who had not met it, wrote up to where it ends, and what continues it stands behind that. */
async function isGoneOnWith(manifest: Manifest, journal: SavedEndDeps["journal"]): Promise<boolean> {
  if (await isReplacedBefore(manifest, journal)) return false;
  const { position } = manifest;
  let tail: ChainTail = position;
  for (let seq = position.seq + 1; ; seq += 1) {
    const record = await journal.read(seq);
    if (record === undefined) return tail.idx > position.idx;
    const batch = decodeBatch(record.bytes);
    if (batch === undefined || batch.journal !== position.journal) continue;
    const isNext = deathOf(batch, tail) === undefined;
    if (batch.term > position.term) return isNext;
    if (!isNext) continue;
    if (batch.idx > position.idx + limits.batchesInFlightMax) return true;
    tail = { ...batch, hash: hashOf(record.bytes) };
  }
}

/** Whether others, who went on from before a snapshot, stand where it ends, behind the newest batch that still stands
 *  where it stood; or may, for one is not found. */
async function isReplacedBefore(
  { runs, position }: Manifest,
  journal: SavedEndDeps["journal"],
): Promise<boolean> {
  const folded = { places: new BatchPlaces(runs), position };
  const { firstSeq } = await journal.position();
  const lowestSeq = Math.max(1, firstSeq, position.seq - limits.deadComparedMax);
  for (let seq = position.seq; seq >= lowestSeq; seq -= 1) {
    const record = await journal.read(seq);
    if (record === undefined || isOfThoseBefore(record, folded)) return true;
    if (stoodThere(record, folded)) return false;
  }
  return false;
}

/** Whether another's snapshot went past any of these batches, oldest first. Where another stands in the place of one,
 *  it did not go through those behind that. */
async function isAnyPassedBy(
  manifest: Manifest,
  batches: readonly ChainTail[],
  journal: SavedEndDeps["journal"],
): Promise<boolean> {
  for (const own of batches) {
    const passage = await passageOf(own, manifest, journal);
    if (passage !== "unknown") return passage === "passed";
  }
  return false;
}

async function passageOf(
  own: ChainTail,
  { runs, position }: Manifest,
  journal: SavedEndDeps["journal"],
): Promise<"passed" | "replaced" | "unknown"> {
  const seq = new BatchPlaces(runs).seqOf(own.idx);
  if (seq === undefined) return position.term > own.term ? "passed" : "unknown";
  if (seq > position.seq) return "passed";
  const record = await journal.read(seq);
  if (record !== undefined) return hashOf(record.bytes) === own.hash ? "passed" : "replaced";
  const { firstSeq } = await journal.position();
  return seq < firstSeq ? "passed" : "unknown"; // purged since
}
