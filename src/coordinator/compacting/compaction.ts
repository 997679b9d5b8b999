// Keeps the log of one term short: has the next segment made when a base is due, hands the segment to the leader, and
// has old segments removed. The leader waits for none of this.
//
//   due ─ made ─ changeTo ─ the leader goes on in the segment ─ changed ─ synced ─ old segments go
//
// A base is due when the later batches outweigh the newest base (newest-base.ts), after a day, and while the journal
// is short of room. It is also due when the newest base cannot be read. No base is made before the newest base is
// synced: of bases at short intervals none would ever count as synced.
//
// One duty runs at a time. The log and the status state a failure. The duty then runs again after a pause, which
// doubles with each failure. After damage twice in a row the leader takes the lead again and writes a base from
// memory.

import type { Logger } from "pino";
import { backOffMs } from "../../back-off.ts";
import type { Clock, Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import type { RecordedEvent } from "../../core/step.ts";
import { JournalDamagedError, messageOf } from "../../errors.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { newAttempt } from "../../journal/segment-writer.ts";
import { limits } from "../../limits.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { BaseMaker, MadeSegment } from "./make-next-segment.ts";
import { type Behind, baseSpacingBytes, findNewestBase, type NewestBase } from "./newest-base.ts";
import { type AuditRetention, SegmentRetention } from "./segment-retention.ts";
import { removeOwnUnfinished } from "./unfinished-segments.ts";

export interface CompactionDeps {
  readonly journal: Journal;
  /** Id of the leader's session. */
  readonly session: string;
  readonly maker: BaseMaker;
  readonly retention: AuditRetention;
  readonly room: Pick<JournalRoom, "isShort" | "usage" | "lookAgain">;
  readonly clock: Clock;
  readonly random: Pick<Random, "id">;
  readonly logger: Logger;
  /** Events after which a base is due, however few bytes. Default: no bound. */
  readonly everyEvents?: number;
  /** As in `SegmentRetentionDeps`. */
  readonly baseSyncMs?: number;
}

export interface CompactionHooks {
  /** The next segment is ready: the leader enters it once no batch is in flight. */
  readonly changeTo: (made: MadeSegment) => void;
  /** A command for the next turn. */
  readonly ask: (command: Extract<Command, { type: "TrimAudit" }>) => void;
  /** The leader's last committed batch. */
  readonly committedIdx: () => number;
  /** The log behind its newest base cannot be read from the journal: a new base is to be written from memory. */
  readonly onDamaged: (error: JournalDamagedError) => void;
  /** Segments were removed. */
  readonly onRemoved: () => void;
}

export interface CompactionStatus {
  /** Undefined without a readable base, as far as is known. */
  readonly newest: NewestBase | undefined;
  /** Why a duty failed last, until it succeeds. */
  readonly failure: string | undefined;
}

/** Making segments, or removing segments: each fails and is tried again by itself. */
interface Duty {
  /** For the log. */
  readonly failed: string;
  failure: string | undefined;
  /** In a row. */
  failures: number;
  /** End of the pause after the last failure. */
  pausedUntilMonotonicMs: number;
  /** Damage in a row. */
  damages: number;
}

const backOff = { pauseMs: limits.baseRetryMs, pauseMsMax: limits.baseRetryMsMax };
/** Only the leader makes and removes segments: pauses need no spread. */
const WHOLE_PAUSE = 1;

export class Compaction {
  readonly #deps: CompactionDeps;
  readonly #hooks: CompactionHooks;
  readonly #retention: SegmentRetention;
  readonly #ending = new AbortController();
  readonly #making: Duty;
  readonly #removing: Duty;
  #live: LiveSegment;
  /** Aborts the duty under way when the leader's segment changes and when the connection breaks. */
  #attempt = new AbortController();
  #newest: NewestBase | undefined;
  #isNewestDamaged = false;
  #isKnown = false;
  #behind: Behind = { events: 0, bytes: 0 };
  #highestNumber = 0;
  /** When the last segment was begun. */
  #beganMonotonicMs = Number.NEGATIVE_INFINITY;
  /** No segment is made until the leader goes on in another segment. */
  #isPaused = false;
  #isBusy = false;
  #isFull = false;

  /** @param live the segment at the beginning of the term
   *  @param auditFirstIdx the first batch that is kept, by the state */
  constructor(
    deps: CompactionDeps,
    { live, auditFirstIdx }: { readonly live: LiveSegment; readonly auditFirstIdx: BatchIndex },
    hooks: CompactionHooks,
  ) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#live = live;
    this.#making = this.#duty("the next segment of the journal could not be made; trying again");
    this.#removing = this.#duty("old segments could not be removed; trying again");
    this.#retention = new SegmentRetention(deps, { live, auditFirstIdx }, hooks);
    const forget = deps.journal.onReconnected(() => this.#reconnected());
    this.#ending.signal.addEventListener("abort", forget);
  }

  get status(): CompactionStatus {
    const failure = this.#making.failure ?? this.#removing.failure;
    return { newest: this.#newest, failure };
  }

  /** The first batch that is kept. Earlier batches are removed, or will be. */
  get firstIdx(): BatchIndex {
    return this.#retention.firstIdx;
  }

  /** The journal takes no batch, or takes batches again. */
  full(isFull: boolean): void {
    this.#isFull = isFull;
  }

  /** A batch was committed. @param bytes the size of its record */
  committed(recorded: readonly RecordedEvent[], bytes: number): void {
    const { events, bytes: before } = this.#behind;
    this.#behind = { events: events + recorded.length, bytes: before + bytes };
    for (const { event } of recorded) if (event.type === "AuditTrimmed") this.#retention.trimmed(event);
  }

  /** The leader takes the lead again: the segment in the making is given up, and no other is begun until `changed`. */
  pause(): void {
    this.#beginAnew();
    this.#isPaused = true;
  }

  /** The leader goes on in another segment. */
  changed(live: LiveSegment): void {
    this.#live = live;
    this.#beginAnew();
    this.#isKnown = false;
    this.#isPaused = false;
    this.#retention.changed(live);
  }

  /** Looks whether something is due. @param at journal time */
  look(at: Instant): void {
    if (this.#isBusy || this.#ending.signal.aborted) return;
    const { room } = this.#deps;
    const isShort = room.isShort || this.#isFull;
    if (this.#mayRun(this.#removing) && this.#retention.isDue(isShort))
      void this.#do(this.#removing, (signal) => this.#remove(at, isShort, signal));
    else if (!this.#mayRun(this.#making) || this.#isPaused) return;
    else if (!this.#isKnown) void this.#do(this.#making, (signal) => this.#find(signal));
    else if (this.#isDue(at)) void this.#do(this.#making, (signal) => this.#make(signal));
  }

  /** The term is over: the duty under way is given up. */
  end(): void {
    this.#ending.abort();
    this.#attempt.abort();
  }

  // --- what is due ----------------------------------------------------------------------------------

  #isDue(at: Instant): boolean {
    const { room, clock, everyEvents = Number.POSITIVE_INFINITY } = this.#deps;
    const { events, bytes } = this.#behind;
    if (this.#isNewestDamaged) return true;
    if (events === 0 || this.#isFull || (this.#newest !== undefined && !this.#retention.isSynced))
      return false;
    const isOld = this.#newest !== undefined && at - this.#newest.at >= limits.baseMs;
    const isMuch = events >= everyEvents || bytes >= baseSpacingBytes(this.#newest, room.usage);
    const isShort = room.isShort && clock.monotonicMs() - this.#beganMonotonicMs >= limits.baseShortMs;
    return isMuch || isOld || isShort;
  }

  #reconnected(): void {
    this.#beginAnew();
    this.#retention.reconnected();
  }

  #beginAnew(): void {
    this.#attempt.abort();
    this.#attempt = new AbortController();
  }

  // --- duties ---------------------------------------------------------------------------------------

  #duty(failed: string): Duty {
    return {
      failed,
      failure: undefined,
      failures: 0,
      pausedUntilMonotonicMs: Number.NEGATIVE_INFINITY,
      damages: 0,
    };
  }

  #mayRun({ pausedUntilMonotonicMs }: Duty): boolean {
    return this.#deps.clock.monotonicMs() >= pausedUntilMonotonicMs;
  }

  async #do(duty: Duty, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#attempt;
    this.#isBusy = true;
    try {
      await run(signal);
      if (signal.aborted) return;
      duty.failure = undefined;
      duty.failures = 0;
      duty.damages = 0;
    } catch (error) {
      if (!signal.aborted) this.#failed(duty, error);
    } finally {
      this.#isBusy = false;
    }
  }

  #failed(duty: Duty, error: unknown): void {
    duty.failures += 1;
    const retryMs = backOffMs(backOff, duty.failures, WHOLE_PAUSE);
    duty.pausedUntilMonotonicMs = this.#deps.clock.monotonicMs() + retryMs;
    duty.failure = messageOf(error);
    this.#deps.logger.error({ err: error, retryMs }, duty.failed);
    duty.damages = error instanceof JournalDamagedError ? duty.damages + 1 : 0;
    if (error instanceof JournalDamagedError && duty.damages >= limits.damagesMax)
      this.#hooks.onDamaged(error);
  }

  async #find(signal: AbortSignal): Promise<void> {
    const { newest, isDamaged, behind } = await findNewestBase(
      this.#deps.journal,
      this.#live,
      this.#hooks.committedIdx(),
    );
    if (signal.aborted) return;
    this.#newest = newest;
    this.#isNewestDamaged = isDamaged;
    this.#behind = behind;
    this.#isKnown = true;
  }

  async #make(signal: AbortSignal): Promise<void> {
    const { maker, session, clock, random, logger } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#beganMonotonicMs = startedMs;
    const number = await this.#nextNumber();
    const ledSegment = this.#live.number;
    const { committedIdx } = this.#hooks;
    const attempt = newAttempt(random);
    const order = { number, session, attempt, ledSegment, committedIdx, bytesMax: this.#freeBytes };
    try {
      const made = await maker.make(order, signal);
      if (signal.aborted) return;
      const tookMs = Math.round(clock.monotonicMs() - startedMs);
      logger.info({ segment: number, idx: made.base.idx, tookMs }, "the next segment is ready, with a base");
      this.#isPaused = true;
      this.#hooks.changeTo(made);
    } catch (error) {
      if (!signal.aborted) await this.#removeUnfinished(signal);
      throw error;
    }
  }

  /** Room for a base: the rest serves the results of running tasks. */
  get #freeBytes(): number {
    const { bytes, bytesMax } = this.#deps.room.usage;
    return bytesMax === undefined
      ? Number.POSITIVE_INFINITY
      : bytesMax * limits.journalUnassignedShare - bytes;
  }

  /** Above all numbers in existence or used in this term: a number is never used twice. */
  async #nextNumber(): Promise<number> {
    const numbers = await this.#deps.journal.list();
    this.#highestNumber = Math.max(this.#highestNumber, this.#live.number, ...numbers) + 1;
    return this.#highestNumber;
  }

  async #removeUnfinished(signal: AbortSignal): Promise<void> {
    try {
      const claim = await this.#nextNumber();
      const attempt = newAttempt(this.#deps.random);
      await removeOwnUnfinished(this.#deps, { ledSegment: this.#live.number, claim, attempt }, signal);
    } catch (error) {
      if (!signal.aborted) this.#deps.logger.warn({ err: error }, "a segment without end was left behind");
    }
  }

  async #remove(at: Instant, isShort: boolean, signal: AbortSignal): Promise<void> {
    const { usage } = this.#deps.room;
    const spacingBytes = baseSpacingBytes(this.#newest, usage);
    await this.#retention.run({ at, isShort, isFull: this.#isFull, spacingBytes }, signal);
  }
}
