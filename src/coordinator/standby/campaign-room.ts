// Makes room for a campaign that finds none: where nobody leads, nobody else would, and a swarm whose coordinators all
// ended while its journal was full would never be led again. It does what a leader does with a full journal
// (compactor.ts), by the same rule (room-maker.ts); the record says so when the term has begun.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Replay } from "../../journal/replay.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import {
  isRestartLost,
  type RestartLostError,
  type SnapshotsLostError,
} from "../../journal/snapshot/losses.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Compaction } from "../compaction/compactor.ts";
import { RoomMaker } from "../compaction/room-maker.ts";
import { SyncedSnapshots } from "../compaction/synced-snapshots.ts";

export interface CampaignRoomDeps {
  readonly journal: Journal;
  readonly compaction: Compaction;
  /** Up to where the journal was read. */
  readonly replay: Replay;
  /** To the server of the journal and its snapshots. */
  readonly transport: Pick<Transport, "onStatus">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Snapshots were looked for. */
  readonly onFound: (found: FoundSnapshots) => void;
  /** What a snapshot would be made from cannot be read, twice in a row. */
  readonly onLost: (lost: RestartLostError | SnapshotsLostError) => void;
}

export class CampaignRoom {
  readonly #deps: CampaignRoomDeps;
  readonly #ending = new AbortController();
  readonly #synced: SyncedSnapshots;
  readonly #maker: RoomMaker;
  readonly #stopStatus: () => void;
  #isLossMet = false;

  /** Begins at once. */
  constructor(deps: CampaignRoomDeps) {
    this.#deps = deps;
    const { compaction, journal, transport, clock, logger } = deps;
    const { snapshots, snapshotSyncMs: syncMs } = compaction;
    const { places } = deps.replay;
    this.#synced = new SyncedSnapshots({ durability: journal.durability, clock, syncMs });
    this.#maker = new RoomMaker({ journal, snapshots, places, synced: this.#synced, logger });
    this.#stopStatus = transport.onStatus((status) => {
      if (status === "connected") this.#synced.forget(); // what it had not synced it may have lost
    });
    void this.#run();
  }

  stop(): void {
    this.#ending.abort();
    this.#stopStatus();
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#deps;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        await this.#makeRoom();
        this.#isLossMet = false;
      } catch (cause) {
        if (signal.aborted) return;
        const isLoss = isRestartLost(cause);
        if (isLoss && this.#isLossMet) return this.#deps.onLost(cause);
        this.#isLossMet = isLoss;
        logger.warn({ err: cause }, "no room could be made in the journal: it is tried again");
      }
      await pause(clock, limits.journalRoomRetryMs, signal);
    }
  }

  async #makeRoom(): Promise<void> {
    const { compaction, replay, logger, onFound } = this.#deps;
    const { signal } = this.#ending;
    const { idx, seq } = replay.position;
    const found = await compaction.snapshotter.find(seq, signal);
    if (signal.aborted) return;
    onFound(found);
    const firstSeq = await this.#maker.purge(found.read, { keptSeq: replay.places.seqOf(idx) ?? seq });
    if (firstSeq !== undefined)
      logger.warn({ firstSeq }, "the journal is full: it was purged of what a snapshot stands for");
    else if (!signal.aborted && !this.#maker.stands(found.read, seq))
      await makeForRoom(this.#deps, this.#synced.hashes, signal);
  }
}

/** Makes a snapshot from what the journal and its snapshots hold up to where it was read.
 *  @param synced snapshots that the server has synced
 *  @throws as `Snapshotter.make` */
export async function makeForRoom(
  {
    compaction,
    journal,
    replay,
    logger,
  }: Pick<CampaignRoomDeps, "compaction" | "journal" | "replay" | "logger">,
  synced: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { snapshotter, retention } = compaction;
  const { bytes: journalBytes, bytesMax: journalBytesMax } = await journal.usage();
  const room = { journalBytes, journalBytesMax, cameBytes: 0, isShort: true };
  const order = { untilSeq: replay.position.seq, synced, retention, now: replay.state.at, ...room };
  const { idx, bytes } = await snapshotter.make(order, signal);
  logger.info({ idx, bytes }, "a snapshot was made, so that a full journal can be purged");
}
