// A leader's periodic work, several times in T. It looks for silent agents, for due commands and for isolation
// (isolation.ts). It updates the monitor, the journal's room, the inspection of the segment, and compaction. Not here:
// timers of the state (turns.ts).

import type { Clock, Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import type { RefusalTally } from "../../requests/intake.ts";
import type { Presences } from "../../requests/presence.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Compaction } from "../compacting/compaction.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Timing } from "../timing.ts";
import type { Commits } from "./commits.ts";
import type { Isolation } from "./isolation.ts";
import type { JournalClock } from "./journal-clock.ts";
import type { Monitor } from "./monitor.ts";
import type { Turns } from "./turns.ts";

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
  readonly time: JournalClock;
  readonly monitor: Monitor;
  readonly room: JournalRoom;
  /** Undefined: the journal is never compacted. */
  readonly compaction: Compaction | undefined;
}

export interface PulseHooks {
  readonly isOver: () => boolean;
  /** Whether requests are taken. */
  readonly isLeading: () => boolean;
  /** The connection is back. */
  readonly onConnected: () => void;
  /** The leader reaches the journal, and no agent or client reaches the leader. */
  readonly onIsolated: () => void;
  /** The term cannot go on. */
  readonly onBroken: (cause: unknown) => void;
}

export class Pulse {
  readonly #deps: PulseDeps;
  readonly #hooks: PulseHooks;
  #lastMonotonicMs: number;
  /** No look was taken since the last pulse. */
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

  /** Once per pulse, when a turn can decide: an agent that was silent at the pulse may have been heard by then. */
  look(): void {
    const { state, clock, random, presences, refusals, turns, commits } = this.#deps;
    // The same commands would pile up while an earlier look is undecided.
    if (!this.#isLookDue || turns.hasOwn) return;
    this.#isLookDue = false;
    const overdue = presences.overdue(state, () => random.next());
    const heartbeat: Command[] = commits.isHeartbeatDue ? [{ type: "RenewTerm" }] : [];
    turns.addOwn(...overdue, ...refusals.take(clock.monotonicMs()), ...heartbeat);
  }

  stop(): void {
    this.#stopStatus?.();
    this.#cancel?.();
  }

  /** An error in here is a bug, and leading on would do harm. */
  #tick(): void {
    if (this.#hooks.isOver()) return;
    const { clock, timing, time, monitor, room, commits, compaction } = this.#deps;
    try {
      this.#lookForSilence();
      this.#lookForDue();
      const now = time.now();
      monitor.pulse(now);
      room.look();
      commits.look();
      compaction?.look(now);
      this.#cancel = clock.after(timing.pulseMs, () => this.#tick());
    } catch (cause) {
      this.#hooks.onBroken(cause);
    }
  }

  /** A coordinator hears no agent while its process stalls, while it is cut off, or after it closed its subjects.
   *  The silence then proves nothing about agents. */
  #lookForSilence(): void {
    const { state, clock, timing, transport, presences, isolation } = this.#deps;
    const now = clock.monotonicMs();
    const isLate = now - this.#lastMonotonicMs > timing.pulseLateMs + timing.pulseMs;
    const isConnected = transport.status() === "connected";
    this.#lastMonotonicMs = now;
    if (this.#hooks.isLeading() && isolation.isBelieved({ isLate, isConnected })) this.#hooks.onIsolated();
    if (isLate || !isConnected || !this.#hooks.isLeading()) presences.restart(state);
  }

  #lookForDue(): void {
    const { state, presences, turns, commits } = this.#deps;
    this.#isLookDue = true;
    if (commits.takesTurns) this.look();
    presences.sweep(state);
    if (turns.hasOwn || turns.isHeldBackInVain) turns.schedule();
  }
}
