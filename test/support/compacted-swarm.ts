// A swarm in memory. The leader changes its segment after every few events and keeps little of the audit.

import { expect } from "vitest";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "./manual-clock.ts";
import { startTestSwarm, type TestSwarm, type TestSwarmOptions } from "./swarm.ts";

export const nothing = { ageMs: 0, bytes: 0 };
export const everything = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

export class CompactedSwarm {
  readonly clock = new ManualClock();
  readonly store: MemoryJournalStore;
  /** After so many events a base is due. */
  everyEvents = 10;
  swarm!: TestSwarm;
  #tasks = 0;

  constructor(bytesMax?: number) {
    this.store = new MemoryJournalStore({
      clock: this.clock,
      ...(bytesMax === undefined ? {} : { bytesMax }),
    });
  }

  async start(retention = nothing, options: TestSwarmOptions = {}): Promise<this> {
    const { clock, store, everyEvents } = this;
    const compaction = { retention, everyEvents, baseSyncMs: 0 };
    this.swarm = await startTestSwarm({ clock, store, compaction, ...options });
    return this;
  }

  /** Submits tasks for the given number of batches, and lets time pass for their effects. */
  async work(batches: number, payload = "x"): Promise<void> {
    for (let batch = 0; batch < batches; batch += 1) {
      this.#tasks += 1;
      const answer = await this.swarm.client.submit([{ id: `t${this.#tasks}`, kind: "k", payload }]);
      expect(answer).toMatchObject({ answers: [{ ok: true }] });
      this.swarm.watched.settled(); // before segments are removed
    }
    await this.clock.advance(limits.pulseMs * 3);
  }
}
