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
//     │                                → append again, byte for byte, what it lost (refill.ts), send again;
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

import type { Clock } from "../clock.ts";
import { Endurance, lossEndurance } from "../endurance.ts";
import { JournalDamagedError, UnreachableError, type WaggleError } from "../errors.ts";
import type { BatchIndex, Term } from "../ids.ts";
import { type Batch, decodeBatch, hashOf } from "../journal/batch.ts";
import type { AppendOutcome, Journal, JournalRecord } from "../journal/journal.ts";
import { forkError, lostTailError, unreadableError } from "../journal/journal-errors.ts";
import { isSameBytes, type RecentRecords } from "../journal/recent-records.ts";
import { refill, requireSameLine } from "../journal/refill.ts";
import {
  type ChainPosition,
  type ChainTail,
  type DeadReason,
  deathOf,
  isBehindMore,
} from "../journal/replay.ts";
import { limits } from "../limits.ts";
import { LostPlaces } from "./lost-places.ts";

/** A batch on its way into the journal. */
export interface PendingBatch {
  readonly journal: string;
  readonly idx: BatchIndex;
  readonly term: Term;
  readonly bytes: Uint8Array;
  /** Of `bytes`; the next batch's `prev`. */
  readonly hash: string;
  /** Whether it is the batch that starts its term: losing its place to a rival is losing the election. */
  readonly startsTerm: boolean;
}

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

export interface CommitterEvents {
  /** In order of idx. `stored` says where, and when the append that proved it was sent; undefined when it was made
   *  durable otherwise (`continueBehind`). */
  onCommitted(batch: PendingBatch, stored: Stored | undefined): void;
  /** A record that everybody skips. */
  onDead(record: JournalRecord, reason: DeadReason): void;
  /** The journal had lost so many committed records of its end, and has them again. */
  onRefilled(records: number): void;
  /** The journal ends at `lastSeq`, before what was committed, and what is missing is not held any more. Nothing
   *  more is sent until `continueBehind`. */
  onTailLost(lastSeq: number, error: JournalDamagedError): void;
  /** The journal has lacked some of what was committed for long, and does not take it back. Called again while it is
   *  so. */
  onTailKeptOut(cause: unknown): void;
  /** The journal counts a record behind what was committed that nobody will ever read there. */
  onPlaceLost(error: JournalDamagedError): void;
  /** A higher term rules, or the journal says so: nothing uncommitted will ever be. Called once. */
  onDeposed(): void;
  /** The journal can no longer be written safely. Called once. */
  onHalted(error: WaggleError): void;
  /** No room for the next batch; said once until there is room again, and then with nothing. */
  onFull(full: Full | undefined): void;
}

/** Asked before anything is sent: whether another may lead by now (rival-check.ts, candidate-check.ts). */
export interface Rivals {
  /** Whether that is to be asked. */
  readonly isDue: boolean;
  /** Resolves when it may be sent behind `lastSeq`, or when the journal goes on behind that, which is to be read first.
   *  @throws UnreachableError; JournalDamagedError when another record stands at `lastSeq` than was read there */
  pass(lastSeq: number): Promise<void>;
}

export interface CommitterDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Up to where the journal was read. */
  readonly position: ChainPosition;
  /** What stands in the journal up to there; goes on with what is committed. */
  readonly recent: RecentRecords;
  readonly rivals?: Rivals;
  /** Whether the line that stands in the journal goes through a batch, wherever that stood (saved-end.ts). Default: it
   *  does not. @throws UnreachableError, JournalDamagedError */
  readonly isSaved?: ((tail: ChainTail) => Promise<boolean>) | undefined;
}

interface Entry {
  readonly batch: PendingBatch;
  expectedSeq: number;
  sentMonotonicMs: number;
  /** When it was sent for the first time: what is found stored may have been stored since. */
  firstSentMonotonicMs: number | undefined;
  storedSeq: number | undefined;
  /** Heard while an earlier batch was not yet settled; resolved once this one is the oldest. */
  unsettled: AppendOutcome | undefined;
  /** Bumped when sent again or held back, so that answers to earlier sends are told apart. */
  round: number;
  /** How often it was sent. */
  sends: number;
  /** Not sent, or not again, until the one before is committed: what that one met, this one might not. */
  isHeldBack: boolean;
  /** Sent again: what stands before it is to be looked at before it is committed. */
  isUnproven: boolean;
}

export class Committer {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #recent: RecentRecords;
  readonly #rivals: CommitterDeps["rivals"];
  readonly #isSavedAt: (tail: ChainTail) => Promise<boolean>;
  readonly #events: CommitterEvents;
  readonly #entries: Entry[] = [];
  readonly #lost: LostPlaces;
  /** Of the last record that was committed, or found dead. */
  #lastSeq: number;
  /** Places behind it that count as dead, of which nothing can be read. */
  #lostPlaces = 0;
  /** Until this batch is committed, others may have read in a place that is lost what we hold in flight, and gone
   *  on. */
  #hiddenIdx = 0;
  #tail: ChainTail;
  /** Of what is not held any more: a server that just took over may answer from before. */
  readonly #tailLoss: Endurance;
  readonly #tailRefusal: Endurance;
  readonly #tailMiss: Endurance;
  /** Of what was committed here, where another line stands: who saved it may not be known yet. */
  readonly #unsaved: Endurance;
  #isResolving = false;
  /** For somebody to rescue what the journal lost. */
  #isWaiting = false;
  #isOver = false;
  #isFull = false;
  #cancelRetry: (() => void) | undefined;

  constructor({ journal, clock, position, recent, rivals, isSaved }: CommitterDeps, events: CommitterEvents) {
    this.#journal = journal;
    this.#clock = clock;
    this.#recent = recent;
    this.#rivals = rivals;
    this.#isSavedAt = isSaved ?? (async () => false);
    this.#unsaved = lossEndurance(clock, limits.readBackPatienceMs, isSaved !== undefined);
    this.#lastSeq = position.seq;
    this.#tail = position;
    this.#events = events;
    this.#tailLoss = new Endurance(clock, journal.sharable ? limits.journalHoleMs : 0);
    this.#tailRefusal = new Endurance(clock, limits.readBackPatienceMs);
    this.#tailMiss = new Endurance(clock, limits.readBackPatienceMs);
    this.#lost = new LostPlaces({ journal, clock, isOver: () => this.#isOver });
  }

  get inFlight(): number {
    return this.#entries.length;
  }

  /** Of the last committed batch's record, or of a dead one behind it. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  get hasRoom(): boolean {
    return !this.#isOver && this.#entries.length < limits.batchesInFlightMax;
  }

  /** Whether there will be no further call to the events. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends a batch behind those in flight. Ask `hasRoom` first. */
  append(batch: PendingBatch): void {
    const expectedSeq = this.#endSeq + this.#entries.length;
    const entry: Entry = {
      batch,
      expectedSeq,
      sentMonotonicMs: 0,
      firstSentMonotonicMs: undefined,
      storedSeq: undefined,
      unsettled: undefined,
      round: 0,
      sends: 0,
      isHeldBack: true,
      isUnproven: false,
    };
    this.#entries.push(entry);
    const [oldest] = this.#entries;
    const mustFollow = oldest !== undefined && oldest !== entry && (oldest.isHeldBack || oldest.sends > 1);
    if (this.#isResolving || mustFollow) return;
    this.#onceUnrivalled(() => this.#send(entry));
  }

  /** No further calls to the events; batches in flight are left as they are. */
  stop(): void {
    this.#isOver = true;
    this.#cancelRetry?.();
  }

  #send(entry: Entry): void {
    entry.isHeldBack = false;
    entry.round += 1;
    entry.sends += 1;
    entry.sentMonotonicMs = this.#clock.monotonicMs();
    entry.firstSentMonotonicMs ??= entry.sentMonotonicMs;
    const { round } = entry;
    this.#journal.append(entry.batch.bytes, entry.expectedSeq).then(
      (outcome) => {
        if (!this.#isOver && entry.round === round) this.#heard(entry, outcome);
      },
      (cause: unknown) =>
        this.#halt(new JournalDamagedError("an append ended with an error instead of an outcome", { cause })),
    );
  }

  #heard(entry: Entry, outcome: AppendOutcome): void {
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
    for (let entry = this.#entries[0]; entry?.storedSeq !== undefined; entry = this.#entries[0]) {
      if (entry.isUnproven) return void this.#resolve(entry, { kind: "stored", seq: entry.storedSeq });
      this.#entries.shift();
      this.#goOnBehind(entry.storedSeq);
      const { idx, term, hash, journal, bytes } = entry.batch;
      this.#recent.add({ seq: entry.storedSeq, bytes }, this.#clock.monotonicMs());
      this.#tail = { idx, term, hash, journal };
      this.#saidFull(undefined);
      this.#tailLoss.renew();
      this.#tailMiss.renew();
      const { storedSeq: seq, sentMonotonicMs } = entry;
      this.#events.onCommitted(entry.batch, { seq, sentMonotonicMs });
      if (this.#isOver || this.#isResolving) return; // what was appended along with it waits for a rival
    }
    const oldest = this.#entries[0];
    const isToBeSent = oldest?.isHeldBack === true || oldest?.expectedSeq !== this.#lastSeq;
    if (oldest !== undefined && isToBeSent) this.#resend();
    else this.#settleOldest();
  }

  #settleOldest(): void {
    const oldest = this.#entries[0];
    if (oldest?.unsettled === undefined || this.#isResolving) return;
    void this.#resolve(oldest, oldest.unsettled);
  }

  async #resolve(oldest: Entry, outcome: AppendOutcome): Promise<void> {
    this.#isResolving = true;
    if (outcome.kind === "full")
      this.#saidFull({ message: outcome.message, bytes: oldest.batch.bytes.length });
    try {
      if (outcome.kind === "refused") await this.#readPosition(oldest);
      else if (outcome.kind !== "stored")
        await this.#pause(outcome.kind === "full" ? limits.journalFullRetryMs : limits.appendRetryMs);
      if (oldest.storedSeq !== undefined) await this.#proveLine(oldest);
    } catch (cause) {
      if (await this.#endsWith(cause, oldest)) return;
    }
    if (this.#isWaiting) return;
    this.#isResolving = false;
    if (this.#isOver) return;
    if (oldest.storedSeq !== undefined) this.#commitPrefix();
    else this.#onceUnrivalled(() => this.#resend());
  }

  /** Sends now; or, where another may lead by now, the oldest alone once that is known not to be so. */
  #onceUnrivalled(send: () => void): void {
    if (this.#rivals?.isDue !== true) return send();
    this.#isResolving = true;
    void this.#passRivals(this.#rivals);
  }

  async #passRivals(rivals: Rivals): Promise<void> {
    const [oldest] = this.#entries;
    while (oldest !== undefined && !(await this.#hasPassed(rivals, oldest))) if (this.#isOver) return;
    this.#isResolving = false;
    if (this.#isOver) return;
    if (oldest?.storedSeq !== undefined) this.#commitPrefix();
    else this.#resend();
  }

  /** False where it is to be asked again, for nobody answered; or that was the end of the term. */
  async #hasPassed(rivals: Rivals, oldest: Entry): Promise<boolean> {
    try {
      await rivals.pass(this.#endSeq);
      return true;
    } catch (cause) {
      return !(await this.#endsWith(cause, oldest)) && oldest.storedSeq !== undefined;
    }
  }

  /** The journal was not what it was held to be, or did not answer: whether that is the end of the term. */
  async #endsWith(cause: unknown, oldest: Entry): Promise<boolean> {
    if (cause instanceof JournalDamagedError && (await this.#goBackToTail(oldest)) === false) {
      let isSaved = await this.isSaved();
      for (; isSaved === undefined && !this.#isOver; isSaved = await this.isSaved())
        await this.#pause(limits.appendRetryMs); // nothing is sent behind another line
      if (isSaved === true) this.#depose();
      else if (!this.#isOver) this.#halt(cause);
      return true;
    }
    if (cause instanceof UnreachableError) this.#tailLoss.renew();
    await this.#pause(limits.appendRetryMs); // unreachable: the journal proves nothing now, ask again
    return false;
  }

  /** Behind which place the next append is expected. */
  get #endSeq(): number {
    return this.#lastSeq + this.#lostPlaces;
  }

  #goOnBehind(seq: number): void {
    this.#lastSeq = seq;
    this.#lostPlaces = 0;
  }

  /** Takes a batch that was sent again for stored where no other record than ours stands before it. That none is found
   *  proves nothing, and is for who reads back (read-back.ts).
   *  @throws JournalDamagedError when another stands there; UnreachableError: then it is sent again */
  async #proveLine(oldest: Entry): Promise<void> {
    const { storedSeq } = oldest;
    if (!oldest.isUnproven) return;
    oldest.storedSeq = undefined;
    await requireSameLine(this.#journal, this.#recent, this.#lastSeq);
    oldest.storedSeq = storedSeq;
    oldest.isUnproven = false;
  }

  /** Reads what took the place of the oldest batch. */
  async #readPosition(oldest: Entry): Promise<void> {
    const replacedSeq = await this.#replacedTail();
    for (let seq = this.#lastSeq + 1; !this.#isOver; seq += 1) {
      const record = await this.#journal.read(seq);
      if (this.#isOver) return;
      if (record === undefined) {
        if (replacedSeq !== undefined && (await this.#isEndLostBefore(seq, replacedSeq))) return;
        if (await this.#isLost(seq)) continue;
        if (this.#isOver) return;
        this.#lostPlaces = seq - 1 - this.#lastSeq;
        // "Not found" proves nothing, and a journal that is whole will say something else when it is asked again.
        if (seq === oldest.expectedSeq + 1 && !(await this.#refill()))
          await this.#pause(limits.appendRetryMs);
        return;
      }
      const verdict = this.#judge(oldest, record);
      if (verdict === "ours" && replacedSeq === undefined) {
        oldest.storedSeq = seq;
        // It was refused just now: a rival's record may stand behind it.
        oldest.sentMonotonicMs = oldest.firstSentMonotonicMs ?? oldest.sentMonotonicMs;
        return;
      }
      if (verdict === "over") return;
      this.#goOnBehind(seq);
      this.#recent.add(record, this.#clock.monotonicMs(), { isDead: true });
      if (verdict !== "ours") this.#events.onDead(record, verdict);
    }
  }

  /** Where the last batch was committed, once no batch stands there any more: the journal lost its end, and what
   *  somebody else wrote there is dead to all. What stands behind that is to be read first: another may lead by now.
   *  @throws JournalDamagedError where it is a batch */
  async #replacedTail(): Promise<number | undefined> {
    const tail = this.#recent.findLast(({ bytes }) => hashOf(bytes) === this.#tail.hash);
    const found = tail && (await this.#journal.read(tail.seq));
    if (tail === undefined || found === undefined || isSameBytes(found.bytes, tail.bytes)) return undefined;
    if (decodeBatch(found.bytes) !== undefined) throw forkError(tail.seq);
    return tail.seq;
  }

  /** Whether the journal ends before a place, all from `replacedSeq` on being dead: the state is to be saved. */
  async #isEndLostBefore(seq: number, replacedSeq: number): Promise<boolean> {
    const { lastSeq } = await this.#journal.position();
    if (this.#isOver || lastSeq >= seq) return this.#isOver;
    this.#isWaiting = true;
    this.#events.onTailLost(lastSeq, lostTailError(replacedSeq - 1, replacedSeq));
    return true;
  }

  /** Whether nobody will ever read what stood in a place. Where others have, and it was the batch that is sent
   *  again, that one is dead to them (docs/adr/0014-a-place-that-nobody-can-read-is-dead.md). */
  async #isLost(seq: number): Promise<boolean> {
    if (!(await this.#lost.isLost(seq)) || this.#isOver) return false;
    this.#hiddenIdx = this.#entries.at(-1)?.batch.idx ?? 0;
    this.#events.onPlaceLost(unreadableError(seq));
    return !this.#isOver;
  }

  /** All that is in flight is durable otherwise, and the journal goes on behind `lastSeq`. */
  continueBehind(lastSeq: number): void {
    this.#goOnBehind(lastSeq);
    this.#isWaiting = false;
    this.#isResolving = false;
    for (const { batch } of this.#entries.splice(0)) {
      const { idx, term, hash, journal } = batch;
      this.#tail = { idx, term, hash, journal };
      this.#events.onCommitted(batch, undefined);
    }
  }

  /** Whether the journal had lost something that was committed, and has it again. */
  async #refill(): Promise<boolean> {
    const refilled = await refill(this.#journal, this.#recent, Math.max(this.#recent.lastSeq, this.#lastSeq));
    if (this.#isOver) return false;
    if (refilled.kind !== "not-held") this.#tailLoss.renew();
    if (refilled.kind !== "unfinished") this.#tailRefusal.renew();
    switch (refilled.kind) {
      case "refilled":
        this.#events.onRefilled(refilled.records);
        return true;
      case "not-held":
        if (!this.#tailLoss.isOver) return false;
        this.#isWaiting = true;
        this.#events.onTailLost(refilled.lastSeq, lostTailError(refilled.lastSeq, this.#lastSeq));
        return false;
      case "purged":
        this.#isOver = true;
        this.#events.onDeposed();
        return false;
      case "unfinished":
        if (this.#tailRefusal.isOver) {
          this.#tailRefusal.renew();
          this.#events.onTailKeptOut(refilled.cause);
        }
        return false;
      case "whole":
        return false; // after all
    }
  }

  /** Where the last committed batch stands as before, at most dead records behind it were lost, and others stand in
   *  their place: those are to be read. A campaign is lost then. @returns whether that is so; undefined when it is not
   *  known, for nobody answers, or it is not found, and has not been missing for long */
  async #goBackToTail(oldest: Entry): Promise<boolean | undefined> {
    const tail = this.#recent.findLast(({ bytes }) => hashOf(bytes) === this.#tail.hash);
    if (tail === undefined || tail.seq === this.#lastSeq) return false;
    try {
      const found = await this.#journal.read(tail.seq);
      if (found === undefined) return this.#tailMiss.isOver ? false : undefined;
      this.#tailMiss.renew();
      if (!isSameBytes(found.bytes, tail.bytes)) return false;
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) return false; // what was found before says more
      this.#tailMiss.renew();
      return undefined;
    }
    if (this.#isOver) return true;
    if (oldest.batch.startsTerm) {
      this.#depose(); // and what was read there is still held: whoever reads on sees that it was replaced
      return true;
    }
    this.#goOnBehind(tail.seq);
    this.#recent.forgetBehind(tail.seq);
    return true;
  }

  /** @throws JournalDamagedError where another line stands than ours */
  #judge(oldest: Entry, record: JournalRecord): "ours" | DeadReason | "over" {
    if (isSameBytes(record.bytes, oldest.batch.bytes)) return "ours";
    const rival = decodeBatch(record.bytes);
    const death = rival === undefined ? "alien" : deathOf(rival, this.#tail);
    // Of a later term the first record that is met continues the chain, or it continues another than ours.
    if (rival !== undefined && rival.term > oldest.batch.term && death === "broken-chain") {
      if (this.#tail.idx >= this.#hiddenIdx) throw forkError(record.seq);
      return this.#depose(); // …or what was read in a place that is lost
    }
    if (rival !== undefined && death === "broken-chain" && this.#isLedBehind(rival, record))
      return this.#depose();
    if (rival === undefined || death !== undefined) return death ?? "alien";
    if (rival.term === oldest.batch.term && !oldest.batch.startsTerm) {
      this.#halt(
        new JournalDamagedError(
          `record ${record.seq} holds another batch ${rival.idx} of term ${rival.term} than the one this coordinator wrote: two leaders of one term. Stop all coordinators and verify the journal`,
        ),
      );
      return "over";
    }
    return this.#depose();
  }

  /** Whether a candidate meets what a leader wrote behind batches that it has not read. */
  #isLedBehind(rival: Batch, { bytes }: JournalRecord): boolean {
    const isOurs = this.#entries.some(({ batch }) => isSameBytes(batch.bytes, bytes));
    return this.#entries[0]?.batch.startsTerm === true && !isOurs && isBehindMore(rival, this.#tail);
  }

  /** Where another line stands than ours: whether it holds all that was committed all the same. Undefined when that is
   *  not known, for nobody answers, or has not been seen for long. */
  async isSaved(): Promise<boolean | undefined> {
    try {
      if (await this.#isSavedAt(this.#tail)) return true;
      return this.#unsaved.isOver ? false : undefined;
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) return false;
      this.#unsaved.renew();
      return undefined;
    }
  }

  #depose(): "over" {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#events.onDeposed();
    }
    return "over";
  }

  /** The oldest alone: where another record stands in its place, the next one must not land behind that. */
  #resend(): void {
    for (const [place, entry] of this.#entries.entries()) {
      entry.expectedSeq = this.#endSeq + place;
      entry.storedSeq = undefined;
      entry.unsettled = undefined;
      entry.round += 1;
      entry.isHeldBack = true;
      entry.isUnproven = true;
    }
    const [oldest] = this.#entries;
    if (oldest !== undefined) this.#send(oldest);
  }

  #saidFull(full: Full | undefined): void {
    if (this.#isFull === (full !== undefined)) return;
    this.#isFull = full !== undefined;
    this.#events.onFull(full);
  }

  #halt(error: WaggleError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.onHalted(error);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#cancelRetry = () => {
        cancel();
        resolve();
      };
    });
  }
}
