// What a leader may do and say while its journal may have lost records, or the snapshots that stand for what was purged
// of it: until the state that stands for them is durable, and the journal has taken one more batch behind it and given
// it back (read-back.ts), nothing is told that was committed since the loss was found.
//
//   lifted ─impose→ saving ─saved→ proving ─lift→ lifted
//     ⇅ doubt, dispel  ↗ ▲            │
//   doubting ─impose──┘  └───impose───┘ the next batch was not found
//
// While it doubts, turns go on, and what they bring about is held back. While it saves, the leader appends beats and
// nothing else: they change no row of the state, and keep standbys off. A journal that does not keep what it
// acknowledges gets no beats: so the newest snapshot reaches to its end, and whoever starts can go on behind it.
//
// Not here: what takes it from one phase to the next (rescue.ts).

type Phase = "lifted" | "doubting" | "saving" | "proving";

export class Embargo {
  #phase: Phase = "lifted";
  #mayBeat = false;
  #untold: (() => void)[] = [];

  /** Whether whatever is committed may be told. */
  get isLifted(): boolean {
    return this.#phase === "lifted";
  }

  /** Whether the state must not change. */
  get holdsTurns(): boolean {
    return this.#phase === "saving" || this.#phase === "proving";
  }

  /** Whether a beat does no harm meanwhile, and shows that the leader lives. */
  get takesBeats(): boolean {
    return this.#phase === "saving" && this.#mayBeat;
  }

  /** The journal may have lost what it acknowledged: nothing is told until that is known. */
  doubt(): void {
    if (this.#phase === "lifted") this.#phase = "doubting";
  }

  /** It has not: tells what was held back, if it was doubted. */
  dispel(): void {
    if (this.#phase === "doubting") this.lift();
  }

  /** It has: the state is to be saved. @param mayBeat whether the journal takes beats meanwhile, and keeps them */
  impose({ mayBeat }: { readonly mayBeat: boolean }): void {
    this.#phase = "saving";
    this.#mayBeat = mayBeat;
  }

  /** The state is durable: whether the journal goes on behind it is to be proven. */
  saved(): void {
    this.#phase = "proving";
  }

  /** All is safe: tells what was held back. */
  lift(): void {
    this.#phase = "lifted";
    for (const run of this.#untold.splice(0)) run();
  }

  /** Tells now, or once all is safe. */
  tell(run: () => void): void {
    if (this.isLifted) run();
    else this.#untold.push(run);
  }
}
