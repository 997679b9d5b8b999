// Makes room in a full journal for whoever leads: nothing can be put on record before there is some. What a snapshot
// stands for goes first (room-maker.ts); where none that can be read reaches far enough, one is made. Not here: a full
// journal that nobody leads yet (campaign-room.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { Instant } from "../../ids.ts";
import type { BatchPlaces } from "../../journal/batch-places.ts";
import type { Journal } from "../../journal/journal.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { limits } from "../../limits.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { KnownSnapshots } from "./known-snapshots.ts";
import { RetryPause } from "./retry-pause.ts";
import { RoomMaker } from "./room-maker.ts";
import type { SnapshotBacklog } from "./snapshot-backlog.ts";
import type { SnapshotMaking } from "./snapshot-making.ts";
import type { Snapshotter } from "./snapshotter.ts";
import type { SyncedSnapshots } from "./synced-snapshots.ts";

export interface LeaderRoomDeps {
  readonly journal: Journal;
  readonly snapshots: SnapshotStore;
  readonly snapshotter: Snapshotter;
  readonly room: JournalRoom;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly logger: Logger;
  readonly synced: SyncedSnapshots;
  readonly known: KnownSnapshots;
  readonly places: BatchPlaces;
  readonly backlog: SnapshotBacklog;
  readonly making: SnapshotMaking;
  /** Aborts when the term is over. */
  readonly signal: AbortSignal;
}

export interface LeaderRoomHooks {
  /** All before that record is gone. */
  readonly onPurged: (firstSeq: number) => void;
  readonly onFailed: (cause: unknown) => void;
}

export class LeaderRoom {
  readonly #deps: LeaderRoomDeps;
  readonly #hooks: LeaderRoomHooks;
  readonly #maker: RoomMaker;
  /** Of what is made to purge a full journal by, and fails or rots. */
  readonly #retry: RetryPause;
  #isWanted = false;
  /** When it is looked again whether something may go. */
  #nextMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(deps: LeaderRoomDeps, hooks: LeaderRoomHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#maker = new RoomMaker(deps);
    this.#retry = new RetryPause(deps.clock);
  }

  /** Whether the journal takes no batch. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  get isDue(): boolean {
    return this.#isWanted && this.#deps.clock.monotonicMs() >= this.#nextMonotonicMs;
  }

  /** The journal takes no batch, or takes them again. */
  want(isWanted: boolean): void {
    this.#isWanted = isWanted;
  }

  /** @param at journal time */
  async make(at: Instant): Promise<void> {
    const { snapshotter, clock, logger, room, known, backlog, signal } = this.#deps;
    try {
      const found = await snapshotter.find(backlog.untilSeq, signal);
      if (signal.aborted) return;
      known.saw(found);
      const firstSeq = await this.#maker.purge(found.read, { keptSeq: backlog.untilSeq });
      if (signal.aborted) return;
      if (firstSeq === undefined) return await this.#makeSnapshot(found, at);
      logger.warn({ firstSeq }, "the journal is full: it was purged of what a snapshot stands for");
      this.#hooks.onPurged(firstSeq);
      room.lookAgain();
    } catch (cause) {
      if (!signal.aborted) this.#hooks.onFailed(cause);
    } finally {
      this.#nextMonotonicMs = clock.monotonicMs() + limits.journalRoomRetryMs;
    }
  }

  /** Of what none that can be read reaches. One that was made of it before has rotted: then less and less often. */
  async #makeSnapshot({ read }: FoundSnapshots, at: Instant): Promise<void> {
    const { backlog, making } = this.#deps;
    if (this.#maker.stands(read, backlog.untilSeq) || !this.#retry.isOver) return;
    const isAgain = backlog.isEmpty;
    const isMade = await making.make(at, { isFull: this.#isWanted });
    if (isMade && !isAgain) this.#retry.reset();
    else this.#retry.begin();
  }
}
