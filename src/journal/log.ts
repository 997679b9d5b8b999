// Reads the stored log, which the live segments make up: from the newest base, or on from an earlier read. Compares a
// coordinator's local log, the batches it applied before, with the stored log.
// Not here: which segments are live (live.ts), and which records count (replay.ts).

import type { Clock } from "../clock.ts";
import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Slices } from "../slices.ts";
import { emptyState } from "../state/state.ts";
import { readBase } from "./base.ts";
import { inspect } from "./inspect.ts";
import type { JournalReader, SegmentRecord } from "./journal.ts";
import { pathTo } from "./live.ts";
import { type ChainTail, decodeRecord, hashOf } from "./records.ts";
import { type LiveSegment, Replay } from "./replay.ts";

export interface LogDeps {
  readonly journal: JournalReader;
  readonly clock: Clock;
}

export interface RestoreDeps extends LogDeps {
  /** The last batch to read. Default: up to the present end. A leader that appends quickly moves the end away. */
  readonly untilIdx?: number;
}

/** Reads the log from the newest readable base up to the present end of a live segment. If a base is damaged, the
 *  reading begins at an earlier base, or at the log's first segment, as long as retention keeps the segments.
 *  @throws UnreachableError, JournalDamagedError */
export async function restore(live: LiveSegment, deps: RestoreDeps): Promise<Replay> {
  const unreadable = new Set<number>();
  const hasBase = ({ number, opened }: LiveSegment) => opened.base !== undefined && !unreadable.has(number);
  for (;;) {
    const [first, ...rest] = await pathTo(deps.journal, live, hasBase);
    try {
      const replay = hasBase(first) ? await readFromBase(first, deps) : readFromStart(first);
      await readThrough(replay, rest, deps);
      return replay;
    } catch (error) {
      if (!(error instanceof BaseDamagedError) || first.opened.previous === undefined) throw error;
      unreadable.add(first.number);
    }
  }
}

/** Continues a local log up to the present end of a live segment.
 *  @param held the local log; batches read before an error stay applied
 *  @returns false if stored records up to the local log's last one are damaged, so that a restart could not read them
 *  @throws UnreachableError; JournalDamagedError if the stored log does not continue the local log or is unreadable */
export async function readOn(held: Replay, live: LiveSegment, journal: JournalReader): Promise<boolean> {
  const isReached = (segment: LiveSegment) =>
    segment.number === held.place?.segment || isSameTail(held.tail, segment.opened.tail);
  const [first, ...rest] = await pathTo(journal, live, isReached);
  const isOnPath = first.number === held.place?.segment;
  const isWhole = !isOnPath || (await isHeldWhole(held, journal));
  if (!isOnPath) enterNext(held, first);
  await readThrough(held, rest, { journal });
  return isWhole;
}

/** How a local log compares with the stored log. */
export type Comparison =
  /** The local log is a prefix of the stored log, or equals it. */
  | "beginning"
  /** The stored log is a proper prefix of the local log: the storage lost the end. */
  | "longer"
  /** The two logs hold different batches at one index. */
  | "different"
  /** Damage hides the end of the stored log, which may be longer than the local log. */
  | "unreadable";

/** Compares by hashes, without folding. A segment knows hashes of at most `limits.openedHashesMax` earlier batches. A
 *  local log that ends before the known batches counts as a beginning. @throws UnreachableError */
export async function compare(held: Replay, live: LiveSegment, journal: JournalReader): Promise<Comparison> {
  const end = await endOf(live, journal);
  const heldIdx = held.tail.idx;
  const { idx } = end.tail;
  const common = Math.min(idx, heldIdx);
  const ofHeld = common === heldIdx ? held.tail.hash : held.recent.at(common);
  const ofLog = end.hashByIdx.get(common);
  const areBothKnown = ofHeld !== undefined && ofLog !== undefined;
  if (common > 0 && areBothKnown && ofHeld !== ofLog) return "different";
  if (end.isCutShort) return (await hasReadAll(held, live, journal)) ? "longer" : "unreadable";
  // A log read from a base does not know earlier hashes. An earlier segment than its own was sealed before.
  const isEarlier = (held.place?.segment ?? 0) > live.number;
  if (common > 0 && common < heldIdx && ofHeld === undefined && !isEarlier) return "different";
  return heldIdx > idx ? "longer" : "beginning";
}

/** Adds acknowledged batches that the storage lost to a log just read. The coordinator acknowledged the batches as the
 *  leader. @param batchAt bytes of an acknowledged batch; undefined if the coordinator's memory no longer holds them
 *  @throws JournalDamagedError if the log holds a different batch, or a lost batch is not in memory either */
export function bringUpTo(
  log: Replay,
  acknowledged: ChainTail,
  batchAt: (idx: number) => Uint8Array | undefined,
): void {
  const { idx, hash } = acknowledged;
  const opened = log.live?.opened;
  const known = log.recent.at(idx) ?? opened?.recent.at(idx - opened.tail.idx - 1);
  if (log.tail.idx >= idx && idx > 0 && known !== undefined && known !== hash)
    throw new JournalDamagedError(
      `batch ${idx} in the journal differs from batch ${idx} as this coordinator acknowledged it while leading`,
    );
  while (log.tail.idx < idx) {
    const next = log.tail.idx + 1;
    const bytes = batchAt(next);
    const batch = bytes === undefined ? undefined : decodeRecord(bytes);
    if (bytes === undefined || batch?.kind !== "batch")
      throw new JournalDamagedError(
        `the journal lost batch ${next}, which this coordinator acknowledged as the leader and no longer holds in memory`,
      );
    log.takeCommitted(batch, hashOf(bytes));
  }
}

interface LogEndFound {
  readonly tail: { readonly idx: number; readonly hash: string };
  readonly hashByIdx: ReadonlyMap<number, string>;
  /** A record after the tail is missing or unreadable. */
  readonly isCutShort: boolean;
}

/** The batches of one segment, without folding. */
async function endOf(live: LiveSegment, journal: JournalReader): Promise<LogEndFound> {
  const { opened, number, position } = live;
  const end = new Replay({ state: emptyState(), tail: opened.tail });
  end.enter(live, position);
  const hashByIdx = new Map<number, string>([[opened.tail.idx, opened.tail.hash]]);
  for (const [back, hash] of opened.recent.toReversed().entries())
    hashByIdx.set(opened.tail.idx - back, hash);
  try {
    for await (const record of journal.segment(number).replay(position + 1))
      if (end.pass(record)) hashByIdx.set(end.tail.idx, end.tail.hash);
    return { tail: end.tail, hashByIdx, isCutShort: false };
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    return { tail: end.tail, hashByIdx, isCutShort: true };
  }
}

/** True if the local log was read to the present end of the segment. */
async function hasReadAll(held: Replay, { number }: LiveSegment, journal: JournalReader): Promise<boolean> {
  const { place } = held;
  if (place?.segment !== number) return (place?.segment ?? 0) > number;
  const end = await journal.segment(number).end();
  return end === undefined || end.position <= place.position;
}

/** A base is unreadable or changed since the write. */
class BaseDamagedError extends JournalDamagedError {}

async function readFromBase(first: LiveSegment, { journal, clock }: LogDeps): Promise<Replay> {
  try {
    return await readBase(journal.segment(first.number), first, clock);
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    throw new BaseDamagedError(error.message, { cause: error });
  }
}

function readFromStart(first: LiveSegment): Replay {
  if (first.opened.tail.idx > 0)
    throw new JournalDamagedError(
      `the journal begins at segment ${first.number} with batch ${first.opened.tail.idx + 1}, and no readable base holds the state before`,
    );
  const replay = new Replay();
  replay.enter(first, first.position);
  return replay;
}

/** In slices where a clock is given. */
type ReadingDeps = Pick<RestoreDeps, "journal"> & Partial<RestoreDeps>;

/** Reads the rest of the entered segment, then each further segment. */
async function readThrough(replay: Replay, others: readonly LiveSegment[], deps: ReadingDeps): Promise<void> {
  for (const next of others) {
    await readToEnd(replay, deps, next);
    enterNext(replay, next);
  }
  await readToEnd(replay, deps);
}

/** The records of the entered segment that the log has: a segment ends with the batch that the next segment continues.
 *  Records behind that batch may be superseded or damaged. The caller takes each record before it asks for the next.
 *  @param next undefined: up to the present end of the segment @throws UnreachableError, JournalDamagedError */
export async function* recordsOfLog(
  replay: Replay,
  next: LiveSegment | undefined,
  journal: JournalReader,
): AsyncGenerator<SegmentRecord> {
  const { place } = replay;
  const endIdx = next?.opened.tail.idx ?? Number.POSITIVE_INFINITY;
  if (place === undefined || replay.tail.idx >= endIdx) return;
  for await (const record of journal.segment(place.segment).replay(place.position + 1)) {
    yield record;
    if (replay.tail.idx >= endIdx) return;
  }
}

/** Enters the next segment, after its `Opened`. @throws JournalDamagedError if the segment does not continue the log */
export function enterNext(replay: Replay, next: LiveSegment): void {
  const { tail } = next.opened;
  if (!isSameTail(replay.tail, tail))
    throw new JournalDamagedError(
      `segment ${next.number} continues batch ${tail.idx}, and the log before it ends at batch ${replay.tail.idx}`,
    );
  replay.enter(next, next.position);
}

async function readToEnd(
  replay: Replay,
  { journal, clock, untilIdx = Number.POSITIVE_INFINITY }: ReadingDeps,
  next?: LiveSegment,
): Promise<void> {
  const slices = clock === undefined ? undefined : new Slices(clock, limits.baseSliceMs);
  for await (const record of recordsOfLog(replay, next, journal)) {
    replay.take(record);
    if (replay.tail.idx >= untilIdx) return;
    if (slices?.isOver === true) await slices.pause();
  }
}

/** True if the segment is readable up to the local log's last record.
 *  @throws JournalDamagedError if the segment holds a different record in the same position */
async function isHeldWhole(held: Replay, journal: JournalReader): Promise<boolean> {
  const { place, recordHash } = held;
  if (place === undefined) return true;
  const { found } = await inspect(journal.segment(place.segment), { ...place, recordHash });
  if (found === "same" || found === "longer" || found === "damaged") return found !== "damaged";
  throw new JournalDamagedError(
    `segment ${place.segment} is ${found}: record ${place.position} is not the record read before`,
  );
}

export function isSameTail(one: ChainTail, other: ChainTail): boolean {
  return one.idx === other.idx && one.hash === other.hash;
}
