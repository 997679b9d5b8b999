// The one queue in front of the coordinator: whatever asks for a decision waits here, in order. Its bound counts
// what waits for a commit too, and is the leader's to keep.

import type { Command, Reply } from "../../core/command.ts";
import type { BatchIndex, Term } from "../../ids.ts";
import type { SwarmState } from "../../state/state.ts";

/** Up to where the journal is committed when an answer leaves. */
export interface Commit {
  readonly term: Term;
  readonly idx: BatchIndex;
}

/** A message on its way through a turn: its commands are decided in order, perhaps over several turns, and it is
 *  finished once, after the commit of the newest batch that its answers contain. */
export interface InboxEntry {
  readonly commands: readonly Command[];
  /** One for each command decided so far. */
  readonly replies: Reply[];
  /** Called with the state right after the last command, before its commit: reads what the answer needs. */
  look?(state: SwarmState): void;
  /** Called after the commit; sends the answer. */
  finish(commit: Commit): void;
}

export class Inbox {
  #entries: InboxEntry[] = [];
  /** Entries before it are taken; the array is cut now and then, not at each take. */
  #head = 0;

  get depth(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: InboxEntry): void {
    this.#entries.push(entry);
  }

  peek(): InboxEntry | undefined {
    return this.#entries[this.#head];
  }

  shift(): void {
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
