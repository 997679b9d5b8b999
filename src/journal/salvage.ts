// Reads all readable parts of a damaged journal, for `waggle journal recover`. The operator decides whether to continue
// from the last good batch. A coordinator never skips damage: the coordinator halts if `restore` throws.
//
//   read every segment, after damage too      → the lost batches, as far as the remaining records show
//   fold the log from the newest base on      → the last good batch
//
// Changes nothing.

import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Slices } from "../slices.ts";
import { recordsAroundDamage } from "./around-damage.ts";
import { readBase } from "./base.ts";
import type { SegmentReader, SegmentRecord } from "./journal.ts";
import { withoutRemedy } from "./journal-errors.ts";
import { liveSegment, pathTo } from "./live.ts";
import { isSameTail, type LogDeps, recordsOfLog } from "./log.ts";
import { firstIdxOf } from "./log-reader.ts";
import { decodeBatchHeader } from "./records.ts";
import { type LiveSegment, type Place, Replay } from "./replay.ts";

/** The readable content of a segment. */
export interface SalvagedSegment {
  readonly number: number;
  /** Undefined if the segment was never opened, or the `Opened` is unreadable. */
  readonly live: LiveSegment | undefined;
  /** Position of the last record; 0 if the segment is empty or the end is unknown. */
  readonly lastPosition: number;
  /** Number of readable records. */
  readonly records: number;
  /** The first damage; undefined if the whole segment is readable. */
  readonly damage: string | undefined;
  /** The highest readable batch; 0 without readable batches. */
  readonly idxMax: number;
  /** Readable batches, in runs without a gap, ascending. */
  readonly runs: readonly Run[];
}

/** The first and the last. */
type Run = readonly [from: number, to: number];

export interface Salvage {
  /** All listed segments, ascending. */
  readonly segments: readonly SalvagedSegment[];
  /** The log up to the last good batch. Undefined if no state is readable. */
  readonly log: Replay | undefined;
  /** Reason why the end of the log is unreadable; undefined if the whole log is readable. */
  readonly damage: string | undefined;
  /** All batches from `auditFirstIdx` to the last good batch are readable. */
  readonly auditFirstIdx: number;
}

/** @throws UnreachableError */
export async function salvage(deps: LogDeps): Promise<Salvage> {
  const { journal } = deps;
  const segments: SalvagedSegment[] = [];
  for (const number of await journal.list()) segments.push(await readThrough(journal.segment(number), deps));
  const { log, damage } = await foldFromNewest(segments, deps);
  const newest = segments.findLast(({ live }) => live !== undefined);
  const unopened = segments.find(
    ({ number, damage }) => number > (newest?.number ?? 0) && damage !== undefined,
  );
  return { segments, log, damage: damage ?? unopened?.damage, auditFirstIdx: auditFirstIdx(segments, log) };
}

// --- segments ---------------------------------------------------------------------------------------

async function readThrough(segment: SegmentReader, { clock }: LogDeps): Promise<SalvagedSegment> {
  const { number } = segment;
  let damage: string | undefined;
  const orDamaged = async <Read>(read: () => Promise<Read>): Promise<Read | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      damage ??= withoutRemedy(error.message);
      return undefined;
    }
  };
  const live = await orDamaged(() => liveSegment(segment));
  const end = await orDamaged(() => segment.end());
  const found = new Found(live);
  const slices = new Slices(clock, limits.baseSliceMs);
  await orDamaged(async () => {
    for await (const read of end === undefined ? [] : recordsAroundDamage(segment)) {
      if ("damage" in read) damage ??= read.damage;
      else found.take(read);
      if (slices.isOver) await slices.pause();
    }
  });
  const { records, runs } = found;
  return {
    ...{ number, live, damage, records, runs },
    lastPosition: end?.position ?? 0,
    idxMax: runs.reduce((max, [, to]) => Math.max(max, to), 0),
  };
}

/** The records read from a segment so far. */
class Found {
  readonly runs: [from: number, to: number][] = [];
  records = 0;
  readonly #live: LiveSegment | undefined;

  constructor(live: LiveSegment | undefined) {
    this.#live = live;
  }

  take({ position, bytes }: SegmentRecord): void {
    this.records += 1;
    const header = decodeBatchHeader(bytes);
    if (header === undefined || !this.#isOfSegment(position, header)) return;
    const last = this.runs.at(-1);
    if (last !== undefined && header.idx === last[1] + 1) last[1] = header.idx;
    else if (last === undefined || header.idx > last[1]) this.runs.push([header.idx, header.idx]);
  }

  #isOfSegment(
    position: number,
    { journal, session, term }: NonNullable<ReturnType<typeof decodeBatchHeader>>,
  ) {
    const live = this.#live;
    if (live === undefined) return true; // without an `Opened` the writer is unknown
    if (journal !== live.opened.journal) return false;
    return position < live.position || (session === live.opened.session && term === live.opened.term);
  }
}

// --- the log ----------------------------------------------------------------------------------------

interface Folded {
  readonly log: Replay | undefined;
  readonly damage: string | undefined;
}

/** A missing segment hides all later segments: then the log is read up to an earlier segment. */
async function foldFromNewest(segments: readonly SalvagedSegment[], deps: LogDeps): Promise<Folded> {
  let damage: string | undefined;
  for (const { live } of segments.toReversed()) {
    if (live === undefined) continue;
    const folded = await foldTo(live, deps);
    damage ??= folded.damage;
    if (folded.log !== undefined) return { log: folded.log, damage };
  }
  return { log: undefined, damage };
}

async function foldTo(live: LiveSegment, deps: LogDeps): Promise<Folded> {
  const unreadable = new Set<number>();
  const hasBase = ({ number, opened }: LiveSegment) => opened.base !== undefined && !unreadable.has(number);
  let damage: string | undefined;
  for (;;) {
    try {
      const path = await pathTo(deps.journal, live, hasBase);
      const folded = await foldPath(path, hasBase(path[0]), deps);
      return { ...folded, damage: folded.damage ?? (folded.log === undefined ? damage : undefined) };
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      damage ??= withoutRemedy(error.message);
      const [first] = await pathTo(deps.journal, live, hasBase).catch(() => []);
      if (first === undefined || !hasBase(first)) return { log: undefined, damage };
      unreadable.add(first.number); // next, try the base before
    }
  }
}

type Path = readonly [LiveSegment, ...LiveSegment[]];

/** @throws JournalDamagedError if the first segment of the path has no readable state */
async function foldPath(path: Path, isFromBase: boolean, deps: LogDeps): Promise<Folded> {
  const folded = await fold(path, { isFromBase, before: undefined }, deps);
  if (folded.poisonedAt === undefined) return folded;
  // The failed batch changed a part of the state before the failure: fold again, without the batch.
  const { log } = await fold(path, { isFromBase, before: folded.poisonedAt }, deps);
  return { log, damage: folded.damage };
}

interface FoldedPath extends Folded {
  readonly poisonedAt?: Place;
}

async function fold(
  path: Path,
  { isFromBase, before }: { readonly isFromBase: boolean; readonly before: Place | undefined },
  { journal, clock }: LogDeps,
): Promise<FoldedPath> {
  const [first] = path;
  if (!isFromBase && first.opened.tail.idx > 0)
    throw new JournalDamagedError(
      `the journal begins at segment ${first.number} with batch ${first.opened.tail.idx + 1}, and no readable base holds the state before`,
    );
  const log = isFromBase ? await readBase(journal.segment(first.number), first, clock) : new Replay();
  if (!isFromBase) log.enter(first, first.position);
  const slices = new Slices(clock, limits.baseSliceMs);
  for (const [index, segment] of path.entries()) {
    if (segment !== first && !isSameTail(log.tail, segment.opened.tail))
      return { log, damage: partedText(log, segment) };
    if (segment !== first) log.enter(segment, segment.position);
    try {
      for await (const record of recordsOfLog(log, path[index + 1], journal)) {
        const at = { segment: segment.number, position: record.position };
        if (before?.segment === at.segment && before.position === at.position)
          return { log, damage: undefined };
        const damage = taken(log, record);
        if (damage !== undefined) return { log, damage, poisonedAt: at };
        if (slices.isOver) await slices.pause();
      }
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      return { log, damage: withoutRemedy(error.message) };
    }
  }
  return { log, damage: undefined };
}

/** Applies a record. @returns the damage, or undefined */
function taken(log: Replay, record: SegmentRecord): string | undefined {
  try {
    log.take(record);
    return undefined;
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    return withoutRemedy(error.message);
  }
}

function partedText({ tail }: Replay, { number, opened }: LiveSegment): string {
  return `segment ${number} continues batch ${opened.tail.idx}, and the log before it can be read up to batch ${tail.idx}`;
}

// --- the audit --------------------------------------------------------------------------------------

function auditFirstIdx(segments: readonly SalvagedSegment[], log: Replay | undefined): number {
  if (log === undefined) return 1;
  const live = segments.filter((segment) => segment.live !== undefined);
  let idx: number = log.tail.idx;
  while (idx >= log.state.auditFirstIdx) {
    const holding = live.findLast((segment) => firstOf(segment) <= idx);
    const run = holding?.runs.find(([from, to]) => from <= idx && idx <= to);
    if (holding === undefined || run === undefined) break;
    idx = Math.max(run[0], firstOf(holding)) - 1;
  }
  return Math.max(idx + 1, log.state.auditFirstIdx);
}

function firstOf({ live }: SalvagedSegment): number {
  return live === undefined ? Number.POSITIVE_INFINITY : firstIdxOf(live);
}
