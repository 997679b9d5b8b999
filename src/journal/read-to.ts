// Replays the log up to the moment before one batch, beginning at the newest base that is early enough. For questions
// about the past: a whole journal may hold millions of batches. Not here: the newest state (log.ts), the check of the
// whole journal (audit/verifying).

import type { Clock } from "../clock.ts";
import { AuditTrimmedError } from "../errors.ts";
import { limits } from "../limits.ts";
import { Slices } from "../slices.ts";
import type { SwarmState } from "../state/state.ts";
import { readBase } from "./base.ts";
import type { JournalReader, SegmentRecord } from "./journal.ts";
import { findLive, pathTo } from "./live.ts";
import { enterNext, recordsOfLog } from "./log.ts";
import { type Batch, decodeRecord } from "./records.ts";
import { type LiveSegment, Replay } from "./replay.ts";

export interface ReadToOptions {
  /** The batch. */
  readonly idx: number;
  /** Batches before `idx` that `onBatch` should get, if the journal keeps them. */
  readonly before: number;
  /** Called for each earlier batch, in order, with the state after the batch. */
  readonly onBatch?: (batch: Batch, state: SwarmState) => void;
  readonly signal?: AbortSignal;
}

export interface ReadTo {
  /** The state before the batch; belongs to the caller. */
  readonly state: SwarmState;
  readonly batch: Batch;
  /** The first replayed batch. */
  readonly firstIdx: number;
}

/** @returns undefined if the journal ends before the batch, or holds no batch
 *  @throws AuditTrimmedError if neither the batch nor a base before it is kept
 *  @throws UnreachableError, JournalDamagedError; the signal's reason */
export async function readTo(
  { journal, clock }: { readonly journal: JournalReader; readonly clock: Clock },
  options: ReadToOptions,
): Promise<ReadTo | undefined> {
  const { numbers, live } = await findLive(journal);
  if (live === undefined) return undefined;
  const path = await pathTo(journal, live, ({ opened }) => {
    const isEarlyEnough = opened.base !== undefined && opened.base.idx < options.idx - options.before;
    return isEarlyEnough || opened.previous === undefined || !numbers.includes(opened.previous.segment);
  });
  const begun = await begin(path, options.idx, { journal, clock });
  const slices = new Slices(clock, limits.baseSliceMs);
  const { replay, rest } = begun;
  const firstIdx = replay.tail.idx + 1;
  for (const next of [...rest, undefined]) {
    for await (const record of recordsOfLog(replay, next, journal)) {
      const batch = replay.tail.idx + 1 === options.idx ? nextBatch(record, replay) : undefined;
      if (batch !== undefined) return { state: replay.state, batch, firstIdx };
      const verdict = replay.take(record);
      if (verdict.kind === "applied") options.onBatch?.(verdict.batch, replay.state);
      if (!slices.isOver) continue;
      options.signal?.throwIfAborted();
      await slices.pause();
    }
    if (next !== undefined) enterNext(replay, next);
  }
  return undefined;
}

interface Begun {
  readonly replay: Replay;
  readonly rest: readonly LiveSegment[];
}

/** At the newest kept segment with a state before the batch: the newest base, or the beginning of the journal. */
async function begin(
  path: readonly LiveSegment[],
  idx: number,
  { journal, clock }: { readonly journal: JournalReader; readonly clock: Clock },
): Promise<Begun> {
  const at = path.findIndex(({ opened }) => opened.base !== undefined || opened.tail.idx === 0);
  const first = path[at];
  const firstIdx = (first?.opened.base?.idx ?? 0) + 1;
  if (first === undefined || firstIdx > idx)
    throw new AuditTrimmedError(
      `batch ${idx} can no longer be replayed: the journal keeps no state from before batch ${firstIdx}`,
      { firstIdx },
    );
  const rest = path.slice(at + 1);
  if (first.opened.base !== undefined)
    return { replay: await readBase(journal.segment(first.number), first, clock), rest };
  const replay = new Replay();
  replay.enter(first, first.position);
  return { replay, rest };
}

/** The batch that the replay would apply; undefined for any other record. */
function nextBatch({ bytes, position }: SegmentRecord, { tail, live }: Replay): Batch | undefined {
  const record = decodeRecord(bytes);
  if (record?.kind !== "batch" || live === undefined) return undefined;
  const isCopy = position < live.position;
  const isOfWriter = record.session === live.opened.session && record.term === live.opened.term;
  const continues = record.prev === tail.hash && record.idx === tail.idx + 1;
  return continues && record.journal === tail.journal && (isCopy || isOfWriter) ? record : undefined;
}
