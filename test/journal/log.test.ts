// The log over several segments: read from the newest readable base, continued, and compared with a local log.

import { beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { term } from "../../src/ids.ts";
import { readBase, verifyBase, writeBase } from "../../src/journal/base.ts";
import { findLive } from "../../src/journal/live.ts";
import { bringUpTo, compare, readOn, restore } from "../../src/journal/log.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { type ChainTail, decodeRecord, encodeRecord, type Opened } from "../../src/journal/records.ts";
import { Replay } from "../../src/journal/replay.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { Rival } from "../support/stored.ts";

const renewed = { type: "TermRenewed" } as const;
const clock = new ManualClock();
let store: MemoryJournalStore;
let journal: MemoryJournal;
let writer: Rival;
let tail: ChainTail;

beforeEach(() => {
  store = new MemoryJournalStore({ clock });
  journal = new MemoryJournal(store);
  writer = new Rival(store, "writer");
  tail = writer.begin(4);
});

const live = async () => (await findLive(journal)).live ?? expect.fail("a segment is live");
const read = async () => await restore(await live(), { journal, clock });
const append = (count: number) => {
  const number = store.list().at(-1) ?? 0;
  for (let n = 0; n < count; n += 1) tail = writer.batch(number, tail, [renewed]);
};

/** The next segment continues the log, with a base or by reference. @returns its number */
async function next(withBase: boolean): Promise<number> {
  const log = await read();
  const before = store.list().at(-1) ?? 0;
  store.seal(before);
  const number = writer.claim();
  const put = async (bytes: Uint8Array) => store.insert(number, bytes);
  const base = withBase ? await writeBase(log, { session: "writer", clock, put }) : undefined;
  const opened: Opened = {
    kind: "opened",
    segment: number,
    session: "writer",
    journal: log.tail.journal,
    term: term(number),
    leader: "c1",
    tail: log.tail,
    previous: { segment: before, idx: log.tail.idx, hash: log.tail.hash },
    base,
    recent: log.recent.upTo(log.tail.idx, 100),
  };
  store.insert(number, encodeRecord(opened), true);
  tail = writer.start(number, log.tail, (await live()).openedHash);
  append(2);
  return number;
}

/** Where a segment's base stands. */
const baseOf = (number: number) => {
  const opened = decodeRecord(store.opened(number)?.bytes ?? new Uint8Array());
  return (opened?.kind === "opened" ? opened.base : undefined) ?? expect.fail("it has a base");
};

describe("bringing a log up to the batches that its leader acknowledged", () => {
  /** The bytes of the batches of the first segment, before the journal loses any. */
  const held = () =>
    new Map([3, 4, 5, 6].map((position, at) => [at + 1, store.read(1, position)?.bytes] as const));

  it("changes nothing if the storage has all acknowledged batches", async () => {
    const log = await read();
    bringUpTo(log, tail, () => expect.fail("nothing is missing"));
    expect([log.tail, log.isAhead]).toEqual([tail, false]);
  });

  it("restores lost batches, and is ahead until the storage has them again", async () => {
    const [acknowledged, bytes] = [tail, held()];
    const { state } = await read();
    store.loseTail(1, 2);
    const log = await read();
    bringUpTo(log, acknowledged, (idx) => bytes.get(idx));
    expect([log.tail, log.isAhead]).toEqual([acknowledged, true]);
    expect(fingerprint(log.state)).toBe(fingerprint(state));
    for (const idx of [3, 4]) store.insert(1, bytes.get(idx) ?? expect.fail("it was held"));
    expect(await readOn(log, await live(), journal)).toBe(true);
    expect([log.tail, log.isAhead]).toEqual([acknowledged, false]);
  });

  it("throws if the logs differ, and if a lost batch is not in memory", async () => {
    const [acknowledged, bytes] = [tail, held()];
    store.loseTail(1, 2);
    const short = await read();
    expect(() => bringUpTo(short, acknowledged, (idx) => (idx === 4 ? bytes.get(4) : undefined))).toThrow(
      "lost batch 3",
    );
    tail = writer.batch(1, (await read()).tail, [renewed, renewed]);
    const parted = await read();
    expect(() => bringUpTo(parted, acknowledged, (idx) => bytes.get(idx))).toThrow(JournalDamagedError);
    append(2);
    const longer = await read();
    expect(() => bringUpTo(longer, acknowledged, (idx) => bytes.get(idx))).toThrow(
      "batch 4 in the journal differs",
    );
    await next(true);
    const ofBase = await read();
    expect(() => bringUpTo(ofBase, acknowledged, (idx) => bytes.get(idx))).toThrow(
      "batch 4 in the journal differs",
    );
  });
});

describe("a restart", () => {
  it("reads the log over segments that continue each other by reference", async () => {
    await next(false);
    await next(false);
    expect((await read()).tail).toEqual(tail);
  });

  it("begins at the newest base: earlier segments may be missing", async () => {
    await next(false);
    const number = await next(true);
    const whole = fingerprint((await read()).state);
    await next(false);
    for (let gone = 1; gone < number; gone += 1) store.remove(gone);
    const log = await read();
    expect(log.tail).toEqual(tail);
    expect(fingerprint((await restore(await live(), { journal, clock })).state)).toBe(fingerprint(log.state));
    expect(whole).not.toBe("");
  });

  it.each<[string, (number: number) => void]>([
    ["a chunk that is lost", (number) => store.loseRecords(number, 2)],
    ["a chunk that cannot be read", (number) => store.damageRecord(number, 2)],
    ["a manifest that is lost", (number) => store.loseRecords(number, baseOf(number).position)],
  ])(
    "passes over a base with %s while the segments before it are kept, and halts without them",
    async (_, damage) => {
      const number = await next(true);
      damage(number);
      const { tail: found, state } = await read();
      expect([found, state.idx]).toEqual([tail, tail.idx]);
      store.remove(1);
      await expect(read()).rejects.toBeInstanceOf(JournalDamagedError);
    },
  );

  it("halts if a segment of the chain is missing, or ends before the next segment begins", async () => {
    await next(false);
    await next(false);
    store.loseTail(2, 1);
    await expect(read()).rejects.toBeInstanceOf(JournalDamagedError);
    store.remove(2);
    await expect(read()).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("halts at a lost or unreadable record", async () => {
    store.damageRecord(1, 4);
    await expect(read()).rejects.toBeInstanceOf(JournalDamagedError);
    store.loseRecords(1, 4);
    await expect(read()).rejects.toBeInstanceOf(JournalDamagedError);
  });
});

describe("continuing a local log", () => {
  it("reads the rest of the segment and all later segments", async () => {
    const held = await read();
    append(2);
    await next(false);
    await next(true);
    expect(await readOn(held, await live(), journal)).toBe(true);
    expect(held.tail).toEqual(tail);
    expect(fingerprint(held.state)).toBe(fingerprint((await read()).state));
  });

  it("needs no segment already read", async () => {
    await next(false);
    const held = await read();
    await next(true);
    store.remove(1);
    store.remove(2);
    expect(await readOn(held, await live(), journal)).toBe(true);
    expect(held.tail).toEqual(tail);
  });

  it("reports stored records that a restart could not read", async () => {
    const held = await read();
    store.loseRecords(1, 4);
    append(1);
    expect(await readOn(held, await live(), journal)).toBe(false);
    expect(held.tail).toEqual(tail);
  });

  it("throws if the stored log differs, or lost its end", async () => {
    const held = await read();
    store.loseTail(1, 1);
    await expect(readOn(held, await live(), journal)).rejects.toBeInstanceOf(JournalDamagedError);
    store.insert(1, Buffer.from("another"));
    await expect(readOn(held, await live(), journal)).rejects.toBeInstanceOf(JournalDamagedError);
  });
});

describe("a local log compares with the stored log", () => {
  it("as a beginning, in the newest segment or an earlier segment", async () => {
    const held = await read();
    expect(await compare(held, await live(), journal)).toBe("beginning");
    append(2);
    expect(await compare(held, await live(), journal)).toBe("beginning");
    await next(true);
    expect(await compare(held, await live(), journal)).toBe("beginning");
    expect(await compare(new Replay(), await live(), journal)).toBe("beginning");
  });

  it("as longer if the stored log lost its end, even a whole segment", async () => {
    append(2);
    const held = await read();
    store.loseTail(1, 2);
    expect(await compare(held, await live(), journal)).toBe("longer");
    append(0);
    store = new MemoryJournalStore({ clock });
    journal = new MemoryJournal(store);
    writer = new Rival(store, "writer");
    tail = writer.begin(4);
    await next(false);
    const more = await read();
    store.loseSegment(2);
    expect(await compare(more, await live(), journal)).toBe("longer");
  });

  it("as longer, read from a base, if the stored log lost all segments from the base on", async () => {
    await next(true);
    append(2);
    const held = await read();
    store.loseTail(1, 2);
    store.loseSegment(2);
    expect(await compare(held, await live(), journal)).toBe("longer");
  });

  it("as different if the batches of one index differ", async () => {
    const held = await read();
    const { tail: end } = held;
    append(2);
    const more = await read();
    store.loseTail(1, 2);
    for (let n = 0, at = 1; n < 3; n += 1, at += 1) {
      const other = n === 0 ? end : tail;
      tail = writer.batch(1, other, [renewed], ManualClock.startMs + at);
    }
    expect(await compare(more, await live(), journal)).toBe("different");
    expect(await compare(held, await live(), journal)).toBe("beginning");
  });

  it("as longer than a damaged log that it was read to the end of, otherwise as unreadable", async () => {
    const held = await read();
    append(2);
    const more = await read();
    store.loseRecords(1, 7);
    expect(await compare(more, await live(), journal)).toBe("longer");
    expect(await compare(held, await live(), journal)).toBe("unreadable");
    store.loseRecords(1, 3, 3); // nothing can be read
    expect(await compare(more, await live(), journal)).toBe("longer");
    expect(await compare(held, await live(), journal)).toBe("unreadable");
  });
});

describe("a base", () => {
  it("is read back unchanged, with or without foreign records between the parts", async () => {
    const log = await read();
    const number = writer.claim();
    store.insert(number, Buffer.from("foreign"));
    const put = async (bytes: Uint8Array) => {
      const position = store.insert(number, bytes);
      store.insert(number, Buffer.from("foreign"));
      return position;
    };
    const base = await writeBase(log, { session: "writer", clock, put });
    await verifyBase(journal.segment(number), base);
    const opened: Opened = {
      kind: "opened",
      segment: number,
      session: "writer",
      journal: tail.journal,
      term: term(number),
      leader: "c1",
      tail,
      previous: undefined,
      base,
      recent: [],
    };
    store.insert(number, encodeRecord(opened), true);
    const back = await readBase(journal.segment(number), await live(), clock);
    expect(back.tail).toEqual(tail);
    expect(fingerprint(back.state)).toBe(fingerprint(log.state));
  });

  it("fails the check if a part has changed", async () => {
    const number = await next(true);
    const segment = journal.segment(number);
    await verifyBase(segment, baseOf(number));
    await expect(verifyBase(segment, { ...baseOf(number), hash: "another" })).rejects.toBeInstanceOf(
      JournalDamagedError,
    );
    store.damageRecord(number, 2);
    await expect(verifyBase(segment, baseOf(number))).rejects.toBeInstanceOf(JournalDamagedError);
  });
});
