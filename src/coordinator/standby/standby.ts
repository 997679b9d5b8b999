// Standing by: reads the journal on as another writes it, and says when it is time to campaign.
//
// Silence is timed on our own monotonic clock, from the last record that was applied, and starts anew when our own
// loop stalled or the wire was away: a standby must not take its own deafness for the leader's. A record that
// everybody skips is no sign of life: whoever may write there could keep the swarm without a leader with it.
// What ends it:
//
//   the term ended of its own accord                     → campaign at once, unless another is named to lead, or the
//                                                          wire is away
//   silence ─ the journal goes on                        → read on, and look again: only what is applied ends silence
//           ├ it is shorter than what we hold            → put back what it lost, then campaign; where not all of it
//           │                                              is held, and nobody else put it back for 2·T in which the
//           │                                              journal answered, or 5·T while one says that it leads: go on
//           │                                              without it (lost-end.ts)
//           ├ it has no room for what the leader, which  → wait, for some minutes: it cannot append, and neither could
//           │ says that it is there, says that it needs    we; each term would only take more room. And for T from
//           │                                              when it is seen to have room again: the leader's append
//           │                                              comes first
//           ├ another coordinator holds more than we do  → wait: it will put that back; not for ever (announcements.ts)
//           └ it ends where we stand                     → campaign
//
// Whoever holds more may have read it since it last said so, and then the leader died and the journal lost its end: so
// they are asked first. "Another holds more" counts for 2·T after it was said (announcements.ts). Before campaigning,
// the record at the journal's end is compared with the one we read there: a log that went on differently is damage, and
// whoever sees it halts, or begins anew where that loses nothing (begin-anew.ts). That none is found there says nothing
// yet: who campaigns looks again (candidate-check.ts).

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import { type Endurance, lossEndurance } from "../../endurance.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Batch } from "../../journal/batch.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import { lostTailError } from "../../journal/journal-errors.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import { isLineFound, refill } from "../../journal/refill.ts";
import type { ChainPosition, Verdict } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Announcements } from "../announcements.ts";
import { isFull } from "../journal-room.ts";
import { tellKeptOut, tellRefilled } from "../repair/lost-end-log.ts";
import type { Timing } from "../timing.ts";

export interface StandbyDeps {
  readonly id: string;
  readonly journal: Journal;
  readonly recent: RecentRecords;
  readonly announcements: Announcements;
  /** Has the others say how far they hold the journal. */
  readonly askOthers: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Whether other parties can be heard. */
  readonly isConnected: () => boolean;
  /** Up to where the journal was read. */
  readonly position: () => ChainPosition;
  /** By the T of the term that is followed. */
  readonly timing: () => Timing;
  /** Folds a record that was just written. */
  readonly take: (record: JournalRecord) => Verdict;
  /** Whether a snapshot that can be read reaches further than what was read. May reject. */
  readonly isOvertaken: () => Promise<boolean>;
}

export interface StandbyHooks {
  /** The leader is silent. */
  readonly onSilence: () => void;
  /** …or was heard after all, or another is to lead. */
  readonly onHeard: () => void;
  /** The journal is shorter than it was. */
  readonly onShort: () => void;
  /** Nobody answers who is asked for it. */
  readonly onUnreachable: () => void;
  /** It ends at `lastSeq`, and nobody puts back what is missing. The last call. */
  readonly onEndLost: (lastSeq: number, error: JournalDamagedError) => void;
  /** A snapshot that can be read reaches further than what was read, and the journal does not. The last call. */
  readonly onOvertaken: () => void;
  /** It is time to campaign. The last call. */
  readonly onTime: () => void;
  /** The journal cannot be read on, or went on differently. The last call. */
  readonly onUnreadable: (cause: unknown) => void;
}

export class Standby {
  readonly #deps: StandbyDeps;
  readonly #hooks: StandbyHooks;
  readonly #ending = new AbortController();
  /** For how long the record is not found with which the journal ends now. */
  readonly #endMiss: Endurance;
  #reading = new AbortController();
  /** Since when the journal has more than was read, and no more is. */
  #stuck: { readonly seq: number; readonly sinceMonotonicMs: number } | undefined;
  #heardMonotonicMs = 0;
  #silenceMs = 0;
  #watchedMonotonicMs = 0;
  /** Since when the journal lacks what is not held. */
  #endLostMonotonicMs: number | undefined;
  /** Since when the leader has had no room for what it would have said. */
  #fullMonotonicMs: number | undefined;
  #cancelWatch: (() => void) | undefined;

  /** Begins at once. */
  constructor(deps: StandbyDeps, hooks: StandbyHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#endMiss = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
    this.#heard();
    void this.#readOn();
    this.#watchSilence();
  }

  /** Whether it has ended, or has made its last call. */
  get isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  /** No further call to a hook. Idempotent. */
  end(): void {
    this.#ending.abort();
    this.#reading.abort();
    this.#cancelWatch?.();
  }

  async #readOn(): Promise<void> {
    const { journal, position, recent, take } = this.#deps;
    const { signal } = this.#reading;
    const { seq } = position();
    try {
      for await (const record of journal.follow(seq + 1, signal, recent.at(seq))) {
        if (signal.aborted) return;
        const verdict = take(record);
        if (verdict.kind === "dead") continue;
        this.#fullMonotonicMs = undefined;
        this.#heard();
        if (this.#isOurTurn(verdict.batch)) return this.#finish();
      }
    } catch (cause) {
      if (!signal.aborted) this.#cannotReadOn(cause);
    }
  }

  /** A server may go on saying that it has nothing, of a reader that it no longer serves. */
  #readAnewWhereStuck(): void {
    const { clock, position, logger } = this.#deps;
    const { seq } = position();
    const now = clock.monotonicMs();
    if (this.#stuck?.seq !== seq) this.#stuck = { seq, sinceMonotonicMs: now };
    if (this.isOver || now - this.#stuck.sinceMonotonicMs < limits.standbyStuckMs) return;
    this.#stuck = undefined;
    logger.warn({ seq }, "the journal has more, and reading it brings nothing: it is read anew from there");
    this.#reading.abort();
    this.#reading = new AbortController();
    void this.#readOn();
  }

  /** Whether the leader stepped down in this batch, and we may follow: where nobody can reach us, another is to. */
  #isOurTurn(batch: Batch): boolean {
    const { id, isConnected } = this.#deps;
    const last = batch.events.at(-1);
    const isForUs = last?.type === "TermEnded" && (last.to === undefined || last.to === id);
    return isForUs && isConnected() && this.#isAhead();
  }

  #heard(): void {
    const { clock, random, timing } = this.#deps;
    this.#heardMonotonicMs = clock.monotonicMs();
    const { timeoutMs, silenceMsMax } = timing();
    this.#silenceMs = timeoutMs + (silenceMsMax - timeoutMs) * random.next();
  }

  #watchSilence(): void {
    const { clock, timing, isConnected } = this.#deps;
    const { pulseMs, pulseLateMs } = timing();
    this.#watchedMonotonicMs = clock.monotonicMs();
    this.#cancelWatch = clock.after(pulseMs, () => {
      const late = clock.monotonicMs() - this.#watchedMonotonicMs;
      const isAway = !isConnected();
      if (late > pulseMs + pulseLateMs || isAway) this.#heard();
      if (isAway) this.#hooks.onUnreachable();
      const isSilent = clock.monotonicMs() - this.#heardMonotonicMs > this.#silenceMs;
      if (isSilent) void this.#inspect();
      else this.#watchSilence();
    });
  }

  async #inspect(): Promise<void> {
    this.#hooks.onSilence();
    const found = await this.#look();
    if (this.isOver) return;
    if (found === "time") return this.#finish();
    this.#hooks.onHeard();
    if (found === "wait") this.#heard();
    this.#watchSilence();
  }

  /** Whether nobody leads, as far as the journal was read, and nobody holds more: then it is time. What was not read
   *  yet may be a sign of life, or not. */
  async #look(): Promise<"time" | "wait" | "read-on"> {
    const { journal, recent, askOthers, position, logger } = this.#deps;
    const { idx } = position();
    await askOthers(this.#ending.signal);
    const isOvertaken = await this.#isOvertaken();
    if (this.isOver) return "wait";
    const { seq } = position();
    const heldSeq = Math.max(recent.lastSeq, seq);
    try {
      const { lastSeq } = await journal.position();
      if (this.isOver) return "wait"; // handed over to meanwhile
      if (lastSeq > position().seq) {
        this.#readAnewWhereStuck();
        return "read-on";
      }
      if (isOvertaken) {
        this.end();
        this.#hooks.onOvertaken();
        return "wait";
      }
      if (lastSeq >= heldSeq) this.#endLostMonotonicMs = undefined;
      else if (!(await this.#heal())) return "wait";
      await isLineFound(journal, recent, seq); // or throws; what is not found is for who campaigns (candidate-check.ts)
      if (this.#isLed() && (await this.#isLeftRoom())) return "wait";
    } catch (cause) {
      if (cause instanceof JournalDamagedError) this.#cannotReadOn(cause);
      else logger.warn({ err: cause }, "the journal cannot be reached: standing by");
      this.#endLostMonotonicMs = undefined; // out of reach, nobody puts anything back
      this.#hooks.onUnreachable();
      return "wait";
    }
    if (position().idx !== idx) return "read-on"; // it was heard meanwhile
    return this.#isAhead() ? "time" : "wait";
  }

  /** Whether the journal has no room for what its leader needs, or has it only since the last silence, so that its
   *  leader has yet to find out. Not for ever: that leader may not be able to make room, or be nobody's. */
  async #isLeftRoom(): Promise<boolean> {
    const { announcements, clock, journal, position } = this.#deps;
    const sinceMonotonicMs = this.#fullMonotonicMs;
    const neededBytes = announcements.neededBytes(position().term, this.#lately);
    const now = clock.monotonicMs();
    if (isFull(await journal.usage(), neededBytes)) this.#fullMonotonicMs ??= now;
    else this.#fullMonotonicMs = undefined;
    const since = sinceMonotonicMs ?? this.#fullMonotonicMs;
    return since !== undefined && now - since <= limits.fullLeaderMsMax;
  }

  /** Whether a snapshot holds what the journal may have lost before it was read here. Who is not answered within T goes
   *  on: the journal says who leads, and that storage may be away for long. */
  async #isOvertaken(): Promise<boolean> {
    const { isOvertaken, clock, timing, logger } = this.#deps;
    const patience = new AbortController();
    const asked = isOvertaken().catch((cause: unknown) => {
      logger.warn(
        { err: cause },
        "it could not be asked whether a snapshot reaches further than the journal",
      );
      return false;
    });
    const tooLong = pause(clock, timing().timeoutMs, patience.signal).then(() => false);
    const answer = await Promise.race([asked, tooLong]);
    patience.abort();
    return answer;
  }

  /** Whether all that was lost stands in the journal again. @throws JournalDamagedError, UnreachableError */
  async #heal(): Promise<boolean> {
    const { journal, recent, position, logger } = this.#deps;
    this.#hooks.onShort();
    const isAhead = this.#isAhead();
    const heldSeq = Math.max(recent.lastSeq, position().seq); // of a snapshot alone nothing can be put back
    const untilSeq = isAhead ? heldSeq : recent.lastLiveSeq;
    const refilled = await refill(journal, recent, untilSeq, this.#endMiss);
    switch (refilled.kind) {
      case "whole":
      case "purged": // found by whoever reads on
        return isAhead;
      case "refilled":
        tellRefilled(logger, refilled.records);
        return isAhead;
      case "not-held":
        this.#waitForEnd(refilled.lastSeq, {
          isAhead,
          error: lostTailError(refilled.lastSeq, heldSeq),
        });
        return false;
      case "unfinished":
        tellKeptOut(logger, refilled.cause);
        return false;
    }
  }

  /** Another may hold it, and the answer may be stale: it is asked again before it is gone on without. A leader that is
   *  there puts it back, or saves its state, and is waited for as long as anybody who holds more. */
  #waitForEnd(lastSeq: number, { isAhead, error }: { isAhead: boolean; error: JournalDamagedError }): void {
    const { clock, timing, logger } = this.#deps;
    const now = clock.monotonicMs();
    this.#endLostMonotonicMs ??= now;
    const timeouts = this.#isLed() ? limits.announcementWaitsMax : limits.announcementTimeouts;
    const isOver = now - this.#endLostMonotonicMs >= timing().timeoutMs * timeouts;
    if (!isOver || !isAhead) return logger.error({ err: error }, "waiting for who puts it back");
    if (this.isOver) return;
    this.end();
    this.#hooks.onEndLost(lastSeq, error);
  }

  /** Whether a leader said within T that it leads. */
  #isLed(): boolean {
    const { announcements, position } = this.#deps;
    return announcements.isLed(position().term, this.#lately);
  }

  get #lately() {
    const { clock, timing } = this.#deps;
    return { now: clock.monotonicMs(), withinMs: timing().timeoutMs };
  }

  /** Whether nobody is to be waited for who says that it holds more of the journal. */
  #isAhead(): boolean {
    const { announcements, clock, position, timing, logger } = this.#deps;
    const { timeoutMs } = timing();
    const claim = announcements.ahead(position(), { now: clock.monotonicMs(), timeoutMs });
    if (claim === undefined) return true;
    const { id: other, term, idx } = claim.beat;
    const said = { other, term, idx };
    if (claim.isBelieved)
      logger.warn(said, "another coordinator holds more of the journal: it is left to lead");
    else
      logger.error(
        said,
        "a coordinator says that it holds more of the journal and does not put it back: it is no longer waited for. Look who may publish as a coordinator, and what that one does",
      );
    return !claim.isBelieved;
  }

  #finish(): void {
    this.end();
    this.#hooks.onTime();
  }

  #cannotReadOn(cause: unknown): void {
    if (this.isOver) return;
    this.end();
    this.#hooks.onUnreadable(cause);
  }
}
