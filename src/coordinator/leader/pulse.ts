// What only time brings a leader: several times in T it looks who was silent, whether anybody hears it (isolation.ts),
// what is due beside its turns, and what is no turn's at all (upkeep.ts). Not here: what is due by the state, which a
// timer of its own brings (due-timer.ts).

import type { Clock, Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Timing } from "../timing.ts";
import type { Commits } from "./commits.ts";
import type { Isolation } from "./isolation.ts";
import type { Presences } from "./presence.ts";
import type { RefusalTally } from "./refusal-tally.ts";
import type { Turns } from "./turns.ts";
import type { Upkeep } from "./upkeep.ts";

export interface PulseDeps {
  readonly timing: Timing;
  readonly state: SwarmState;
  readonly transport: Pick<Transport, "status" | "onStatus">;
  readonly clock: Clock;
  readonly random: Random;
  readonly presences: Presences;
  readonly refusals: RefusalTally;
  readonly turns: Turns;
  readonly commits: Commits;
  readonly isolation: Isolation;
  readonly upkeep: Upkeep;
}

export interface PulseHooks {
  readonly isOver: () => boolean;
  /** Whether it takes requests. */
  readonly isLeading: () => boolean;
  /** The connection is back. */
  readonly onConnected: () => void;
  /** Nobody can reach this leader, which reaches the journal. */
  readonly onDeaf: () => void;
  /** The term cannot go on. */
  readonly onBroken: (cause: unknown) => void;
}

export class Pulse {
  readonly #deps: PulseDeps;
  readonly #hooks: PulseHooks;
  #lastMonotonicMs: number;
  /** What only time brings was not looked at since the last pulse. */
  #isLookDue = false;
  #cancel: (() => void) | undefined;
  #stopStatus: (() => void) | undefined;

  constructor(deps: PulseDeps, hooks: PulseHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#lastMonotonicMs = deps.clock.monotonicMs();
  }

  begin(): void {
    this.#stopStatus = this.#deps.transport.onStatus((status) => {
      if (status !== "connected") return;
      this.#deps.isolation.renew();
      this.#hooks.onConnected();
    });
    this.#tick();
  }

  /** Once a pulse, when a turn can decide what is found: by then, whoever was silent before may have been heard. */
  look(): void {
    const { state, clock, random, presences, refusals, turns, commits } = this.#deps;
    // While what an earlier look found is undecided, finding it again would only pile up.
    if (!this.#isLookDue || turns.hasOwn) return;
    this.#isLookDue = false;
    const overdue = presences.overdue(state, () => random.next());
    const renewal: Command[] = commits.isRenewalDue ? [{ type: "RenewTerm" }] : [];
    turns.addOwn(...overdue, ...refusals.take(clock.monotonicMs()), ...renewal);
  }

  stop(): void {
    this.#stopStatus?.();
    this.#cancel?.();
  }

  /** Whatever throws in here is a bug, and leading on with it would do harm. */
  #tick(): void {
    if (this.#hooks.isOver()) return;
    const { clock, timing, upkeep } = this.#deps;
    try {
      this.#lookWhoHears();
      this.#lookWhatIsDue();
      upkeep.look();
      this.#cancel = clock.after(timing.pulseMs, () => this.#tick());
    } catch (cause) {
      this.#hooks.onBroken(cause);
    }
  }

  /** A process that stood still, or was cut off, heard nobody, nor does who takes no requests any more: whose silence
   *  that was is not known. */
  #lookWhoHears(): void {
    const { state, clock, timing, transport, presences, isolation } = this.#deps;
    const now = clock.monotonicMs();
    const isLate = now - this.#lastMonotonicMs > timing.pulseLateMs + timing.pulseMs;
    const isConnected = transport.status() === "connected";
    this.#lastMonotonicMs = now;
    if (this.#hooks.isLeading() && isolation.isBelieved({ isLate, isConnected })) this.#hooks.onDeaf();
    if (isLate || !isConnected || !this.#hooks.isLeading()) presences.restart(state);
  }

  #lookWhatIsDue(): void {
    const { state, presences, turns, commits } = this.#deps;
    this.#isLookDue = true;
    if (commits.takesTurns) this.look();
    presences.sweep(state);
    if (turns.hasOwn || turns.isHeldBackInVain) turns.schedule();
  }
}
