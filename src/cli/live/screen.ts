// The whole screen of a terminal: keys come in one by one, frames go out. `close` gives the terminal back as it was.
// Lines are cut at the right edge by the terminal itself, so a frame of an old size spoils nothing after a resize.

import { emitKeypressEvents, type Interface } from "node:readline";
import { limits } from "../../limits.ts";
import type { OutputStream, Shell } from "../shell.ts";

export interface Key {
  /** `a`, `up`, `return`, `escape`, `pagedown`; undefined for a character without a name, such as `/`. */
  readonly name: string | undefined;
  /** The typed character; undefined for keys without one. */
  readonly text: string | undefined;
  readonly ctrl: boolean;
  readonly shift: boolean;
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

type ScreenStream = Required<Pick<OutputStream, "on" | "off">> & OutputStream;
type KeyStream = Shell["stdin"] & Required<Pick<Shell["stdin"], "setRawMode">>;

const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const PLAIN = "\u001b[0m";
const CLEAR_BELOW = "\u001b[J";

/** Whether keys can be read and frames be drawn. */
export function hasScreen({ stdin, stdout, env }: Shell): boolean {
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true && stdin.setRawMode !== undefined;
  return isTerminal && stdout.off !== undefined && env["TERM"] !== "dumb";
}

export class Screen {
  readonly #stdin: KeyStream;
  readonly #stdout: ScreenStream;
  readonly #onKey: (text: string | undefined, key: Partial<Key> | undefined) => void;
  readonly #onResize: () => void;
  #isOpen = true;

  /** Switches the terminal to the alternate screen and reads keys.
   *  @param shell a shell for which `hasScreen` is true */
  constructor(
    shell: Shell,
    { onKey, onResize }: { readonly onKey: (key: Key) => void; readonly onResize: () => void },
  ) {
    this.#stdin = shell.stdin as KeyStream;
    this.#stdout = shell.stdout as ScreenStream;
    this.#onResize = onResize;
    this.#onKey = (text, key) =>
      onKey({ name: key?.name, text, ctrl: key?.ctrl === true, shift: key?.shift === true });
    // Without an interface; only the time that separates Escape from an escape sequence is read.
    emitKeypressEvents(this.#stdin, { escapeCodeTimeout: limits.escapeKeyMs } as unknown as Interface);
    this.#stdin.setRawMode(true);
    this.#stdin.on("keypress", this.#onKey);
    this.#stdin.resume();
    this.#stdout.on("resize", this.#onResize);
    this.#stdout.write(ENTER);
  }

  get size(): ScreenSize {
    const { columns = 0, rows = 0 } = this.#stdout;
    return {
      columns: columns > 0 ? columns : limits.terminalColumnsDefault,
      rows: rows > 0 ? rows : limits.terminalRowsDefault,
    };
  }

  /** Draws a frame over the previous one, without clearing first: nothing flickers. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    // Cleared before it is written: behind a line of full width the cursor stands on its last character.
    const shown = lines.slice(0, this.size.rows).map((line) => `${CLEAR_LINE}${line}${PLAIN}`);
    this.#stdout.write(`${HOME}${shown.join("\r\n")}${CLEAR_BELOW}`);
  }

  /** Idempotent. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#stdout.off("resize", this.#onResize);
    this.#stdin.off("keypress", this.#onKey);
    this.#stdin.setRawMode(false);
    this.#stdin.pause();
    this.#stdout.write(LEAVE);
  }
}
