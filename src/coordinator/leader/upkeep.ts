// What a leader sees to once a pulse that is no turn's: how the load lies, what room the journal has, whether it keeps
// what it acknowledged, and its snapshots. Here only the order; each knows when its next look is due, and none is
// waited for.

import type { Clock } from "../../clock.ts";
import type { Announcements } from "../announcements.ts";
import type { Compactor } from "../compaction/compactor.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Timing } from "../timing.ts";
import type { Commits } from "./commits.ts";
import type { JournalClock } from "./journal-clock.ts";
import type { Monitor } from "./monitor.ts";

export interface UpkeepDeps {
  readonly timing: Timing;
  readonly time: JournalClock;
  readonly clock: Clock;
  readonly monitor: Monitor;
  readonly room: JournalRoom;
  /** Of the other coordinators. */
  readonly announcements: Announcements;
  readonly commits: Commits;
  /** Absent where the journal is never cut. */
  readonly compactor: Compactor | undefined;
}

export class Upkeep {
  readonly #deps: UpkeepDeps;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
  }

  /** To be called at each pulse. */
  look(): void {
    const { time, monitor, room, commits, compactor } = this.#deps;
    monitor.pulse(time.now());
    room.look();
    if (this.#areSnapshotsMissed) compactor?.snapshotsMissed();
    commits.look();
    compactor?.look(time.now());
  }

  get #areSnapshotsMissed(): boolean {
    const { announcements, clock, timing } = this.#deps;
    return announcements.areSnapshotsMissed({ now: clock.monotonicMs(), withinMs: timing.timeoutMs });
  }
}
