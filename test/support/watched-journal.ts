// Reads a memory journal as it is written, folds it as any standby would, and checks the invariants after every
// batch. What it finds is thrown by `settled`.

import type { SegmentRecord } from "../../src/chain/journal.ts";
import { liveIn } from "../../src/chain/live.ts";
import type { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { Replay } from "../../src/chain/replay.ts";
import type { Violation } from "../../src/core/invariant.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { Succession } from "../../src/core/succession.ts";
import { limits } from "../../src/limits.ts";

/** Recounting costs as much as the state is large: beyond so many tasks only every 64th batch is looked at. */
const smallTasksMax = 500;
const largeEvery = 64;

export class WatchedJournal {
  readonly replay = new Replay();
  /** Records that were skipped, by whether they are foreign, in order. */
  readonly skipped: ("foreign" | "superseded")[] = [];
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
    for (const number of this.#store.list()) {
      const current = this.replay.place?.segment ?? 0;
      if (number < current) continue;
      if (number > current && !this.#enter(number)) continue;
      this.#readSegment(number);
    }
    if (this.#found.length > 0) throw new Error(`the journal breaks invariants:\n${this.#found.join("\n")}`);
    return this.replay;
  }

  #enter(number: number): boolean {
    const opened = this.#store.opened(number);
    const live = opened === undefined ? undefined : liveIn(opened, { number }, undefined);
    if (live === undefined) return false;
    this.replay.enter(live, live.position);
    return true;
  }

  #readSegment(number: number): void {
    for (;;) {
      const record = this.#store.read(number, (this.replay.place?.position ?? 0) + 1);
      if (record === undefined) return;
      this.#take(record);
    }
  }

  #take(record: SegmentRecord): void {
    const verdict = this.replay.take(record);
    if (verdict.kind === "skipped") this.skipped.push(verdict.isForeign ? "foreign" : "superseded");
    if (verdict.kind !== "applied") return;
    const { state } = this.replay;
    const isSmall = state.taskById.size + state.endedById.size <= smallTasksMax;
    if (!isSmall) this.#succession = undefined; // it must see every batch
    if (!isSmall && verdict.batch.idx % largeEvery !== 0) return;
    // A turn may leave something undone only when it was full, or the journal is nearly.
    const hadRoom = record.bytes.length < limits.turnBytesMax && !this.mayHoldBack;
    this.#note(verdict.batch.idx, hadRoom ? checkAfterTurn(state) : checkInvariants(state));
    this.#note(verdict.batch.idx, this.#succession?.check(state) ?? []);
  }

  #note(idx: number, violations: readonly Violation[]): void {
    for (const { number, name, sentence } of violations)
      this.#found.push(`  batch ${idx}: ${number} ${name}: ${sentence}`);
  }
}
