// Which snapshots are left out. The journal decides which line of batches is the swarm's: a snapshot behind which it
// does not go on is of another. Somebody saved an end that was lost, and others had gone on from before it. It is left
// out where an older one leads through the journal, or where the journal begins behind it and another leads there.
// By what stands right behind it, and by what stands where it ends. Of its chunks nothing is asked here.

import { MissingRecordsError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { decodeBatch, hashOf } from "../batch.ts";
import type { BatchPlaces } from "../batch-places.ts";
import type { JournalReader, JournalRecord } from "../journal.ts";
import {
  type ChainPosition,
  type ChainTail,
  deathOf,
  type Folded,
  isBehindMore,
  stoodThere,
} from "../replay.ts";
import type { Manifest, SnapshotName } from "./manifest.ts";
import type { PlacedManifest, SnapshotLog } from "./manifests.ts";

/** What is asked of a journal to know whose line it goes on with. */
export type LineReader = Pick<JournalReader, "position" | "replay">;

/** Whether the journal does not go on behind a snapshot: it begins further on, where another leads, or another line
 *  stands there. @throws UnreachableError, JournalDamagedError */
export async function isLeftOut(
  { position }: Manifest,
  placed: readonly PlacedManifest[],
  journal: LineReader,
): Promise<boolean> {
  const { firstSeq } = await journal.position();
  if (position.seq + 1 >= firstSeq) return await isOfAnotherLine(position, journal);
  return placed.some(({ manifest }) => manifest.position.seq + 1 >= firstSeq);
}

/** Whether those who went on behind a record went on from another batch than the snapshot's. No more batches that
 *  continue it are read than a leader has in flight: who is deposed stores no more. */
async function isOfAnotherLine(position: ChainPosition, journal: LineReader): Promise<boolean> {
  let tail: ChainTail = position;
  try {
    for await (const { bytes } of journal.replay(position.seq + 1)) {
      const batch = decodeBatch(bytes);
      const death = batch && deathOf(batch, tail);
      if (batch === undefined) continue;
      if (death === "broken-chain" && isBehindMore(batch, tail)) return true;
      if (death !== undefined) continue;
      if (batch.idx > position.idx + limits.batchesInFlightMax) return false;
      tail = { ...batch, hash: hashOf(bytes) };
    }
  } catch (cause) {
    if (!(cause instanceof MissingRecordsError)) throw cause; // who reads it meets that, too
  }
  return false;
}

/** Whether a record where a snapshot ends is the batch of those who went on from before that: the journal had lost it,
 *  and they wrote on up to there, so that nothing behind it need show it. Where the snapshot's last batch stood another
 *  one does then, or one of a later term stands further on. One that continues it may have been sent before it was
 *  stored, and be dead. */
export function isOfThoseBefore(
  record: JournalRecord,
  { places, position }: Pick<Folded, "places" | "position">,
): boolean {
  const { seq, bytes } = record;
  const batch = decodeBatch(bytes);
  if (batch === undefined || batch.journal !== position.journal) return false;
  if (stoodThere(record, { places, position })) return false;
  if (batch.term > position.term) return true;
  const ownSeq = places.seqOf(position.idx);
  if (deathOf(batch, position) === undefined) return ownSeq !== undefined && ownSeq < seq;
  return seq === ownSeq && batch.term === position.term;
}

/** Whether a snapshot is of the line that a journal was read to be, as far as that is known: of no batch that is
 *  another's or not known here, nor of fewer than stand up to where it ends. */
export function isOfLine({ idx, seq, batchHash }: Omit<SnapshotName, "hash">, places: BatchPlaces): boolean {
  const newestIdx = places.lastUntil(Number.MAX_SAFE_INTEGER) ?? 0;
  const isOurBatch = idx <= newestIdx && places.isBatch(idx, batchHash) !== false;
  return isOurBatch && idx >= (places.lastUntil(seq) ?? 0);
}

/** Says in the log that it is left out. @returns why, a sentence without its full stop */
export function leaveOut({ position: { idx } }: Manifest, logger: SnapshotLog): string {
  logger.error({ idx }, "a snapshot is left out: the journal does not go on behind it");
  return `behind that of batch ${idx} the journal does not go on`;
}
