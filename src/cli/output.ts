// Output of a verb: data to stdout, notes to stderr. With --json data are NDJSON records. A closed reader (EPIPE) is
// no error: writing stops, and `closed` aborts streaming verbs. Any other failure of a stream (a full disk) stops
// writing, too; `failure` holds the error for the end of the verb.

import pc from "picocolors";
import { limits } from "../limits.ts";
import { knownColumns, type OutputStream, type Shell } from "./shell.ts";

export type Colors = ReturnType<typeof pc.createColors>;

/** Printed data did not arrive. Every request to the swarm was still carried out. */
export class OutputError extends Error {
  constructor(cause: Error) {
    super(`standard output cannot be written (${cause.message}); the rest of the output is lost`, { cause });
    this.name = "OutputError";
  }
}

export class Output {
  /** Whether data are records for programs. */
  readonly json: boolean;
  /** Colours for stdout, or none. */
  readonly colors: Colors;
  /** Colours for stderr, or none. */
  readonly noteColors: Colors;
  /** Columns of the terminal; undefined when stdout is no terminal, and nothing needs to fit. */
  readonly columns: number | undefined;
  /** The same for stderr. */
  readonly noteColumns: number | undefined;
  /** Whether stderr is a terminal, so that lines can be redrawn. */
  readonly isNoteTerminal: boolean;
  /** Aborts when the reader of stdout is gone. */
  readonly closed: AbortSignal;
  /** Replaces `waggle` by the command as started. Notes do so by themselves; data with hints must call the function. */
  readonly asStarted: (text: string) => string;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;
  #drawnLines = 0;
  #failure: Error | undefined;

  constructor(
    shell: Shell,
    {
      json,
      asStarted = (text) => text,
    }: { readonly json: boolean; readonly asStarted?: Output["asStarted"] },
  ) {
    this.json = json;
    this.asStarted = asStarted;
    this.#stdout = shell.stdout;
    this.#stderr = shell.stderr;
    this.colors = pc.createColors(wantsColor(shell, shell.stdout));
    this.noteColors = pc.createColors(wantsColor(shell, shell.stderr));
    this.columns = columnsOf(shell.stdout);
    this.noteColumns = columnsOf(shell.stderr);
    this.isNoteTerminal = shell.stderr.isTTY === true;
    this.closed = closedBy(this.#stdout, (error) => {
      this.#failure ??= error;
    });
    closedBy(this.#stderr, () => undefined); // no reader misses the notes
  }

  /** Error that lost data although a reader was present. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when everything printed has left, or nothing more will. */
  async flushed(): Promise<void> {
    if (this.closed.aborted) return;
    await new Promise<void>((resolve) => {
      this.closed.addEventListener("abort", () => resolve(), { once: true });
      this.#stdout.write("", () => resolve());
    });
  }

  /** Prints one datum: the record for programs, or its text for people. */
  datum(record: unknown, text: () => string): void {
    this.#write(this.json ? JSON.stringify(record) : text());
  }

  /** Prints a result unchanged; text gets a final line end. On a terminal control characters are shown, not executed.
   */
  raw(result: string | Uint8Array): void {
    const isTerminal = this.columns !== undefined;
    if (typeof result === "string") {
      const text = result.endsWith("\n") ? result.slice(0, -1) : result;
      this.#write(isTerminal ? printableText(text) : text);
    } else if (isTerminal) this.#write(printableText(Buffer.from(result).toString("latin1")));
    else if (!this.closed.aborted) this.#stdout.write(result);
  }

  /** Prints a part of a result unchanged, without a line end. On a terminal as `raw`. */
  part(text: string | Uint8Array): void {
    if (this.closed.aborted) return;
    this.#clearDrawn();
    const isTerminal = this.columns !== undefined;
    if (!isTerminal) this.#stdout.write(text);
    else
      this.#stdout.write(
        printableText(typeof text === "string" ? text : Buffer.from(text).toString("latin1")),
      );
  }

  /** Prints text to stderr. */
  note(text: string): void {
    this.#clearDrawn();
    this.#stderr.write(`${this.json ? text : this.asStarted(text)}\n`);
  }

  /** Draws note lines, which the next text replaces; only if `isNoteTerminal`. */
  redraw(text: string): void {
    this.#clearDrawn();
    this.#stderr.write(text);
    this.#drawnLines = text.split("\n").length;
  }

  /** Clears the terminal and draws a whole page. */
  page(text: string): void {
    if (!this.closed.aborted) this.#stdout.write(`\u001b[H\u001b[2J\u001b[3J${text}\n`);
  }

  #write(text: string): void {
    if (this.closed.aborted) return;
    this.#clearDrawn();
    this.#stdout.write(`${text}\n`);
  }

  #clearDrawn(): void {
    if (this.#drawnLines > 0)
      this.#stderr.write(this.#drawnLines > 1 ? `\r\u001b[${this.#drawnLines - 1}A\u001b[J` : "\r\u001b[2K");
    this.#drawnLines = 0;
  }
}

function columnsOf(stream: OutputStream): number | undefined {
  return stream.isTTY === true ? (knownColumns(stream) ?? limits.terminalColumnsDefault) : undefined;
}

/** https://no-color.org, FORCE_COLOR, and terminals without colors. */
function wantsColor(shell: Shell, stream: OutputStream): boolean {
  const { env } = shell;
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  if ((env["FORCE_COLOR"] ?? "") !== "") return env["FORCE_COLOR"] !== "0";
  return stream.isTTY === true && env["TERM"] !== "dumb";
}

function closedBy(stream: OutputStream, onFailure: (error: Error) => void): AbortSignal {
  const closed = new AbortController();
  stream.on("error", (error) => {
    if (error.code !== "EPIPE") onFailure(error);
    closed.abort();
  });
  return closed.signal;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** External text, made safe for one line of a terminal: control characters are shown, not executed. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

/** Like `printable`, for several lines: line ends and tabs stay. */
export function printableText(text: string): string {
  return text.replace(CONTROLS, (character) =>
    character === "\n" || character === "\t" ? character : printable(character),
  );
}
