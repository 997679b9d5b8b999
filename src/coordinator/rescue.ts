// What a leader does when the journal lost records that a restart would read, or the snapshots that stand for what was
// purged of it, and nobody can put them back: a snapshot of the state in memory stands for them. Until it is durable,
// and the journal has taken one more batch behind it and given it back (read-back.ts), nothing is told that was
// committed since the loss was found.
//
//   none ─begin→ saving ─durable→ proving ─the next batch is found→ none
//     ⇅ doubt, dispel  ↗            │ not found
//   doubting ─begin───┘  saving ◄───┘
//
// While it doubts, turns go on, and what they bring about is held back. While it saves, the leader appends beats and
// nothing else: they change no row of the state, and keep standbys off. A journal that does not keep what it
// acknowledges gets no beats: so the newest snapshot reaches to its end, and whoever starts can go on behind it.
//
// Not here: the steps from one phase to the next (rescuer.ts).

import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { TrimReason } from "../core/event.ts";
import { InvariantError, type JournalDamagedError, WaggleError } from "../errors.ts";
import type { Folded } from "../journal/replay.ts";
import type { Manifest } from "../journal/snapshot/manifest.ts";
import { snapshotNow } from "../journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";

/** `unreadable`: the journal acknowledged records and does not find them. `snapshots-lost`: the journal is whole,
 *  and nothing that can be read leads to where it begins. */
export type LossReason = Extract<TrimReason, "hole" | "tail-lost"> | "unreadable" | "snapshots-lost";

export interface RescueDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

type Phase = "none" | "doubting" | "saving" | "proving";

export class Rescue {
  readonly #deps: RescueDeps;
  readonly #snapshots: SnapshotStore | undefined;
  #phase: Phase = "none";
  #reason: LossReason = "hole";
  #untold: (() => void)[] = [];
  readonly #onSaved: (manifest: Manifest) => void;
  #isOver = false;

  /** @param snapshots absent where there are none: then nothing can be rescued
   *  @param onSaved called with each snapshot that is durable */
  constructor(deps: RescueDeps, snapshots: SnapshotStore | undefined, onSaved: (manifest: Manifest) => void) {
    this.#deps = deps;
    this.#snapshots = snapshots;
    this.#onSaved = onSaved;
  }

  get phase(): Phase {
    return this.#phase;
  }

  get reason(): LossReason {
    return this.#reason;
  }

  /** Whether there is anywhere to save to. */
  get canSave(): boolean {
    return this.#snapshots !== undefined;
  }

  /** Whether the state must not change. */
  get holdsTurns(): boolean {
    return this.#phase === "saving" || this.#phase === "proving";
  }

  /** Whether a beat does no harm meanwhile, and shows that the leader lives. */
  get takesBeats(): boolean {
    return this.#phase === "saving" && (this.#reason === "hole" || this.#reason === "snapshots-lost");
  }

  /** The journal may have lost what it acknowledged: nothing is told until that is known. */
  doubt(): void {
    if (this.#phase === "none") this.#phase = "doubting";
  }

  /** It has not: tells what was held back, if it was doubted. */
  dispel(): void {
    if (this.#phase === "doubting") this.#release();
  }

  /** @throws JournalDamagedError where there is nowhere to save to */
  begin(reason: LossReason, lost: JournalDamagedError): void {
    if (this.#snapshots === undefined) throw lost;
    this.#deps.logger.error(
      { err: lost },
      `${whatIsLost[reason]}: the state is saved as a snapshot, and nothing is answered until it is`,
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
        this.#onSaved(await snapshotNow(folded, { store: snapshots, clock, logger }));
        this.#phase = "proving";
        return folded;
      } catch (cause) {
        if (!(cause instanceof WaggleError) || cause instanceof InvariantError) throw cause;
        logger.error(
          { err: cause },
          "the state could not be saved: it is tried again, and nothing is answered",
        );
        await pause(clock, limits.rescueRetryMs);
      }
    }
  }

  /** All is safe: tells what was held back. */
  end(): void {
    this.#deps.logger.warn("the state is saved: answers go on");
    this.#release();
  }

  stop(): void {
    this.#isOver = true;
  }

  #release(): void {
    this.#phase = "none";
    for (const run of this.#untold.splice(0)) run();
  }
}

const lostRecords = "the journal lost records";

const whatIsLost: Readonly<Record<LossReason, string>> = {
  hole: lostRecords,
  "tail-lost": lostRecords,
  unreadable: lostRecords,
  "snapshots-lost": "no snapshot can be read of what was purged from the journal",
};
