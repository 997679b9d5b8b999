// A coordinator's stand for election: one campaign (campaign.ts), and what comes of it but the term itself, which is
// for its owner (coordinator.ts).
//
//   won                              → says so
//   lost                             → stands by
//   no room ─ somebody says that it  → left to that one to lead and to make room: stands by, and sees to it that there
//           │ leads                    is what room is made with
//           └ nobody does            → makes room meanwhile (campaign-room.ts), where there are snapshots; where what
//                                      room is made with cannot be read, saves what was folded, and stands by

import type { JournalDamagedError, WaggleError } from "../../errors.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Compaction } from "../compaction/compactor.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import { Campaign, type CampaignDeps, type Victory } from "../leader/campaign.ts";
import { savedCheck } from "../repair/saved-end.ts";
import { CampaignRoom, makeForRoom } from "./campaign-room.ts";
import type { Follower } from "./follower.ts";

export interface CandidacyDeps
  extends Pick<
    CampaignDeps,
    "id" | "timeoutMs" | "announcements" | "journal" | "clock" | "random" | "logger"
  > {
  /** Absent where there are no snapshots: then no room is made. */
  readonly compaction?: Compaction;
  readonly readable: ReadableSnapshots;
  readonly transport: Pick<Transport, "onStatus">;
  /** Stands by no more, and goes on where this one is not elected. */
  readonly follower: Follower;
}

/** One of them is called at most, once. */
export interface CandidacyHooks {
  readonly onWon: (victory: Victory) => void;
  /** Called before the follower goes on. */
  readonly onNotElected: () => void;
  readonly onHalted: (error: WaggleError) => void;
}

export class Candidacy {
  readonly #deps: CandidacyDeps;
  readonly #hooks: CandidacyHooks;
  readonly #campaign: Campaign;
  #room: CampaignRoom | undefined;

  /** Campaigns at once. */
  constructor(deps: CandidacyDeps, hooks: CandidacyHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    const { copy, time, timing } = deps.follower;
    const { replay, recent } = copy;
    this.#campaign = new Campaign(
      {
        ...deps,
        timing,
        position: replay.position,
        lastAt: replay.state.at,
        recent,
        followed: time,
        isSaved: savedCheck(deps),
      },
      {
        onWon: (victory) => {
          this.abandon();
          hooks.onWon(victory);
        },
        onLost: () => this.#lost(),
        onFull: () => this.#foundNoRoom(),
        onHalted: hooks.onHalted,
      },
    );
  }

  /** No further word of it, and no more room is made. What was sent may stand in the journal all the same: a term that
   *  nobody leads. Idempotent. */
  abandon(): void {
    this.#campaign.abandon();
    this.#room?.stop();
  }

  #lost(): void {
    this.#notElected();
    this.#deps.follower.standBy();
  }

  #notElected(): void {
    this.abandon();
    this.#deps.logger.info("not elected");
    this.#hooks.onNotElected();
    this.#deps.follower.foldHeld();
  }

  // --- a journal that has no room for it ------------------------------------------------------------

  #foundNoRoom(): void {
    const { announcements, follower } = this.#deps;
    if (announcements.isLed(follower.copy.replay.position.term, follower.lately)) this.#leaveToLeader();
    else this.#makeRoom();
  }

  /** Who leads is left to lead and to make room, as by a standby, which makes sure that there is what room is made
   *  with; nothing of the campaign was stored. */
  #leaveToLeader(): void {
    const { compaction, journal, logger, follower } = this.#deps;
    const { replay } = follower.copy;
    this.#lost();
    if (compaction === undefined) return;
    void follower.saveWhereLost((signal) => makeForRoom({ compaction, journal, replay, logger }, [], signal));
  }

  #makeRoom(): void {
    const { compaction, follower } = this.#deps;
    if (compaction === undefined) return;
    this.#room = new CampaignRoom({
      ...this.#deps,
      compaction,
      replay: follower.copy.replay,
      onFound: (found) => follower.copy.sawSnapshots(found),
      onLost: (lost) => this.#lacksRoom(lost),
    });
  }

  /** Nobody could make room from what the journal and its snapshots hold still: what this one has folded stands for
   *  that, and it campaigns again once it is saved. */
  #lacksRoom(lost: JournalDamagedError): void {
    this.#notElected();
    void this.#deps.follower.saveFolded(lost);
  }
}
