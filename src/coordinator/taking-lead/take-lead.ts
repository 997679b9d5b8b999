// Taking the lead: one procedure for a start, a silent leader, a hand-over, and a leader with a faulty segment.
//
//   list ─ pass over unopened segments: empty ones at once, claimed ones after T without growth
//        ─ look once more at the live segment: stand by if the leader wrote since
//        ─ close the live segment: seal it, so that the end stays. If the leader wrote between the look and the seal,
//          wait T: the leader may still answer
//        ─ read the end, and compare it with the log in memory
//             equal, or a beginning   → read on: the log is whole; with a base if earlier records are damaged
//             memory is longer        → the log lost its end, if that lasts: go on from memory, with a base
//             different, unreadable   → halt, unless another coordinator holds more
//             shorter than a higher segment with a damaged `Opened` → the same
//        ─ ask the other coordinators: the longest log goes first
//        ─ claim the next number: of two rivals one wins, the second stands by
//        ─ read the end of the closed segment again: a power loss may have taken the seal, and the leader wrote on
//        ─ write a base if needed, and read it back
//        ─ open: from here on this coordinator leads
//
// Only the list of segments is authoritative. The number of the next segment follows from the first list, and the list
// is read once more after the claim (docs/adr/0023-segments-are-modelled-first.md). After a reconnection the procedure
// begins again: earlier answers prove nothing.

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import { JournalDamagedError, mayAnswerLater, messageOf } from "../../errors.ts";
import { GracePeriod } from "../../grace-period.ts";
import type { Term } from "../../ids.ts";
import type { BaseRef } from "../../journal/base.ts";
import { claimantOf, recordAt } from "../../journal/inspect.ts";
import { type Journal, mayLag, type Segment } from "../../journal/journal.ts";
import { findLive, type Listing, lastBatchIdxOf, liveSegment, openSegment } from "../../journal/live.ts";
import { compare, readOn, restore } from "../../journal/log.ts";
import type { LogEnd } from "../../journal/records.ts";
import { type LiveSegment, Replay, UnfitBatchError } from "../../journal/replay.ts";
import { newAttempt, newJournalId, SegmentLostError, SegmentWriter } from "../../journal/segment-writer.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Timing } from "../timing.ts";

export interface TakeLeadDeps {
  /** The coordinator's id, shown in the audit and in logs. */
  readonly id: string;
  /** Id of the coordinator's session. */
  readonly session: string;
  readonly journal: Journal;
  /** By T of the followed term. */
  readonly timing: Timing;
  /** The live segment after T of silence of its leader. A newer segment has another leader. 0: no segment was live.
   *  Undefined: the live segment of the first list. */
  readonly silentSegment: number | undefined;
  /** The highest segment number that this coordinator ever saw. No number is used again, even for a lost segment. */
  readonly seen: { highest: number };
  /** Whether another coordinator announced within T to be the leader. */
  readonly isLed: () => boolean;
  /** Asks the other coordinators for more of the log. A coordinator with more goes first. */
  readonly isMoreHeld: (held: Replay | undefined) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export type TakenLead =
  | {
      readonly kind: "won";
      /** Up to the new segment's `Opened`. */
      readonly log: Replay;
      /** When the append of `Opened` was sent. */
      readonly sentMonotonicMs: number;
      /** Undefined unless the segment begins with a base. */
      readonly base: BaseRef | undefined;
    }
  /** Another coordinator leads, or goes first. */
  | { readonly kind: "stand-by"; readonly log: Replay | undefined };

/** A coordinator that goes on from its own segment, without records of other sessions. */
export interface Writing {
  readonly segment: number;
  readonly term: Term;
}

/** @param held the log in memory; undefined at the first start
 *  @param writing of a leader that takes the lead again: memory holds all of the segment
 *  @param signal ends the procedure: it rejects with the signal's reason
 *  @throws JournalDamagedError when the coordinator must halt; WaggleError WAGGLE_JOURNAL_FULL */
export async function takeLead(
  held: Replay | undefined,
  deps: TakeLeadDeps,
  signal: AbortSignal,
  writing?: Writing,
): Promise<TakenLead> {
  const taking = new TakingLead(held, deps, signal, writing);
  for (;;) {
    const result = await taking.attempt();
    if (result !== "again") return result;
  }
}

/** The list, and the closed live segment. */
interface Closed {
  readonly numbers: readonly number[];
  readonly live: LiveSegment | undefined;
  /** Position at which the closed segment ends: behind its seal. */
  readonly endPosition: number | undefined;
}

interface Compared {
  readonly log: Replay;
  readonly needsBase: boolean;
  /** The journal does not show the end of the held log. */
  readonly isLoss?: boolean;
}

class TakingLead {
  readonly #deps: TakeLeadDeps;
  readonly #signal: AbortSignal;
  readonly #writing: Writing | undefined;
  #held: Replay | undefined;
  /** A server that takes over may miss records, or its newest segments: damage and loss count once they last. */
  readonly #damage: GracePeriod;
  readonly #loss: GracePeriod;
  /** The live segment of the silent leader; 0 without a live segment. */
  #firstLive: number | undefined;
  /** The live segment with a leader that may not answer any more: T passed since the seal. 0: none. */
  #outwaited = 0;
  /** The last batch of a passed segment. */
  #passedOver = { segment: 0, idx: 0 };

  constructor(held: Replay | undefined, deps: TakeLeadDeps, signal: AbortSignal, writing?: Writing) {
    this.#held = held;
    this.#firstLive = deps.silentSegment;
    this.#deps = deps;
    this.#note([held?.place?.segment ?? 0]);
    this.#damage = new GracePeriod(deps.clock, limits.lossPatienceMs, limits.lossLooksMin);
    this.#loss = mayLag(deps.journal)
      ? new GracePeriod(deps.clock, limits.journalGapMs, limits.lossLooksMin)
      : new GracePeriod(deps.clock, limits.faultLookMs, limits.faultLooksAloneMin);
    this.#signal = signal;
    this.#writing = writing;
  }

  async attempt(): Promise<TakenLead | "again"> {
    const { journal, clock, logger } = this.#deps;
    const attempt = new AbortController();
    const stop = () => attempt.abort(this.#signal.reason);
    this.#signal.addEventListener("abort", stop, { once: true });
    const forget = journal.onReconnected(() => attempt.abort(new ReconnectedError()));
    try {
      return await this.#run(attempt.signal);
    } catch (error) {
      this.#signal.throwIfAborted();
      const lostBy = error instanceof SegmentLostError ? error.by : undefined;
      // A leader of a segment begins again instead: the next list shows the rival's claim.
      if (lostBy === "rival" && this.#writing === undefined) return this.#standBy();
      const isReconnected = attempt.signal.aborted;
      const mayBegin = mayAnswerLater(error) || error instanceof BeginAgainError || lostBy !== undefined;
      if (!isReconnected && !mayBegin) throw error;
      if (!isReconnected) {
        logger.warn({ why: messageOf(error) }, "the lead could not be taken; taking it begins again");
        // Behind a foreign record no pause is needed: passing over the segment takes T.
        if (lostBy !== "foreign") await pause(clock, limits.journalRetryMsMax, this.#signal);
      }
      return "again";
    } finally {
      forget();
      this.#signal.removeEventListener("abort", stop);
    }
  }

  async #run(signal: AbortSignal): Promise<TakenLead | "again"> {
    const closed = await this.#close(signal);
    if (closed === undefined) return this.#standBy();
    const compared = this.#requirePassedOver(await this.#compare(closed.live));
    signal.throwIfAborted();
    if (compared instanceof JournalDamagedError) {
      if (this.#damage.isBelieved()) return await this.#haltUnlessMoreIsHeld(compared);
      return await this.#lookAgain(signal);
    }
    const { log, needsBase, isLoss = false } = compared;
    if (isLoss && !this.#loss.isBelieved()) return await this.#lookAgain(signal);
    if (isLoss)
      this.#deps.logger.error({ idx: log.tail.idx }, "the journal lost its end; going on from memory");
    this.#held = log;
    if (await this.#deps.isMoreHeld(log)) return this.#standBy();
    signal.throwIfAborted();
    return await this.#open({ log, needsBase, closed }, signal);
  }

  async #lookAgain(signal: AbortSignal): Promise<"again"> {
    await pause(this.#deps.clock, limits.faultLookMs, signal);
    return "again";
  }

  #standBy(): TakenLead {
    return { kind: "stand-by", log: this.#held };
  }

  async #haltUnlessMoreIsHeld(error: JournalDamagedError): Promise<TakenLead> {
    if (await this.#deps.isMoreHeld(this.#held)) return this.#standBy();
    throw error;
  }

  // --- closing --------------------------------------------------------------------------------------

  /** Undefined when another coordinator opened a segment meanwhile. */
  async #close(signal: AbortSignal): Promise<Closed | undefined> {
    const { journal } = this.#deps;
    const first = await findLive(journal);
    this.#note(first.numbers);
    const live = this.#orOwn(first);
    if (live !== undefined && this.#isSuperseded(live)) return undefined;
    this.#firstLive ??= live?.number ?? 0;
    const above = first.numbers.filter((number) => number > (live?.number ?? 0));
    for (const number of above.toReversed())
      if (!(await this.#passOver(number, live, signal))) return undefined;
    if (live === undefined) return { numbers: first.numbers, live, endPosition: undefined };
    const looked = await this.#look(live);
    signal.throwIfAborted();
    if (looked === "writes") return undefined;
    await this.#seal(live.number, signal);
    await this.#outwait(live, looked, signal);
    const { number = 0, opened } = (await findLive(journal)).live ?? {};
    if (number > live.number && opened?.session === this.#deps.session)
      throw new BeginAgainError(`segment ${number} of this coordinator is listed again`);
    const isNewest = number === live.number || (this.#writing !== undefined && number < live.number);
    if (!isNewest) return undefined;
    return { numbers: first.numbers, live, endPosition: await this.#endOf(live) };
  }

  /** The live segment of a list. A leader knows that its own segment is live, also when a server that takes over does
   *  not show the `Opened`. */
  #orOwn({ numbers, live }: Listing): LiveSegment | undefined {
    const own = this.#writing === undefined ? undefined : this.#held?.live;
    const isHidden = own !== undefined && own.number > (live?.number ?? 0) && numbers.includes(own.number);
    return isHidden ? own : live;
  }

  /** Whether another coordinator opened a segment since: above this coordinator's segment, or above the live
   *  segment of the start. */
  #isSuperseded({ number, opened }: LiveSegment): boolean {
    if (opened.session === this.#deps.session) return false;
    if (this.#writing !== undefined) return number >= this.#writing.segment;
    return number > (this.#firstLive ?? number);
  }

  /** Looks once more before the seal: a leader with new records leads on.
   *  @returns the last record read of the segment; 0 if none could be read */
  async #look(live: LiveSegment): Promise<number | "writes"> {
    const { session, journal } = this.#deps;
    const held = this.#held;
    if (this.#writing !== undefined || live.opened.session === session) return Number.POSITIVE_INFINITY;
    if (held === undefined) return 0;
    const { idx } = held.tail;
    try {
      await readOn(held, live, journal);
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error; // judged after the seal
    }
    if (held.tail.idx > idx && held.closing?.reason !== "handing-over") return "writes";
    return held.place?.segment === live.number ? held.place.position : 0;
  }

  /** Waits T if the leader wrote behind the look. The leader may answer for 0.8·T after an append, and the answers
   *  would lack records that this coordinator accepts (docs/adr/0023-segments-are-modelled-first.md, change 7). */
  async #outwait({ number, opened }: LiveSegment, looked: number, signal: AbortSignal): Promise<void> {
    const { journal, clock, timing } = this.#deps;
    if (!journal.sharable || this.#outwaited === number) return;
    const segment = journal.segment(number);
    let position = (await segment.end())?.position ?? 0;
    while (position > looked && !(await isWrittenBy(opened.session, segment, position))) position -= 1;
    signal.throwIfAborted();
    if (position > looked) await pause(clock, timing.timeoutMs, signal);
    signal.throwIfAborted();
    this.#outwaited = number;
  }

  /** Seals a claimed, unopened segment after T without growth: the claimant may be at work. For the silent leader
   *  of the live segment T has passed already, unless the leader announces that it leads. In a segment without a
   *  record no coordinator is at work yet.
   *  @returns false when the segment was opened */
  async #passOver(number: number, live: LiveSegment | undefined, signal: AbortSignal): Promise<boolean> {
    const { journal, timing, clock, session, isLed } = this.#deps;
    const segment = journal.segment(number);
    const claimant = await claimantOf(segment);
    const isOfLeader = claimant !== undefined && claimant === live?.opened.session;
    let grownMonotonicMs = clock.monotonicMs();
    let position = -1;
    for (;;) {
      const end = await segment.end();
      signal.throwIfAborted();
      if (end === undefined) return true;
      if (end.position !== position) {
        if (await isWrittenBy(claimant, segment, end.position)) grownMonotonicMs = clock.monotonicMs();
        position = end.position;
      }
      const isIdle = end.position === 0 || claimant === session || (isOfLeader && !isLed());
      if (end.isSealed || isIdle || clock.monotonicMs() - grownMonotonicMs >= timing.timeoutMs) break;
      await pause(clock, timing.heartbeatMs, signal);
      signal.throwIfAborted();
      if ((await liveSegment(segment)) !== undefined) return false;
    }
    await this.#seal(number, signal);
    if ((await openSegment(segment)) !== undefined) return false;
    const idx = await lastBatchIdxOf(segment);
    if (idx > this.#passedOver.idx) this.#passedOver = { segment: number, idx };
    return true;
  }

  async #seal(number: number, signal: AbortSignal): Promise<void> {
    await this.#deps.journal.segment(number).seal();
    signal.throwIfAborted();
  }

  #note(numbers: readonly number[]): void {
    const { seen } = this.#deps;
    seen.highest = Math.max(seen.highest, ...numbers);
  }

  // --- comparing ------------------------------------------------------------------------------------

  /** The log to go on from, or the reason for having none. */
  async #compare(live: LiveSegment | undefined): Promise<Compared | JournalDamagedError> {
    const held = this.#held;
    if (held !== undefined && this.#writing !== undefined) return { log: held, needsBase: true };
    if (live === undefined) return this.#withoutSegments(held);
    if (held === undefined || held.tail.idx === 0) return await this.#restore(live);
    try {
      const isWhole = await readOn(held, live, this.#deps.journal);
      return { log: held, needsBase: !isWhole || held.isAhead };
    } catch (error) {
      if (!(error instanceof JournalDamagedError) || error instanceof UnfitBatchError) throw error;
      return await this.#judge(held, live, error);
    }
  }

  /** An unopened segment holds only copies of batches. Later batches than the log's mean that damage hides an
   *  `Opened`, and that later batches were acknowledged. */
  #requirePassedOver(compared: Compared | JournalDamagedError): Compared | JournalDamagedError {
    const { segment, idx } = this.#passedOver;
    if (compared instanceof JournalDamagedError || compared.log.tail.idx >= idx) return compared;
    return new JournalDamagedError(
      `the record that opens segment ${segment} cannot be read, and the segment holds batches up to ${idx}: ` +
        `without it the log ends at batch ${compared.log.tail.idx}. Restore the journal's storage`,
    );
  }

  /** No segment is live: the journal is new, or lost all segments. */
  #withoutSegments(held: Replay | undefined): Compared {
    return held !== undefined && held.tail.idx > 0
      ? { log: held, needsBase: true, isLoss: true }
      : { log: new Replay(), needsBase: false };
  }

  async #restore(live: LiveSegment): Promise<Compared | JournalDamagedError> {
    const { journal, clock } = this.#deps;
    try {
      return { log: await restore(live, { journal, clock }), needsBase: false };
    } catch (error) {
      if (error instanceof JournalDamagedError) return error;
      throw error;
    }
  }

  /** The log in memory cannot be continued. */
  async #judge(
    held: Replay,
    live: LiveSegment,
    why: JournalDamagedError,
  ): Promise<Compared | JournalDamagedError> {
    const comparison = await compare(held, live, this.#deps.journal);
    if (comparison === "beginning") return await this.#restore(live);
    return comparison === "longer" ? { log: held, needsBase: true, isLoss: true } : why;
  }

  // --- opening --------------------------------------------------------------------------------------

  async #open(
    {
      log,
      needsBase,
      closed,
    }: { readonly log: Replay; readonly needsBase: boolean; readonly closed: Closed },
    signal: AbortSignal,
  ): Promise<TakenLead> {
    const { id, session, journal, clock, random } = this.#deps;
    const number = this.#deps.seen.highest + 1;
    const writer = new SegmentWriter({ segment: journal.segment(number), session, clock, signal });
    await orAnew(writer.claim(journal, newAttempt(random)));
    this.#note([number]);
    if (await this.#hasRival(number, closed.numbers)) return this.#standBy();
    await this.#requireEnd(closed, signal);
    const base = needsBase && log.tail.idx > 0 ? await orAnew(writer.writeBase(log)) : undefined;
    signal.throwIfAborted();
    const opening = {
      journal: log.tail.journal || newJournalId(random),
      term: number as Term,
      leader: id,
      tail: log.tail,
      previous: endIn(closed.live, log),
      base,
      recent: log.recent.upTo(log.tail.idx, limits.openedHashesMax),
    };
    const live = await orAnew(writer.open(opening));
    await orAnew(writer.requireClaim());
    log.enter(live, live.position);
    return { kind: "won", log, sentMonotonicMs: writer.sentMonotonicMs, base };
  }

  /** A power loss may take the seal, and the leader of the closed segment may write on. Such a leader counts its batch
   *  only if it then finds no claim, so one of both sees the other
   *  (docs/adr/0023-segments-are-modelled-first.md, change 16). */
  async #requireEnd({ live, endPosition }: Closed, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (live === undefined || (await this.#endOf(live)) === endPosition) return;
        throw new BeginAgainError(`segment ${live.number} changed behind its seal`);
      } catch (error) {
        if (!mayAnswerLater(error)) throw error;
        await pause(this.#deps.clock, limits.journalRetryMs, signal); // to begin again would leave a claimed segment
        signal.throwIfAborted();
      }
    }
  }

  async #endOf({ number }: LiveSegment): Promise<number | undefined> {
    const { journal } = this.#deps;
    return journal.sharable ? (await journal.segment(number).end())?.position : undefined;
  }

  /** Whether a segment appeared since the first list: the claimant used an older list, or this claim. */
  async #hasRival(number: number, before: readonly number[]): Promise<boolean> {
    const { journal, session } = this.#deps;
    const numbers = await journal.list();
    this.#note(numbers);
    for (const each of numbers) {
      if (each === number || before.includes(each)) continue;
      if ((await claimantOf(journal.segment(each))) !== session) return true;
    }
    return false;
  }
}

/** Whether the session wrote the record: foreign records are no sign of life. */
async function isWrittenBy(
  session: string | undefined,
  segment: Segment,
  position: number,
): Promise<boolean> {
  return session !== undefined && (await recordAt(segment, position))?.session === session;
}

function endIn(live: LiveSegment | undefined, log: Replay): LogEnd | undefined {
  if (live === undefined) return undefined;
  return { segment: live.number, idx: log.tail.idx, hash: log.tail.hash };
}

/** The new segment lost new records, so that another segment is claimed. Or the journal changed between two looks. */
class BeginAgainError extends Error {}

/** @throws BeginAgainError where the segment is damaged */
async function orAnew<Result>(writing: Promise<Result>): Promise<Result> {
  try {
    return await writing;
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    throw new BeginAgainError(error.message, { cause: error });
  }
}

/** The journal was out of reach: earlier answers prove nothing. */
class ReconnectedError extends Error {
  constructor() {
    super("the connection to the journal broke and came back");
  }
}
