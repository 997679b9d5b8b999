// Watches the leases of running attempts and held slots, and aborts the work before a lease can expire. So the
// next agent with the task never works at the same time. A lease counts from the sending of the last confirmed
// renewal, which is never later than the leader's own count. One timer serves all leases.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

/** Work under a lease. */
export interface Leased {
  /** The work has not ended. */
  isRunning: boolean;
  /** The work was asked to end. */
  isAborted: boolean;
  /** When the last confirmed renewal was sent, monotonic ms. */
  confirmedAt: number;
}

export interface LeaseWatchDeps<Held extends Leased> {
  readonly clock: Clock;
  readonly leaseTtlMs: () => number;
  readonly held: () => readonly Held[];
  /** The leases are about to expire. Called once for each. */
  readonly onLosing: (losing: readonly Held[]) => void;
}

export class LeaseWatch<Held extends Leased> {
  readonly #deps: LeaseWatchDeps<Held>;
  #isOn = false;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: LeaseWatchDeps<Held>) {
    this.#deps = deps;
  }

  /** Time from the last renewal for which a lease certainly holds. Then its work is aborted. */
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

  /** Must be called when work begins. */
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
