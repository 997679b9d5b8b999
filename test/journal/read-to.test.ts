// The state before one batch: from the newest early base, or from the beginning, and the same from both.

import { describe, expect, it } from "vitest";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { AuditTrimmedError } from "../../src/errors.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { readTo } from "../../src/journal/read-to.ts";
import { aCompactedLog, aLongLog } from "./tampered.ts";

type Log = Awaited<ReturnType<typeof aCompactedLog>>;

async function read(log: Log, idx: number, before = 0) {
  const seen: number[] = [];
  const onBatch = (batch: { readonly idx: number }) => seen.push(batch.idx);
  const journal = new MemoryJournal(log.store);
  const found = await readTo({ journal, clock: log.clock }, { idx, before, onBatch });
  return { found, seen };
}

const linesOf = (state: Parameters<typeof encodeState>[0]) => [...encodeState(state)];
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

describe("the state before a batch", () => {
  it("is read from the newest base before it, and is that of a reading from the beginning", async () => {
    const log = await aCompactedLog();
    const { idx } = log.tail;
    const fromBase = await read(log, idx);
    const fromStart = await read(log, idx, idx);
    expect(fromStart.seen).toEqual(numbers(1, idx - 1));
    expect(fromBase.found?.firstIdx).toBeGreaterThan(11);
    expect(fromBase.seen).toEqual(numbers(fromBase.found?.firstIdx ?? 0, idx - 1));
    expect(fromBase.found?.batch).toEqual(fromStart.found?.batch);
    expect(fromBase.found?.state.idx).toBe(idx - 1);
    expect(linesOf(fromBase.found?.state ?? expect.fail("found"))).toEqual(
      linesOf(fromStart.found?.state ?? expect.fail("found")),
    );
  });

  it("gives the batches before it that are wanted, over bases and segments", async () => {
    const log = await aCompactedLog();
    const { found, seen } = await read(log, log.tail.idx, log.tail.idx - 11);
    expect(found?.firstIdx).toBe(11);
    expect(seen.length).toBe(log.tail.idx - 11);
  });

  it("is read through several segments without a base", async () => {
    const log = await aLongLog();
    expect((await read(log, log.tail.idx)).found).toMatchObject({
      firstIdx: 1,
      batch: { idx: log.tail.idx },
    });
    expect((await read(log, 1)).found).toMatchObject({ firstIdx: 1, batch: { idx: 1 }, state: { idx: 0 } });
  });

  it("is absent beyond the end, and refused before the first kept base", async () => {
    const log = await aCompactedLog();
    expect((await read(log, log.tail.idx + 1)).found).toBeUndefined();
    await log.journal.remove(1);
    expect((await read(log, 11)).found?.batch.idx).toBe(11);
    const error = await read(log, 10).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AuditTrimmedError);
    expect(error).toMatchObject({ firstIdx: 11 });
  });
});
