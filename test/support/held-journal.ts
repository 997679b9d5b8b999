// A way to a memory journal whose answers a test can hold back: what is stored, nobody here knows of yet.

import { type AnswerFate, MemoryJournal } from "../../src/chain/memory.ts";
import type { MemoryJournalStore } from "../../src/chain/memory-store.ts";

export class HeldJournal {
  readonly journal: MemoryJournal;
  #opened: Promise<void> | undefined;
  #open: () => void = () => undefined;

  constructor(store: MemoryJournalStore) {
    this.journal = new MemoryJournal(store, {
      onAnswer: async (): Promise<AnswerFate> => {
        await this.#opened;
        return "deliver";
      },
    });
  }

  hold(): void {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  release(): void {
    this.#opened = undefined;
    this.#open();
  }
}
