// One attempt to lead: appends `TermStarted` behind the last record that was read, and tells whether it stands there.
// Once it does, the copy of the journal is folded up to and with it, so that whoever leads has applied every record
// before its own term, whatever else landed meanwhile. Losing changes nothing: the copy is what it was.

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import type { WaggleError } from "../../errors.ts";
import { batchIndex, type Instant, type Term } from "../../ids.ts";
import { encodeBatch, hashOf } from "../../journal/batch.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { ChainPosition } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { EventOf } from "../../state/event.ts";
import type { Announcements } from "../announcements.ts";
import { Committer } from "../append/committer.ts";
import { UnacknowledgedLog } from "../append/unacknowledged-log.ts";
import { tellKeptOut, tellRefilled, tellRefused } from "../repair/lost-end-log.ts";
import type { SavedCheck } from "../repair/saved-end.ts";
import type { Timing } from "../timing.ts";
import { CandidateCheck } from "./candidate-check.ts";
import { type FollowedTime, JournalClock } from "./journal-clock.ts";

const CAMPAIGN_ID_LENGTH = 12;

export interface CampaignDeps {
  /** Of this coordinator; stands in the journal as the term's leader. */
  readonly id: string;
  /** T of the term. */
  readonly timeoutMs: number;
  /** Of the term before it. */
  readonly timing: Timing;
  readonly announcements: Announcements;
  readonly journal: Journal;
  /** Up to where the journal was read, and the last batch's time. */
  readonly position: ChainPosition;
  readonly lastAt: Instant;
  readonly recent: RecentRecords;
  readonly followed: FollowedTime;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Of the committer. */
  readonly isSaved: SavedCheck | undefined;
}

/** A term that was won. */
export interface Victory {
  /** What the journal holds behind the position: dead records, and last its own. */
  readonly records: readonly JournalRecord[];
  readonly started: EventOf<"TermStarted">;
  readonly at: Instant;
  readonly time: JournalClock;
  /** When the append was sent that proved it. */
  readonly sentMonotonicMs: number;
}

export interface CampaignHooks {
  readonly onWon: (victory: Victory) => void;
  /** Another record took the place. */
  readonly onLost: () => void;
  /** There is no room for it: it is tried again, until it is abandoned. */
  readonly onFull: () => void;
  readonly onHalted: (error: WaggleError) => void;
}

export class Campaign {
  readonly #committer: Committer;

  /** Appends at once. Calls `onFull` once at most, and one of the others once, unless it is abandoned. */
  constructor(deps: CampaignDeps, hooks: CampaignHooks) {
    const { id, timeoutMs, position, random, logger } = deps;
    const time = journalClockOf(deps);
    const at = time.now();
    const journal = position.journal || random.id(16);
    const term = (position.term + 1) as Term;
    const idx = batchIndex(position.idx + 1);
    const campaign = random.id(CAMPAIGN_ID_LENGTH);
    const started = { type: "TermStarted", term, leader: id, campaign, timeoutMs } as const;
    const bytes = encodeBatch({ journal, term, idx, prev: position.hash, at }, [JSON.stringify(started)]);
    const dead: JournalRecord[] = [];
    const unacknowledged = new UnacknowledgedLog(deps);
    const giveUp = () => {
      this.#committer.stop();
      hooks.onLost();
    };
    const rivals = new CandidateCheck({ ...deps, held: position, isOver: () => this.#committer.isOver });
    this.#committer = new Committer(
      { ...deps, rivals, lineMiss: rivals.miss },
      {
        onCommitted: (batch, stored) => {
          this.#committer.stop();
          if (stored === undefined) return; // only after `continueBehind`, which nobody calls here
          const { seq, sentMonotonicMs } = stored;
          const records = [...dead, { seq, bytes: batch.bytes }];
          hooks.onWon({ records, started, at, time, sentMonotonicMs });
        },
        onDead: (record) => dead.push(record), // whoever folds them tells of them
        onRefilled: (records) => tellRefilled(logger, records),
        // A standby waits for who holds it, and goes on behind what is left where nobody does.
        onTailLost: giveUp,
        onTailKeptOut: (cause) => tellKeptOut(logger, cause),
        onPlaceRefused: (error) => tellRefused(logger, error),
        onPlaceLost: giveUp, // others may have read it: a term that nobody leads
        onDeposed: hooks.onLost,
        onUnacknowledged: (cause, sentMonotonicMs) => unacknowledged.tell(cause, sentMonotonicMs),
        onHalted: hooks.onHalted,
        onFull: (full) => {
          if (full === undefined) return;
          logger.error({ reason: full.message }, "the journal is full: nobody can lead until there is room");
          hooks.onFull();
        },
      },
    );
    this.#committer.append({ journal, term, idx, bytes, hash: hashOf(bytes), startsTerm: true });
    const unledMs = at - deps.lastAt;
    if (position.idx > 0 && unledMs > limits.clockSkewMsMax)
      logger.info(
        { unledMs },
        "nobody led for so long, by this machine's clock: what was due then is due now",
      );
  }

  /** No further word of it. What was sent may stand in the journal all the same: a term that nobody leads. */
  abandon(): void {
    this.#committer.stop();
  }
}

function journalClockOf({ clock, lastAt, followed, logger }: CampaignDeps): JournalClock {
  return new JournalClock(clock, { lastAt, followed }, (skewMs) =>
    logger.warn({ skewMs: Math.round(skewMs) }, "the wall clock and journal time differ: taken up slowly"),
  );
}
