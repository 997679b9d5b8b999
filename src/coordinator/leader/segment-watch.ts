// Inspects whether a leader's segment still holds all stored batches, and whether earlier segments exist: once per T,
// after each reconnection, and after each late acknowledgement before any message leaves. Without inspection a leader
// could append to a damaged segment for ever, and no standby could follow. A finding counts only when a second look
// confirms it, because a server that takes over may not know its newest records yet.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";
import { claimantOf, type Inspection, inspect } from "../../journal/inspect.ts";
import { type Journal, mayLag } from "../../journal/journal.ts";
import { findLive, pathTo } from "../../journal/live.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import type { Timing } from "../timing.ts";

export interface SegmentWatchDeps {
  /** Id of the coordinator's session. */
  readonly session: string;
  readonly journal: Journal;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** The last committed record of the leader's segment. */
export interface Watched {
  readonly segment: number;
  readonly position: number;
  readonly recordHash: string;
  /** A batch waits for the look, and counts only if no other coordinator claimed a segment above. */
  readonly isLate: boolean;
}

export interface SegmentWatchHooks {
  /** The record to look for now; undefined while the segment is being changed. */
  readonly watched: () => Watched | undefined;
  /** The connection broke: nothing is to be sent or answered until `onWhole`. */
  readonly onReconnected: () => void;
  /** The segment is whole, and has no successor. @param startedMonotonicMs the begin of the look */
  readonly onWhole: (startedMonotonicMs: number) => void;
  /** Another coordinator sealed the segment, opened a newer segment, or claimed the number of a lost segment. */
  readonly onSuperseded: () => void;
  readonly onFaulty: (error: JournalDamagedError) => void;
  readonly onBroken: (cause: unknown) => void;
}

type Finding = Inspection | "damaged-before" | "claimed";

export class SegmentWatch {
  readonly #deps: SegmentWatchDeps;
  readonly #hooks: SegmentWatchHooks;
  readonly #ending = new AbortController();
  readonly #forget: () => void;
  #lookedMonotonicMs: number;
  #isLooking = false;
  /** Counts reconnections and late acknowledgements. A look during which the count changes proves nothing. */
  #interruptions = 0;

  constructor(deps: SegmentWatchDeps, hooks: SegmentWatchHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#lookedMonotonicMs = deps.clock.monotonicMs();
    this.#forget = deps.journal.onReconnected(() => {
      hooks.onReconnected();
      this.lookAnew();
    });
  }

  /** Looks when the last look is older than T. */
  look(): void {
    const { clock, timing, journal } = this.#deps;
    if (journal.sharable && clock.monotonicMs() - this.#lookedMonotonicMs >= timing.timeoutMs)
      void this.#look();
  }

  /** Looks now, unless a look is under way. */
  lookSoon(): void {
    void this.#look();
  }

  /** Looks now. A look under way proves nothing. */
  lookAnew(): void {
    this.#interruptions += 1;
    void this.#look();
  }

  stop(): void {
    this.#ending.abort();
    this.#forget();
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#lookUntilAnswered();
    } catch (cause) {
      if (!this.#ending.signal.aborted) this.#hooks.onBroken(cause);
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookUntilAnswered(): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#ending;
    for (let faults = 0; !signal.aborted; ) {
      const watched = this.#hooks.watched();
      if (watched === undefined) return;
      const interruptions = this.#interruptions;
      const startedMonotonicMs = clock.monotonicMs();
      const found = await this.#inspect(watched);
      if (signal.aborted) return;
      this.#lookedMonotonicMs = clock.monotonicMs();
      const isOfNow = this.#hooks.watched()?.segment === watched.segment;
      if (interruptions !== this.#interruptions || !isOfNow) continue;
      if (found !== "unreachable") {
        if (found === "superseded") return this.#hooks.onSuperseded();
        if (found === "same" || found === "longer") return this.#hooks.onWhole(startedMonotonicMs);
        faults += 1;
        if (faults >= this.#faultLooksMin)
          return this.#hooks.onFaulty(
            new JournalDamagedError(
              `${faultText(watched.segment, found)}: a restart cannot read up to record ${watched.position}`,
            ),
          );
      }
      await pause(clock, limits.faultLookMs, signal);
    }
  }

  get #faultLooksMin(): number {
    return mayLag(this.#deps.journal) ? limits.faultLooksMin : limits.faultLooksAloneMin;
  }

  async #inspect({
    segment,
    position,
    recordHash,
    isLate,
  }: Watched): Promise<Finding | "superseded" | "unreachable"> {
    const { journal, session } = this.#deps;
    try {
      const { live, numbers } = await findLive(journal);
      if (live !== undefined && live.number > segment) return "superseded";
      if (isLate && (await this.#isClaimedAbove(segment, numbers))) return "claimed";
      // A power loss may take a segment, and another coordinator may claim its number again.
      const claimant = await claimantOf(journal.segment(segment));
      if (claimant !== undefined && claimant !== session) return "superseded";
      const { found, isSealed } = await inspect(journal.segment(segment), { position, recordHash });
      if (isSealed) return "superseded";
      if (found !== "same" && found !== "longer") return found;
      if (live?.number !== segment) return "damaged"; // its `Opened` cannot be read
      return (await this.#isReadableTo(live)) ? found : "damaged-before";
    } catch (error) {
      if (error instanceof UnreachableError) return "unreachable";
      throw error;
    }
  }

  async #isClaimedAbove(segment: number, numbers: readonly number[]): Promise<boolean> {
    const { journal, session } = this.#deps;
    for (const number of numbers.filter((each) => each > segment)) {
      const claimant = await claimantOf(journal.segment(number));
      if (claimant !== undefined && claimant !== session) return true;
    }
    return false;
  }

  /** Whether the earlier segments exist that a restart reads, from the newest base on. */
  async #isReadableTo(live: LiveSegment): Promise<boolean> {
    const { journal } = this.#deps;
    try {
      const path = await pathTo(journal, live, ({ opened }) => opened.base !== undefined);
      for (const { number } of path.slice(0, -1))
        if (((await journal.segment(number).end())?.missing ?? 1) > 0) return false;
      return true;
    } catch (error) {
      if (error instanceof JournalDamagedError) return false;
      throw error;
    }
  }
}

function faultText(segment: number, found: Finding): string {
  switch (found) {
    case "damaged-before":
      return `a segment before segment ${segment} is damaged or missing`;
    case "claimed":
      return `another coordinator claimed a segment above segment ${segment}`;
    default:
      return `segment ${segment} is ${found}`;
  }
}
