// Reads the log that the live segments make up, from its newest base. Not here: which segments are live (live.ts), and
// which records count (replay.ts).

import type { Clock } from "../clock.ts";
import { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Slices } from "../slices.ts";
import { readBase } from "./base.ts";
import type { Journal } from "./journal.ts";
import { pathTo } from "./live.ts";
import type { ChainTail } from "./records.ts";
import { type LiveSegment, Replay } from "./replay.ts";

export interface LogDeps {
  readonly journal: Journal;
  readonly clock: Clock;
}

/** Reads the log up to the end of a live segment as it is now, from its newest base that can be read. Where that base
 *  is damaged, the log is read from the base before it, as far as its segments are kept.
 *  @throws UnreachableError, JournalDamagedError */
export async function restore(live: LiveSegment, deps: LogDeps): Promise<Replay> {
  const unreadable = new Set<number>();
  const hasBase = ({ number, opened }: LiveSegment) => opened.base !== undefined && !unreadable.has(number);
  for (;;) {
    const [first, ...rest] = await pathTo(deps.journal, live, hasBase);
    try {
      const replay = hasBase(first) ? await readFromBase(first, deps) : await readFromStart(first, deps);
      await readThrough(replay, rest, deps);
      return replay;
    } catch (error) {
      if (!(error instanceof BaseDamagedError) || first.opened.previous === undefined) throw error;
      unreadable.add(first.number);
    }
  }
}

/** A base cannot be read as it was written. */
class BaseDamagedError extends JournalDamagedError {}

async function readFromBase(first: LiveSegment, { journal, clock }: LogDeps): Promise<Replay> {
  try {
    return await readBase(journal.segment(first.number), first, clock);
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    throw new BaseDamagedError(error.message, { cause: error });
  }
}

async function readFromStart(first: LiveSegment, deps: LogDeps): Promise<Replay> {
  if (first.opened.tail.idx > 0)
    throw new JournalDamagedError(
      `the journal begins at segment ${first.number} with batch ${first.opened.tail.idx + 1}, and no base that can be read says what was before it`,
    );
  const replay = new Replay();
  replay.enter(first, first.position);
  await readToEnd(replay, deps);
  return replay;
}

/** Reads the rest of the segment that was entered, and then each of the others. */
async function readThrough(replay: Replay, others: readonly LiveSegment[], deps: LogDeps): Promise<void> {
  await readToEnd(replay, deps);
  for (const next of others) {
    enterNext(replay, next);
    await readToEnd(replay, deps);
  }
}

/** Goes on behind the `Opened` of a segment that continues what was read. @throws JournalDamagedError otherwise */
function enterNext(replay: Replay, next: LiveSegment): void {
  const { tail } = next.opened;
  if (!isSameTail(replay.tail, tail))
    throw new JournalDamagedError(
      `segment ${next.number} continues batch ${tail.idx}, and the log before it ends at batch ${replay.tail.idx}`,
    );
  replay.enter(next, next.position);
}

async function readToEnd(replay: Replay, { journal, clock }: LogDeps): Promise<void> {
  const { place } = replay;
  if (place === undefined) return;
  const slices = new Slices(clock, limits.snapshotSliceMs);
  for await (const record of journal.segment(place.segment).replay(place.position + 1)) {
    replay.take(record);
    if (slices.isOver) await slices.pause();
  }
}

function isSameTail(one: ChainTail, other: ChainTail): boolean {
  return one.idx === other.idx && one.hash === other.hash;
}
