// Has a leader's snapshots made when they are due, and says what became of it: but not before the last one is synced
// (synced-snapshots.ts), so that two are enough, and after a failure with back-off. Damage behind the newest is
// believed where two makings in a row meet it, and is then a loss for the leader to rescue (rescue.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import type { Instant } from "../../ids.ts";
import { RestartLostError, SnapshotsLostError } from "../../journal/snapshot/losses.ts";
import type { Retention } from "../../journal/snapshot/trim.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { KnownSnapshots } from "./known-snapshots.ts";
import { RetryPause } from "./retry-pause.ts";
import type { SnapshotBacklog } from "./snapshot-backlog.ts";
import type { Snapshotter } from "./snapshotter.ts";
import type { SyncedSnapshots } from "./synced-snapshots.ts";

export interface SnapshotMakingDeps {
  readonly snapshotter: Snapshotter;
  readonly retention: Retention;
  readonly room: JournalRoom;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly logger: Logger;
  readonly synced: SyncedSnapshots;
  readonly known: KnownSnapshots;
  readonly backlog: SnapshotBacklog;
  /** Aborts when the term is over. */
  readonly signal: AbortSignal;
}

export interface SnapshotMakingHooks {
  /** A command for the next turn. */
  readonly ask: (command: Command) => void;
  /** No snapshot that can be read leads to where the journal begins, or what stands behind one is damaged. Called again
   *  while that is so. */
  readonly onLost: (error: SnapshotsLostError | RestartLostError) => void;
}

export class SnapshotMaking {
  readonly #deps: SnapshotMakingDeps;
  readonly #hooks: SnapshotMakingHooks;
  /** Of what is due and could not be made. */
  readonly #retry: RetryPause;
  /** The last one met damage behind the newest snapshot. */
  #isDamageMet = false;

  constructor(deps: SnapshotMakingDeps, hooks: SnapshotMakingHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#retry = new RetryPause(deps.clock);
  }

  /** @param at journal time */
  isDue(at: Instant): boolean {
    const { known, backlog, synced } = this.#deps;
    if (!this.#retry.isOver) return false;
    return known.isNewestLost || (!synced.isAwaited && backlog.isDue(at, known.newest?.at));
  }

  /** The leader saved its own state: what was damaged before that is not read again. */
  saved(): void {
    this.#isDamageMet = false;
  }

  /** @param isFull whether the journal takes no batch
   *  @returns whether one was made */
  async make(at: Instant, { isFull }: { readonly isFull: boolean }): Promise<boolean> {
    const { snapshotter, retention, room, clock, logger, synced, known, backlog, signal } = this.#deps;
    const startedMs = clock.monotonicMs();
    const isShort = room.isShort || isFull;
    const before = backlog.begin({ isShort });
    const order = {
      untilSeq: backlog.untilSeq,
      synced: synced.hashes,
      retention,
      now: at,
      journalBytes: room.usage.bytes,
      journalBytesMax: room.usage.bytesMax,
      cameBytes: before.bytes,
      isShort,
    };
    try {
      const made = await snapshotter.make(order, signal);
      if (signal.aborted) return false;
      const { idx, bytes, trim } = made;
      logger.info({ idx, bytes, tookMs: Math.round(clock.monotonicMs() - startedMs) }, "a snapshot was made");
      known.made(made);
      backlog.made(before);
      this.#retry.reset();
      this.#isDamageMet = false;
      if (trim !== undefined) this.#hooks.ask({ type: "TrimAudit", ...trim });
      return true;
    } catch (cause) {
      if (!signal.aborted) this.#failed(cause);
      return false;
    }
  }

  #failed(cause: unknown): void {
    const { known, logger } = this.#deps;
    const retryMs = this.#retry.begin();
    if (cause instanceof SnapshotsLostError) {
      known.lost(cause);
      return this.#hooks.onLost(cause);
    }
    const isDamage = cause instanceof RestartLostError;
    const isDamageAgain = isDamage && this.#isDamageMet;
    this.#isDamageMet = isDamage;
    if (isDamageAgain) return this.#hooks.onLost(cause);
    known.couldNotBeMade(cause);
    logger.error(
      { err: cause, retryMs },
      isDamage
        ? "a snapshot could not be made, for what a restart would read is damaged: it is read again"
        : "a snapshot could not be made: it is tried again; until then a restart takes longer and the journal grows",
    );
  }
}
