// Compaction and retention under random faults. After any removal a power loss takes all unsynced records. A restart
// reads the remaining log, and all batches that the journal claims to keep are readable.

import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/clock.ts";
import { findLive } from "../../../src/journal/live.ts";
import { restore } from "../../../src/journal/log.ts";
import { LogReader } from "../../../src/journal/log-reader.ts";
import { MemoryJournal, type MemoryRequest } from "../../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../../src/journal/memory-store.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { CompactedLog, everything, nothing, SYNC_MS } from "./compacted-log.ts";
import { MemoryLedLog } from "./led-log.ts";

const SEEDS = 6;
const STEPS = 30;

/** A server's page cache: records with the time of their storage. */
class PageCache {
  readonly #stored: { readonly request: MemoryRequest; readonly atMs: number }[] = [];
  readonly #committed: { readonly idx: number; readonly atMs: number }[] = [];
  readonly #numbers = new Set<number>();
  log: MemoryLedLog | undefined;

  readonly onAnswer = (request: MemoryRequest): "deliver" => {
    const atMs = this.log?.clock.monotonicMs() ?? 0;
    if (request.op === "append" || request.op === "create") this.#stored.push({ request, atMs });
    if (request.op === "remove") this.#remove(request.segment);
    if (request.op === "create") {
      expect(this.#numbers.has(request.segment), `segment ${request.segment} is used once`).toBe(false);
      this.#numbers.add(request.segment);
    }
    return "deliver";
  };

  /** The newest batch is committed now. */
  note(log: MemoryLedLog): void {
    this.#committed.push({ idx: log.committedIdx, atMs: log.clock.monotonicMs() });
  }

  /** The records after a power loss now, and the last batch without loss. */
  left(clock: Clock): { readonly journal: MemoryJournal; readonly idx: number } {
    const store = new MemoryJournalStore();
    const isSynced = ({ atMs }: { readonly atMs: number }) => clock.monotonicMs() - atMs > SYNC_MS;
    for (const { request } of this.#stored.filter(isSynced)) {
      if (request.op === "create") store.create(request.segment);
      else if (request.op === "append") store.append(request);
    }
    return { journal: new MemoryJournal(store), idx: this.#committed.findLast(isSynced)?.idx ?? 0 };
  }

  #remove(segment: number): void {
    for (let at = this.#stored.length - 1; at >= 0; at -= 1) {
      const { request } = this.#stored[at] as { readonly request: MemoryRequest };
      if ("segment" in request && request.segment === segment) this.#stored.splice(at, 1);
    }
  }
}

async function run(seed: number): Promise<{ readonly removals: number; readonly bases: number }> {
  const random = new SeededRandom(`compaction ${seed}`);
  const cache = new PageCache();
  const log = await MemoryLedLog.start({ onAnswer: cache.onAnswer });
  cache.log = log;
  const retention = random.chance(0.5) ? nothing : { ...everything, bytes: 8_000 };
  const begin = () => new CompactedLog(log, { retention, everyEvents: 4 });
  let compacted = begin();
  let removals = 0;
  for (let step = 0; step < STEPS; step += 1) {
    await log.submit(random.below(4), random.below(200));
    cache.note(log);
    if (random.chance(0.1)) {
      log.journal.setOffline(true);
      log.journal.setOffline(false);
    }
    if (random.chance(0.1)) {
      compacted.compaction.end(); // the term ends
      removals += compacted.removals;
      compacted = begin();
    }
    compacted.isShort = random.chance(0.2);
    for (let pulse = random.below(6); pulse >= 0; pulse -= 1) {
      await log.clock.advance(random.below(SYNC_MS / 2));
      await compacted.pulse();
    }
    await expectReadable(log, compacted);
    const { journal, idx } = cache.left(log.clock);
    if (idx === 0) continue;
    const { live } = await findLive(journal);
    if (live === undefined) throw new Error(`step ${step}: a power loss leaves no live segment`);
    const { tail } = await restore(live, { journal, clock: log.clock });
    expect(tail.idx, `step ${step}`).toBeGreaterThanOrEqual(idx);
  }
  return { removals: removals + compacted.removals, bases: log.number };
}

/** Kept batches are readable, and a restart reads all. */
async function expectReadable(log: MemoryLedLog, { compaction }: CompactedLog): Promise<void> {
  await log.expectWhole();
  const { firstIdx } = compaction;
  const read: number[] = [];
  for await (const { header } of new LogReader(new MemoryJournal(log.store)).replay(firstIdx))
    read.push(header.idx);
  expect(read.at(0)).toBe(firstIdx);
  expect(read.at(-1)).toBe(log.tail.idx);
  expect(read).toHaveLength(log.tail.idx - firstIdx + 1);
}

describe("no restart and no reader needs removed segments", () => {
  it(`in ${SEEDS} histories of ${STEPS} steps, whenever the power fails`, async () => {
    let removals = 0;
    let bases = 0;
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const seen = await run(seed);
      removals += seen.removals;
      bases += seen.bases;
    }
    expect(removals).toBeGreaterThan(SEEDS);
    expect(bases).toBeGreaterThan(3 * SEEDS);
  }, 120_000);
});
