// Reads a stream in order and without gaps, over as many consumers as it takes: servers restart, fail over,
// and forget consumers.
//
// Authoritative are the stream's sequences. Each life of a consumer begins at the record read last, to see that
// it is still the same: after a power failure a stream may be shorter, and be written differently. A sequence
// that is left out is asked for by itself: a record that was lost on the way is there, one that was purged
// lies before the stream's first, and anything else is a hole, which is damage.
//
// A stream that is shorter than it was is waited for before it is judged: coordinators append again what it
// lost, and a server that has just taken over may not know its newest records yet. For the same reason a hole is
// believed only when it is found for `limits.journalHoleMs`.

import { Endurance } from "../../endurance.ts";
import { UnreachableError, type WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { JournalRecord } from "../journal.ts";
import { holeError, purgedError, rewrittenError, shrunkError } from "../journal-errors.ts";
import { Retry } from "../retry.ts";
import { type StreamAccess, StreamPull } from "./pull.ts";

export interface StreamReading {
  readonly fromSeq: number;
  /** The record right before, where it was read: to see that it is still the same. */
  readonly before?: JournalRecord | undefined;
  /** Ends behind this record. Undefined: never. */
  readonly untilSeq?: number;
  /** Ends the reading when it aborts. */
  readonly signal: AbortSignal;
  /** How long it may be without progress before it throws why. Undefined: for ever. */
  readonly patienceMs?: number;
  /** As of `ReplayOptions`. */
  readonly aheadBytes?: number;
}

/** @throws JournalDamagedError; UnreachableError when patience ends */
export async function* readStream(
  access: StreamAccess,
  reading: StreamReading,
): AsyncGenerator<JournalRecord> {
  const { untilSeq = Number.POSITIVE_INFINITY, signal, aheadBytes } = reading;
  const { clock } = access;
  const hole = new Endurance(clock, limits.journalHoleMs);
  const retry = new Retry({ ...reading, clock }, (listener) => access.wire.onStatus(listener));
  let nextSeq = reading.fromSeq;
  let previous = reading.before;

  while (nextSeq <= untilSeq && !signal.aborted) {
    const beginning = await beginPull(access, {
      nextSeq,
      untilSeq,
      hasRead: previous !== undefined,
      aheadBytes,
    });
    if (beginning.kind === "hole") {
      if (hole.isBelieved()) throw beginning.reason;
    } else hole.renew();
    if (beginning.kind !== "begun") {
      await retry.pause(beginning.reason);
      continue;
    }
    const { pull } = beginning;
    try {
      for (let found = await pull.next(signal); found !== undefined; found = await pull.next(signal)) {
        if (found.seq === previous?.seq) requireSame(previous, found);
        if (found.seq < nextSeq) continue;
        if (found.seq > nextSeq) break;
        yield found;
        retry.reset();
        previous = found;
        nextSeq += 1;
        if (nextSeq > untilSeq) return;
      }
    } finally {
      pull.end();
    }
    await retry.pause();
  }
}

interface Place {
  readonly nextSeq: number;
  readonly untilSeq: number;
  /** Whether the record before `nextSeq` was read and is to be compared. */
  readonly hasRead: boolean;
  readonly aheadBytes: number | undefined;
}

type Beginning =
  | { readonly kind: "begun"; readonly pull: StreamPull }
  | { readonly kind: "not-yet"; readonly reason: WaggleError }
  /** The next record is not there, and later ones are, as far as the server knows now. */
  | { readonly kind: "hole"; readonly reason: WaggleError };

/** @throws JournalDamagedError */
async function beginPull(access: StreamAccess, place: Place): Promise<Beginning> {
  const { nextSeq, untilSeq, hasRead, aheadBytes } = place;
  try {
    const { firstSeq, lastSeq } = await access.api.info();
    if (nextSeq <= lastSeq) {
      if (nextSeq < firstSeq) throw purgedError(nextSeq, firstSeq);
      if ((await access.api.read(nextSeq)) === undefined)
        return { kind: "hole", reason: holeError(nextSeq, lastSeq) };
    }
    if (Number.isFinite(untilSeq) && lastSeq < untilSeq) {
      return { kind: "not-yet", reason: shrunkError(lastSeq, untilSeq) };
    }
    const fromSeq = hasRead ? nextSeq - 1 : nextSeq;
    return { kind: "begun", pull: await StreamPull.begin(access, { fromSeq, nextSeq, aheadBytes }) };
  } catch (error) {
    if (error instanceof UnreachableError) return { kind: "not-yet", reason: error };
    throw error;
  }
}

function requireSame(previous: JournalRecord, found: JournalRecord): void {
  if (Buffer.compare(previous.bytes, found.bytes) !== 0) throw rewrittenError(found.seq);
}
