// What it means that the leader is silent: a look at the journal, and at what other coordinators say of it. It puts
// back what the journal lost of its end; whatever else is to be done about it, who asked does (standby.ts).
//
//   the journal goes on                        → behind: only what is applied ends silence
//   …or was read on meanwhile                  → heard
//   a snapshot reaches further than it does    → overtaken: begin anew from that
//   it is shorter than what we hold            → put back what it lost, and look on; where not all of it is held, and
//                                                nobody else put it back, or any of it, for 2·T in which the journal
//                                                answered, or 5·T while one says that it leads → end-lost: go on
//                                                without (lost-end.ts)
//   it has no room for what the leader, which  → wait, for some minutes: it cannot append, and neither could we; each
//   says that it is there, says that it needs    term would only take more room. And for T from when it is seen to
//                                                have room again: the leader's append comes first
//   another coordinator holds more than we do  → wait: it will put that back; not for ever (announcements.ts)
//   it ends where we stand                     → time to campaign
//
// Whoever holds more may have read it since it last said so, and then the leader died and the journal lost its end: so
// they are asked first. "Another holds more" counts for 2·T after it was said (announcements.ts). Before it is time,
// the record at the journal's end is compared with the one we read there: a log that went on differently is damage, and
// whoever sees it halts, or begins anew where that loses nothing (begin-anew.ts). That none is found there says nothing
// yet: who campaigns looks again (candidate-check.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { type Endurance, lossEndurance } from "../../endurance.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { lostTailError } from "../../journal/journal-errors.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import { isLineFound, refill } from "../../journal/refill.ts";
import type { ChainPosition } from "../../journal/replay.ts";
import { standsBatch } from "../../journal/standing-batch.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Announcements } from "../announcements.ts";
import { isFull } from "../journal-room.ts";
import { tellKeptOut, tellRefilled } from "../repair/lost-end-log.ts";
import type { Timing } from "../timing.ts";

/** What the journal and the other coordinators say while the leader is silent. */
export type Silence =
  /** Nobody leads, as far as the journal was read, and nobody holds more. */
  | { readonly kind: "time" }
  /** It is for another to act, or nobody answers. */
  | { readonly kind: "wait" }
  /** The journal has more than was read: a sign of life, or not. */
  | { readonly kind: "behind" }
  /** A batch was read meanwhile. */
  | { readonly kind: "heard" }
  /** A snapshot that can be read reaches further than what was read, and the journal does not. */
  | { readonly kind: "overtaken" }
  /** The journal ends at `lastSeq`, and nobody puts back what is missing. */
  | { readonly kind: "end-lost"; readonly lastSeq: number; readonly error: JournalDamagedError }
  /** The journal went on differently. */
  | { readonly kind: "unreadable"; readonly cause: JournalDamagedError };

export interface SilenceLookDeps {
  readonly journal: Journal;
  readonly recent: RecentRecords;
  readonly announcements: Announcements;
  /** Has the others say how far they hold the journal. */
  readonly askOthers: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Up to where the journal was read. */
  readonly position: () => ChainPosition;
  /** By the T of the term that is followed. */
  readonly timing: () => Timing;
  /** Whether a snapshot that can be read reaches further than what was read. May reject. */
  readonly isOvertaken: () => Promise<boolean>;
}

export interface SilenceLookHooks {
  /** The journal is shorter than it was. */
  readonly onShort: () => void;
  /** Nobody answers who is asked for the journal. */
  readonly onUnreachable: () => void;
}

export class SilenceLook {
  readonly #deps: SilenceLookDeps;
  readonly #hooks: SilenceLookHooks;
  /** For how long the record is not found with which the journal ends now. */
  readonly #endMiss: Endurance;
  /** Since when the journal lacks what is not held, and nobody puts it back. */
  #endLostMonotonicMs: number | undefined;
  /** The furthest that it ended since. */
  #endLostSeq = 0;
  /** Since when the leader has had no room for what it would have said. */
  #fullMonotonicMs: number | undefined;

  constructor(deps: SilenceLookDeps, hooks: SilenceLookHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#endMiss = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
  }

  /** To be called at each silence. Never rejects for what the journal answers, or that it does not.
   *  @param signal ends it early: what it resolves with says nothing then */
  async look(signal: AbortSignal): Promise<Silence> {
    const { journal, recent, askOthers, position, logger } = this.#deps;
    const { idx } = position();
    await askOthers(signal);
    const isOvertaken = await this.#isOvertaken();
    if (signal.aborted) return { kind: "wait" };
    const { seq } = position();
    const heldSeq = Math.max(recent.lastSeq, seq);
    try {
      const { lastSeq } = await journal.position();
      if (signal.aborted) return { kind: "wait" }; // handed over to meanwhile
      if (lastSeq > position().seq) return { kind: "behind" };
      if (isOvertaken) return { kind: "overtaken" };
      if (lastSeq < heldSeq) {
        const unhealed = await this.#heal();
        if (unhealed !== undefined) return unhealed;
      } else this.#endLostMonotonicMs = undefined;
      await isLineFound(journal, recent, seq); // or throws; what is not found is for who campaigns (candidate-check.ts)
      if (this.#isLed() && (await this.#isLeftRoom())) return { kind: "wait" };
    } catch (cause) {
      this.#endLostMonotonicMs = undefined; // out of reach, nobody puts anything back
      this.#hooks.onUnreachable();
      if (cause instanceof JournalDamagedError) return { kind: "unreadable", cause };
      logger.warn({ err: cause }, "the journal cannot be reached: standing by");
      return { kind: "wait" };
    }
    if (position().idx !== idx) return { kind: "heard" };
    return { kind: this.isAhead() ? "time" : "wait" };
  }

  /** A batch was applied: whoever wrote it had room. */
  heard(): void {
    this.#fullMonotonicMs = undefined;
  }

  /** Whether nobody is to be waited for who says that it holds more of the journal. */
  isAhead(): boolean {
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

  /** Puts back what was lost. Undefined where all of it stands in the journal again; else what that means.
   *  @throws JournalDamagedError, UnreachableError */
  async #heal(): Promise<Silence | undefined> {
    const { journal, recent, position, logger } = this.#deps;
    this.#hooks.onShort();
    const isAhead = this.isAhead();
    const heldSeq = Math.max(recent.lastSeq, position().seq); // of a snapshot alone nothing can be put back
    const untilSeq = isAhead ? heldSeq : recent.lastLiveSeq;
    const refilled = await refill(journal, recent, untilSeq, this.#endMiss);
    switch (refilled.kind) {
      case "whole":
      case "purged": // found by whoever reads on
        return isAhead ? undefined : { kind: "wait" };
      case "refilled":
        tellRefilled(logger, refilled.records);
        return isAhead ? undefined : { kind: "wait" };
      case "not-held": {
        const { lastSeq } = refilled;
        const error = lostTailError(lastSeq, heldSeq);
        await this.#noteGrowth(lastSeq);
        if (this.#isEndGivenUp() && isAhead) return { kind: "end-lost", lastSeq, error };
        logger.error({ err: error }, "waiting for who puts it back");
        return { kind: "wait" };
      }
      case "unfinished":
        tellKeptOut(logger, refilled.cause);
        return { kind: "wait" };
    }
  }

  /** Whether nobody put the end back for so long that nobody will. Another may hold it, and the answer may be stale: it
   *  is asked again before. A leader that is there puts it back, or saves its state, and is waited for as long as
   *  anybody who holds more. */
  #isEndGivenUp(): boolean {
    const { clock, timing } = this.#deps;
    const now = clock.monotonicMs();
    this.#endLostMonotonicMs ??= now;
    const timeouts = this.#isLed() ? limits.announcementWaitsMax : limits.announcementTimeouts;
    return now - this.#endLostMonotonicMs >= timing().timeoutMs * timeouts;
  }

  /** Where batches come back, somebody is at it. */
  async #noteGrowth(lastSeq: number): Promise<void> {
    const { journal, announcements, position } = this.#deps;
    if (this.#endLostMonotonicMs === undefined) this.#endLostSeq = lastSeq;
    if (lastSeq <= this.#endLostSeq) return;
    this.#endLostSeq = lastSeq;
    if ((await standsBatch(lastSeq, position().journal, journal)) === false) return;
    this.#endLostMonotonicMs = undefined;
    announcements.countAnew();
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

  /** Whether a leader said within T that it leads. */
  #isLed(): boolean {
    const { announcements, position } = this.#deps;
    return announcements.isLed(position().term, this.#lately);
  }

  get #lately() {
    const { clock, timing } = this.#deps;
    return { now: clock.monotonicMs(), withinMs: timing().timeoutMs };
  }
}
