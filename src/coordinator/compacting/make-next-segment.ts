// Makes the segment in which a leader goes on: a claim, a base, and copies of the batches behind the base. The leader
// appends to its own segment meanwhile. When few batches are left, it copies the rest and opens the made segment.
//
//   restore ─ claim ─ base ─ read the base back ─ copy new batches, round by round, until a round finds few
//
// Everything is read from the journal, nothing from the leader's memory. A stored batch may still be uncommitted for
// its leader, so base and copies wait until the leader's committed index reaches the batch.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError, WaggleError } from "../../errors.ts";
import type { BaseRef } from "../../journal/base.ts";
import type { Journal } from "../../journal/journal.ts";
import { liveSegment } from "../../journal/live.ts";
import { restore } from "../../journal/log.ts";
import type { LiveSegment, Replay } from "../../journal/replay.ts";
import { SegmentWriter } from "../../journal/segment-writer.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";

export interface MakeOrder {
  /** Number of the segment to make: above all listed numbers. */
  readonly number: number;
  /** Id of the leader's session. */
  readonly session: string;
  /** Random part of the claim. */
  readonly attempt: string;
  /** The segment that the leader appends to. */
  readonly ledSegment: number;
  /** The leader's last committed batch, now. */
  readonly committedIdx: () => number | Promise<number>;
  /** Room for the segment; infinite without a bound. */
  readonly bytesMax: number;
}

/** Claimed, not opened. */
export interface MadeSegment {
  readonly number: number;
  /** Position of the segment's last record. */
  readonly position: number;
  readonly base: BaseRef;
  /** The last copied batch; without copies the base's last batch. */
  readonly copiedIdx: number;
  /** `hashOf` that batch. */
  readonly copiedHash: string;
}

export interface MakeDeps {
  readonly journal: Journal;
  readonly clock: Clock;
}

/** The maker of a leader's next segment, one at a time. In production it is a thread of the process
 *  (thread-base-maker.ts); in tests, in simulations and for a journal in memory it is `baseMakerHere`. */
export interface BaseMaker {
  /** An abort ends it as soon as possible; the unfinished segment is never opened. @throws as `makeNextSegment` */
  make(order: MakeOrder, signal: AbortSignal): Promise<MadeSegment>;
}

/** Makes the segment beside the leader, in slices. */
export function baseMakerHere(deps: MakeDeps): BaseMaker {
  return { make: (order, signal) => makeNextSegment(deps, order, signal) };
}

/** @throws SegmentLostError when another session claimed or sealed the segment; JournalDamagedError, UnreachableError;
 *  WaggleError WAGGLE_JOURNAL_FULL; the signal's reason */
export async function makeNextSegment(
  deps: MakeDeps,
  order: MakeOrder,
  signal: AbortSignal,
): Promise<MadeSegment> {
  const { journal, clock } = deps;
  const { number, session, attempt, committedIdx } = order;
  const committed = new CommittedBatches(order, clock, signal);
  const live = await requireLive(journal, order.ledSegment);
  // Batches that come meanwhile are copied, which takes less time than folding them into the base.
  const log = await restore(live, { ...deps, untilIdx: Math.max(1, await committedIdx()) });
  await committed.reach(log.tail.idx);

  const segment = journal.segment(number);
  const writer = new SegmentWriter({ segment, session, clock, signal });
  await writer.claim(journal, attempt);
  const base = await writer.writeBase(log, (bytes) => requireRoom(bytes, order));
  await new Copying(log, { ...deps, writer, committed }).run();
  signal.throwIfAborted();
  return { number, position: writer.position, base, copiedIdx: log.tail.idx, copiedHash: log.tail.hash };
}

/** A base that fills the journal would leave no room for the batches of its leader. */
function requireRoom(bytes: number, { bytesMax }: MakeOrder): void {
  if (bytes <= bytesMax) return;
  const left = Math.max(0, Math.floor(bytesMax));
  throw new WaggleError(
    "WAGGLE_JOURNAL_FULL",
    `a base needs more than the ${left} bytes that the journal has left for it; give the journal more room`,
  );
}

async function requireLive(journal: Journal, number: number): Promise<LiveSegment> {
  const live = await liveSegment(journal.segment(number));
  if (live !== undefined) return live;
  throw new JournalDamagedError(`segment ${number} cannot be read, in which the leader writes`);
}

/** Waits until the leader committed a batch. */
class CommittedBatches {
  readonly #order: MakeOrder;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #idx = 0;

  constructor(order: MakeOrder, clock: Clock, signal: AbortSignal) {
    this.#order = order;
    this.#clock = clock;
    this.#signal = signal;
  }

  async reach(idx: number): Promise<void> {
    while (this.#idx < idx) {
      this.#signal.throwIfAborted();
      this.#idx = await this.#order.committedIdx();
      if (this.#idx < idx) await pause(this.#clock, limits.committedLookMs, this.#signal);
    }
  }
}

interface CopyingDeps extends MakeDeps {
  readonly writer: SegmentWriter;
  readonly committed: CommittedBatches;
}

/** Copies batches byte for byte behind the base. The hash chain decides which records of the leader's segment count;
 *  their events are not decoded, so that copies are made faster than batches. */
class Copying {
  readonly #log: Replay;
  readonly #deps: CopyingDeps;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;

  constructor(log: Replay, deps: CopyingDeps) {
    this.#log = log;
    this.#deps = deps;
  }

  async run(): Promise<void> {
    for (let round = 0; round < limits.copyRoundsMax; round += 1)
      if ((await this.#copyRound()) < limits.copiesLeftFew) return;
  }

  /** @returns how many batches were stored since the round before */
  async #copyRound(): Promise<number> {
    const { journal } = this.#deps;
    const { place, tail: before } = this.#log;
    if (place === undefined) return 0;
    for await (const record of journal.segment(place.segment).replay(place.position + 1)) {
      if (!this.#log.pass(record)) continue;
      this.#waiting.push(record.bytes);
      this.#waitingBytes += record.bytes.length;
      const isEnough =
        this.#waiting.length >= limits.copiesAtOnceMax || this.#waitingBytes >= limits.copiesAtOnceBytes;
      if (isEnough) await this.#copy();
    }
    await this.#copy();
    return this.#log.tail.idx - before.idx;
  }

  async #copy(): Promise<void> {
    const { writer, committed } = this.#deps;
    const copies = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    await committed.reach(this.#log.tail.idx);
    await writer.putAll(copies);
  }
}
