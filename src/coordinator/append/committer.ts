// Appends the leader's batches in order and says when each is committed.
//
// Overview. At most two batches are in flight. Each is appended at the position right behind the one before.
// Authoritative is the journal: what it stored, not what it answered.
//
// The rule: a batch is committed when it is stored and every earlier batch of its term is committed. A batch
// acknowledged behind a refused one is void. A batch once sent is never re-cut: whatever happens, the same bytes
// are sent again, or the term is over.
//
//   sent ──stored──► stored ──(all earlier committed)──► committed
//     │ unknown: the same bytes again, same position; those behind it when it is committed
//     │ refused: read what stands from the expected position on
//     │            our bytes           → stored there
//     │            only dead records   → expect behind them, send again
//     │            nothing, and the journal ends before what was committed
//     │                                → append again, byte for byte, what it lost (end-refill.ts), send again;
//     │                                  where that is not held for 3 s, wait until it is rescued (rescue.ts)
//     │            nothing, and the journal begins behind it
//     │                                → deposed: whoever purged so far has gone on
//     │            nothing, and the journal counts a record there, which it never finds again
//     │                                → the place is dead: expect behind it, send again (lost-places.ts)
//     │            dead records, and one in the place of the last that was committed
//     │                                → wait until it is rescued: the journal lost its end
//     │            another line         → halt: the journal lost its end, and another went on from there;
//     │                                   but where only dead records were lost, read what stands in their place;
//     │                                   and where that one had saved all that was committed: deposed (saved-end.ts)
//     │            another leader's    → deposed: everything uncommitted is void
//     │            our term, not ours  → halt: a fork
//     └ full:     the same bytes again after a while; nothing is answered meanwhile
//
// A batch that was sent again is committed only where no other record than ours stands before it: the journal may have
// lost its end meanwhile, and another have written up to the very position that is expected.
//
// Only the oldest uncommitted batch is ever resolved; what was said of the later ones is forgotten then and asked
// again, because their positions follow from the oldest one's.
//
// Its parts: what is in flight (sends.ts), the end of what is committed (chain-end.ts) and whether that still stands
// (committed-tail.ts), and reading what took the oldest one's place (expected-place.ts). Not here: what the batches
// hold, and what is done once they are committed (commits.ts, campaign.ts).

import { assert } from "../../assert.ts";
import type { Clock } from "../../clock.ts";
import type { Endurance } from "../../endurance.ts";
import { JournalDamagedError, UnreachableError, type WaggleError } from "../../errors.ts";
import type { BatchIndex } from "../../ids.ts";
import type { AppendOutcome, Journal } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { ChainPosition } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { SavedCheck } from "../repair/saved-end.ts";
import { ChainEnd } from "./chain-end.ts";
import { CommittedTail } from "./committed-tail.ts";
import { EndRefill, type EndRefillDeps } from "./end-refill.ts";
import { ExpectedPlace, type PlaceEvents } from "./expected-place.ts";
import { type PendingBatch, Sends, type SentBatch } from "./sends.ts";

export interface Stored {
  readonly seq: number;
  readonly sentMonotonicMs: number;
}

/** The journal has no room for the next batch. */
export interface Full {
  readonly message: string;
  /** Of that batch. */
  readonly bytes: number;
}

export interface CommitterEvents extends PlaceEvents {
  /** In order of idx. `stored` says where, and when the append that proved it was sent; undefined when it was made
   *  durable otherwise (`continueBehind`). */
  readonly onCommitted: (batch: PendingBatch, stored: Stored | undefined) => void;
  /** A higher term rules, or the journal says so: nothing uncommitted will ever be. Called once. */
  readonly onDeposed: () => void;
  /** The journal can no longer be written safely. Called once. */
  readonly onHalted: (error: WaggleError) => void;
  /** Nobody says whether the oldest batch is stored, which was sent first at `sentMonotonicMs`. */
  readonly onUnacknowledged: (cause: unknown, sentMonotonicMs: number) => void;
  /** No room for the next batch; said once until there is room again, and then with nothing. */
  readonly onFull: (full: Full | undefined) => void;
}

/** Asked before anything is sent: whether another may lead by now (rival-check.ts, candidate-check.ts). */
export interface Rivals {
  /** Whether that is to be asked. */
  readonly isDue: boolean;
  /** Resolves when it is known whether it may be sent behind `lastSeq`: false where the journal does not end there, so
   *  that what it holds is to be read first.
   *  @throws UnreachableError; JournalDamagedError when another record stands at `lastSeq` than was read there */
  pass(lastSeq: number): Promise<boolean>;
  /** The journal did not answer, to who read it or appended: what this said before counts no more. */
  unanswered(): void;
}

type RivalLook = "passed" | "goes-on" | "unknown";

export interface CommitterDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Up to where the journal was read. */
  readonly position: ChainPosition;
  /** What stands in the journal up to there; goes on with what is committed. */
  readonly recent: RecentRecords;
  readonly rivals?: Rivals;
  readonly isSaved?: SavedCheck | undefined;
  /** Whose line the journal ends with, for who saves its own state where that is its own (rescue.ts). Default: not
   *  asked. */
  readonly ownerOfEnd?: EndRefillDeps["ownerOfEnd"];
  /** Shared with who compares the line before it sends (candidate-check.ts), so that time counts on. Default: one of
   *  its own. */
  readonly lineMiss?: Endurance;
}

export class Committer {
  readonly #clock: Clock;
  readonly #rivals: Rivals | undefined;
  readonly #events: CommitterEvents;
  readonly #sends: Sends;
  readonly #end: ChainEnd;
  readonly #tail: CommittedTail;
  readonly #refill: EndRefill;
  readonly #place: ExpectedPlace;
  #isOver = false;
  #isResolving = false;
  /** Times that the journal's end was lost for somebody to rescue: what was resolved then is for that one to go on
   *  with (`continueBehind`), however soon it does. */
  #tailsLost = 0;
  #isFull = false;
  #cutPause: (() => void) | undefined;

  constructor(deps: CommitterDeps, events: CommitterEvents) {
    const { journal, clock, position, recent, rivals, isSaved, ownerOfEnd, lineMiss } = deps;
    this.#clock = clock;
    this.#rivals = rivals;
    this.#events = events;
    this.#sends = new Sends({
      journal,
      clock,
      heard: (entry, outcome) => this.#heard(entry, outcome),
      failed: (cause) =>
        this.#halt(new JournalDamagedError("an append ended with an error instead of an outcome", { cause })),
    });
    const end = new ChainEnd(position, recent);
    const inFlight = () => this.#sends.batches;
    const tail = new CommittedTail({ journal, clock, recent, end, inFlight, isSaved, lineMiss });
    const refill = new EndRefill({ journal, clock, recent, end, ownerOfEnd });
    const onTailLost: CommitterEvents["onTailLost"] = (lastSeq, error) => {
      this.#tailsLost += 1;
      events.onTailLost(lastSeq, error);
    };
    const parts = { journal, clock, sends: this.#sends, end, tail, refill };
    const line = { isOver: () => this.#isOver, depose: () => this.#depose() };
    this.#place = new ExpectedPlace({ ...parts, ...line }, { ...events, onTailLost });
    this.#end = end;
    this.#tail = tail;
    this.#refill = refill;
  }

  /** Of the last committed batch's record, or of a dead one behind it. */
  get lastSeq(): number {
    return this.#end.lastSeq;
  }

  /** Those that are not committed, oldest first. */
  get pending(): readonly PendingBatch[] {
    return this.#sends.batches;
  }

  get hasRoom(): boolean {
    return !this.#isOver && this.#sends.count < limits.batchesInFlightMax;
  }

  /** Whether there will be no further call to the events. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends a batch behind those in flight. Ask `hasRoom` first. */
  append(batch: PendingBatch): void {
    const entry = this.#sends.add(batch, this.#end.endSeq);
    if (this.#isResolving || this.#sends.mustFollow(entry)) return;
    this.#onceUnrivalled(() => this.#sends.send(entry));
  }

  /** Of a batch that was committed somebody may have been told: another line must hold it. */
  told(idx: BatchIndex): void {
    this.#end.told(idx);
  }

  /** All that is in flight is durable otherwise, and the journal goes on behind `lastSeq`. */
  continueBehind(lastSeq: number): void {
    this.#end.goBackTo(lastSeq);
    this.#isResolving = false;
    for (const batch of this.#sends.takeAll()) {
      this.#end.continued(batch);
      this.#events.onCommitted(batch, undefined);
    }
  }

  /** Where another line stands than ours: whether it holds all that was committed all the same. Undefined when that is
   *  not known, for nobody answers, or has not been seen for long. */
  isSaved(): Promise<boolean | undefined> {
    return this.#tail.isSaved();
  }

  /** No further calls to the events; batches in flight are left as they are. */
  stop(): void {
    this.#isOver = true;
    this.#cutPause?.();
  }

  // --- what an append brings ----------------------------------------------------------------------

  #heard(entry: SentBatch, outcome: AppendOutcome): void {
    if (this.#isOver) return;
    if (outcome.kind === "stored") {
      entry.storedSeq = outcome.seq;
      this.#commitPrefix();
      return;
    }
    if (outcome.kind === "unknown" && outcome.cause instanceof JournalDamagedError)
      return this.#halt(outcome.cause);
    entry.unsettled = outcome;
    this.#settleOldest();
  }

  #commitPrefix(): void {
    if (this.#isResolving) return;
    for (let entry = this.#sends.oldest; entry?.storedSeq !== undefined; entry = this.#sends.oldest) {
      const { batch, storedSeq: seq, sentMonotonicMs } = entry;
      if (entry.isUnproven) return void this.#resolve(entry, { kind: "stored", seq });
      this.#sends.dropOldest();
      this.#end.stored(batch, seq, this.#clock.monotonicMs());
      this.#saidFull(undefined);
      this.#refill.moved();
      this.#tail.moved();
      this.#events.onCommitted(batch, { seq, sentMonotonicMs });
      if (this.#isOver || this.#isResolving) return; // what was appended along with it waits for a rival
    }
    const { oldest } = this.#sends;
    const isToBeSent = oldest?.isHeldBack === true || oldest?.expectedSeq !== this.#end.lastSeq;
    if (oldest !== undefined && isToBeSent) this.#onceUnrivalled(() => this.#resend());
    else this.#settleOldest();
  }

  #settleOldest(): void {
    const { oldest } = this.#sends;
    if (oldest?.unsettled === undefined || this.#isResolving) return;
    void this.#resolve(oldest, oldest.unsettled);
  }

  async #resolve(oldest: SentBatch, outcome: AppendOutcome): Promise<void> {
    const tailsLost = this.#tailsLost;
    this.#isResolving = true;
    if (outcome.kind === "full")
      this.#saidFull({ message: outcome.message, bytes: oldest.batch.bytes.length });
    if (outcome.kind === "unknown") {
      this.#rivals?.unanswered();
      this.#events.onUnacknowledged(outcome.cause, oldest.firstSentMonotonicMs ?? oldest.sentMonotonicMs);
    }
    try {
      if (outcome.kind === "refused") await this.#readPlace(oldest);
      else if (outcome.kind !== "stored")
        await this.#pause(outcome.kind === "full" ? limits.journalFullRetryMs : limits.appendRetryMs);
      if (oldest.storedSeq !== undefined) await this.#proveLine(oldest);
    } catch (cause) {
      if (await this.#endsWith(cause, oldest)) return;
    }
    if (this.#tailsLost > tailsLost) return;
    this.#isResolving = false;
    if (this.#isOver) return;
    if (oldest.storedSeq !== undefined) this.#commitPrefix();
    else this.#onceUnrivalled(() => this.#resend());
  }

  async #readPlace(oldest: SentBatch): Promise<void> {
    const found = await this.#place.read(oldest);
    switch (found.kind) {
      case "ours":
        oldest.storedSeq = found.seq;
        // It was refused just now: a rival's record may stand behind it.
        oldest.sentMonotonicMs = oldest.firstSentMonotonicMs ?? oldest.sentMonotonicMs;
        return;
      case "free":
        if (found.mayChange) await this.#pause(limits.appendRetryMs);
        return;
      case "deposed":
        return this.#depose();
      case "forked":
        return this.#halt(found.error);
      case "left":
        return;
    }
  }

  /** Takes a batch that was sent again for stored where no other record than ours stands before it. Where that cannot
   *  be told yet it is sent again.
   *  @throws JournalDamagedError when another stands there; UnreachableError: then it is sent again */
  async #proveLine(oldest: SentBatch): Promise<void> {
    const { storedSeq } = oldest;
    if (!oldest.isUnproven) return;
    oldest.storedSeq = undefined;
    if (!(await this.#tail.isSameLine())) return await this.#pause(limits.appendRetryMs);
    oldest.storedSeq = storedSeq;
    oldest.isUnproven = false;
  }

  #resend(): void {
    this.#sends.sendOldestAgain(this.#end.endSeq);
  }

  // --- who else may lead --------------------------------------------------------------------------

  /** Sends now; or, where another may lead by now, the oldest alone once that is known not to be so. */
  #onceUnrivalled(send: () => void): void {
    if (this.#rivals?.isDue !== true) return send();
    this.#isResolving = true;
    void this.#passRivals(this.#rivals);
  }

  /** Where the journal goes on, the place is read as if it had been refused: what is sent into it might be stored
   *  after the journal lost what stands there, and nobody says so where answers are lost. */
  async #passRivals(rivals: Rivals): Promise<void> {
    const { oldest } = this.#sends;
    assert(oldest !== undefined, "there is one to be sent");
    let found: RivalLook;
    do {
      found = await this.#askOf(rivals, oldest);
    } while (found === "unknown" && !this.#isOver);
    if (this.#isOver) return;
    if (found === "goes-on") {
      this.#sends.holdBack(this.#end.endSeq);
      return await this.#resolve(oldest, { kind: "refused" });
    }
    this.#isResolving = false;
    if (oldest.storedSeq !== undefined) this.#commitPrefix();
    else this.#resend();
  }

  /** `unknown` where it is to be asked again, for nobody answered; or that was the end of the term. */
  async #askOf(rivals: Rivals, oldest: SentBatch): Promise<RivalLook> {
    try {
      return (await rivals.pass(this.#end.endSeq)) ? "passed" : "goes-on";
    } catch (cause) {
      const isOver = await this.#endsWith(cause, oldest);
      return !isOver && oldest.storedSeq !== undefined ? "passed" : "unknown";
    }
  }

  // --- a journal that is not what it was ----------------------------------------------------------

  /** The journal was not what it was held to be, or did not answer: whether that is the end of the term. */
  async #endsWith(cause: unknown, oldest: SentBatch): Promise<boolean> {
    if (cause instanceof JournalDamagedError) {
      const found = await this.#tail.look();
      // Of a batch that only a snapshot holds a candidate has nothing to look for; who stands by has (begin-anew.ts).
      if (found.kind === "gone" && oldest.batch.startsTerm && this.#end.tailRecord === undefined) {
        this.#depose();
        return true;
      }
      if (found.kind === "gone") {
        await this.#endOnAnotherLine(cause);
        return true;
      }
      if (found.kind === "stands") this.#goBackTo(found.seq, oldest);
    }
    if (cause instanceof UnreachableError) {
      this.#refill.renew();
      this.#rivals?.unanswered();
    }
    await this.#pause(limits.appendRetryMs); // unreachable: the journal proves nothing now, ask again
    return false;
  }

  /** Nothing is sent behind another line: it is over once it is known whether that one holds what was committed. */
  async #endOnAnotherLine(cause: JournalDamagedError): Promise<void> {
    let isSaved = await this.isSaved();
    for (; isSaved === undefined && !this.#isOver; isSaved = await this.isSaved())
      await this.#pause(limits.appendRetryMs);
    if (isSaved === true) this.#depose();
    else this.#halt(cause);
  }

  /** At most dead records behind the last batch were lost, and others stand in their place: those are to be read. A
   *  campaign is lost then. */
  #goBackTo(seq: number, oldest: SentBatch): void {
    if (this.#isOver) return;
    if (oldest.batch.startsTerm) return this.#depose(); // what was read is still held: whoever reads on sees it replaced
    this.#end.goBackTo(seq);
  }

  #saidFull(full: Full | undefined): void {
    if (this.#isFull === (full !== undefined)) return;
    this.#isFull = full !== undefined;
    this.#events.onFull(full);
  }

  #depose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.onDeposed();
  }

  #halt(error: WaggleError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.onHalted(error);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#cutPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
