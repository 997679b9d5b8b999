// What was committed since the newest snapshot, and whether it is enough for another: so many events or bytes, a day,
// or less while the journal is short of room (limits.ts). Not here: whether one may be made yet (snapshot-making.ts).

import type { Clock } from "../../clock.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { snapshotSpacingBytes } from "../../journal/kept-room.ts";
import type { Replay, Tail } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { JournalRoom } from "../journal-room.ts";

export interface SnapshotBacklogDeps {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly room: JournalRoom;
  /** After so many events a snapshot is due. Default `limits.snapshotEvents`. */
  readonly everyEvents?: number;
}

interface Amount {
  readonly events: number;
  readonly bytes: number;
}

export class SnapshotBacklog {
  readonly #deps: SnapshotBacklogDeps;
  #amount: Amount;
  #untilSeq: number;
  /** Journal time from which the age of what has no snapshot counts. */
  readonly #sinceAt: Instant;
  /** Of what was read since the replay began, until it is known how much of that lies behind the newest snapshot. */
  #tail: (Tail & { readonly idx: BatchIndex }) | undefined;
  #shortMonotonicMs = Number.NEGATIVE_INFINITY;

  /** @param replay of the journal up to and with the last committed batch */
  constructor(deps: SnapshotBacklogDeps, { state, position, tail }: Replay) {
    this.#deps = deps;
    this.#amount = { events: tail.events, bytes: tail.bytes };
    this.#untilSeq = position.seq;
    this.#sinceAt = state.at;
    this.#tail = { ...tail, idx: position.idx };
  }

  /** Of the newest batch. */
  get untilSeq(): number {
    return this.#untilSeq;
  }

  get isEmpty(): boolean {
    return this.#amount.events === 0;
  }

  /** Whether it is not known yet how much of it lies behind the newest snapshot. */
  get isUnknown(): boolean {
    return this.#tail !== undefined;
  }

  /** A batch of so many events is stored. @param bytes of its record */
  committed(events: number, { seq, bytes }: { readonly seq: number; readonly bytes: number }): void {
    this.#untilSeq = seq;
    this.#amount = { events: this.#amount.events + events, bytes: this.#amount.bytes + bytes };
  }

  /** Of what was read since the replay began, as much is left as lies behind the newest snapshot. */
  beginBehind(newestIdx: number): void {
    if (this.#tail === undefined) return;
    const { fromIdx, events, bytes, idx } = this.#tail;
    const before = Math.min(Math.max(newestIdx - fromIdx, 0), idx - fromIdx);
    const share = before === 0 ? 0 : before / (idx - fromIdx);
    const left = this.#amount;
    this.#amount = {
      events: left.events - Math.round(events * share),
      bytes: left.bytes - Math.round(bytes * share),
    };
    this.#tail = undefined;
  }

  /** Whether it is enough. @param at journal time
   *  @param newestAt of the newest snapshot */
  isDue(at: Instant, newestAt: Instant | undefined): boolean {
    const { room, everyEvents = limits.snapshotEvents } = this.#deps;
    const { events, bytes } = this.#amount;
    if (events === 0) return false;
    const isOld = at - (newestAt ?? this.#sinceAt) >= limits.snapshotMs;
    const isShort = room.isShort && this.#now - this.#shortMonotonicMs >= limits.snapshotShortMs;
    return events >= everyEvents || bytes >= snapshotSpacingBytes(room.usage.bytesMax) || isOld || isShort;
  }

  /** A snapshot of it is being made. @param isShort for want of room
   *  @returns what it will hold of this */
  begin({ isShort }: { readonly isShort: boolean }): Amount {
    if (isShort) this.#shortMonotonicMs = this.#now;
    return this.#amount;
  }

  /** …and was made of so much. */
  made(held: Amount): void {
    const { events, bytes } = this.#amount; // less, where the state was saved meanwhile
    this.#amount = { events: Math.max(0, events - held.events), bytes: Math.max(0, bytes - held.bytes) };
    this.#tail = undefined;
  }

  /** All of it is in a snapshot. */
  clear(): void {
    this.#amount = { events: 0, bytes: 0 };
    this.#tail = undefined;
  }

  get #now(): number {
    return this.#deps.clock.monotonicMs();
  }
}
