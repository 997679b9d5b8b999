// What a leader sees to once a pulse that is no turn's: how the load lies, what room the journal has, whether its
// segment holds what was stored in it, and compaction. Here only the order; each knows when its next look is due,
// and none is waited for.

import type { Compaction } from "../compacting/compaction.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Commits } from "./commits.ts";
import type { JournalClock } from "./journal-clock.ts";
import type { Monitor } from "./monitor.ts";

export interface UpkeepDeps {
  readonly time: JournalClock;
  readonly monitor: Monitor;
  readonly room: JournalRoom;
  readonly commits: Commits;
  /** Undefined: the journal is never compacted. */
  readonly compaction: Compaction | undefined;
}

export class Upkeep {
  readonly #deps: UpkeepDeps;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
  }

  /** To be called at each pulse. */
  look(): void {
    const { time, monitor, room, commits, compaction } = this.#deps;
    monitor.pulse(time.now());
    room.look();
    commits.look();
    compaction?.look(time.now());
  }
}
