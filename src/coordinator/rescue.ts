// What a leader does when the journal lost records that a restart would read, and nobody can put back: a snapshot of the
// state in memory stands for them. Until it is durable, and the journal has taken one more batch behind it, nothing is
// told that was committed since the loss was found.
//
//   none ─begin→ saving ─durable→ proving ─the next commit→ none
//
// While it saves, the leader appends beats and nothing else: they change no row of the state, and keep standbys off.

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { TrimReason } from "../core/event.ts";
import { InvariantError, type JournalDamagedError, WaggleError } from "../errors.ts";
import type { Folded } from "../journal/replay.ts";
import { snapshotNow } from "../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import { limits } from "../limits.ts";

export type LossReason = Extract<TrimReason, "hole" | "tail-lost">;

export interface RescueDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = "none" | "saving" | "proving";

export class Rescue {
  readonly #deps: RescueDeps;
  readonly #snapshots: SnapshotStore | undefined;
  #phase: Phase = "none";
  #reason: LossReason = "hole";
  #untold: (() => void)[] = [];
  #isOver = false;

  /** @param snapshots absent where there are none: then nothing can be rescued */
  constructor(deps: RescueDeps, snapshots: SnapshotStore | undefined) {
    this.#deps = deps;
    this.#snapshots = snapshots;
  }

  get phase(): Phase {
    return this.#phase;
  }

  get reason(): LossReason {
    return this.#reason;
  }

  /** @throws JournalDamagedError where there is nowhere to save to */
  begin(reason: LossReason, lost: JournalDamagedError): void {
    if (this.#snapshots === undefined) throw lost;
    this.#deps.logger.error(
      { err: lost },
      "the journal lost records: the state is saved as a snapshot, and nothing is answered until it is",
    );
    this.#phase = "saving";
    this.#reason = reason;
  }

  /** Tells now, or once all is safe. */
  tell(run: () => void): void {
    if (this.#phase === "none") run();
    else this.#untold.push(run);
  }

  /** Resolves when the state is durable, however often that fails, with what was saved.
   *  @param fold gives the state at rest, anew for each try: beats went on since the last one
   *  @throws whatever no further try would mend */
  async save(fold: () => Promise<Folded>): Promise<Folded> {
    const { clock, logger } = this.#deps;
    const snapshots = this.#snapshots;
    for (;;) {
      const folded = await fold();
      if (snapshots === undefined || this.#isOver) return folded;
      try {
        await snapshotNow(folded, { store: snapshots, clock, logger });
        this.#phase = "proving";
        return folded;
      } catch (cause) {
        if (!(cause instanceof WaggleError) || cause instanceof InvariantError) throw cause;
        logger.error(
          { err: cause },
          "the state could not be saved: it is tried again, and nothing is answered",
        );
        await new Promise<void>((resolve) => clock.after(limits.rescueRetryMs, resolve));
      }
    }
  }

  /** All is safe: tells what was held back. */
  end(): void {
    this.#phase = "none";
    this.#deps.logger.warn("the state is saved: answers go on");
    for (const run of this.#untold.splice(0)) run();
  }

  stop(): void {
    this.#isOver = true;
  }
}
