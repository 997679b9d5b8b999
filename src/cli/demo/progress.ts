// How far each user's tasks are: bars on a terminal, plain lines anywhere else. On stderr: it is no datum.

import { MultiBar, type SingleBar } from "cli-progress";
import { limits } from "../../limits.ts";
import type { Output } from "../output.ts";

export interface DemoProgress {
  ended(user: string): void;
  /** Leaves the last state on the screen. */
  stop(): void;
}

interface Wanted {
  readonly user: string;
  readonly total: number;
}

export function showProgress(output: Output, users: readonly Wanted[]): DemoProgress {
  return output.isNoteTerminal ? new Bars(users) : new Lines(output, users);
}

class Bars implements DemoProgress {
  readonly #bars = new MultiBar({
    format: "{user} {bar} {value}/{total}",
    barCompleteChar: "█",
    barIncompleteChar: "░",
    hideCursor: true,
    emptyOnZero: true,
    stream: process.stderr,
  });
  readonly #barByUser = new Map<string, SingleBar>();

  constructor(users: readonly Wanted[]) {
    for (const { user, total } of users) {
      this.#barByUser.set(user, this.#bars.create(total, 0, { user: user.padEnd(6) }));
    }
  }

  ended(user: string): void {
    this.#barByUser.get(user)?.increment();
  }

  stop(): void {
    this.#bars.stop();
  }
}

class Lines implements DemoProgress {
  readonly #output: Output;
  readonly #users: readonly Wanted[];
  readonly #endedByUser = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #printed = "";

  constructor(output: Output, users: readonly Wanted[]) {
    this.#output = output;
    this.#users = users;
    this.#timer = setInterval(() => this.#print(), limits.progressLineMs);
  }

  ended(user: string): void {
    this.#endedByUser.set(user, (this.#endedByUser.get(user) ?? 0) + 1);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#print();
  }

  #print(): void {
    const text = this.#users
      .map(({ user, total }) => `${user} ${this.#endedByUser.get(user) ?? 0}/${total}`)
      .join(" · ");
    if (text !== this.#printed) this.#output.note(text);
    this.#printed = text;
  }
}
