// Keeps the journal of one term short: has snapshots made when they are due, and lets go what two of them stand behind.
//
//   due ── made off the loop (snapshotter.ts) ── AuditTrimmed committed ── journal purged (purge.ts)
//
// A journal that takes no batch has no room for that record either. There what snapshots stand for goes first, and is
// put on record behind it (room-maker.ts, docs/adr/0015-a-full-journal-is-purged-first.md); as it is by a leader that
// finds that the journal begins behind where the record says, for the one before did not come to it.
//
// A snapshot is due after so many events or bytes, after a day, or while the journal is short of room (limits.ts), but
// not before the last one is synced (synced-snapshots.ts), so that two are enough. What may go is found by whoever made
// it.
//
// What is stored may rot afterwards: once an hour, however many terms it has, whenever the server was away, when one is
// met that cannot be read, and when another coordinator says that it can read none, it is asked whether a restart would
// find a snapshot that it can read. Where the newest cannot be, another is due at once, also where that was found
// before the term; where none can be and the journal was purged, only the leader's own state is left, and is saved
// (rescue.ts). So it is where two makings in a row meet damage in the journal behind the newest.
//
// Failures are said in the log and in the status, and tried again with back-off, each kind for itself; nothing of the
// leader waits for any of this.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { Command } from "../core/command.ts";
import type { RecordedEvent } from "../core/step.ts";
import { messageOf } from "../errors.ts";
import { type BatchIndex, batchIndex, type Instant } from "../ids.ts";
import type { BatchPlaces } from "../journal/batch-places.ts";
import type { Journal } from "../journal/journal.ts";
import { snapshotSpacingBytes } from "../journal/kept-room.ts";
import type { Replay, Tail } from "../journal/replay.ts";
import { factsOf, type SnapshotFacts, type SnapshotMade } from "../journal/snapshot/make.ts";
import { type Manifest, nameOf } from "../journal/snapshot/manifest.ts";
import { readManifests } from "../journal/snapshot/manifests.ts";
import { type FoundSnapshots, RestartLostError, SnapshotsLostError } from "../journal/snapshot/restore.ts";
import type { Retention } from "../journal/snapshot/trim.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import { limits } from "../limits.ts";
import { CheckTimes } from "./check-times.ts";
import type { JournalRoom } from "./journal-room.ts";
import { Purge } from "./purge.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import { RetryPause } from "./retry-pause.ts";
import { RoomMaker } from "./room-maker.ts";
import type { Snapshotter } from "./snapshotter.ts";
import { SyncedSnapshots } from "./synced-snapshots.ts";

export interface Compaction {
  readonly snapshots: SnapshotStore;
  readonly snapshotter: Snapshotter;
  readonly retention: Retention;
  /** After so many events a snapshot is due. Default `limits.snapshotEvents`. */
  readonly everyEvents?: number;
  /** In which the server syncs what it stores. Default `limits.snapshotSyncMs`. */
  readonly snapshotSyncMs?: number;
}

export interface CompactorDeps extends Compaction {
  readonly journal: Journal;
  readonly room: JournalRoom;
  /** What this coordinator found when it read the journal. */
  readonly foundSnapshots: FoundSnapshots;
  /** Where it is noted what is read. */
  readonly readable: ReadableSnapshots;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface CompactionStatus {
  /** The newest snapshot that is not known to be unreadable, as far as this leader knows. */
  readonly newest: SnapshotFacts | undefined;
  /** What is wrong with snapshots: that the last one could not be made, until one is; or that one cannot be read, until
   *  the next is made without that. */
  readonly failure: string | undefined;
}

export interface CompactorHooks {
  /** A command for the next turn. */
  readonly ask: (command: Command) => void;
  /** No snapshot that can be read leads to where the journal begins, or what stands behind one is damaged. Called again
   *  while that is so. */
  readonly onLost: (error: SnapshotsLostError | RestartLostError) => void;
}

/** What was committed since the newest snapshot, or since the making of one began. */
interface Backlog {
  events: number;
  bytes: number;
}

export class Compactor {
  readonly #deps: CompactorDeps;
  readonly #places: BatchPlaces;
  readonly #hooks: CompactorHooks;
  readonly #ending = new AbortController();
  readonly #endFaults: () => void;
  #newest: SnapshotFacts | undefined;
  #found: FoundSnapshots;
  #failure: string | undefined;
  #backlog: Backlog = { events: 0, bytes: 0 };
  #committedSeq: number;
  /** Journal time from which the age of what has no snapshot counts. */
  #sinceAt: Instant;
  /** Of what was read since the replay began, until it is known how much of that lies behind the newest snapshot. */
  #tail: (Tail & { readonly idx: BatchIndex }) | undefined;
  /** What the leader before left is known, and on record. */
  #hasBegun = false;
  readonly #beginRetry: RetryPause;
  #isBusy = false;
  /** Of what is due and could not be made. */
  readonly #makeRetry: RetryPause;
  /** The last one met damage behind the newest snapshot. */
  #isDamageMet = false;
  readonly #checkTimes: CheckTimes;
  /** The newest snapshot cannot be read: another is due. */
  #isNewestLost = false;
  #shortMonotonicMs = Number.NEGATIVE_INFINITY;
  readonly #synced: SyncedSnapshots;
  readonly #purge: Purge;
  /** The journal takes no batch. */
  #isFull = false;
  readonly #roomMaker: RoomMaker;
  /** Of what is made to purge a full journal by, and fails or rots. */
  readonly #roomRetry: RetryPause;
  /** When it is looked again whether something may go of a full journal. */
  #roomMonotonicMs = Number.NEGATIVE_INFINITY;
  /** The first batch that is not purged yet, as far as this leader purged, on record or not. */
  #keptIdx = batchIndex(1);

  /** @param replay of the journal up to and with the last committed batch */
  constructor(deps: CompactorDeps, replay: Replay, hooks: CompactorHooks) {
    const { state, position, tail, places } = replay;
    this.#deps = deps;
    this.#places = places;
    this.#hooks = hooks;
    const { snapshotSyncMs: syncMs, journal, clock } = deps;
    this.#synced = new SyncedSnapshots({ durability: journal.durability, clock, syncMs });
    this.#roomMaker = new RoomMaker({ ...deps, synced: this.#synced });
    this.#beginRetry = new RetryPause(clock);
    this.#makeRetry = new RetryPause(clock);
    this.#roomRetry = new RetryPause(clock);
    this.#checkTimes = new CheckTimes(clock, deps.readable.foundMonotonicMs);
    this.#endFaults = deps.readable.onFault(() => this.checkSooner());
    this.#found = deps.foundSnapshots;
    this.#committedSeq = position.seq;
    this.#sinceAt = state.at;
    const purgeDeps = {
      ...deps,
      places,
      read: () => this.#found.read,
      askAgain: () => this.#checkTimes.soon(),
      synced: this.#synced,
    };
    this.#purge = new Purge(purgeDeps, state.auditFirstIdx);
    this.#keptIdx = state.auditFirstIdx;
    this.#tail = { ...tail, idx: position.idx };
    this.#backlog = { events: tail.events, bytes: tail.bytes };
    void this.#begin();
  }

  get status(): CompactionStatus {
    return { newest: this.#newest, failure: this.#failure ?? this.#found.unreadable[0]?.why };
  }

  /** The first batch that can still be there to be read: what was purged may not be on record yet. */
  get keptIdx(): BatchIndex {
    return this.#keptIdx;
  }

  /** The journal takes no batch, or takes them again. */
  full(isFull: boolean): void {
    this.#isFull = isFull;
  }

  /** Takes note of a batch. What it says is gone may be purged now. @param bytes of its record */
  committed(recorded: readonly RecordedEvent[], { seq, bytes }: { seq: number; bytes: number }): void {
    this.#committedSeq = seq;
    this.#backlog.events += recorded.length;
    this.#backlog.bytes += bytes;
    for (const { event } of recorded) if (event.type === "AuditTrimmed") this.#purge.trimmed(event);
  }

  /** Looks whether something is due. @param at journal time */
  look(at: Instant): void {
    this.#purge.look();
    if (this.#isBusy) return;
    if (this.#isFull) {
      if (this.#now >= this.#roomMonotonicMs) void this.#makeRoom(at);
      return;
    }
    if (!this.#hasBegun && this.#beginRetry.isOver) void this.#begin();
    else if (this.#checkTimes.isDue) void this.#check();
    else if (this.#makeRetry.isOver && this.#isDue(at)) void this.#make(at);
    else if (this.#checkTimes.isWanted) void this.#check();
  }

  /** The server was away, and may have lost something: the next look asks whether the snapshots can be read. */
  checkSoon(): void {
    this.#synced.forget();
    this.#checkTimes.soon();
  }

  /** Another coordinator says that it can read none, or one was met that cannot be read: it is asked when the last
   *  answer is not from just now, and nothing else is due. */
  checkSooner(): void {
    this.#checkTimes.want();
  }

  /** The leader saved its own state. */
  saved(manifest: Manifest): void {
    const name = nameOf(manifest);
    this.#synced.stands(name);
    this.#purge.saved(name);
    this.#newest = factsOf(manifest);
    this.#failure = undefined;
    this.#isNewestLost = false;
    this.#found = { ...this.#found, unreadable: [] };
    this.#backlog = { events: 0, bytes: 0 };
    this.#tail = undefined;
    this.#isDamageMet = false;
  }

  /** There is nothing before a record any more, whoever purged it: a leader that was deposed, and had yet to hear of
   *  that, may have made room in a full journal, and puts nothing on record itself. Has it put there, unless it is. */
  purgedBelow(firstSeq: number): void {
    const firstIdx = this.#places.firstFrom(firstSeq);
    if (firstIdx === undefined || firstIdx <= this.#keptIdx) return;
    this.#keptIdx = firstIdx;
    this.#hooks.ask({ type: "TrimAudit", firstIdx, reason: "storage-short" });
  }

  /** The term is over: what is being made is given up. */
  end(): void {
    this.#ending.abort();
    this.#endFaults();
  }

  get #now(): number {
    return this.#deps.clock.monotonicMs();
  }

  /** Takes over what the leader before left. */
  async #begin(): Promise<void> {
    this.#isBusy = true;
    try {
      if (this.#tail !== undefined) await this.#inherit(this.#tail);
      await this.#recordPurge();
      this.#hasBegun = true;
    } catch (cause) {
      if (this.#ending.signal.aborted) return;
      const retryMs = this.#beginRetry.begin();
      const what = "what the leader before left could not be looked at: it is tried again";
      this.#deps.logger.warn({ err: cause, retryMs }, what);
    } finally {
      this.#isBusy = false;
    }
  }

  /** Of what was read since the replay began, as much is left as lies behind the newest snapshot. */
  async #inherit({ fromIdx, events, bytes, idx }: Tail & { readonly idx: BatchIndex }): Promise<void> {
    const manifests = await readManifests(this.#deps.snapshots, this.#deps.logger);
    if (this.#tail === undefined) return; // the state was saved meanwhile
    const { read, unreadable } = this.#found;
    const isUnreadable = (at: number) => unreadable.some(({ place }) => place === at);
    const isThere = (at: number) => manifests.some(({ place }) => place === at);
    const furthest = manifests.find(({ place }) => !isUnreadable(place));
    if (furthest !== undefined) {
      this.#newest = factsOf(furthest.manifest);
      this.#synced.stands(nameOf(furthest.manifest));
    }
    this.#found = {
      read: read && isThere(read.place) ? read : undefined,
      unreadable: unreadable.filter(({ place }) => isThere(place)),
    };
    this.#isNewestLost = this.#found.unreadable.length > 0;
    const before = Math.min(Math.max((this.#newest?.idx ?? 0) - fromIdx, 0), idx - fromIdx);
    const share = before === 0 ? 0 : before / (idx - fromIdx);
    this.#backlog.events -= Math.round(events * share);
    this.#backlog.bytes -= Math.round(bytes * share);
    this.#tail = undefined;
  }

  /** The leader before may have purged a full journal and not come to say so. Where no snapshot reaches, it was not
   *  purged but lost, which is another's to find. */
  async #recordPurge(): Promise<void> {
    const { firstSeq } = await this.#deps.journal.position();
    if (firstSeq <= 1 || (this.#places.firstFrom(firstSeq) ?? 0) <= this.#keptIdx) return;
    if (await this.#deps.readable.leadsTo(firstSeq)) this.purgedBelow(firstSeq);
  }

  /** Nothing can be put on record before there is room. */
  async #makeRoom(at: Instant): Promise<void> {
    const { snapshotter, logger, room } = this.#deps;
    const { signal } = this.#ending;
    this.#isBusy = true;
    try {
      const found = await snapshotter.find(this.#committedSeq, signal);
      if (signal.aborted) return;
      this.#sawFound(found);
      const firstSeq = await this.#roomMaker.purge(found.read, { keptSeq: this.#committedSeq });
      if (signal.aborted) return;
      if (firstSeq === undefined) return await this.#makeForRoom(found, at);
      logger.warn({ firstSeq }, "the journal is full: it was purged of what a snapshot stands for");
      this.purgedBelow(firstSeq);
      room.lookAgain();
    } catch (cause) {
      if (!signal.aborted) this.#couldNotCheck(cause);
    } finally {
      this.#isBusy = false;
      this.#roomMonotonicMs = this.#now + limits.journalRoomRetryMs;
    }
  }

  /** Of what none that can be read reaches. One that was made of it before has rotted: then less and less often. */
  async #makeForRoom({ read }: FoundSnapshots, at: Instant): Promise<void> {
    if ((read?.seq ?? 0) >= this.#committedSeq || !this.#roomRetry.isOver) return;
    const isAgain = this.#backlog.events === 0;
    const isMade = await this.#make(at);
    if (isMade && !isAgain) this.#roomRetry.reset();
    else this.#roomRetry.begin();
  }

  #isDue(at: Instant): boolean {
    const { room, everyEvents = limits.snapshotEvents } = this.#deps;
    const { events, bytes } = this.#backlog;
    if (this.#isNewestLost) return true;
    if (events === 0 || this.#synced.isAwaited) return false;
    const isOld = at - (this.#newest?.at ?? this.#sinceAt) >= limits.snapshotMs;
    const isShort = room.isShort && this.#now - this.#shortMonotonicMs >= limits.snapshotShortMs;
    return events >= everyEvents || bytes >= snapshotSpacingBytes(room.usage.bytesMax) || isOld || isShort;
  }

  async #check(): Promise<void> {
    const { signal } = this.#ending;
    this.#isBusy = true;
    try {
      const found = await this.#deps.snapshotter.find(this.#committedSeq, signal);
      if (signal.aborted) return;
      this.#sawFound(found);
      this.#checkTimes.answered({ isInVain: !this.#isNewestLost });
    } catch (cause) {
      if (!signal.aborted) this.#couldNotCheck(cause);
    } finally {
      this.#isBusy = false;
    }
  }

  #sawFound(found: FoundSnapshots): void {
    this.#found = found;
    this.#isNewestLost = found.unreadable.length > 0;
    this.#deps.readable.found(found);
    if (found.read !== undefined) this.#synced.stands(found.read);
  }

  #couldNotCheck(cause: unknown): void {
    this.#synced.forget();
    this.#checkTimes.failed();
    if (cause instanceof SnapshotsLostError) this.#lost(cause);
    else this.#deps.logger.warn({ err: cause }, "it could not be asked whether the snapshots can be read");
  }

  /** @returns whether one was made */
  async #make(at: Instant): Promise<boolean> {
    const { snapshotter, retention, room, logger } = this.#deps;
    const before = { ...this.#backlog };
    const startedMs = this.#now;
    const isShort = room.isShort || this.#isFull;
    const order = {
      untilSeq: this.#committedSeq,
      synced: this.#synced.hashes,
      retention,
      now: at,
      journalBytes: room.usage.bytes,
      journalBytesMax: room.usage.bytesMax,
      cameBytes: before.bytes,
      isShort,
    };
    this.#isBusy = true;
    if (isShort) this.#shortMonotonicMs = startedMs;
    try {
      const made = await snapshotter.make(order, this.#ending.signal);
      if (this.#ending.signal.aborted) return false;
      const { idx, bytes } = made;
      logger.info({ idx, bytes, tookMs: Math.round(this.#now - startedMs) }, "a snapshot was made");
      this.#made(made, before);
      return true;
    } catch (cause) {
      if (!this.#ending.signal.aborted) this.#failed(cause);
      return false;
    } finally {
      this.#isBusy = false;
    }
  }

  #made({ trim, found, name, ...newest }: SnapshotMade, before: Backlog): void {
    this.#newest = newest;
    this.#sawFound(found);
    this.#synced.stands(name);
    this.#failure = undefined;
    this.#isNewestLost = false;
    this.#makeRetry.reset();
    this.#isDamageMet = false;
    this.#tail = undefined;
    this.#backlog.events = Math.max(0, this.#backlog.events - before.events); // less, where the state was saved meanwhile
    this.#backlog.bytes = Math.max(0, this.#backlog.bytes - before.bytes);
    if (trim !== undefined) this.#hooks.ask({ type: "TrimAudit", ...trim });
  }

  #failed(cause: unknown): void {
    const retryMs = this.#makeRetry.begin();
    if (cause instanceof SnapshotsLostError) return this.#lost(cause);
    const isDamage = cause instanceof RestartLostError;
    const isDamageAgain = isDamage && this.#isDamageMet;
    this.#isDamageMet = isDamage;
    if (isDamageAgain) return this.#hooks.onLost(cause);
    this.#failure = `the last one could not be made: ${messageOf(cause)}`;
    this.#deps.logger.error(
      { err: cause, retryMs },
      isDamage
        ? "a snapshot could not be made, for what a restart would read is damaged: it is read again"
        : "a snapshot could not be made: it is tried again; until then a restart takes longer and the journal grows",
    );
  }

  #lost(cause: SnapshotsLostError): void {
    this.#failure = cause.message;
    this.#found = { read: undefined, unreadable: [] };
    this.#hooks.onLost(cause);
  }
}
