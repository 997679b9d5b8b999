// Looks now and then at where the journal begins and ends, for what no append and no reader would meet: records lost
// under an unchanged end, a beginning that somebody removed, a stream that is gone. Whoever runs knows nothing of them,
// and whoever starts would stand before them.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Journal, JournalPosition } from "../../journal/journal.ts";
import { limits } from "../../limits.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import { Lookout } from "../lookout.ts";

export interface JournalWatchDeps {
  readonly journal: Journal;
  readonly readable: ReadableSnapshots;
  readonly clock: Clock;
}

export interface JournalWatchHooks {
  /** Records are lost that a restart would read. Called again for others. */
  readonly onHole: (position: JournalPosition) => void;
  /** The journal begins later than it did, and a snapshot that can be read stands for what is gone. */
  readonly onPurged: (firstSeq: number) => void;
  readonly onDamaged: (error: JournalDamagedError) => void;
}

export class JournalWatch {
  readonly #deps: JournalWatchDeps;
  readonly #hooks: JournalWatchHooks;
  readonly #lookout: Lookout;
  /** What is known and not to be told again; undefined before the first look. */
  #known: JournalPosition | undefined;
  #isOver = false;

  constructor(deps: JournalWatchDeps, hooks: JournalWatchHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#lookout = new Lookout({
      clock: deps.clock,
      everyMs: limits.journalLookMs,
      look: () => this.#look(),
    });
  }

  /** The journal was read through: what is missing now lies before what a restart reads.
   *  @throws UnreachableError, JournalDamagedError */
  async begin(): Promise<void> {
    this.#known = await this.#deps.journal.position();
  }

  /** Asks again when the last answer is old. */
  look(): void {
    if (!this.#isOver) this.#lookout.look();
  }

  stop(): void {
    this.#isOver = true;
  }

  async #look(): Promise<void> {
    try {
      const found = await this.#deps.journal.position();
      const known = this.#known ?? found;
      // Behind another beginning it is not known which of the missing ones were known: one snapshot too many does no
      // harm.
      const before = found.firstSeq === known.firstSeq ? known.missing : 0;
      const isLater = found.firstSeq > Math.max(known.firstSeq, 1);
      const isHole =
        found.missing > before || (isLater && !(await this.#deps.readable.leadsTo(found.firstSeq)));
      this.#known = found;
      if (this.#isOver) return;
      if (isHole) this.#hooks.onHole(found);
      else if (isLater) this.#hooks.onPurged(found.firstSeq);
    } catch (cause) {
      // Out of reach just now: whoever appends or reads says so.
      if (cause instanceof JournalDamagedError && !this.#isOver) this.#hooks.onDamaged(cause);
    }
  }
}
