// Appends the leader's batches to its segment in order, and says when each is committed.
//
// The rule: a batch is committed when it and all earlier batches of its segment are stored. At most two are in flight.
// Sent bytes are sent again unchanged.
//
//   sent ─ stored  → committed, after all earlier batches
//        ─ stored, 0.8·T after sending or later, or sent 0.8·T after the last acknowledged append
//                  → inspect the segment, and send the same bytes again: they are found in the position
//        ─ unknown → the same bytes again, at the same position
//        ─ refused → read the position: our bytes → stored
//        │                              only foreign records, or our own batch in flight → append behind them
//        │                              nothing, or the segment has another coordinator's claim → inspect the segment
//        │                              (segment-watch.ts), and send the bytes again
//        │                              another record → the segment is faulty
//        ─ sealed  → another coordinator takes the lead
//        ─ missing → the segment is faulty
//        ─ full    → the same bytes again after a while; no commit meanwhile
//
// Only the oldest batch is resolved. Answers about the next batch are forgotten, and it is sent again: its position
// follows from the oldest batch's position. Not here: contents of batches (in-flight.ts), consequences of a commit
// (commits.ts), and a faulty segment (segment-change.ts).

import type { Clock } from "../../clock.ts";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";
import type { BatchIndex, Term } from "../../ids.ts";
import { type Found, findAt } from "../../journal/inspect.ts";
import type { AppendOutcome, Segment } from "../../journal/journal.ts";
import { limits } from "../../limits.ts";
import type { LeaderLease } from "./leader-lease.ts";

/** A batch in flight. */
export interface PendingBatch {
  readonly term: Term;
  readonly idx: BatchIndex;
  readonly bytes: Uint8Array;
  /** `hashOf` the bytes; the next batch's `prev`. */
  readonly hash: string;
}

export interface Stored {
  readonly position: number;
  /** When the acknowledged append was sent, or the look began after which the batch counts. */
  readonly sentMonotonicMs: number;
  /** When the batch was first sent: earlier unless the first append was acknowledged. */
  readonly firstSentMonotonicMs: number;
}

/** The journal has no room for the next batch. */
export interface Full {
  readonly message: string;
  /** Size of the batch. */
  readonly bytes: number;
}

export interface WriterEvents {
  /** In order of idx. */
  readonly onCommitted: (batch: PendingBatch, stored: Stored) => void;
  /** No room for the next batch. Called once until there is room again, and then with undefined. */
  readonly onFull: (full: Full | undefined) => void;
  /** Another coordinator sealed the segment. The last call. */
  readonly onSealed: () => void;
  /** The segment lost a stored batch. The last call. */
  readonly onFaulty: (error: JournalDamagedError) => void;
  /** The oldest batch is not acknowledged, for a while now. */
  readonly onUnacknowledged: (cause: unknown, sentMonotonicMs: number) => void;
  /** The segment seems to end before the oldest batch's position, or to be another coordinator's: it lost records, or
   *  the server lags behind. */
  readonly onSuspect: () => void;
  /** The oldest batch was acknowledged too late. Call `hold`, and `resume` once the segment was looked at. */
  readonly onLate: () => void;
  /** A foreign record stands in the segment. */
  readonly onForeign: (position: number) => void;
}

interface Sent {
  readonly batch: PendingBatch;
  sentMonotonicMs: number;
  firstSentMonotonicMs: number | undefined;
  outcome: AppendOutcome | undefined;
  /** The newest append is under way, or its answer is unresolved. */
  isUnderWay: boolean;
  /** Bumped at each sending: answers to earlier appends are ignored. */
  round: number;
  /** The batch was acknowledged, too late. */
  isStored: boolean;
  /** When the last look began that found the segment whole, without a rival's claim, while the batch was stored. */
  lookedMonotonicMs: number | undefined;
}

export interface WriterDeps {
  /** Id of the writer's session. */
  readonly session: string;
  readonly segment: Segment;
  /** Position of the segment's last record. */
  readonly position: number;
  readonly clock: Clock;
  readonly lease: Pick<LeaderLease, "isLate" | "isYoung">;
}

export class Writer {
  readonly #deps: WriterDeps;
  readonly #events: WriterEvents;
  readonly #sent: Sent[] = [];
  /** Position of the last committed batch, or of foreign records behind it. */
  #position: number;
  #recordHash = "";
  #isOver = false;
  #isHeld = false;
  #isFull = false;
  #isResolving = false;
  #cancelPause: (() => void) | undefined;

  constructor(deps: WriterDeps, events: WriterEvents) {
    this.#deps = deps;
    this.#events = events;
    this.#position = deps.position;
  }

  get hasRoom(): boolean {
    return this.#sent.length < limits.batchesInFlightMax;
  }

  /** Not committed, oldest first. */
  get pending(): readonly PendingBatch[] {
    return this.#sent.map(({ batch }) => batch);
  }

  /** Position of the segment's last known record. */
  get position(): number {
    return this.#position;
  }

  /** Hash of the last known record; empty unless this writer wrote the record. */
  get recordHash(): string {
    return this.#recordHash;
  }

  append(batch: PendingBatch): void {
    const sent: Sent = {
      batch,
      sentMonotonicMs: 0,
      firstSentMonotonicMs: undefined,
      outcome: undefined,
      isUnderWay: false,
      round: 0,
      isStored: false,
      lookedMonotonicMs: undefined,
    };
    this.#sent.push(sent);
    const mayFollow = this.#sent.length === 1 || this.#sent[0]?.round === 1; // else the oldest batch is resolved first
    if (!this.#isHeld && mayFollow) this.#send(sent);
  }

  /** The connection broke: sent batches count as acknowledged only after they are read back. */
  hold(): void {
    this.#isHeld = true;
    for (const sent of this.#sent) this.#forget(sent);
  }

  /** True while a batch waits for a look because it was acknowledged too late. */
  get isLate(): boolean {
    return this.#sent[0]?.isStored === true;
  }

  /** The segment is whole. @param lookedMonotonicMs the begin of the look */
  resume(lookedMonotonicMs: number): void {
    this.#isHeld = false;
    const [oldest] = this.#sent;
    if (oldest?.isStored === true) oldest.lookedMonotonicMs = lookedMonotonicMs;
    this.#sendAgain();
  }

  /** No event is called any more. Batches in flight may be stored all the same. */
  stop(): void {
    this.#isOver = true;
    this.#cancelPause?.();
  }

  // --- sending --------------------------------------------------------------------------------------

  #send(sent: Sent): void {
    const { clock, segment } = this.#deps;
    sent.sentMonotonicMs = clock.monotonicMs();
    sent.firstSentMonotonicMs ??= sent.sentMonotonicMs;
    sent.outcome = undefined;
    sent.isUnderWay = true;
    sent.round += 1;
    const { round } = sent;
    const expected = this.#position + this.#sent.indexOf(sent);
    void segment.append(sent.batch.bytes, expected).then((outcome) => {
      if (this.#isOver || sent.round !== round) return;
      sent.outcome = outcome;
      void this.#resolve();
    });
  }

  #forget(sent: Sent): void {
    sent.round += 1;
    sent.isUnderWay = false;
    sent.outcome = undefined;
  }

  /** Only the oldest; the next batch follows after its commit. */
  #sendAgain(): void {
    if (this.#isOver || this.#isHeld) return;
    const [oldest, ...others] = this.#sent;
    for (const other of others) this.#forget(other);
    if (oldest !== undefined) this.#send(oldest);
  }

  // --- resolving ------------------------------------------------------------------------------------

  async #resolve(): Promise<void> {
    if (this.#isResolving) return;
    this.#isResolving = true;
    try {
      for (let [oldest] = this.#sent; this.#takes(oldest); [oldest] = this.#sent) await this.#settle(oldest);
    } finally {
      this.#isResolving = false;
    }
  }

  #takes(oldest: Sent | undefined): oldest is Sent & { outcome: AppendOutcome } {
    return !this.#isOver && oldest?.outcome !== undefined;
  }

  async #settle(oldest: Sent & { outcome: AppendOutcome }): Promise<void> {
    const { outcome } = oldest;
    switch (outcome.kind) {
      case "stored":
        return this.#acknowledged(oldest);
      case "sealed":
        return this.#end(() => this.#events.onSealed());
      case "missing":
        return this.#faulty("it is gone");
      case "full":
        return this.#foundFull(outcome.message, oldest);
      case "unknown": {
        const { cause } = outcome;
        this.#forget(oldest);
        this.#events.onUnacknowledged(cause, oldest.firstSentMonotonicMs ?? 0);
        return this.#pause(limits.appendRetryMs);
      }
      case "refused":
        return await this.#lookAtPosition(oldest);
    }
  }

  /** While a leader is paused, its segment may lose a stored batch, and a successor may lead without the batch. So
   *  a late acknowledgement counts as none (docs/adr/0023-segments-are-modelled-first.md, change 9). */
  #acknowledged(oldest: Sent): void {
    if (!this.#deps.lease.isLate(oldest.sentMonotonicMs)) return this.#commit(oldest, oldest.sentMonotonicMs);
    oldest.isStored = true;
    oldest.lookedMonotonicMs = undefined;
    this.#events.onLate();
  }

  /** The batch was found in its position. It counts if a look since it was stored found no rival's claim. A later
   *  candidate reads the end of the segment again after its claim, and finds the batch (change 16). */
  #foundItself(oldest: Sent): void {
    const { lookedMonotonicMs } = oldest;
    if (lookedMonotonicMs === undefined || !this.#deps.lease.isYoung(lookedMonotonicMs))
      return this.#acknowledged(oldest);
    this.#commit(oldest, lookedMonotonicMs);
  }

  /** @param provenMonotonicMs when the leader surely led */
  #commit(oldest: Sent, provenMonotonicMs: number): void {
    this.#position += 1;
    this.#recordHash = oldest.batch.hash;
    this.#sent.shift();
    if (this.#isFull) {
      this.#isFull = false;
      this.#events.onFull(undefined);
    }
    this.#events.onCommitted(oldest.batch, {
      position: this.#position,
      sentMonotonicMs: provenMonotonicMs,
      firstSentMonotonicMs: oldest.firstSentMonotonicMs ?? oldest.sentMonotonicMs,
    });
    const [next] = this.#sent;
    if (next !== undefined && !next.isUnderWay && !this.#isHeld && !this.#isOver) this.#send(next);
  }

  #foundFull(message: string, oldest: Sent): void {
    this.#forget(oldest);
    if (!this.#isFull) this.#events.onFull({ message, bytes: oldest.batch.bytes.length });
    this.#isFull = true;
    this.#pause(limits.journalFullRetryMs);
  }

  #pause(ms: number): void {
    this.#cancelPause?.();
    this.#cancelPause = this.#deps.clock.after(ms, () => this.#sendAgain());
  }

  /** The segment does not end where the oldest was expected. */
  async #lookAtPosition(oldest: Sent): Promise<void> {
    const { round } = oldest;
    const found = await this.#find(oldest.batch);
    if (this.#isOver || oldest.round !== round) return;
    switch (found) {
      case "itself":
        return this.#foundItself(oldest);
      case "passed-over":
        this.#position += 1;
        this.#recordHash = "";
        this.#events.onForeign(this.#position);
        return this.#sendAgain();
      case "different":
        return this.#faulty(`record ${this.#position + 1} is not as it was written`);
      case "nothing":
      case "rival":
      case "unclaimed":
        this.#forget(oldest);
        this.#events.onSuspect();
        return this.#pause(limits.appendRetryMs);
      case "unreachable":
        this.#forget(oldest);
        return this.#pause(limits.appendRetryMs);
    }
  }

  /** Reads the position behind the last known record, where the batch was expected. */
  async #find({ bytes }: PendingBatch): Promise<Found | "unreachable"> {
    const { segment, session } = this.#deps;
    const resent = this.pending.map((batch) => batch.bytes);
    try {
      return await findAt(segment, { position: this.#position + 1, bytes, session, resent });
    } catch (error) {
      if (error instanceof UnreachableError) return "unreachable";
      throw error;
    }
  }

  #faulty(what: string): void {
    const { number } = this.#deps.segment;
    this.#end(() => this.#events.onFaulty(new JournalDamagedError(`segment ${number} is faulty: ${what}`)));
  }

  #end(notify: () => void): void {
    this.stop();
    notify();
  }
}
