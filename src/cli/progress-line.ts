// How far a long verb is: one line that is redrawn on a terminal, a line now and then anywhere else.

import { limits } from "../limits.ts";
import type { Output } from "./output.ts";

/** Often enough to look alive. */
const REDRAWS_PER_SECOND = 10;

export class ProgressLine {
  readonly #output: Output;
  readonly #text: () => string;
  #shownAt = performance.now();

  constructor(output: Output, text: () => string) {
    this.#output = output;
    this.#text = text;
  }

  /** Shows the text if it is time. */
  tick(): void {
    const { isNoteTerminal } = this.#output;
    const now = performance.now();
    if (now - this.#shownAt < (isNoteTerminal ? 1_000 / REDRAWS_PER_SECOND : limits.progressLineMs)) return;
    this.#shownAt = now;
    if (isNoteTerminal) this.#output.redraw(this.#text());
    else this.#output.note(this.#text());
  }

  /** The last word: a note that stays. */
  end(): void {
    this.#output.note(this.#text());
  }
}
