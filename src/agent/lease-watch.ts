// Watches the leases of running attempts and of held slots: calls out before one could expire, so that whoever the
// task is given to next never works beside us. A lease counts from the sending of the last renewal that was
// confirmed, which is never later than the leader's own count. One timer for all.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

/** What a lease is for. */
export interface Leased {
  /** Somebody works under it. */
  isRunning: boolean;
  /** Whoever does was told to end. */
  isAborted: boolean;
  /** When the last confirmed renewal was sent, monotonic ms. */
  confirmedAt: number;
}

export interface LeaseWatchDeps<Held extends Leased> {
  readonly clock: Clock;
  readonly leaseTtlMs: () => number;
  readonly held: () => readonly Held[];
  /** Their leases are about to run out. Called once for each. */
  readonly onLosing: (losing: readonly Held[]) => void;
}

export class LeaseWatch<Held extends Leased> {
  readonly #deps: LeaseWatchDeps<Held>;
  #isOn = false;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: LeaseWatchDeps<Held>) {
    this.#deps = deps;
  }

  /** How long a lease counts for sure, from its last renewal: then it is called out. */
  get safeMs(): number {
    return this.#deps.leaseTtlMs() * (1 - limits.leaseAbortShare);
  }

  /** Watches until the returned function is called. */
  watch(): () => void {
    this.#isOn = true;
    this.noteRunning();
    return () => {
      this.#isOn = false;
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
    };
  }

  /** To be called when something begins to run. */
  noteRunning(): void {
    if (this.#isOn && this.#cancelTimer === undefined) this.#arm();
  }

  #arm(): void {
    const { clock, held } = this.#deps;
    const earliest = Math.min(
      ...held()
        .filter(isWatched)
        .map(({ confirmedAt }) => confirmedAt),
    );
    if (earliest === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.max(0, earliest + this.safeMs - clock.monotonicMs());
    this.#cancelTimer = clock.after(waitMs, () => this.#look());
  }

  #look(): void {
    this.#cancelTimer = undefined;
    const safeSince = this.#deps.clock.monotonicMs() - this.safeMs;
    const losing = this.#deps.held().filter((held) => isWatched(held) && held.confirmedAt <= safeSince);
    for (const held of losing) held.isAborted = true;
    if (losing.length > 0) this.#deps.onLosing(losing);
    this.noteRunning();
  }
}

function isWatched({ isRunning, isAborted }: Leased): boolean {
  return isRunning && !isAborted;
}
