// Following: reads the log as the leader writes, until the time to take the lead.
//
//   read on in the live segment ─ sealed and read to the end → look for the next live segment
//                               ─ unreadable                 → tell the leader, look for the next live segment
//
// A standby measures silence on its own monotonic clock, from the last applied batch. The measure begins again after
// the process stalled or the connection was lost: a standby must not mistake its own isolation for the leader's
// silence. A foreign record is no sign of life. The time to lead:
//
// - The leader closed its segment to hand over: at once, unless the leader was this coordinator or names a rival.
// - The leader is silent, and no announcement explains the silence. An announcement counts while the journal is full,
// while this coordinator reads the beginning of the segment, and for 2·T while the segment is unreadable here.

import type { Logger } from "pino";
import { Aborts } from "../../abort.ts";
import type { Clock, Random } from "../../clock.ts";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { findLive } from "../../journal/live.ts";
import { compare, readOn, restore } from "../../journal/log.ts";
import type { Batch } from "../../journal/records.ts";
import { type LiveSegment, type Replay, UnfitBatchError } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Announcements } from "../announcements.ts";
import { isFull } from "../journal-room.ts";
import type { Timing } from "../timing.ts";

export interface FollowingDeps {
  /** The coordinator's id, shown in the audit and in logs. */
  readonly id: string;
  /** Id of the coordinator's session. */
  readonly session: string;
  readonly journal: Journal;
  readonly announcements: Announcements;
  /** Tells the leader that a segment cannot be read. */
  readonly reportUnreadable: (segment: number) => void;
  /** Whether other coordinators can be reached. */
  readonly isConnected: () => boolean;
  /** By T of the followed term. */
  readonly timing: () => Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface FollowingHooks {
  readonly onBatch: (batch: Batch, bytes: Uint8Array) => void;
  /** The log was read again from a base: `log` replaces the followed log. */
  readonly onRestored: (log: Replay) => void;
  /** The following continues in a new segment. */
  readonly onSegment: () => void;
}

/** Follows until the time to take the lead.
 *  @param log read before; undefined when no segment was live
 *  @param signal ends the following: the promise rejects with the signal's reason
 *  @returns the segment of the leader that is silent or handed over; 0 when no segment is live
 *  @throws JournalDamagedError when the journal differs from the log in memory */
export async function follow(
  log: Replay | undefined,
  deps: FollowingDeps,
  hooks: FollowingHooks,
  signal: AbortSignal,
): Promise<number> {
  const ending = new Aborts().linkedTo(signal);
  const following = new Following(log, deps, hooks, ending.signal);
  try {
    return await Promise.race([following.handedOver(), following.silent()]);
  } finally {
    ending.abort();
  }
}

class Following {
  readonly #deps: FollowingDeps;
  readonly #hooks: FollowingHooks;
  readonly #signal: AbortSignal;
  /** The live segment with the highest number in the last list. */
  #liveSeen: number;
  #log: Replay | undefined;
  #heardMonotonicMs = 0;
  #silenceMs = 0;
  /** The live segment's beginning is being read. A base of a large state takes seconds. */
  #isCatchingUp = false;
  /** Since when the journal has had no room for the leader's batches. */
  #fullMonotonicMs: number | undefined;
  /** The unreadable live segment, and since when. */
  #unreadable: { readonly segment: number; readonly sinceMonotonicMs: number } | undefined;

  constructor(log: Replay | undefined, deps: FollowingDeps, hooks: FollowingHooks, signal: AbortSignal) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#signal = signal;
    this.#log = log;
    this.#liveSeen = log?.place?.segment ?? 0;
    this.#heard();
  }

  // --- reading --------------------------------------------------------------------------------------

  /** Reads until a leader closes its segment for this coordinator. @returns the leader's segment */
  async handedOver(): Promise<number> {
    const { clock, timing, logger } = this.#deps;
    for (;;) {
      let pauseMs = timing().pulseMs; // the next segment opens soon
      try {
        const found = await this.#readOnce();
        if (found === "handed-over") return this.#liveSeen;
        if (found === "more") continue;
      } catch (error) {
        this.#signal.throwIfAborted();
        const isParted = error instanceof PartedError || error instanceof UnfitBatchError;
        const isExpected = error instanceof JournalDamagedError || error instanceof UnreachableError;
        if (isParted || !isExpected) throw error;
        pauseMs = timing().heartbeatMs;
        logger.warn({ err: error }, "the journal cannot be read on; trying again");
      }
      await pause(clock, pauseMs, this.#signal);
      this.#signal.throwIfAborted();
    }
  }

  /** Reads the live segment until it is sealed and read to its end. */
  async #readOnce(): Promise<"handed-over" | "more" | "nothing-new"> {
    const { live } = await findLive(this.#deps.journal);
    this.#signal.throwIfAborted();
    if (live === undefined) return "nothing-new";
    if (live.number < this.#liveSeen) return "nothing-new"; // an old list, or a lost segment: silence tells
    if (live.number > this.#liveSeen) this.#heard();
    this.#liveSeen = live.number;
    const before = this.#log?.place;
    const isAtEnd = before?.segment === live.number && this.#unreadable === undefined;
    this.#isCatchingUp = true;
    try {
      await this.#bring(live);
    } finally {
      this.#isCatchingUp = false;
    }
    this.#signal.throwIfAborted();
    if (before?.segment !== live.number) this.#hooks.onSegment();
    this.#unreadable = undefined;
    if (await this.#readSegment(live)) return "handed-over";
    return isAtEnd && this.#log?.place?.position === before.position ? "nothing-new" : "more";
  }

  /** Reads up to the present end of the live segment. */
  async #bring(live: LiveSegment): Promise<void> {
    const { journal } = this.#deps;
    if (this.#log === undefined) return await this.#restore(live);
    const { idx } = this.#log.tail;
    try {
      await readOn(this.#log, live, journal);
      if (this.#log.tail.idx > idx) this.#heard();
    } catch (error) {
      if (!(error instanceof JournalDamagedError) || error instanceof UnfitBatchError) throw error;
      await this.#bringAnew(live, this.#log, error);
    }
  }

  /** The live segment does not continue the log in memory: a base replaces lost batches, or segments in between were
   *  removed. */
  async #bringAnew(live: LiveSegment, log: Replay, why: JournalDamagedError): Promise<void> {
    const comparison = await compare(log, live, this.#deps.journal);
    switch (comparison) {
      case "different":
        throw new PartedError(why);
      case "longer": // the leader will fall silent, and a new leader continues from the longest log in memory
      case "unreadable":
        this.#cannotRead(live);
        throw why;
      case "beginning":
        return await this.#restore(live);
    }
  }

  async #restore(live: LiveSegment): Promise<void> {
    try {
      this.#log = await restore(live, this.#deps);
    } catch (error) {
      if (error instanceof JournalDamagedError) this.#cannotRead(live);
      throw error;
    }
    this.#signal.throwIfAborted();
    this.#heard();
    this.#hooks.onRestored(this.#log);
  }

  /** Returns once the segment is sealed and read to its end. @returns whether the leader handed over to this
   *  coordinator */
  async #readSegment(live: LiveSegment): Promise<boolean> {
    const log = this.#log;
    const position = log?.place?.position;
    if (log === undefined || position === undefined) return false;
    try {
      const segment = this.#deps.journal.segment(live.number);
      for await (const record of segment.follow(position + 1, this.#signal)) {
        this.#signal.throwIfAborted();
        const verdict = log.take(record);
        if (verdict.kind !== "applied") continue;
        this.#heard();
        this.#hooks.onBatch(verdict.batch, record.bytes);
      }
    } catch (error) {
      if (error instanceof JournalDamagedError) this.#cannotRead(live);
      throw error;
    }
    this.#signal.throwIfAborted();
    return this.#isHandedOver(log);
  }

  #isHandedOver({ closing }: Replay): boolean {
    const { id, session, isConnected } = this.#deps;
    const isForUs = closing?.session !== session && (closing?.to === undefined || closing.to === id);
    return closing?.reason === "handing-over" && isForUs && isConnected();
  }

  #cannotRead(live: LiveSegment): void {
    this.#signal.throwIfAborted();
    const sinceMonotonicMs = this.#unreadable?.sinceMonotonicMs ?? this.#deps.clock.monotonicMs();
    this.#unreadable = { segment: live.number, sinceMonotonicMs };
    this.#deps.reportUnreadable(live.number);
  }

  // --- silence --------------------------------------------------------------------------------------

  #heard(): void {
    const { clock, random, timing } = this.#deps;
    this.#heardMonotonicMs = clock.monotonicMs();
    const { timeoutMs, silenceMsMax } = timing();
    this.#silenceMs = timeoutMs + (silenceMsMax - timeoutMs) * random.next();
  }

  /** Returns once the leader has been silent for long enough. @returns the leader's segment; 0 when none is live */
  async silent(): Promise<number> {
    const { clock, timing, isConnected } = this.#deps;
    for (;;) {
      const { pulseMs, pulseLateMs } = timing();
      const beganMonotonicMs = clock.monotonicMs();
      await pause(clock, pulseMs, this.#signal);
      this.#signal.throwIfAborted();
      const now = clock.monotonicMs();
      if (now - beganMonotonicMs > pulseMs + pulseLateMs || !isConnected()) this.#heard();
      if (!this.#isSilent) continue;
      const mustWait =
        (await this.#isLeaderStuck().catch(() => false)) ||
        this.#isLedUnreadably() ||
        (this.#isCatchingUp && this.#isLed());
      this.#signal.throwIfAborted();
      if (mustWait) this.#heard();
      else if (this.#isSilent) return this.#liveSeen; // batches may have arrived before the journal's answer
    }
  }

  get #isSilent(): boolean {
    return this.#deps.clock.monotonicMs() - this.#heardMonotonicMs > this.#silenceMs;
  }

  /** Whether a leader announces that it leads a segment that is unreadable here: the leader continues in a new
   *  segment. Limited in time, because the leader may not reach the journal. */
  #isLedUnreadably(): boolean {
    if (this.#unreadable === undefined || !this.#isLed()) return false;
    const { clock, timing } = this.#deps;
    return clock.monotonicMs() - this.#unreadable.sinceMonotonicMs <= 2 * timing().timeoutMs;
  }

  /** Whether the journal has no room for the leader's next batch: no coordinator could append. After room is free the
   *  leader has T to notice. Limited in time, because the leader may be unable to make room. */
  async #isLeaderStuck(): Promise<boolean> {
    const { journal, announcements, clock } = this.#deps;
    if (!this.#isLed()) return false;
    const neededBytes = announcements.neededBytes(this.#log?.tail.term ?? 0, this.#lately);
    const now = clock.monotonicMs();
    const sinceMonotonicMs = this.#fullMonotonicMs;
    this.#fullMonotonicMs = isFull(await journal.usage(), neededBytes)
      ? (sinceMonotonicMs ?? now)
      : undefined;
    const wasFull = sinceMonotonicMs !== undefined || this.#fullMonotonicMs !== undefined;
    return wasFull && now - (sinceMonotonicMs ?? now) <= limits.fullLeaderMsMax;
  }

  #isLed(): boolean {
    return this.#deps.announcements.leader(this.#log?.tail.term ?? 0, this.#lately) !== undefined;
  }

  get #lately() {
    const { clock, timing } = this.#deps;
    return { now: clock.monotonicMs(), withinMs: timing().timeoutMs };
  }
}

/** The journal differs from the log in memory. */
class PartedError extends JournalDamagedError {
  constructor(cause: JournalDamagedError) {
    super(
      "the journal continues differently from what this coordinator read: acknowledged batches were lost. Stop all " +
        "coordinators and run `waggle journal recover`, which says how much is left",
      { cause },
    );
  }
}
