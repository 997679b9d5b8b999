// When the next segment of a log is made, and the handling of failures.

import { describe, expect, it } from "vitest";
import type { CompactionDeps } from "../../../src/coordinator/compacting/compaction.ts";
import { baseMakerHere } from "../../../src/coordinator/compacting/make-next-segment.ts";
import { baseSpacingBytes } from "../../../src/coordinator/compacting/newest-base.ts";
import { UnreachableError } from "../../../src/errors.ts";
import { encodeRecord } from "../../../src/journal/records.ts";
import { SegmentLostError } from "../../../src/journal/segment-writer.ts";
import { limits } from "../../../src/limits.ts";
import { aMaker, CompactedLog, SYNC_MS } from "./compacted-log.ts";
import { MemoryLedLog } from "./led-log.ts";

const MiB = 1024 ** 2;

describe("a base is due", () => {
  it("when the batches behind the newest one outweigh it four times, and 64 MiB", () => {
    const bytesMax = undefined;
    expect(baseSpacingBytes(undefined, { bytesMax })).toBe(64 * MiB);
    expect(baseSpacingBytes({ bytes: 10 * MiB }, { bytesMax })).toBe(64 * MiB);
    expect(baseSpacingBytes({ bytes: 100 * MiB }, { bytesMax })).toBe(400 * MiB);
  });

  it("after an eighth of a small journal, but not before the batches outweigh it", () => {
    const bytesMax = 80 * MiB;
    expect(baseSpacingBytes({ bytes: 1 * MiB }, { bytesMax })).toBe(10 * MiB);
    expect(baseSpacingBytes({ bytes: 20 * MiB }, { bytesMax })).toBe(20 * MiB);
  });

  it("after so many bytes, counted from the newest base of any leader", async () => {
    const log = await MemoryLedLog.start({}, 400_000);
    const never = { everyEvents: Number.POSITIVE_INFINITY, baseSyncMs: 0 };
    await log.change();
    const first = new CompactedLog(log, never);
    await log.submit(30, 1_000);
    await first.pulse();
    await first.pulse();
    expect(first.segments).toEqual([1, 2]);
    first.compaction.end();

    const second = new CompactedLog(log, never);
    await log.submit(15, 1_000);
    for (let looks = 0; looks < 3; looks += 1) await second.pulse();
    expect(second.segments).toEqual([1, 2, 3]);
    expect(log.number).toBe(3);
  });

  it("after so many events where that is asked for, and not before the base before is synced", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    const { log } = compacted;
    await compacted.base();
    expect(log.number).toBe(2);
    await log.submit(20);
    await compacted.pass(SYNC_MS - 1_000);
    expect(log.number).toBe(2);
    await compacted.pass(2_000);
    expect(log.number).toBe(3);
    await log.expectWhole();
  });

  it.each([
    { stored: "in files", class: "file", isAtOnce: true },
    { stored: "in files, with a set time", class: "file", baseSyncMs: SYNC_MS, isAtOnce: false },
    { stored: "on replicas", class: "replicated", isAtOnce: false },
  ])(
    "after the base before is synced, in a journal $stored",
    async ({ class: name, baseSyncMs, isAtOnce }) => {
      const log = await MemoryLedLog.start();
      Object.defineProperty(log.journal, "durability", { value: { class: name, sentence: "" } });
      const compacted = new CompactedLog(log, { baseSyncMs } as Partial<CompactionDeps>);
      await compacted.base();
      await log.submit(20);
      await compacted.pass(SYNC_MS - 1_000);
      expect(log.number).toBe(isAtOnce ? 3 : 2);
      await compacted.pass(limits.baseSyncMs);
      expect(log.number).toBe(3);
    },
  );

  it("a day after the newest one, also where little happens, and not where nothing does", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    const { log } = compacted;
    await compacted.base();
    await log.clock.advance(limits.baseMs);
    log.turns.pass(limits.baseMs);
    await compacted.pulse();
    expect(log.number).toBe(2);
    await log.submit(1);
    for (let looks = 0; looks < 3; looks += 1) await compacted.pulse();
    expect(log.number).toBe(3);
  });

  it("while the journal is short of room", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    compacted.isShort = true;
    for (let looks = 0; looks < 3; looks += 1) await compacted.pulse();
    expect(compacted.log.number).toBe(2);
  });

  it("and not at each batch while it stays short, where nothing waits for a sync", async () => {
    const log = await MemoryLedLog.start();
    const compacted = new CompactedLog(log, { baseSyncMs: 0, everyEvents: Number.POSITIVE_INFINITY });
    compacted.isShort = true;
    for (let second = 0; second < limits.baseShortMs; second += 1_000) {
      await log.submit(1);
      await compacted.pass(1_000);
    }
    expect(log.number).toBe(2);
    await log.submit(1);
    await compacted.pass(1_000);
    expect(log.number).toBe(3);
  });

  it("when the newest one cannot be read, and is made from the base before it", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    const { log } = compacted;
    await compacted.base();
    await log.submit(3);
    log.store.damageRecord(2, log.live.opened.base?.position ?? 0);
    const next = new CompactedLog(log); // a later term
    for (let looks = 0; looks < 3; looks += 1) await next.pulse();
    expect(log.number).toBe(3);
    await log.expectWhole();
  });
});

describe("the status of compaction", () => {
  it("names the newest base, its age and its size", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    expect(compacted.compaction.status).toEqual({ newest: undefined, failure: undefined });
    const { opened } = await compacted.base();
    await compacted.pulse();
    const { newest } = compacted.compaction.status;
    expect(newest).toMatchObject({ idx: opened.base?.idx, at: compacted.log.turns.at });
    expect(newest?.bytes).toBeGreaterThan(500);
  });

  it("names the last failure until the next success", async () => {
    let isFailing = true;
    const log = await MemoryLedLog.start();
    const here = baseMakerHere(log);
    const maker = aMaker((order, signal) =>
      isFailing ? Promise.reject(new UnreachableError("no server answers")) : here.make(order, signal),
    );
    const compacted = new CompactedLog(log, { maker });
    await log.submit(10);
    await compacted.pass(1_000);
    expect(compacted.compaction.status.failure).toBe("no server answers");
    isFailing = false;
    await compacted.pass(limits.baseRetryMs);
    expect(compacted.compaction.status.failure).toBeUndefined();
    expect(log.number).toBeGreaterThan(1);
  });
});

describe("a segment that could not be made", () => {
  it("is tried again after a pause that doubles, under a number of its own", async () => {
    const numbers: number[] = [];
    const log = await MemoryLedLog.start();
    const maker = aMaker(({ number }) => {
      numbers.push(number);
      return Promise.reject(new SegmentLostError(number, "it is sealed", "rival"));
    });
    const compacted = new CompactedLog(log, { maker });
    await log.submit(10);
    await compacted.pass(limits.baseRetryMs);
    expect(numbers).toHaveLength(1);
    await compacted.pass(limits.baseRetryMs);
    expect(numbers).toHaveLength(2);
    await compacted.pass(limits.baseRetryMs);
    expect(numbers).toHaveLength(2);
    await compacted.pass(limits.baseRetryMs * 2);
    expect(numbers).toHaveLength(3);
    expect(new Set(numbers).size).toBe(3);
  });

  it("leaves nothing behind but a higher claim, so no rival takes the number", async () => {
    const log = await MemoryLedLog.start();
    const here = baseMakerHere(log);
    const maker = aMaker((order, signal) => here.make({ ...order, bytesMax: 1_000_000 }, signal));
    const compacted = new CompactedLog(log, { maker });
    await log.submit(10, 200_000);
    await compacted.pulse();
    await compacted.pulse();
    expect(compacted.compaction.status.failure).toMatch(/needs more than the 1000000 bytes/);
    expect(compacted.segments).toEqual([1, 3]);
    expect(log.store.end(3)?.position).toBe(1);
    await compacted.pass(limits.baseRetryMs);
    expect(compacted.segments).toEqual([1, 5]);
  });

  it("stays if a rival session claimed the segment", async () => {
    const log = await MemoryLedLog.start();
    const here = baseMakerHere(log);
    const maker = aMaker((order, signal) => {
      log.store.create(order.number);
      log.store.insert(
        order.number,
        encodeRecord({ kind: "claim", segment: order.number, session: "session-2", attempt: "attempt-1" }),
      );
      log.store.insert(order.number, new Uint8Array(9));
      return here.make(order, signal);
    });
    const compacted = new CompactedLog(log, { maker });
    await log.submit(10);
    await compacted.pulse();
    await compacted.pulse();
    expect(compacted.segments).toEqual([1, 2]);
  });

  it("is the leader's to mend once damage is met twice in a row", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    await compacted.log.submit(10);
    compacted.log.store.loseRecords(1, 4);
    await compacted.pass(limits.baseRetryMs - 1_000);
    expect(compacted.damages).toEqual([]);
    await compacted.pass(limits.baseRetryMs);
    expect(compacted.damages).toEqual([expect.stringContaining("record 4 of segment 1 is missing")]);
  });
});

describe("a segment in the making", () => {
  it("is the only one: nothing else is made until the leader goes on in it", async () => {
    const compacted = new CompactedLog(await MemoryLedLog.start());
    await compacted.log.submit(10);
    for (let looks = 0; looks < 5; looks += 1) await compacted.look();
    expect(compacted.ready).toHaveLength(1);
    expect(compacted.segments).toEqual([1, 2]);
  });

  it("is given up when the term ends, and not handed over", async () => {
    const { compacted, signals, finish } = await underWay();
    compacted.compaction.end();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    finish();
    await compacted.look();
    expect(compacted.ready).toEqual([]);
    expect(signals).toHaveLength(1);
  });

  it("is given up when the connection breaks, and begun anew at once", async () => {
    const { compacted, signals, finish } = await underWay();
    compacted.log.journal.setOffline(true);
    compacted.log.journal.setOffline(false);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    finish();
    await compacted.look();
    await compacted.look();
    expect(compacted.ready).toEqual([]);
    expect(signals).toHaveLength(2);
    expect(compacted.compaction.status.failure).toBeUndefined();
  });

  it("is given up when the leader takes the lead again, and nothing is begun until it leads", async () => {
    const { compacted, signals, finish } = await underWay();
    compacted.compaction.pause();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    finish();
    for (let looks = 0; looks < 3; looks += 1) await compacted.look();
    expect(compacted.ready).toEqual([]);
    expect(signals).toHaveLength(1);
    await compacted.log.change();
    compacted.compaction.changed(compacted.log.live);
    await compacted.log.submit(10);
    await compacted.log.clock.advance(SYNC_MS);
    for (let looks = 0; looks < 3; looks += 1) await compacted.look();
    expect(signals).toHaveLength(2);
  });

  it("is given up when the leader goes on in another segment", async () => {
    const { compacted, signals, finish } = await underWay();
    await compacted.log.change();
    compacted.compaction.changed(compacted.log.live);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    finish();
    await compacted.look();
    expect(compacted.ready).toEqual([]);
  });

  /** A maker that never ends. */
  async function underWay() {
    const signals: AbortSignal[] = [];
    const waiting: (() => void)[] = [];
    const log = await MemoryLedLog.start();
    const here = baseMakerHere(log);
    const maker = aMaker(async (order, signal) => {
      signals.push(signal);
      const made = await here.make(order, new AbortController().signal);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return made;
    });
    const compacted = new CompactedLog(log, { maker });
    await log.submit(10);
    await compacted.look();
    await compacted.look();
    expect(signals).toHaveLength(1);
    return { compacted, signals, finish: () => waiting.shift()?.() };
  }
});

it("a journal that is out of reach is said to be, once for each try", async () => {
  const log = await MemoryLedLog.start();
  const compacted = new CompactedLog(log);
  log.journal.setOffline(true);
  await compacted.pass(1_000);
  expect(compacted.compaction.status.failure).toMatch(/offline/);
  expect(compacted.damages).toEqual([]);
  log.journal.setOffline(false);
  await log.submit(10);
  await compacted.pass(limits.baseRetryMs);
  expect(compacted.compaction.status.failure).toBeUndefined();
  expect(log.number).toBe(2);
});
