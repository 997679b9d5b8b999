// Progress of a part: a bar on a terminal, occasional lines elsewhere.

import { Presets, SingleBar } from "cli-progress";

const LINE_MS = 15_000;
const CLEAR_LINE = "\u001b[K";

export class Progress {
  readonly #name: string;
  readonly #total: number;
  readonly #startedAt = performance.now();
  readonly #first: number;
  readonly #bar: SingleBar | undefined;
  #saidMs = 0;

  /** @param done before, when a part continues */
  constructor(name: string, total: number, done: number) {
    this.#name = name;
    this.#total = total;
    this.#first = done;
    if (process.stderr.isTTY !== true) {
      console.error(`${name}: ${done} of ${total} rounds`);
      return;
    }
    const format = `${name} {bar} {value}/{total} rounds{left}`;
    this.#bar = new SingleBar({ format, stream: process.stderr, hideCursor: true }, Presets.shades_classic);
    this.#bar.start(total, done, { left: "" });
  }

  at(done: number): void {
    const left = this.#leftText(done);
    this.#bar?.update(done, { left });
    const isQuiet = performance.now() - this.#saidMs < LINE_MS && done < this.#total;
    if (this.#bar !== undefined || isQuiet) return;
    this.#saidMs = performance.now();
    console.error(`${this.#name}: ${done} of ${this.#total} rounds${left}`);
  }

  /** Above the bar, which the next output redraws. */
  say(sentence: string): void {
    process.stderr.write(this.#bar === undefined ? `${sentence}\n` : `\r${CLEAR_LINE}${sentence}\n`);
  }

  stop(): void {
    this.#bar?.stop();
  }

  /** Assuming the same pace. */
  #leftText(done: number): string {
    const rounds = done - this.#first;
    if (rounds <= 0) return "";
    const seconds = ((performance.now() - this.#startedAt) / rounds / 1_000) * (this.#total - done);
    return `, ${Math.ceil(seconds / 60)} min left`;
  }
}
