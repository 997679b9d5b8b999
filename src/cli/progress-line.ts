// How far a long verb is: one line that is redrawn on a terminal, a line now and then anywhere else.

import { limits } from "../limits.ts";
import type { Output } from "./output.ts";

export class ProgressLine {
  readonly #output: Output;
  readonly #text: () => string;
  readonly #timer: NodeJS.Timeout;
  #shown = "";

  /** Shows `text` from now on, until it is stopped. */
  constructor(output: Output, text: () => string) {
    this.#output = output;
    this.#text = text;
    const everyMs = output.isNoteTerminal ? limits.progressRedrawMs : limits.progressLineMs;
    this.#timer = setInterval(() => this.#show(), everyMs);
  }

  /** The last word is a note that stays. */
  stop(): void {
    clearInterval(this.#timer);
    this.#output.note(this.#text());
  }

  #show(): void {
    const text = this.#text();
    if (this.#output.isNoteTerminal) this.#output.redraw(text);
    else if (text !== this.#shown) this.#output.note(text);
    this.#shown = text;
  }
}
