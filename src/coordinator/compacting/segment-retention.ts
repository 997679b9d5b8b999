// Removes the segments that nobody needs. Kept are, of the live ones: all from the newest base on, which is what a restart
// reads; the one before it; all from the base before that, unless the journal is short of room; and as much of the audit
// as is asked for.
//
//   synced ─ read back what will stand alone ─ AuditTrimmed committed ─ removed
//
// Nothing goes before the newest base and what stands behind it have been stored for one sync interval: what a server is
// told to remove is gone from its disk at once, and what it was given may still be in its page cache. The interval counts
// by this coordinator's clock, and anew after each reconnection, for the server may have lost what it had not synced.
//
// A journal that takes no batch takes no AuditTrimmed either: there segments go first, and the record follows.

import type { Logger } from "pino";
import { verifyBase } from "../../chain/base.ts";
import type { Journal } from "../../chain/journal.ts";
import { liveSegment } from "../../chain/live.ts";
import { firstIdxOf } from "../../chain/log-reader.ts";
import { decodeRecord } from "../../chain/records.ts";
import type { LiveSegment } from "../../chain/replay.ts";
import type { Clock } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import { JournalDamagedError } from "../../errors.ts";
import { type BatchIndex, batchIndex, type Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import type { EventOf, TrimReason } from "../../state/event.ts";
import type { JournalRoom } from "../journal-room.ts";
import { removeUnopened } from "./unfinished-segments.ts";

/** How much of the audit is kept: where both are finite, the less of both. */
export interface AuditRetention {
  /** Batches younger than this are kept. */
  readonly ageMs: number;
  /** So much of the journal's end is kept. */
  readonly bytes: number;
}

export interface SegmentRetentionDeps {
  readonly journal: Journal;
  readonly retention: AuditRetention;
  readonly room: Pick<JournalRoom, "usage" | "lookAgain">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default `limits.snapshotSyncMs`. */
  readonly snapshotSyncMs?: number;
}

export interface SegmentRetentionHooks {
  /** A command for the next turn. */
  readonly ask: (command: Extract<Command, { type: "TrimAudit" }>) => void;
  /** Segments were removed. */
  readonly onRemoved: () => void;
}

export interface Occasion {
  /** Journal time. */
  readonly at: Instant;
  /** The journal is short of room: nothing is kept for the audit's sake. */
  readonly isShort: boolean;
  /** The journal takes no batch. */
  readonly isFull: boolean;
  /** What comes between two bases; so much room is left free twice. */
  readonly spacingBytes: number;
}

interface StoredSegment {
  readonly live: LiveSegment;
  readonly bytes: number;
}

/** Of the live segments, oldest first, so many go. */
interface Plan {
  readonly count: number;
  readonly reason: Exclude<TrimReason, "lost">;
}

export class SegmentRetention {
  readonly #deps: SegmentRetentionDeps;
  readonly #hooks: SegmentRetentionHooks;
  readonly #syncMs: number;
  #live: LiveSegment;
  #recordedIdx: BatchIndex;
  #removedIdx: BatchIndex = batchIndex(1);
  /** Since when the newest base counts as stored. */
  #storedMonotonicMs: number;
  /** The newest record that was read back, and everything from the newest base up to it. */
  #readBack: { readonly segment: number; readonly position: number } | undefined;
  #lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  /** By number; a segment's `Opened` and the time of its first batch never change. */
  readonly #liveByNumber = new Map<number, LiveSegment>();
  readonly #firstAtByNumber = new Map<number, Instant>();

  constructor(
    deps: SegmentRetentionDeps,
    { live, auditFirstIdx }: { readonly live: LiveSegment; readonly auditFirstIdx: BatchIndex },
    hooks: SegmentRetentionHooks,
  ) {
    const { journal, clock, snapshotSyncMs = limits.snapshotSyncMs } = deps;
    const { class: durability } = journal.durability;
    this.#deps = deps;
    this.#hooks = hooks;
    this.#syncMs = durability === "page-cache" || durability === "replicated" ? snapshotSyncMs : 0;
    this.#live = live;
    this.#recordedIdx = auditFirstIdx;
    this.#storedMonotonicMs = clock.monotonicMs();
  }

  /** The first batch that is kept. */
  get firstIdx(): BatchIndex {
    return batchIndex(Math.max(this.#recordedIdx, this.#removedIdx));
  }

  /** Whether a power failure leaves the newest base. */
  get isSynced(): boolean {
    return this.#deps.clock.monotonicMs() - this.#storedMonotonicMs >= this.#syncMs;
  }

  isDue(isShort: boolean): boolean {
    const pauseMs = isShort ? limits.journalRoomRetryMs : limits.retentionLookMs;
    const sinceMs = this.#deps.clock.monotonicMs() - this.#lookedMonotonicMs;
    return this.isSynced && sinceMs >= pauseMs;
  }

  /** The leader goes on in another segment. */
  changed(live: LiveSegment): void {
    this.#live = live;
    this.reconnected();
  }

  reconnected(): void {
    this.#storedMonotonicMs = this.#deps.clock.monotonicMs();
    this.#readBack = undefined;
    this.#lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  }

  /** Committed. */
  trimmed({ firstIdx }: EventOf<"AuditTrimmed">): void {
    this.#recordedIdx = firstIdx;
    this.#lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  }

  /** Removes what may go, or asks for its record first. @throws UnreachableError; JournalDamagedError when what will stand
   *  alone cannot be read back */
  async run(occasion: Occasion, signal: AbortSignal): Promise<void> {
    const stored = await this.#list(signal);
    if (signal.aborted) return;
    const candidates = stored.slice(0, countOfSafe(stored, occasion.isShort) + 1);
    const recordedCount = countBefore(candidates, this.#recordedIdx);
    const { count, reason } = await this.#plan(candidates, occasion);
    if (count + recordedCount > 0) await this.#readBackFrom(stored.slice(newestBaseOf(stored)));
    const goes = occasion.isFull ? Math.max(count, recordedCount) : recordedCount;
    await this.#remove(stored.slice(0, goes), signal);
    if (signal.aborted) return;
    this.#lookedMonotonicMs = this.#deps.clock.monotonicMs();
    if (goes > 0) this.#removedIdx = firstIdxIn(stored[goes]);
    const kept = firstIdxIn(stored[Math.max(count, goes)]);
    if (count > recordedCount) this.#hooks.ask({ type: "TrimAudit", firstIdx: kept, reason });
    else if (kept > this.firstIdx) this.#hooks.ask({ type: "TrimAudit", firstIdx: kept, reason: "lost" });
  }

  /** The live segments up to the led one, oldest first. Removes those that were never opened. */
  async #list(signal: AbortSignal): Promise<readonly StoredSegment[]> {
    const { journal } = this.#deps;
    const stored: StoredSegment[] = [];
    for (const number of await journal.list()) {
      if (signal.aborted || number > this.#live.number) break;
      const segment = journal.segment(number);
      const live = this.#liveByNumber.get(number) ?? (await liveSegment(segment));
      if (live === undefined) {
        if (!signal.aborted) await removeUnopened(journal, number);
        continue;
      }
      this.#liveByNumber.set(number, live);
      stored.push({ live, bytes: (await segment.end())?.bytes ?? 0 });
    }
    return stored;
  }

  // --- what goes ------------------------------------------------------------------------------------

  /** @param candidates all that may go, and the first that may not */
  async #plan(candidates: readonly StoredSegment[], { at, isShort, spacingBytes }: Occasion): Promise<Plan> {
    const { retention, room } = this.#deps;
    const keptBytesMax = keptRoom(room.usage.bytesMax, spacingBytes);
    let { bytes } = room.usage;
    let plan: Plan = { count: 0, reason: "retention" };
    for (const [index, { bytes: size }] of candidates.slice(0, -1).entries()) {
      const next = candidates[index + 1] as StoredSegment;
      const isAsked =
        bytes - size >= retention.bytes || (await this.#isOlder(next.live, at - retention.ageMs));
      if (!isAsked && !isShort && bytes <= keptBytesMax) break;
      bytes -= size;
      plan = { count: index + 1, reason: isAsked ? "retention" : "storage-short" };
    }
    return plan;
  }

  /** Whether all before a segment is older. */
  async #isOlder(live: LiveSegment, since: number): Promise<boolean> {
    if (!Number.isFinite(since)) return false;
    const firstAt = this.#firstAtByNumber.get(live.number) ?? (await this.#readFirstAt(live));
    if (firstAt !== undefined) this.#firstAtByNumber.set(live.number, firstAt);
    return firstAt !== undefined && firstAt < since;
  }

  async #readFirstAt({ number, opened, position }: LiveSegment): Promise<Instant | undefined> {
    try {
      for await (const { bytes } of this.#deps.journal.segment(number).replay(position + 1)) {
        const record = decodeRecord(bytes);
        if (record?.kind === "batch" && record.life === opened.life) return record.at;
      }
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
    }
    return undefined;
  }

  // --- removing -------------------------------------------------------------------------------------

  /** Reads what was not read back since the last reconnection. */
  async #readBackFrom(standing: readonly StoredSegment[]): Promise<void> {
    const { journal, clock } = this.#deps;
    const slices = new Slices(clock, limits.snapshotSliceMs);
    for (const { live } of standing) {
      const { number, opened } = live;
      const before = this.#readBack;
      if (before !== undefined && before.segment > number) continue;
      const segment = journal.segment(number);
      const isBegun = before?.segment === number;
      if (!isBegun && opened.base !== undefined) await verifyBase(segment, opened.base);
      let position = isBegun ? before.position : (opened.base ?? live).position;
      for await (const record of segment.replay(position + 1)) {
        ({ position } = record);
        if (slices.isOver) await slices.pause();
      }
      this.#readBack = { segment: number, position };
    }
  }

  async #remove(segments: readonly StoredSegment[], signal: AbortSignal): Promise<void> {
    const { journal, room, logger } = this.#deps;
    for (const { live } of segments) {
      if (signal.aborted) return;
      await journal.remove(live.number);
      this.#liveByNumber.delete(live.number);
      this.#firstAtByNumber.delete(live.number);
    }
    if (segments.length === 0) return;
    logger.info({ segments: segments.map(({ live }) => live.number) }, "old segments were removed");
    room.lookAgain();
    this.#hooks.onRemoved();
  }
}

function newestBaseOf(stored: readonly StoredSegment[]): number {
  return stored.findLastIndex(({ live }) => live.opened.base !== undefined);
}

/** How many of the oldest segments no restart needs, also one that cannot read the newest base. While the journal is
 *  short of room, a restart has the newest base alone. */
function countOfSafe(stored: readonly StoredSegment[], isShort: boolean): number {
  const newest = newestBaseOf(stored);
  const safe = isShort ? newest - 1 : newestBaseOf(stored.slice(0, Math.max(0, newest)));
  return Math.max(0, safe);
}

/** How many of them hold earlier batches alone. */
function countBefore(stored: readonly StoredSegment[], idx: BatchIndex): number {
  return Math.max(
    0,
    stored.findLastIndex(({ live }) => firstIdxOf(live) <= idx),
  );
}

function firstIdxIn(stored: StoredSegment | undefined): BatchIndex {
  return batchIndex(stored === undefined ? 1 : firstIdxOf(stored.live));
}

/** Room in which segments are kept to be read: below the share at which tasks are refused, less what comes while the
 *  next base becomes due and while it is made. */
function keptRoom(bytesMax = Number.POSITIVE_INFINITY, spacingBytes: number): number {
  return Math.max(0, bytesMax * limits.journalFullShare - 2 * spacingBytes);
}
