// Reads a memory journal as it is written, folds it as any standby would, and checks the invariants after every
// batch. What it finds is thrown by `settled`.

import type { Violation } from "../../src/core/invariant.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { Succession } from "../../src/core/succession.ts";
import type { JournalRecord } from "../../src/chain/journal.ts";
import type { MemoryJournalStore } from "../../src/journal/memory.ts";
import { type DeadReason, Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";

/** Recounting costs as much as the state is large: beyond so many tasks only every 64th batch is looked at. */
const smallTasksMax = 500;
const largeEvery = 64;

export class WatchedJournal {
  readonly replay = new Replay();
  /** Why records were skipped, in order. */
  readonly deaths: DeadReason[] = [];
  /** The journal has so little room that nothing may be assigned. */
  mayHoldBack = false;
  readonly #store: MemoryJournalStore;
  #succession: Succession | undefined = new Succession();
  readonly #found: string[] = [];

  constructor(store: MemoryJournalStore) {
    this.#store = store;
  }

  /** Reads on to where the journal ends now. @throws Error when an invariant did not hold after some batch */
  settled(): Replay {
    for (let seq = this.replay.position.seq + 1; seq <= this.#store.lastSeq; seq += 1) {
      const record = this.#store.at(seq);
      if (record !== undefined) this.#take(record);
    }
    if (this.#found.length > 0) throw new Error(`the journal breaks invariants:\n${this.#found.join("\n")}`);
    return this.replay;
  }

  #take(record: JournalRecord): void {
    const verdict = this.replay.take(record);
    if (verdict.kind === "dead") {
      this.deaths.push(verdict.reason);
      return;
    }
    const { state } = this.replay;
    const isSmall = state.taskById.size + state.endedById.size <= smallTasksMax;
    if (!isSmall) this.#succession = undefined; // it must see every batch
    if (!isSmall && record.seq % largeEvery !== 0) return;
    // A turn may leave something undone only when it was full, or the journal is nearly; what starts a term is none.
    const isTurn = verdict.batch.events[0]?.type !== "TermStarted";
    const hadRoom = isTurn && record.bytes.length < limits.turnBytesMax && !this.mayHoldBack;
    this.#note(record, hadRoom ? checkAfterTurn(state) : checkInvariants(state));
    this.#note(record, this.#succession?.check(state) ?? []);
  }

  #note({ seq }: JournalRecord, violations: readonly Violation[]): void {
    for (const { number, name, sentence } of violations)
      this.#found.push(`  record ${seq}: ${number} ${name}: ${sentence}`);
  }
}
