// The running demo: a table of the agents that is redrawn on a terminal, otherwise a line every few seconds. Goes to
// stderr, because the view is no data. All figures come from the journal.

import { formatCount } from "../../count-text.ts";
import { limits } from "../../limits.ts";
import { formatShare } from "../format.ts";
import type { Output } from "../output.ts";
import { demoAgents } from "./scenario.ts";
import type { DemoTally } from "./tally.ts";

export interface LiveViewOptions {
  readonly tally: DemoTally;
  readonly tasks: number;
  /** How long tasks are submitted, ms: the width of the picture. */
  readonly submitMs: number;
  /** Instant of the first submission. */
  readonly startedAt: number;
}

export class LiveView {
  readonly #output: Output;
  readonly #options: LiveViewOptions;
  /** Absent once the view has stopped. */
  #timer: NodeJS.Timeout | undefined;

  constructor(output: Output, options: LiveViewOptions) {
    this.#output = output;
    this.#options = options;
    const everyMs = output.isNoteTerminal ? limits.demoRedrawMs : limits.demoLineMs;
    this.#timer = setInterval(() => this.#show(), everyMs);
  }

  /** A permanent line with the time. */
  note(text: string): void {
    this.#output.note(`${this.#time()}  ${text}`);
    if (this.#output.isNoteTerminal) this.#show();
  }

  /** Leaves the last picture on the screen. Idempotent. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#output.isNoteTerminal) this.#output.note(this.#picture());
    else this.#show();
  }

  #show(): void {
    if (this.#output.isNoteTerminal) this.#output.redraw(this.#picture());
    else this.#output.note(this.#line());
  }

  #time(): string {
    const seconds = Math.round((Date.now() - this.#options.startedAt) / 1_000);
    return `${String(seconds).padStart(3)} s`;
  }

  #line(): string {
    const shares = demoAgents.map(({ id }) => `${id} ${this.#shareNow(id)}`);
    return `${this.#time()}  ${shares.join(", ")} (${this.#progress()})`;
  }

  #progress(): string {
    const { tally, tasks } = this.#options;
    return `${formatCount(tally.ended)} of ${formatCount(tasks)} tasks`;
  }

  #shareNow(agent: string): string {
    const now = Date.now();
    const share = this.#options.tally.share(agent, { from: now - SHARE_SPAN_MS, to: now });
    return share === undefined ? "–" : formatShare(share);
  }

  #picture(): string {
    const columns = this.#output.noteColumns ?? limits.terminalColumnsDefault;
    const { noteColors: colors } = this.#output;
    const { bar, line } = widths(columns);
    const head = `${"agent".padEnd(NAME)}${`share, last ${SHARE_SPAN_MS / 1_000} s`.padEnd(bar + 8)}${line > 0 ? "over time".padEnd(line + 1) : ""}failed`;
    const rows = demoAgents.map(({ id }) => this.#row(id, { bar, line }));
    return [`${this.#time()}  ${this.#progress()}`, colors.dim(head), ...rows].join("\n");
  }

  #row(agent: string, { bar, line }: { readonly bar: number; readonly line: number }): string {
    const { tally } = this.#options;
    const { noteColors: colors } = this.#output;
    const now = Date.now();
    const share = tally.share(agent, { from: now - SHARE_SPAN_MS, to: now }) ?? 0;
    const filled = Math.min(bar, Math.round((share / FULL_SHARE) * bar));
    const failed = tally.failures(agent);
    const hasFailedLately = tally.failures(agent, { from: now - SHARE_SPAN_MS, to: now }) > 0;
    const paint = hasFailedLately ? colors.red : colors.green;
    return [
      agent.padEnd(NAME),
      paint("█".repeat(filled)),
      colors.dim("░".repeat(bar - filled)),
      ` ${this.#shareNow(agent).padStart(5)}  `,
      line > 0 ? `${this.#sparkline(agent, line)} ` : "",
      failed === 0 ? "" : formatCount(failed),
    ].join("");
  }

  /** One character for each step of time; blank where the time is still to come, or nothing was assigned. */
  #sparkline(agent: string, width: number): string {
    const { tally, startedAt, submitMs } = this.#options;
    const stepMs = submitMs / width;
    return Array.from({ length: width }, (_, step) => {
      const from = startedAt + step * stepMs;
      const share = from > Date.now() ? undefined : tally.share(agent, { from, to: from + stepMs });
      if (share === undefined) return " ";
      return HEIGHTS[Math.min(HEIGHTS.length - 1, Math.floor((share / FULL_SHARE) * HEIGHTS.length))];
    }).join("");
  }
}

/** Long enough for a meaningful share, short enough to see changes. */
const SHARE_SPAN_MS = 3_000;
/** Share of a full bar: twice an agent's equal share. */
const FULL_SHARE = 2 / demoAgents.length;
const HEIGHTS = "▁▂▃▄▅▆▇█";
const NAME = 7;

/** Widths of the bar and of the line over time, in characters. A narrow terminal shows only the bar. */
function widths(columns: number): { readonly bar: number; readonly line: number } {
  if (columns >= 80) return { bar: 16, line: 40 };
  if (columns >= 60) return { bar: 10, line: 28 };
  return { bar: 10, line: 0 };
}
