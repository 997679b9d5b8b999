// The queue of the coordinator: requests wait here for a turn, in order. The leader bounds it together with the
// entries that wait for a commit (turns.ts).

import type { Command, Reply } from "../core/command.ts";
import type { BatchIndex, Term } from "../ids.ts";
import type { SwarmState } from "../state/state.ts";

/** Up to where the journal is committed when an answer leaves. */
export interface Commit {
  readonly term: Term;
  readonly idx: BatchIndex;
}

/** A message on its way through a turn. Its commands are decided in order, over several turns if need be. After the
 *  commit of the newest batch in the answers it is finished once. */
export interface InboxEntry {
  readonly commands: readonly Command[];
  /** One per decided command. */
  readonly replies: Reply[];
  /** Called right after the last command, before the commit: reads the state for the answer. */
  look?(state: SwarmState): void;
  /** Called after the commit; sends the answer. */
  finish(commit: Commit): void;
}

export class Inbox {
  #entries: InboxEntry[] = [];
  /** Entries before this position are taken. The array is cut from time to time. */
  #head = 0;
  #commands = 0;

  get depth(): number {
    return this.#entries.length - this.#head;
  }

  /** Number of commands in the entries, decided ones included. */
  get commands(): number {
    return this.#commands;
  }

  push(entry: InboxEntry): void {
    this.#entries.push(entry);
    this.#commands += entry.commands.length;
  }

  peek(): InboxEntry | undefined {
    return this.#entries[this.#head];
  }

  shift(): void {
    this.#commands -= this.peek()?.commands.length ?? 0;
    this.#head += 1;
    if (this.#head === this.#entries.length) {
      this.#entries = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }
}
