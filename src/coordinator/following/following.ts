// Following: reads the log while another coordinator writes it, and notices when to take the lead.
//
//   read on in the live segment ─ sealed and read to its end → look for the next live segment
//                               ─ unreadable                 → tell the leader, look for the next live segment
//
// Silence is timed on our own monotonic clock from the last applied batch. It starts anew after our own loop stalled
// or the connection was away: a standby must not mistake its own isolation for the leader's. A foreign record is no
// sign of life. Time to lead:
//
// - The leader closed its segment to hand over: at once, unless to another coordinator, or by this coordinator.
// - Silence: unless a leader announces that a full journal has no room for it, or, for 2·T, that it leads a segment that
//   is unreadable here.

import type { Logger } from "pino";
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
  /** Of this coordinator, for people. */
  readonly id: string;
  /** Of this coordinator's session. */
  readonly life: string;
  readonly journal: Journal;
  readonly announcements: Announcements;
  /** Tells the leader that a segment cannot be read. */
  readonly tellUnreadable: (segment: number) => void;
  /** Whether the connection is up. */
  readonly isConnected: () => boolean;
  /** By T of the followed term. */
  readonly timing: () => Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface FollowingHooks {
  readonly onBatch: (batch: Batch, bytes: Uint8Array) => void;
  /** The log was read anew, and is another object. */
  readonly onRestored: (log: Replay) => void;
  /** Following goes on in another segment. */
  readonly onSegment: () => void;
  /** Time to take the lead. The last call. @param silentSegment the live segment of the silent leader, or 0 */
  readonly onTime: (silentSegment: number) => void;
  /** The journal differs from the log in memory. The last call. */
  readonly onHalted: (error: unknown) => void;
}

export class Following {
  readonly #deps: FollowingDeps;
  readonly #hooks: FollowingHooks;
  readonly #ending = new AbortController();
  /** The live segment with the highest number in the last list. */
  #liveSeen: number;
  #log: Replay | undefined;
  #heardMonotonicMs = 0;
  #silenceMs = 0;
  #watchedMonotonicMs = 0;
  #cancelWatch: (() => void) | undefined;
  /** Since when the leader has had no room for its batches. */
  #fullMonotonicMs: number | undefined;
  /** The unreadable live segment, and since when. */
  #unreadable: { readonly segment: number; readonly sinceMonotonicMs: number } | undefined;

  /** Begins at once. @param log read before; undefined when no segment was live */
  constructor(log: Replay | undefined, deps: FollowingDeps, hooks: FollowingHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#log = log;
    this.#liveSeen = log?.place?.segment ?? 0;
    this.#heard();
    this.#watchSilence();
    void this.#follow();
  }

  get #isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  /** No further call to a hook. Idempotent. */
  end(): void {
    this.#ending.abort();
    this.#cancelWatch?.();
  }

  // --- reading --------------------------------------------------------------------------------------

  async #follow(): Promise<void> {
    const { clock, timing, logger } = this.#deps;
    while (!this.#isOver) {
      let pauseMs = timing().pulseMs; // the next segment opens soon
      try {
        if (await this.#readOnce()) continue;
      } catch (error) {
        pauseMs = timing().beatMs;
        if (this.#isOver) return;
        if (error instanceof PartedError || error instanceof UnfitBatchError) return this.#halt(error);
        const isExpected = error instanceof JournalDamagedError || error instanceof UnreachableError;
        if (!isExpected) return this.#halt(error);
        logger.warn({ err: error }, "the journal cannot be read on; trying again");
      }
      await pause(clock, pauseMs, this.#ending.signal);
    }
  }

  /** @returns whether a live segment was followed to its end */
  async #readOnce(): Promise<boolean> {
    const { live } = await findLive(this.#deps.journal);
    if (live === undefined || this.#isOver) return false;
    if (live.number < this.#liveSeen) return false; // the list is old, or the storage lost the segment: silence tells
    if (live.number > this.#liveSeen) this.#heard();
    this.#liveSeen = live.number;
    const before = this.#log?.place;
    const isAtEnd = before?.segment === live.number && this.#unreadable === undefined;
    await this.#bring(live);
    if (this.#isOver) return false;
    if (before?.segment !== live.number) this.#hooks.onSegment();
    this.#unreadable = undefined;
    await this.#readSegment(live);
    return !(isAtEnd && this.#log?.place?.position === before.position);
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

  /** The live segment does not continue the followed log: it has a base in place of lost batches, or segments in
   *  between were removed. */
  async #bringAnew(live: LiveSegment, log: Replay, why: JournalDamagedError): Promise<void> {
    const comparison = await compare(log, live, this.#deps.journal);
    switch (comparison) {
      case "different":
        throw new PartedError(why);
      case "longer": // silence decides: the next leader goes on from memory
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
    if (this.#isOver) return;
    this.#heard();
    this.#hooks.onRestored(this.#log);
  }

  /** Returns once the segment is sealed and read to its end. */
  async #readSegment(live: LiveSegment): Promise<void> {
    const log = this.#log;
    const position = log?.place?.position;
    if (log === undefined || position === undefined) return;
    try {
      const segment = this.#deps.journal.segment(live.number);
      for await (const record of segment.follow(position + 1, this.#ending.signal)) {
        if (this.#isOver) return;
        const verdict = log.take(record);
        if (verdict.kind !== "applied") continue;
        this.#heard();
        this.#hooks.onBatch(verdict.batch, record.bytes);
      }
    } catch (error) {
      if (error instanceof JournalDamagedError) this.#cannotRead(live);
      throw error;
    }
    if (this.#isHandedOver(log)) this.#finish();
  }

  #isHandedOver({ closing }: Replay): boolean {
    const { id, life, isConnected } = this.#deps;
    const isForUs = closing?.life !== life && (closing?.to === undefined || closing.to === id);
    return closing?.reason === "handing-over" && isForUs && isConnected() && !this.#isOver;
  }

  #cannotRead(live: LiveSegment): void {
    if (this.#isOver) return;
    const sinceMonotonicMs = this.#unreadable?.sinceMonotonicMs ?? this.#deps.clock.monotonicMs();
    this.#unreadable = { segment: live.number, sinceMonotonicMs };
    this.#deps.tellUnreadable(live.number);
  }

  // --- silence --------------------------------------------------------------------------------------

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
      if (late > pulseMs + pulseLateMs || !isConnected()) this.#heard();
      const isSilent = clock.monotonicMs() - this.#heardMonotonicMs > this.#silenceMs;
      if (isSilent) void this.#silent();
      else this.#watchSilence();
    });
  }

  async #silent(): Promise<void> {
    const mustWait = (await this.#isLeaderStuck().catch(() => false)) || this.#isLedUnreadably();
    if (this.#isOver) return;
    if (!mustWait) return this.#finish();
    this.#heard();
    this.#watchSilence();
  }

  /** Whether a leader announces that it leads a segment that is unreadable here: it goes on in a new segment.
   *  Limited in time, because the leader may not reach the journal. */
  #isLedUnreadably(): boolean {
    if (this.#unreadable === undefined || !this.#isLed()) return false;
    const { clock, timing } = this.#deps;
    return clock.monotonicMs() - this.#unreadable.sinceMonotonicMs <= 2 * timing().timeoutMs;
  }

  /** Whether a leader has no room for its next batch: neither it nor another leader could append. After room is
   *  free the leader has T to notice. Limited in time, because the leader may be unable to make room. */
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
    return this.#deps.announcements.isLed(this.#log?.tail.term ?? 0, this.#lately);
  }

  get #lately() {
    const { clock, timing } = this.#deps;
    return { now: clock.monotonicMs(), withinMs: timing().timeoutMs };
  }

  // --- ending ---------------------------------------------------------------------------------------

  #finish(): void {
    if (this.#isOver) return;
    this.end();
    this.#hooks.onTime(this.#liveSeen);
  }

  #halt(error: unknown): void {
    if (this.#isOver) return;
    this.end();
    this.#hooks.onHalted(error);
  }
}

/** The journal differs from the log in memory. */
class PartedError extends JournalDamagedError {
  constructor(cause: JournalDamagedError) {
    super(
      "the journal continues differently from what this coordinator read: acknowledged batches were lost. Stop all " +
        "coordinators and run `waggle journal recover`, which says what is left",
      { cause },
    );
  }
}
