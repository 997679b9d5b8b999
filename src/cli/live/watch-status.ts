// `waggle status --watch` at a terminal: asks each interval, and draws after each answer, key and change of size. While
// the swarm does not answer, the last answer stays on the screen with the reason.

import { mayAnswerLater, messageOf, NoLeaderError } from "../../errors.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { type ExitCode, exitCodes, InterruptedError } from "../exit-code.ts";
import { Output } from "../output.ts";
import type { VerbContext } from "../verb.ts";
import { wait } from "../wait.ts";
import { type Key, Screen } from "./screen.ts";
import { type Frame, frameOf } from "./status-frame.ts";
import { type LiveModel, newModel, pressed, withinRows } from "./status-model.ts";
import { liveTables, projectTables } from "./status-tables.ts";

export interface LiveAnswer {
  readonly answer: StatusResponse;
  /** Undefined: the answer is about the whole swarm. */
  readonly project: string | undefined;
}

export interface LiveOptions {
  /** Asks the swarm once. Its notes go to the context's output. */
  readonly ask: (context: VerbContext, options: { readonly all: boolean }) => Promise<LiveAnswer>;
  readonly intervalMs: number;
  readonly showsAll: boolean;
}

/** Ends with `q`, Ctrl-C, the signal, or when the terminal is gone. @throws InterruptedError after Ctrl-C; errors that
 *  asking again does not help */
export async function watchLive(context: VerbContext, options: LiveOptions): Promise<ExitCode> {
  const first = await options.ask(context, { all: options.showsAll });
  const view = new LiveView(context, options, first);
  try {
    return await view.ended();
  } finally {
    view.close();
  }
}

class LiveView {
  readonly #context: VerbContext;
  readonly #options: LiveOptions;
  readonly #screen: Screen;
  readonly #quit = new AbortController();
  /** Aborts a pause between two answers. */
  #refreshNow = new AbortController();
  #shown: LiveAnswer;
  #model: LiveModel;
  #frame: Frame | undefined;
  #notice: string | undefined;
  /** The tallest summary since the last change of size. */
  #summaryMin = 0;
  #isInterrupted = false;

  constructor(context: VerbContext, options: LiveOptions, first: LiveAnswer) {
    this.#context = context;
    this.#options = options;
    this.#shown = first;
    this.#model = newModel(first.project === undefined ? liveTables : projectTables, options);
    this.#screen = new Screen(context.shell, {
      onKey: (key) => this.#press(key),
      onResize: () => {
        this.#summaryMin = 0;
        this.#draw();
      },
    });
    this.#draw();
  }

  async ended(): Promise<ExitCode> {
    const { signal, output } = this.#context;
    const ended = AbortSignal.any([signal, output.closed, this.#quit.signal]);
    while (!ended.aborted) {
      await wait(this.#options.intervalMs, AbortSignal.any([ended, this.#refreshNow.signal]));
      if (this.#refreshNow.signal.aborted) this.#refreshNow = new AbortController();
      if (!ended.aborted && !this.#model.isPaused) await this.#refresh(ended);
    }
    if (this.#isInterrupted) throw new InterruptedError();
    signal.throwIfAborted();
    return exitCodes.ok;
  }

  close(): void {
    this.#screen.close();
  }

  async #refresh(ended: AbortSignal): Promise<void> {
    const asking = { ...this.#context, signal: ended, output: this.#noticing() };
    try {
      this.#shown = await this.#options.ask(asking, { all: this.#model.showsAll });
      this.#notice = undefined;
    } catch (error) {
      if (ended.aborted) return;
      if (!mayAnswerLater(error) && !(error instanceof NoLeaderError)) throw error;
      this.#notice = `as of the last answer: ${messageOf(error)}`;
    }
    this.#draw();
  }

  /** An output that shows notes in the bottom line: on stderr they would spoil the screen. */
  #noticing(): Output {
    const { shell } = this.#context;
    const stderr = {
      write: (text: string | Uint8Array) => {
        this.#notice = String(text).trim();
        this.#draw();
        return true;
      },
      on: () => undefined,
    };
    return new Output({ ...shell, stderr }, { json: false, asStarted: this.#context.output.asStarted });
  }

  #press(key: Key): void {
    const { showsAll } = this.#model;
    const next = pressed(this.#model, key, this.#frame?.page ?? 1);
    if (next === "quit" || next === "interrupt") {
      this.#isInterrupted = next === "interrupt";
      this.#quit.abort();
      return;
    }
    this.#model = next;
    if (next.showsAll !== showsAll) this.#refreshNow.abort();
    this.#draw();
  }

  #draw(): void {
    const { colors, asStarted } = this.#context.output;
    const { answer, project } = this.#shown;
    const view = { size: this.#screen.size, colors, asStarted, project, notice: this.#notice };
    const frame = frameOf(this.#model, answer, { ...view, summaryMin: this.#summaryMin });
    this.#summaryMin = frame.summary;
    this.#frame = frame;
    this.#model = withinRows(this.#model, frame);
    this.#screen.draw(frame.lines);
  }
}
