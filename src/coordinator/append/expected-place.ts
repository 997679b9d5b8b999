// What took the place in which the oldest batch in flight was expected, when its append was refused: reads from behind
// what is committed on, until something is found that says what is to be done, or nothing any more.
//
// Dead records are passed, and so are places that nobody will ever read (lost-places.ts). Where nothing stands there,
// the journal may have lost its end, which is put back (end-refill.ts); "not found" itself proves nothing. Not here:
// what a record means (found-record.ts), and what is done then (committer.ts).

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import { forkError, lostTailError, unreadableError } from "../../journal/journal-errors.ts";
import type { DeadReason } from "../../journal/replay.ts";
import { LostPlaces } from "../repair/lost-places.ts";
import type { ChainEnd } from "./chain-end.ts";
import type { CommittedTail } from "./committed-tail.ts";
import type { EndRefill } from "./end-refill.ts";
import { meaningOf } from "./found-record.ts";
import type { Sends, SentBatch } from "./sends.ts";

/** What is met on the way. */
export interface PlaceEvents {
  /** A record that everybody skips. */
  readonly onDead: (record: JournalRecord, reason: DeadReason) => void;
  /** The journal had lost so many committed records of its end, and has them again. */
  readonly onRefilled: (records: number) => void;
  /** The journal ends at `lastSeq`, before what was committed, and what is missing is not held any more. Nothing
   *  more is sent until `continueBehind`. */
  readonly onTailLost: (lastSeq: number, error: JournalDamagedError) => void;
  /** The journal has lacked some of what was committed for long, and does not take it back. Called again while it is
   *  so. */
  readonly onTailKeptOut: (cause: unknown) => void;
  /** It has refused for long what is to stand at its end, of which nothing is missing. Called again while it is so. */
  readonly onPlaceRefused: (error: JournalDamagedError) => void;
  /** The journal counts a record behind what was committed that nobody will ever read there. */
  readonly onPlaceLost: (error: JournalDamagedError) => void;
}

export interface ExpectedPlaceDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly sends: Sends;
  readonly end: ChainEnd;
  readonly tail: CommittedTail;
  readonly refill: EndRefill;
  readonly isOver: () => boolean;
  /** Whoever purged the place has gone on: nothing uncommitted will ever be. */
  readonly depose: () => void;
}

export type PlaceReading =
  | { readonly kind: "ours"; readonly seq: number }
  /** It is to be sent again; later where the journal, asked again, may say something else. */
  | { readonly kind: "free"; readonly mayChange: boolean }
  /** Another leads. */
  | { readonly kind: "deposed" }
  /** The journal can no longer be written safely. */
  | { readonly kind: "forked"; readonly error: JournalDamagedError }
  /** It is for others to go on: this is over, or waits until what was lost is rescued. */
  | { readonly kind: "left" };

export class ExpectedPlace {
  readonly #deps: ExpectedPlaceDeps;
  readonly #events: PlaceEvents;
  readonly #lost: LostPlaces;
  /** Until this batch is committed, others may have read in a place that is lost what we hold in flight, and gone
   *  on. */
  #hiddenIdx = 0;

  constructor(deps: ExpectedPlaceDeps, events: PlaceEvents) {
    this.#deps = deps;
    this.#events = events;
    this.#lost = new LostPlaces(deps);
  }

  /** @throws UnreachableError; JournalDamagedError where the journal went on differently from before what was
   *  committed */
  async read(oldest: SentBatch): Promise<PlaceReading> {
    const { journal, clock, end, tail, isOver } = this.#deps;
    const replacedSeq = await tail.replacedSeq();
    for (let seq = end.lastSeq + 1; !isOver(); seq += 1) {
      const record = await journal.read(seq);
      if (isOver()) break;
      if (record === undefined) {
        if (replacedSeq !== undefined && (await this.#isEndLostBefore(seq, replacedSeq))) break;
        if (await this.#isLost(seq)) continue;
        if (isOver()) break;
        end.lostUntil(seq - 1);
        return seq === oldest.expectedSeq + 1 ? await this.#refill() : { kind: "free", mayChange: false };
      }
      const meaning = this.#meaningOf(oldest, record);
      if (meaning === "another-line") throw forkError(seq);
      if (meaning === "another-leads") return { kind: "deposed" };
      if (meaning === "another-of-the-term")
        return { kind: "forked", error: twoLeadersError(record, oldest) };
      if (meaning === "ours" && replacedSeq === undefined) return { kind: "ours", seq };
      end.skipped(record, clock.monotonicMs());
      if (meaning !== "ours") this.#events.onDead(record, meaning);
    }
    return { kind: "left" };
  }

  #meaningOf({ batch }: SentBatch, record: JournalRecord) {
    const { sends, end } = this.#deps;
    return meaningOf(record, {
      oldest: batch,
      tail: end.tail,
      mayBeHidden: end.tail.idx < this.#hiddenIdx,
      isInFlight: (bytes) => sends.has(bytes),
    });
  }

  /** Whether the journal ends before a place, all from `replacedSeq` on being dead: the state is to be saved. */
  async #isEndLostBefore(seq: number, replacedSeq: number): Promise<boolean> {
    const { journal, isOver } = this.#deps;
    const { lastSeq } = await journal.position();
    if (isOver() || lastSeq >= seq) return isOver();
    this.#events.onTailLost(lastSeq, lostTailError(replacedSeq - 1, replacedSeq));
    return true;
  }

  /** Whether the record of a position can no longer be read. A coordinator that read the batch earlier skips the copy
   *  that is appended again (docs/adr/0012-a-journal-that-loses-records.md). */
  async #isLost(seq: number): Promise<boolean> {
    const { sends, isOver } = this.#deps;
    if (!(await this.#lost.isLost(seq)) || isOver()) return false;
    this.#hiddenIdx = sends.newest?.batch.idx ?? 0;
    this.#events.onPlaceLost(unreadableError(seq));
    return !isOver();
  }

  /** Puts back what the journal may have lost before what is committed. One that is whole will say something else when
   *  it is asked again. */
  async #refill(): Promise<PlaceReading> {
    const refilled = await this.#deps.refill.run();
    if (this.#deps.isOver()) return { kind: "left" };
    switch (refilled.kind) {
      case "refilled":
        this.#events.onRefilled(refilled.records);
        return { kind: "free", mayChange: false };
      case "purged":
        this.#deps.depose();
        break;
      case "lost":
        this.#events.onTailLost(refilled.lastSeq, refilled.error);
        return { kind: "left" };
      case "kept-out":
        this.#events.onTailKeptOut(refilled.cause);
        break;
      case "refused":
        this.#events.onPlaceRefused(refilled.error);
        break;
      case "unchanged":
        break;
    }
    return { kind: "free", mayChange: true };
  }
}

function twoLeadersError({ seq }: JournalRecord, { batch }: SentBatch): JournalDamagedError {
  return new JournalDamagedError(
    `record ${seq} holds another batch ${batch.idx} of term ${batch.term} than the one this coordinator wrote: two leaders of one term. Stop all coordinators and verify the journal`,
  );
}
