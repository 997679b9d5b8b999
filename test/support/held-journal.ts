// A handle of a memory journal for tests, able to hold back answers: a record is stored, but the coordinator does not
// know yet.

import { type AnswerFate, MemoryJournal, type RequestFate } from "../../src/journal/memory.ts";
import type { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { Gate } from "./gate.ts";

export class HeldJournal {
  readonly journal: MemoryJournal;
  /** Called once, before the next append reaches the store. */
  beforeAppend: (() => void) | undefined;
  /** Holds each read of a single record. */
  beforeRead: (() => Promise<void>) | undefined;
  #gate: Gate | undefined;

  constructor(store: MemoryJournalStore) {
    this.journal = new MemoryJournal(store, {
      onRequest: async ({ op }): Promise<RequestFate> => {
        if (op === "read") await this.beforeRead?.();
        if (op !== "append") return "deliver";
        const act = this.beforeAppend;
        this.beforeAppend = undefined;
        act?.();
        return "deliver";
      },
      onAnswer: async (): Promise<AnswerFate> => {
        await this.#gate?.opened;
        return "deliver";
      },
    });
  }

  hold(): void {
    this.#gate = new Gate();
  }

  release(): void {
    this.#gate?.open();
    this.#gate = undefined;
  }
}
