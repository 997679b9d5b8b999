// Taking the lead: one procedure for a start, a silent leader, a hand-over, and a leader whose own segment is faulty.
//
//   list ─ pass over segments that were claimed and not opened, once they have not grown for T
//        ─ close the live segment: seal it, so that its end stays
//        ─ read its end, and compare it with what is held
//             equal, or a beginning   → read on: the log is whole
//             held is longer          → the log lost its end: go on from what is held, with a base
//             different, unreadable   → halt, unless another coordinator holds more
//        ─ ask the other coordinators: the one that holds more goes first
//        ─ claim the next number: of two rivals one wins, the other stands by
//        ─ write a base where one is needed, and read it back
//        ─ open: from here on this coordinator leads
//
// Authoritative are the segments as they are listed. The number of the next segment follows from the first list, and
// the list is read once more after the claim (docs/adr/0023-segments-are-modelled-first.md). After a reconnection the
// procedure begins again: an answer from before it proves nothing.

import type { Logger } from "pino";
import { type BaseRef, verifyBase, writeBase } from "../../chain/base.ts";
import type { Journal } from "../../chain/journal.ts";
import { claimantOf, findLive, liveSegment } from "../../chain/live.ts";
import { compare, readOn, restore } from "../../chain/log.ts";
import { encodeRecord, type LogEnd, type Opened } from "../../chain/records.ts";
import { type LiveSegment, Replay } from "../../chain/replay.ts";
import { SegmentLostError, SegmentWriter } from "../../chain/segment-writer.ts";
import type { Clock, Random } from "../../clock.ts";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";
import type { Term } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Timing } from "../timing.ts";

export interface TakeLeadDeps {
  /** Of this coordinator, for people. */
  readonly id: string;
  /** Of this coordinator's session. */
  readonly life: string;
  readonly journal: Journal;
  /** By the T of the term that was followed. */
  readonly timing: Timing;
  /** Asks the other coordinators, and says whether one of them holds more of the log and is to go first. */
  readonly isMoreHeld: (own: { readonly term: number; readonly idx: number }) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export type TakenLead =
  | {
      readonly kind: "won";
      /** Up to the new segment's `Opened`, in that segment. */
      readonly log: Replay;
      /** When the append of `Opened` was sent. */
      readonly sentMonotonicMs: number;
      /** Undefined unless the segment begins with a base. */
      readonly base: BaseRef | undefined;
    }
  /** Another coordinator leads, or is to. */
  | { readonly kind: "stand-by"; readonly log: Replay | undefined };

/** A coordinator that goes on from its own segment, in which nobody else wrote. */
export interface Writing {
  readonly segment: number;
  readonly term: Term;
}

/** @param held what was read before; undefined when nothing was
 *  @param writing of a leader that takes the lead again: it holds all that its segment can hold
 *  @param signal ends it: it rejects with the signal's reason
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

/** What is listed, and the live segment once it is closed. */
interface Closed {
  readonly numbers: readonly number[];
  readonly live: LiveSegment | undefined;
}

interface Compared {
  readonly log: Replay;
  readonly needsBase: boolean;
}

class TakingLead {
  readonly #deps: TakeLeadDeps;
  readonly #signal: AbortSignal;
  readonly #writing: Writing | undefined;
  #held: Replay | undefined;
  /** Of the numbers listed so far: a number that was seen is never used again. */
  #highest = 0;

  constructor(held: Replay | undefined, deps: TakeLeadDeps, signal: AbortSignal, writing?: Writing) {
    this.#held = held;
    this.#deps = deps;
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
      if (error instanceof SegmentLostError) return this.#standBy();
      const isReconnected = attempt.signal.aborted;
      if (!isReconnected && !(error instanceof UnreachableError)) throw error;
      if (!isReconnected) {
        logger.warn({ err: error }, "the journal does not answer; taking the lead begins again");
        await pause(clock, limits.journalRetryMsMax, this.#signal);
      }
      return "again";
    } finally {
      forget();
      this.#signal.removeEventListener("abort", stop);
    }
  }

  async #run(signal: AbortSignal): Promise<TakenLead> {
    const closed = await this.#close(signal);
    if (closed === undefined) return this.#standBy();
    const compared = await this.#compare(closed.live);
    signal.throwIfAborted();
    if (compared instanceof JournalDamagedError) return await this.#haltUnlessMoreIsHeld(compared);
    const { log, needsBase } = compared;
    this.#held = log;
    if (await this.#deps.isMoreHeld(log.tail)) return this.#standBy();
    signal.throwIfAborted();
    return await this.#open({ log, needsBase, closed }, signal);
  }

  #standBy(): TakenLead {
    return { kind: "stand-by", log: this.#held };
  }

  async #haltUnlessMoreIsHeld(error: JournalDamagedError): Promise<TakenLead> {
    const own = this.#held?.tail ?? { term: 0, idx: 0 };
    if (await this.#deps.isMoreHeld(own)) return this.#standBy();
    throw error;
  }

  // --- closing --------------------------------------------------------------------------------------

  /** Undefined when another coordinator opened a segment meanwhile. */
  async #close(signal: AbortSignal): Promise<Closed | undefined> {
    const { journal } = this.#deps;
    const first = await findLive(journal);
    this.#note(first.numbers);
    const { live } = first;
    if (this.#writing !== undefined && live !== undefined && !this.#isOwn(live)) return undefined;
    const above = first.numbers.filter((number) => number > (live?.number ?? 0));
    for (const number of above.toReversed())
      if (!(await this.#passOver(number, live, signal))) return undefined;
    if (live === undefined) return { numbers: first.numbers, live };
    await this.#seal(live.number, signal);
    signal.throwIfAborted();
    const { number } = (await findLive(journal)).live ?? {};
    return number === live.number || (this.#writing !== undefined && number === undefined)
      ? { numbers: first.numbers, live }
      : undefined;
  }

  #isOwn({ number, opened }: LiveSegment): boolean {
    return number <= (this.#writing?.segment ?? 0) && opened.life === this.#deps.life;
  }

  /** Seals a segment that was claimed and not opened, once it has not grown for T: its claimant may be at work. What
   *  the live segment's own leader claimed is that leader's work, and its silence was waited for already.
   *  @returns false when it was opened */
  async #passOver(number: number, live: LiveSegment | undefined, signal: AbortSignal): Promise<boolean> {
    const { journal, timing, clock, life } = this.#deps;
    const segment = journal.segment(number);
    const claimant = await claimantOf(segment);
    const isKnown = claimant !== undefined && (claimant === live?.opened.life || claimant === life);
    let grownMonotonicMs = clock.monotonicMs();
    let position = -1;
    for (;;) {
      const end = await segment.end();
      signal.throwIfAborted();
      if (end === undefined) return true;
      if (end.position !== position) {
        position = end.position;
        grownMonotonicMs = clock.monotonicMs();
      }
      if (end.isSealed || isKnown || clock.monotonicMs() - grownMonotonicMs >= timing.timeoutMs) break;
      await pause(clock, timing.beatMs, signal);
      signal.throwIfAborted();
      if ((await liveSegment(segment)) !== undefined) return false;
    }
    await this.#seal(number, signal);
    return (await liveSegment(segment)) === undefined;
  }

  async #seal(number: number, signal: AbortSignal): Promise<void> {
    await this.#deps.journal.segment(number).seal();
    signal.throwIfAborted();
  }

  #note(numbers: readonly number[]): void {
    this.#highest = Math.max(this.#highest, ...numbers);
  }

  // --- comparing ------------------------------------------------------------------------------------

  /** The log to go on from, or why there is none. */
  async #compare(live: LiveSegment | undefined): Promise<Compared | JournalDamagedError> {
    const held = this.#held;
    if (held !== undefined && this.#writing !== undefined) return { log: held, needsBase: true };
    if (live === undefined) return this.#withoutSegments(held);
    if (held === undefined || held.place === undefined) return await this.#restore(live);
    try {
      await readOn(held, live, this.#deps.journal);
      return { log: held, needsBase: false };
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      return await this.#judge(held, live, error);
    }
  }

  /** No segment is live: the journal is new, or lost them all. */
  #withoutSegments(held: Replay | undefined): Compared {
    if (held !== undefined && held.tail.idx > 0) {
      this.#deps.logger.error({ idx: held.tail.idx }, "the journal lost all segments; going on from memory");
      return { log: held, needsBase: true };
    }
    return { log: new Replay(), needsBase: false };
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

  /** What was read cannot be read on from. */
  async #judge(
    held: Replay,
    live: LiveSegment,
    why: JournalDamagedError,
  ): Promise<Compared | JournalDamagedError> {
    const { journal, logger } = this.#deps;
    const comparison = await compare(held, live, journal);
    if (comparison === "beginning") return await this.#restore(live);
    if (comparison !== "longer") return why;
    logger.error(
      { err: why, idx: held.tail.idx, segment: live.number },
      "the journal lost its end; going on from memory in a new segment",
    );
    return { log: held, needsBase: true };
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
    const { id, life, journal, clock, random } = this.#deps;
    const number = this.#highest + 1;
    const segment = journal.segment(number);
    const writer = new SegmentWriter({ segment, life, clock, signal });
    await journal.create(number);
    await writer.put(encodeRecord({ kind: "claim", segment: number, life }));
    if (await this.#hasRival(number, closed.numbers)) return this.#standBy();
    const put = (bytes: Uint8Array) => writer.put(bytes);
    const base = needsBase && log.tail.idx > 0 ? await writeBase(log, { life, clock, put }) : undefined;
    if (base !== undefined) await verifyBase(segment, base);
    signal.throwIfAborted();
    const opened: Opened = {
      kind: "opened",
      segment: number,
      life,
      journal: log.tail.journal || random.id(16),
      term: number as Term,
      leader: id,
      tail: log.tail,
      previous: endIn(closed.live, log),
      base,
      recent: log.recent.upTo(log.tail.idx, limits.openedHashesMax),
    };
    const position = await writer.put(encodeRecord(opened), { isOpened: true });
    log.enter({ number, opened, position }, position);
    return { kind: "won", log, sentMonotonicMs: writer.sentMonotonicMs, base };
  }

  /** Whether a segment appeared since the first list: its claimant went by an older list, or by this claim. */
  async #hasRival(number: number, before: readonly number[]): Promise<boolean> {
    const numbers = await this.#deps.journal.list();
    this.#note(numbers);
    return numbers.some((each) => each !== number && !before.includes(each));
  }
}

function endIn(live: LiveSegment | undefined, log: Replay): LogEnd | undefined {
  if (live === undefined) return undefined;
  return { segment: live.number, idx: log.tail.idx, hash: log.tail.hash };
}

/** The journal was out of reach: what it said before proves nothing. */
class ReconnectedError extends Error {
  constructor() {
    super("the connection to the journal broke and came back");
  }
}
