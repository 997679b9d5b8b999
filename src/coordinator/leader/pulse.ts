// What only time brings a leader: several times in T it looks who was silent, what is due beside its turns, and whether
// anybody hears it. Not here: what is due by the state, which a timer of its own brings (due-timer.ts).
//
// A leader whose connection to agents and clients is away for long, and which renews its term in the journal all the
// while, keeps everybody who can be reached from leading: it steps down
// (docs/adr/0017-a-leader-that-nobody-can-reach-steps-down.md).

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import type { SwarmState } from "../../core/state.ts";
import { Endurance } from "../../endurance.ts";
import type { Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Announcements } from "../announcements.ts";
import type { Compactor } from "../compaction/compactor.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Timing } from "../timing.ts";
import type { Commits } from "./commits.ts";
import type { JournalClock } from "./journal-clock.ts";
import type { Monitor } from "./monitor.ts";
import type { Presences } from "./presence.ts";
import type { RefusalTally } from "./refusal-tally.ts";
import type { Turns } from "./turns.ts";

export interface PulseDeps {
  readonly term: Term;
  readonly timing: Timing;
  readonly state: SwarmState;
  readonly time: JournalClock;
  readonly journal: Pick<Journal, "sharable">;
  readonly transport: Pick<Transport, "status" | "onStatus">;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly announcements: Announcements;
  readonly room: JournalRoom;
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly refusals: RefusalTally;
  readonly turns: Turns;
  readonly commits: Commits;
  readonly compactor: Compactor | undefined;
}

export interface PulseHooks {
  readonly isOver: () => boolean;
  /** Whether it takes requests. */
  readonly isLeading: () => boolean;
  /** The connection is back. */
  readonly onConnected: () => void;
  /** Nobody can reach this leader, which reaches the journal. */
  readonly onDeaf: () => void;
}

export class Pulse {
  readonly #deps: PulseDeps;
  readonly #hooks: PulseHooks;
  /** Nobody can reach it, and it reaches the journal. */
  readonly #deafness: Endurance;
  #lastMonotonicMs: number;
  /** What only time brings was not looked at since the last pulse. */
  #isLookDue = false;
  #cancel: (() => void) | undefined;
  #stopStatus: (() => void) | undefined;

  constructor(deps: PulseDeps, hooks: PulseHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#lastMonotonicMs = deps.clock.monotonicMs();
    this.#deafness = new Endurance(deps.clock, deps.timing.deafMs);
  }

  begin(): void {
    this.#stopStatus = this.#deps.transport.onStatus((status) => {
      if (status !== "connected") return;
      this.#deafness.renew();
      this.#hooks.onConnected();
    });
    this.#beat();
  }

  /** Once a pulse, when a turn can decide what is found: by then, whoever was silent before may have been heard. */
  look(): void {
    const { state, clock, random, presences, refusals, turns } = this.#deps;
    // While what an earlier look found is undecided, finding it again would only pile up.
    if (!this.#isLookDue || turns.hasOwn) return;
    this.#isLookDue = false;
    const now = clock.monotonicMs();
    const overdue = presences.overdue(state, () => random.next());
    turns.addOwn(...overdue, ...refusals.take(now), ...this.#renewal(now));
  }

  stop(): void {
    this.#stopStatus?.();
    this.#cancel?.();
  }

  #beat(): void {
    if (this.#hooks.isOver()) return;
    const { state, time, timing, clock, transport, presences, monitor, room, announcements } = this.#deps;
    const { turns, commits, compactor } = this.#deps;
    const now = clock.monotonicMs();
    const { pulseMs, pulseLateMs, timeoutMs } = timing;
    const isLate = now - this.#lastMonotonicMs > pulseLateMs + pulseMs;
    const isConnected = transport.status() === "connected";
    this.#lookWhoHears({ isLate, isConnected });
    if (isLate || !isConnected) presences.restart(state);
    if (!isConnected) commits.lookSoon(); // once it is: the server may have lost something
    this.#lastMonotonicMs = now;
    if (commits.takesBeats && this.#renewal(now).length > 0) turns.runBeat();
    this.#isLookDue = true;
    if (commits.takesTurns) this.look();
    presences.sweep(state);
    monitor.pulse(time.now());
    if (turns.hasOwn || turns.isHeldBackInVain) turns.schedule();
    room.look();
    if (announcements.areSnapshotsMissed({ now, withinMs: timeoutMs })) compactor?.snapshotsMissed();
    commits.look();
    compactor?.look(time.now());
    this.#cancel = clock.after(pulseMs, () => this.#beat());
  }

  #lookWhoHears({ isLate, isConnected }: { readonly isLate: boolean; readonly isConnected: boolean }): void {
    const { term, journal, commits, logger, timing } = this.#deps;
    const isDeaf = !isConnected && commits.isTrusted && journal.sharable;
    if (isLate || !isDeaf) return this.#deafness.renew();
    if (!this.#hooks.isLeading() || !this.#deafness.isBelieved()) return;
    logger.error(
      { term, deafMs: timing.deafMs },
      "nobody can reach this coordinator, which reaches the journal: it ends its term, so that another may lead. Look why its connection to the server does not come back",
    );
    this.#hooks.onDeaf();
  }

  /** An idle leader shows that it lives, where somebody stands by. */
  #renewal(now: number): Command[] {
    const { timing, commits, journal } = this.#deps;
    const isIdle = commits.isSettled && now - commits.appendedMonotonicMs >= timing.beatMs - timing.pulseMs;
    return journal.sharable && isIdle ? [{ type: "RenewTerm" }] : [];
  }
}
