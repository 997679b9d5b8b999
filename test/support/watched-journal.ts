// Reads a memory journal while it is written, folds it like a standby, and checks the invariants after every batch.
// `settled` throws the findings.

import type { Violation } from "../../src/core/invariant.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { finished, StateDecoder } from "../../src/core/snapshot/decode.ts";
import { Succession } from "../../src/core/succession.ts";
import { LineReader } from "../../src/journal/chunks.ts";
import type { SegmentRecord } from "../../src/journal/journal.ts";
import { liveIn } from "../../src/journal/live.ts";
import type { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { decodeRecord } from "../../src/journal/records.ts";
import { type LiveSegment, Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";

/** Recounting costs as much as the state is large: beyond so many tasks only every 64th batch is looked at. */
const smallTasksMax = 500;
const largeEvery = 64;

export class WatchedJournal {
  #replay = new Replay();
  /** Skipped records, in order: foreign or superseded. */
  readonly skipped: ("foreign" | "superseded")[] = [];
  /** The journal is nearly full, so that no task may be assigned. */
  mayHoldBack = false;
  readonly #store: MemoryJournalStore;
  #succession: Succession | undefined = new Succession();
  readonly #found: string[] = [];

  constructor(store: MemoryJournalStore) {
    this.#store = store;
  }

  get replay(): Replay {
    return this.#replay;
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
    const { base, tail } = live.opened;
    if (base !== undefined && this.replay.tail.hash !== tail.hash) this.#readBase(live, base.position);
    else this.replay.enter(live, live.position);
    return true;
  }

  /** The records so far lack batches that the base covers. */
  #readBase(live: LiveSegment, position: number): void {
    const manifest = decodeRecord(this.#store.read(live.number, position)?.bytes ?? new Uint8Array());
    if (manifest?.kind !== "manifest") throw new Error(`segment ${live.number} has no base`);
    const decoder = new StateDecoder();
    const lines = new LineReader();
    for (const [at] of manifest.chunks) {
      const chunk = decodeRecord(this.#store.read(live.number, at)?.bytes ?? new Uint8Array());
      if (chunk?.kind !== "chunk") throw new Error(`segment ${live.number} has no chunk at ${at}`);
      finished(decoder.take(lines.take(chunk.bytes)));
    }
    this.#replay = new Replay({ state: finished(decoder.end()), tail: manifest.tail });
    this.#succession = undefined; // must see every batch
    this.#replay.enter(live, position);
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
    if (!isSmall) this.#succession = undefined; // must see every batch
    if (!isSmall && verdict.batch.idx % largeEvery !== 0) return;
    // A turn may leave work undone only if the turn was full, or the journal nearly is.
    const hadRoom = record.bytes.length < limits.turnBytesMax && !this.mayHoldBack;
    this.#note(verdict.batch.idx, hadRoom ? checkAfterTurn(state) : checkInvariants(state));
    this.#note(verdict.batch.idx, this.#succession?.check(state) ?? []);
  }

  #note(idx: number, violations: readonly Violation[]): void {
    for (const { number, name, sentence } of violations)
      this.#found.push(`  batch ${idx}: ${number} ${name}: ${sentence}`);
  }
}
