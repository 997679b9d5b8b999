// Removes segments that no restart and no reader needs. These live segments are kept:
//
// - the newest base, all segments behind it, and the segment before it;
// - the base before the newest, and all segments behind it, in case the newest cannot be read (not in a journal short
//   of room);
// - as many as the audit's retention asks for.
//
//   synced ─ read back the remaining log ─ AuditTrimmed committed ─ removed
//
// No segment is removed before the newest base was stored for one sync interval. A server removes a stream from its
// disk at once, and may hold new records in its page cache alone. The interval counts by this coordinator's clock. It
// starts anew after each reconnection, because the server may have lost unsynced records.
//
// A full journal takes no AuditTrimmed. Its segments are removed first, and AuditTrimmed follows.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import { JournalDamagedError } from "../../errors.ts";
import { type BatchIndex, batchIndex, type Instant } from "../../ids.ts";
import { verifyBase } from "../../journal/base.ts";
import type { Journal } from "../../journal/journal.ts";
import { liveSegment } from "../../journal/live.ts";
import { firstIdxOf } from "../../journal/log-reader.ts";
import { decodeRecord } from "../../journal/records.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import type { EventOf, TrimReason } from "../../state/event.ts";
import type { JournalRoom } from "../journal-room.ts";
import { keptBytesMax } from "./kept-room.ts";
import { removeUnopened } from "./unfinished-segments.ts";

/** How much of the audit is kept: the less of both. */
export interface AuditRetention {
  /** Batches younger than this are kept. */
  readonly ageMs: number;
  /** Bytes at the journal's end that are kept. */
  readonly bytes: number;
}

export interface SegmentRetentionDeps {
  readonly journal: Journal;
  readonly retention: AuditRetention;
  readonly room: Pick<JournalRoom, "usage" | "lookAgain">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time until a base counts as stored. Default: `limits.baseSyncMs` if a server stores the journal, otherwise 0. */
  readonly baseSyncMs?: number;
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
  /** Batches between two bases. Room for twice as many is left free. */
  readonly spacingBytes: number;
}

interface StoredSegment {
  readonly live: LiveSegment;
  readonly bytes: number;
}

/** How many of the oldest live segments are removed. */
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
  /** Everything from the newest base up to this record was read back. */
  #readBack: { readonly segment: number; readonly position: number } | undefined;
  #lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  /** By number: a segment's `Opened` and the time of its first batch never change. */
  readonly #liveByNumber = new Map<number, LiveSegment>();
  readonly #firstAtByNumber = new Map<number, Instant>();

  constructor(
    deps: SegmentRetentionDeps,
    { live, auditFirstIdx }: { readonly live: LiveSegment; readonly auditFirstIdx: BatchIndex },
    hooks: SegmentRetentionHooks,
  ) {
    const { journal, clock } = deps;
    const isSyncedLater = ["page-cache", "replicated"].includes(journal.durability.class);
    this.#deps = deps;
    this.#hooks = hooks;
    this.#syncMs = deps.baseSyncMs ?? (isSyncedLater ? limits.baseSyncMs : 0);
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

  /** `AuditTrimmed` was committed. */
  trimmed({ firstIdx }: EventOf<"AuditTrimmed">): void {
    this.#recordedIdx = firstIdx;
    this.#lookedMonotonicMs = Number.NEGATIVE_INFINITY;
  }

  /** Removes recorded segments, and asks for a record of further segments.
   *  @throws UnreachableError; JournalDamagedError when the remaining log cannot be read back */
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

  /** The live segments up to the leader's segment, oldest first. Removes unopened segments. */
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

  // --- planning -------------------------------------------------------------------------------------

  /** @param candidates all segments that may be removed, and the first kept segment */
  async #plan(candidates: readonly StoredSegment[], { at, isShort, spacingBytes }: Occasion): Promise<Plan> {
    const { retention, room } = this.#deps;
    const keptMax = keptBytesMax(room.usage.bytesMax, spacingBytes);
    let { bytes } = room.usage;
    let plan: Plan = { count: 0, reason: "retention" };
    for (const [index, { bytes: size }] of candidates.slice(0, -1).entries()) {
      const next = candidates[index + 1] as StoredSegment;
      const isAsked =
        bytes - size >= retention.bytes || (await this.#isOlder(next.live, at - retention.ageMs));
      if (!isAsked && !isShort && bytes <= keptMax) break;
      bytes -= size;
      plan = { count: index + 1, reason: isAsked ? "retention" : "storage-short" };
    }
    return plan;
  }

  /** Whether all batches before a segment are older. */
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
        if (record?.kind === "batch" && record.session === opened.session) return record.at;
      }
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
    }
    return undefined;
  }

  // --- removing -------------------------------------------------------------------------------------

  /** Reads records that were not read back since the last reconnection. */
  async #readBackFrom(standing: readonly StoredSegment[]): Promise<void> {
    const { journal, clock } = this.#deps;
    const slices = new Slices(clock, limits.baseSliceMs);
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

/** How many of the oldest segments no restart needs, also a restart that cannot read the newest base. In a journal
 *  short of room a restart has the newest base alone. */
function countOfSafe(stored: readonly StoredSegment[], isShort: boolean): number {
  const newest = newestBaseOf(stored);
  const safe = isShort ? newest - 1 : newestBaseOf(stored.slice(0, Math.max(0, newest)));
  return Math.max(0, safe);
}

/** How many segments hold earlier batches alone. */
function countBefore(stored: readonly StoredSegment[], idx: BatchIndex): number {
  const at = stored.findLastIndex(({ live }) => firstIdxOf(live) <= idx);
  return Math.max(0, at);
}

function firstIdxIn(stored: StoredSegment | undefined): BatchIndex {
  return batchIndex(stored === undefined ? 1 : firstIdxOf(stored.live));
}
