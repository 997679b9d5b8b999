// Keeps the journal of one term short: has snapshots made when they are due, and lets go what two of them stand behind.
//
//   due ── made off the loop (snapshotter.ts) ── AuditTrimmed committed ── journal purged (purge.ts)
//
// A journal that takes no batch has no room for that record either. There what snapshots stand for goes first, and is
// put on record behind it (leader-room.ts, docs/adr/0012-a-journal-that-loses-records.md); as it is by a leader that
// finds that the journal begins behind where the record says, for the one before did not come to it.
//
// A snapshot is due after so many events or bytes, after a day, or while the journal is short of room (limits.ts), but
// not before the last one is synced (synced-snapshots.ts), so that two are enough. What may go is found by whoever made
// it.
//
// What is stored may rot afterwards: once an hour, however many terms it has, whenever the server was away, when one is
// met that cannot be read, when a term begins with a purged journal and no snapshot, and when another coordinator says
// that it can read none, it is asked whether a restart would find a snapshot that it can read. Where the newest cannot
// be, another is due at once, also where that was found before the term; where none can be and the journal was purged,
// only the leader's own state is left, and is saved (rescue.ts). So it is where two makings in a row meet damage in the
// journal behind the newest.
//
// Failures are said in the log and in the status, and tried again with back-off, each kind for itself; nothing of the
// leader waits for any of this.
//
// Here it is decided what is done next, one thing at a time. Its parts: what is known of the snapshots
// (known-snapshots.ts), what has none yet (snapshot-backlog.ts), making one (snapshot-making.ts), room in a full
// journal (leader-room.ts), and from where on the record is kept (kept-audit.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { RecordedEvent } from "../../core/step.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Replay } from "../../journal/replay.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import { SnapshotsLostError } from "../../journal/snapshot/losses.ts";
import { type Manifest, nameOf } from "../../journal/snapshot/manifest.ts";
import { readManifests } from "../../journal/snapshot/manifests.ts";
import type { Retention } from "../../journal/snapshot/trim.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import type { JournalRoom } from "../journal-room.ts";
import { CheckTimes } from "./check-times.ts";
import { KeptAudit } from "./kept-audit.ts";
import { type CompactionStatus, KnownSnapshots } from "./known-snapshots.ts";
import { LeaderRoom } from "./leader-room.ts";
import { Purge } from "./purge.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";
import { RetryPause } from "./retry-pause.ts";
import { SnapshotBacklog } from "./snapshot-backlog.ts";
import { SnapshotMaking, type SnapshotMakingHooks } from "./snapshot-making.ts";
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

export class Compactor {
  readonly #deps: CompactorDeps;
  readonly #hooks: SnapshotMakingHooks;
  readonly #ending = new AbortController();
  readonly #checkTimes: CheckTimes;
  readonly #known: KnownSnapshots;
  readonly #backlog: SnapshotBacklog;
  readonly #making: SnapshotMaking;
  readonly #leaderRoom: LeaderRoom;
  readonly #purge: Purge;
  readonly #kept: KeptAudit;
  readonly #beginRetry: RetryPause;
  /** What the leader before left is known, and on record. */
  #hasBegun = false;
  #isBusy = false;

  /** @param replay of the journal up to and with the last committed batch */
  constructor(deps: CompactorDeps, replay: Replay, hooks: SnapshotMakingHooks) {
    const { snapshotSyncMs: syncMs, journal, clock, readable } = deps;
    const { places, state } = replay;
    const { signal } = this.#ending;
    this.#deps = deps;
    this.#hooks = hooks;
    this.#kept = new KeptAudit({ ...deps, places, ask: hooks.ask }, state.auditFirstIdx);
    this.#beginRetry = new RetryPause(clock);
    this.#checkTimes = new CheckTimes(clock, readable.foundMonotonicMs);
    signal.addEventListener(
      "abort",
      readable.onFault(() => this.snapshotsMissed()),
    );
    const synced = new SyncedSnapshots({ durability: journal.durability, clock, syncMs });
    this.#known = new KnownSnapshots({ ...deps, synced });
    this.#backlog = new SnapshotBacklog(deps, replay);
    const parts = { ...deps, places, synced, known: this.#known, backlog: this.#backlog, signal };
    this.#making = new SnapshotMaking(parts, hooks);
    this.#leaderRoom = new LeaderRoom(
      { ...parts, making: this.#making },
      {
        onPurged: (firstSeq) => this.purgedBelow(firstSeq),
        onFailed: (cause) => this.#couldNotCheck(cause),
      },
    );
    const purgeDeps = {
      ...parts,
      read: () => this.#known.found.read,
      askAgain: () => this.#checkTimes.soon(),
    };
    this.#purge = new Purge(purgeDeps, state.auditFirstIdx);
    void this.#alone(() => this.#begin());
  }

  get status(): CompactionStatus {
    return this.#known.status;
  }

  /** The first batch that can still be there to be read: what was purged may not be on record yet. */
  get keptIdx(): BatchIndex {
    return this.#kept.firstIdx;
  }

  /** The journal takes no batch, or takes them again. */
  full(isFull: boolean): void {
    this.#leaderRoom.want(isFull);
  }

  /** Takes note of a batch. What it says is gone may be purged now. */
  committed(recorded: readonly RecordedEvent[], record: { seq: number; bytes: number }): void {
    this.#backlog.committed(recorded.length, record);
    for (const { event } of recorded) if (event.type === "AuditTrimmed") this.#purge.trimmed(event);
  }

  /** Looks whether something is due. @param at journal time */
  look(at: Instant): void {
    this.#purge.look();
    if (this.#isBusy) return;
    if (this.#leaderRoom.isWanted) {
      if (this.#leaderRoom.isDue) void this.#alone(() => this.#leaderRoom.make(at));
      return;
    }
    if (!this.#hasBegun && this.#beginRetry.isOver) void this.#alone(() => this.#begin());
    else if (this.#checkTimes.isDue) void this.#alone(() => this.#check());
    else if (this.#making.isDue(at)) void this.#alone(() => this.#making.make(at, { isFull: false }));
    else if (this.#checkTimes.isWanted) void this.#alone(() => this.#check());
  }

  /** The server was away, and may have lost something: the next look asks whether the snapshots can be read. */
  reconnected(): void {
    this.#known.forgetStanding();
    this.#checkTimes.soon();
  }

  /** Another coordinator says that it can read none, or one was met that cannot be read: it is asked when the last
   *  answer is not from just now, and nothing else is due. */
  snapshotsMissed(): void {
    this.#checkTimes.want();
  }

  /** The leader saved its own state.
   *  @param trims it puts on record itself where the journal is whole */
  saved(manifest: Manifest, { trims }: { readonly trims: boolean }): void {
    this.#hasBegun ||= trims;
    this.#known.saved(manifest);
    this.#purge.saved(nameOf(manifest));
    this.#backlog.clear();
    this.#making.saved();
  }

  /** There is nothing before a record any more, whoever purged it. */
  purgedBelow(firstSeq: number): void {
    this.#kept.purgedBelow(firstSeq);
  }

  /** The term is over: what is being made is given up. */
  end(): void {
    this.#ending.abort();
  }

  /** Does one thing, while which nothing else is begun. */
  async #alone(run: () => Promise<unknown>): Promise<void> {
    this.#isBusy = true;
    try {
      await run();
    } finally {
      this.#isBusy = false;
    }
  }

  /** Takes over what the leader before left. */
  async #begin(): Promise<void> {
    try {
      if (this.#backlog.isUnknown) await this.#inherit();
      this.#hasBegun = (await this.#kept.inherit()) || this.#hasBegun;
      if (this.#hasBegun) return;
      this.#beginRetry.reset(); // it answers: it is asked again as soon as ever
      this.#beginRetry.begin();
    } catch (cause) {
      if (this.#ending.signal.aborted) return;
      const retryMs = this.#beginRetry.begin();
      const what = "what the leader before left could not be looked at: it is tried again";
      this.#deps.logger.warn({ err: cause, retryMs }, what);
    }
  }

  async #inherit(): Promise<void> {
    const manifests = await readManifests(this.#deps.snapshots, this.#deps.logger);
    if (!this.#backlog.isUnknown) return; // the state was saved meanwhile
    this.#known.inherited(manifests);
    this.#backlog.beginBehind(this.#known.newest?.idx ?? 0);
    const isPurged = this.keptIdx > 1; // without a snapshot the rest is worth nothing
    if (manifests.length === 0 && isPurged) this.#checkTimes.soon();
  }

  async #check(): Promise<void> {
    const { signal } = this.#ending;
    try {
      const found = await this.#deps.snapshotter.find(this.#backlog.untilSeq, signal);
      if (signal.aborted) return;
      this.#known.saw(found);
      this.#checkTimes.answered({ isInVain: !this.#known.isNewestLost });
    } catch (cause) {
      if (!signal.aborted) this.#couldNotCheck(cause);
    }
  }

  #couldNotCheck(cause: unknown): void {
    this.#known.forgetStanding();
    this.#checkTimes.failed();
    if (cause instanceof SnapshotsLostError) {
      this.#known.lost(cause);
      this.#hooks.onLost(cause);
    } else this.#deps.logger.warn({ err: cause }, "it could not be asked whether the snapshots can be read");
  }
}
