// Reads a segment in order and without gaps, over any number of consumers: servers restart, fail over, and forget
// consumers.
//
// The stream's sequences are authoritative; they are the segment's positions. Each consumer begins at the last record
// read, to compare it: after a power loss a stream may be shorter and written differently. A sequence skipped by a
// consumer is requested directly: if the stream has the record, only the delivery failed; if not, there is a gap.
//
// Faults are a gap, an end before the next record, and a missing stream. A fault is reported only after it lasted
// `limits.journalGapMs`: after a failover a server may not know the newest records yet. A replay from a single server
// checks a fault only twice.

import {
  type JournalDamagedError,
  mayAnswerLater,
  RewrittenError,
  type UnreachableError,
} from "../../errors.ts";
import { GracePeriod } from "../../grace-period.ts";
import { limits } from "../../limits.ts";
import type { SegmentRecord } from "../journal.ts";
import { gapError, noSegmentError, shortError, unreadableError } from "../journal-errors.ts";
import { isStreamMissing, isUnreadable } from "./api.ts";
import { type StreamAccess, StreamPull } from "./pull.ts";
import { Retry } from "./retry.ts";
import { sealPosition } from "./seal.ts";

export interface Reading {
  readonly from: number;
  /** The last record to read. Undefined: reads to the seal. */
  readonly until?: number;
  /** `until` is the end that the server reported when the reading began. A seal before it ends the reading: the server
   *  did not know the seal yet, and counted it as a record. */
  readonly isToEnd?: boolean;
  /** An abort ends the reading. */
  readonly signal: AbortSignal;
  /** After no progress for so many ms, the reading throws the reason. Default: never. */
  readonly patienceMs?: number;
  readonly aheadBytes?: number | undefined;
}

/** @throws JournalDamagedError; UnreachableError when patience ends */
export async function* readSegment(access: StreamAccess, reading: Reading): AsyncGenerator<SegmentRecord> {
  const { until = Number.POSITIVE_INFINITY, signal } = reading;
  const fault = faultPeriod(access, reading);
  const retry = new Retry({ ...access, ...reading });
  let next = reading.from;
  let previous: SegmentRecord | undefined;

  while (next <= until && !signal.aborted) {
    const beginning = await begin(access, { ...reading, next, hasRead: previous !== undefined });
    if (beginning.kind === "ended") return;
    if (beginning.kind !== "faulty") fault.renew();
    else if (fault.isBelieved()) throw beginning.reason;
    if (beginning.kind !== "begun") {
      await retry.pause(beginning.reason);
      continue;
    }
    const { pull } = beginning;
    try {
      for (let found = await pull.next(signal); found !== undefined; found = await pull.next(signal)) {
        const { position, bytes, isSeal } = found;
        if (position === previous?.position) requireSame(access, previous, found);
        if (position < next) continue;
        if (position > next || isSeal) break; // checked by the next `begin`
        previous = { position, bytes };
        yield previous;
        retry.reset();
        next += 1;
        if (next > until) return;
      }
    } finally {
      pull.end();
    }
    await retry.pause();
  }
}

/** Grace period of a fault. A single server knows all records, so a replay checks a fault only twice. A follower waits
 *  longer, for a coordinator to respond to the fault. */
function faultPeriod({ clock, wire }: StreamAccess, { until }: Reading): GracePeriod {
  const isSure = wire.servers === "one" && until !== undefined;
  return isSure
    ? new GracePeriod(clock, limits.journalRetryMs, limits.faultLooksAloneMin)
    : new GracePeriod(clock, limits.journalGapMs, limits.lossLooksMin);
}

interface Place {
  readonly next: number;
  readonly until?: number;
  readonly isToEnd?: boolean;
  /** The record before `next` was read and is to be compared. */
  readonly hasRead: boolean;
  readonly aheadBytes?: number | undefined;
}

type Beginning =
  | { readonly kind: "begun"; readonly pull: StreamPull }
  /** The segment is sealed and read to its end. */
  | { readonly kind: "ended" }
  | { readonly kind: "unreachable"; readonly reason: UnreachableError }
  /** As far as the server knows now. */
  | { readonly kind: "faulty"; readonly reason: JournalDamagedError };

async function begin(access: StreamAccess, place: Place): Promise<Beginning> {
  const { api, segment, stream } = access;
  const { next, until = next - 1, isToEnd = false, hasRead, aheadBytes } = place;
  try {
    const { lastSeq } = await api.info(stream);
    const sealedAt = await sealPosition(access);
    const end = sealedAt === undefined ? lastSeq : sealedAt - 1;
    const isShort = end < until && !(isToEnd && sealedAt !== undefined);
    if (isShort) return { kind: "faulty", reason: shortError(segment, until, end) };
    if (next <= end && (await api.record(stream, { seq: next })) === undefined)
      return { kind: "faulty", reason: gapError(segment, next, end) };
    if (next > end && sealedAt !== undefined) return { kind: "ended" };
    const fromSeq = hasRead ? next - 1 : next;
    const start = { fromSeq, nextSeq: next, knownTo: end, aheadBytes };
    return { kind: "begun", pull: await StreamPull.begin(access, start) };
  } catch (error) {
    if (isStreamMissing(error)) return { kind: "faulty", reason: noSegmentError(segment) };
    if (isUnreadable(error)) return { kind: "faulty", reason: unreadableError(segment, next) };
    if (mayAnswerLater(error)) return { kind: "unreachable", reason: error };
    throw error;
  }
}

function requireSame({ segment }: StreamAccess, previous: SegmentRecord, found: SegmentRecord): void {
  if (Buffer.compare(previous.bytes, found.bytes) === 0) return;
  throw new RewrittenError(
    `record ${found.position} of segment ${segment} changed since it was read: the segment lost its end and was written ` +
      "differently; read the journal again from its newest base",
  );
}
