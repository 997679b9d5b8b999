// Progress of a long verb: one redrawn line on a terminal, otherwise a line from time to time.

import { limits } from "../limits.ts";
import type { Output } from "./output.ts";

export class ProgressLine {
  readonly #output: Output;
  readonly #text: () => string;
  readonly #timer: NodeJS.Timeout;
  #shown = "";

  /** Shows `text` until `stop`. */
  constructor(output: Output, text: () => string) {
    this.#output = output;
    this.#text = text;
    const everyMs = output.isNoteTerminal ? limits.progressRedrawMs : limits.progressLineMs;
    this.#timer = setInterval(() => this.#show(), everyMs);
  }

  /** Prints the final text as a note. */
  stop(): void {
    clearInterval(this.#timer);
    this.#output.note(this.#text());
  }

  /** Ends without a final text; the next output replaces a drawn line. */
  end(): void {
    clearInterval(this.#timer);
  }

  #show(): void {
    const text = this.#text();
    if (this.#output.isNoteTerminal) this.#output.redraw(text);
    else if (text !== this.#shown) this.#output.note(text);
    this.#shown = text;
  }
}
