// Which segments are removed, when, and which record comes before.

import { describe, expect, it, vi } from "vitest";
import type { CompactionDeps } from "../../../src/coordinator/compacting/compaction.ts";
import { UnreachableError } from "../../../src/errors.ts";
import { batchIndex } from "../../../src/ids.ts";
import { encodeRecord } from "../../../src/journal/records.ts";
import { limits } from "../../../src/limits.ts";
import { aMaker, CompactedLog, everything, nothing, SYNC_MS } from "./compacted-log.ts";
import { MemoryLedLog } from "./led-log.ts";

/** Long enough to sync a base, and to record and remove segments. */
const SETTLED_MS = SYNC_MS + 2_000;

/** Segments 1 to `count`, each but the first with a base; the newest is not synced yet. */
async function aLog(count: number, overrides: Partial<CompactionDeps> = {}): Promise<CompactedLog> {
  const log = await MemoryLedLog.start();
  for (let number = 2; number <= count; number += 1) {
    await log.submit(10);
    await log.change();
  }
  return new CompactedLog(log, { retention: nothing, everyEvents: 1_000, ...overrides });
}

function trims({ log }: CompactedLog) {
  return log.turns.all("AuditTrimmed").map(({ firstIdx, reason }) => `${firstIdx} ${reason}`);
}

describe("segments before the newest two bases", () => {
  it("go one sync interval after the newest one was opened, and a restart reads all", async () => {
    const compacted = await aLog(4);
    const [{ opened }] = [compacted.log.live];
    await compacted.pass(SYNC_MS - 1_000);
    expect(compacted.segments).toEqual([1, 2, 3, 4]);
    expect(trims(compacted)).toEqual([]);
    await compacted.pass(SETTLED_MS - SYNC_MS + 1_000);
    expect(compacted.segments).toEqual([3, 4]);
    expect(compacted.removals).toBe(1);
    await compacted.log.expectWhole();
    expect(opened.base?.idx).toBeGreaterThan(compacted.compaction.firstIdx);
  });

  it("are put on record first, with the first batch that is kept", async () => {
    const compacted = await aLog(3);
    await compacted.log.clock.advance(SYNC_MS);
    await compacted.look();
    expect(compacted.asked).toEqual([{ type: "TrimAudit", firstIdx: 12, reason: "retention" }]);
    for (let second = 0; second < 120; second += 1) {
      await compacted.log.clock.advance(1_000);
      await compacted.look();
    }
    expect(compacted.segments).toEqual([1, 2, 3]);
    expect(compacted.compaction.firstIdx).toBe(1);
    await compacted.pulse();
    await compacted.pulse();
    expect(compacted.segments).toEqual([2, 3]);
    expect(trims(compacted)).toEqual(["12 retention"]);
    expect(compacted.compaction.firstIdx).toBe(12);
  });

  it("wait for another sync interval after a reconnection", async () => {
    const compacted = await aLog(3);
    await compacted.pass(SYNC_MS - 1_000);
    compacted.log.journal.setOffline(true);
    compacted.log.journal.setOffline(false);
    await compacted.pass(SYNC_MS - 1_000);
    expect(compacted.segments).toEqual([1, 2, 3]);
    await compacted.pass(3_000);
    expect(compacted.segments).toEqual([2, 3]);
  });

  it("recorded by an earlier leader are removed under any retention", async () => {
    const earlier = await aLog(3);
    await earlier.log.clock.advance(SYNC_MS);
    await earlier.look();
    for (const command of earlier.asked) await earlier.log.turn(command);
    earlier.compaction.end();
    const later = new CompactedLog(earlier.log, { everyEvents: 1_000 });
    await later.pass(SETTLED_MS);
    expect(later.segments).toEqual([2, 3]);
    expect(trims(later)).toEqual(["12 retention"]);
  });

  it("on record are removed only after the remaining log was read back", async () => {
    const earlier = await aLog(3);
    await earlier.log.turn({ type: "TrimAudit", firstIdx: batchIndex(12), reason: "retention" });
    earlier.compaction.end();
    const later = new CompactedLog(earlier.log, { everyEvents: 1_000 });
    later.log.store.damageRecord(3, 2);
    await later.pass(SETTLED_MS);
    expect(later.segments).toEqual([1, 2, 3]);
  });

  it("are all before the older of two bases: a restart may not be able to read the newer", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(3);
    await log.change(); // segment 2
    await log.submit(3);
    await log.continueIn(3);
    await log.submit(3);
    await log.change(); // segment 4
    const compacted = new CompactedLog(log, { retention: nothing, everyEvents: 1_000 });
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments).toEqual([2, 3, 4]);
    log.store.damageRecord(4, 2);
    await log.expectWhole();
  });

  it("stay where the term ended meanwhile", async () => {
    const compacted = await aLog(3);
    await compacted.pass(SYNC_MS - 1_000);
    compacted.compaction.end();
    await compacted.pass(10 * SYNC_MS);
    expect(compacted.segments).toEqual([1, 2, 3]);
  });
});

describe("the audit is kept", () => {
  it("as long as is asked for", async () => {
    const day = 24 * 3_600_000;
    const log = await MemoryLedLog.start();
    for (let segment = 2; segment <= 6; segment += 1) {
      await log.submit(5);
      await log.change();
      log.turns.pass(day);
      await log.clock.advance(day);
    }
    await log.submit(1);
    const retention = { ageMs: 2.5 * day, bytes: Number.POSITIVE_INFINITY };
    const compacted = new CompactedLog(log, { retention, everyEvents: 1_000 });
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments.slice(0, 1)).toEqual([3]); // segment 4 began three days ago
    expect(trims(compacted)).toEqual(["12 retention"]);
  });

  it("as much as is asked for, from the end", async () => {
    const compacted = await aLog(8, { everyEvents: Number.POSITIVE_INFINITY });
    compacted.compaction.end();
    const { store } = compacted.log;
    const lastFour = [5, 6, 7, 8].reduce((sum, number) => sum + (store.end(number)?.bytes ?? 0), 0);
    const retention = { ageMs: Number.POSITIVE_INFINITY, bytes: lastFour };
    const next = new CompactedLog(compacted.log, { retention, everyEvents: 1_000 });
    await next.pass(SETTLED_MS);
    expect(next.segments).toEqual([5, 6, 7, 8]);
  });

  it("no longer than there is room", async () => {
    const compacted = await aLog(6, { retention: everything });
    const { store } = compacted.log;
    store.bytesMax = Math.ceil(store.usage.bytes / limits.journalFullShare) + 1_000;
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments.length).toBeLessThan(6);
    expect(compacted.segments.length).toBeGreaterThanOrEqual(2);
    expect(trims(compacted).at(0)).toMatch(/storage-short$/);
    await compacted.log.expectWhole();
  });

  it("not for retention alone while the journal is short of room: the newest base and the previous segment stay", async () => {
    const maker = aMaker(() => Promise.reject(new UnreachableError("no base is made here")));
    const compacted = await aLog(3, { retention: everything, maker });
    const { log } = compacted;
    compacted.isShort = true;
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments).toEqual([2, 3]);
    expect(trims(compacted)).toEqual(["12 storage-short"]);
    await log.expectWhole();
  });
});

describe("a journal that takes no batch", () => {
  it("loses its oldest segments first, and the record of that follows", async () => {
    const compacted = await aLog(4, { retention: everything });
    const { log } = compacted;
    compacted.isShort = true;
    compacted.compaction.full(true);
    for (let passed = 0; passed < SETTLED_MS; passed += 1_000) {
      await log.clock.advance(1_000);
      await compacted.look();
    }
    expect(compacted.segments).toEqual([3, 4]);
    expect(compacted.compaction.firstIdx).toBe(22);
    compacted.compaction.full(false);
    await compacted.pulse();
    expect(trims(compacted)).toEqual(["22 storage-short"]);
  });
});

describe("the remaining log", () => {
  it("is read back: where a batch is missing behind the newest base, nothing goes and the leader hears it", async () => {
    const compacted = await aLog(3);
    const { log } = compacted;
    await log.submit(5);
    log.store.loseRecords(3, log.live.position + 2);
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments).toEqual([1, 2, 3]);
    await compacted.pass(limits.baseRetryMs);
    expect(compacted.damages).toEqual([expect.stringContaining("is missing")]);
    expect(compacted.segments).toEqual([1, 2, 3]);
    expect(trims(compacted)).toEqual([]);
  });

  it("is read back: where the newest base is damaged, nothing goes", async () => {
    const compacted = await aLog(3);
    compacted.log.store.damageRecord(3, 2);
    await compacted.pass(SETTLED_MS + limits.baseRetryMs);
    expect(compacted.segments).toEqual([1, 2, 3]);
    expect(compacted.damages).toHaveLength(1);
  });

  it("is read back again after a reconnection", async () => {
    const compacted = await aLog(3);
    const { log } = compacted;
    await log.clock.advance(SYNC_MS);
    await compacted.look();
    for (const command of compacted.asked.splice(0)) await log.turn(command);
    log.store.damageRecord(3, 2);
    log.journal.setOffline(true);
    log.journal.setOffline(false);
    await compacted.pass(SETTLED_MS + limits.baseRetryMs);
    expect(compacted.segments).toEqual([1, 2, 3]);
    expect(compacted.damages).toHaveLength(1);
  });

  it("is read once, and then only its new part", async () => {
    let reads = 0;
    const log = await MemoryLedLog.start({
      onRequest: ({ op }) => {
        if (op === "replay") reads += 1;
        return "deliver";
      },
    });
    for (let number = 2; number <= 3; number += 1) {
      await log.submit(10);
      await log.change();
    }
    const compacted = new CompactedLog(log, { retention: nothing, everyEvents: 1_000 });
    await log.clock.advance(SYNC_MS);
    reads = 0;
    await compacted.look();
    expect(reads).toBe(2); // the base's chunks, and later batches
    reads = 0;
    await compacted.pulse();
    await compacted.pulse();
    expect(compacted.segments).toEqual([2, 3]);
    expect(reads).toBe(1);
  });
});

describe("a segment that was never opened", () => {
  it("goes once a live segment has a higher number", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(5);
    await log.make(2); // the leader did not enter the segment
    await log.submit(5);
    await log.changeTo(await log.make(3));
    await log.make(4);
    const compacted = new CompactedLog(log, { everyEvents: 1_000 });
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments).toEqual([1, 3, 4]);
    expect(trims(compacted)).toEqual([]);
    await log.expectWhole();
  });

  it("is sealed before the removal, so a waking claimant cannot open the segment", async () => {
    const outcomes: string[] = [];
    const wakes = (log: MemoryLedLog) => {
      const bytes = encodeRecord({ kind: "claim", segment: 2, session: "session-2", attempt: "attempt-1" });
      const expected = log.store.end(2)?.position ?? 0;
      return log.store.append({ segment: 2, bytes, expected, isOpened: true }).kind;
    };
    const held: MemoryLedLog[] = [];
    let isSealed = false;
    const log = await MemoryLedLog.start({
      onAnswer: (request) => {
        if (request.op === "seal" && request.segment === 2) isSealed = true;
        for (const each of held)
          if (isSealed && request.op === "end" && request.segment === 2) outcomes.push(wakes(each));
        return "deliver";
      },
    });
    log.store.create(2);
    await log.changeTo(await log.make(3));
    held.push(log);
    const compacted = new CompactedLog(log, { everyEvents: 1_000 });
    await compacted.pass(SETTLED_MS);
    expect(outcomes).toEqual(["sealed"]);
    expect(compacted.segments).toEqual([1, 3]);
  });

  it("is not assumed while a server after a takeover does not show the opened record", async () => {
    const compacted = await aLog(3, { retention: everything });
    const { store } = compacted.log;
    const shown = store.opened.bind(store);
    const hidden = vi.spyOn(store, "opened");
    hidden.mockImplementation((number) => (number === 2 ? undefined : shown(number)));
    await compacted.pass(SETTLED_MS);
    expect(hidden).toHaveBeenCalledWith(2);
    expect(compacted.segments).toEqual([1, 2, 3]);
    hidden.mockRestore();
    await compacted.log.expectWhole();
  });

  it("stays where damage may be why it looks so", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(5);
    log.store.create(2);
    log.store.insert(
      2,
      encodeRecord({ kind: "claim", segment: 2, session: "session-2", attempt: "attempt-1" }),
    );
    log.store.insert(2, new Uint8Array(3), true);
    log.store.insert(2, new Uint8Array(3));
    log.store.damageRecord(2, 2);
    await log.changeTo(await log.make(3));
    const compacted = new CompactedLog(log, { everyEvents: 1_000 });
    await compacted.pass(SETTLED_MS);
    expect(compacted.segments).toEqual([1, 2, 3]);
  });
});

it("segments that are gone are put on record as lost", async () => {
  const compacted = await aLog(4, { retention: everything });
  compacted.log.store.loseSegment(1);
  await compacted.pass(SETTLED_MS);
  expect(trims(compacted)).toEqual(["12 lost"]);
  expect(compacted.compaction.firstIdx).toBe(12);
});
