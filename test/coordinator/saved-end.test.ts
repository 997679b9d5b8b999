// Whether a journal that goes on differently holds all the same what was committed: only where that can be shown.

import { describe, expect, it, vi } from "vitest";
import { type HeldEnd, isSavedByAnother } from "../../src/coordinator/repair/saved-end.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import type { Run } from "../../src/journal/batch-places.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import type { ChainPosition } from "../../src/journal/replay.ts";
import type { Manifest } from "../../src/journal/snapshot/manifest.ts";
import { limits } from "../../src/limits.ts";
import { following } from "../support/following.ts";

/** What a coordinator had committed, at some record that the journal lost. */
const own = { idx: batchIndex(9), term: term(2), hash: "of-nine", journal: "j" };
const alien = Buffer.from("not a batch");

function saved(position: Partial<ChainPosition>, runs: readonly Run[] = []): Manifest {
  const rest = {
    at: instant(1),
    lastEventType: undefined,
    deadRecords: 0,
    alienRecords: undefined,
    chunks: [],
  };
  return { ...rest, position: { ...own, seq: 1, ...position }, runs };
}

/** With these records, of which the first is what is left of the journal. */
function ask(manifest: Manifest, ...records: readonly Uint8Array[]): Promise<boolean> {
  return askAs({ committed: [own] }, manifest, ...records);
}

function askAs(held: HeldEnd, manifest: Manifest, ...records: readonly Uint8Array[]): Promise<boolean> {
  const store = new MemoryJournalStore();
  for (const bytes of [alien, ...records]) store.insertRival(bytes);
  const reaching = async function* (isReaching: (position: ChainPosition) => boolean) {
    if (isReaching(manifest.position)) yield manifest;
  };
  return isSavedByAnother(held, { journal: new MemoryJournal(store), readable: { reaching } });
}

it("is where a batch behind a snapshot of it continues that, dead records between or not", async () => {
  expect(await ask(saved({}), following(own, 3))).toBe(true);
  expect(await ask(saved({}), following(own, 2))).toBe(true);
  const other = following({ ...own, idx: batchIndex(4), hash: "of-four" }, 2);
  expect(await ask(saved({}), alien, other, following(own, 3))).toBe(true);
});

it("is not where somebody went on from before it, though one that was in flight continues it", async () => {
  const late = following(own, 2);
  const lateTail = { ...own, idx: batchIndex(10), hash: hashOf(late) };
  const before = following({ ...own, idx: batchIndex(8), hash: "of-eight" }, 3);
  expect(await ask(saved({}), alien, late, before)).toBe(false);
  expect(await ask(saved({}), late, following(lateTail, 3))).toBe(true);
  const foreign = Buffer.from(Buffer.from(before).toString().replace('"journal":"j"', '"journal":"k"'));
  expect(await ask(saved({}), foreign, following(own, 3))).toBe(true);
  expect(await ask(saved({}), late, before, following(lateTail, 3))).toBe(false);
});

it("is not where others wrote up to where it ends, and what was in flight stands behind that", async () => {
  const before = following({ ...own, idx: batchIndex(8), hash: "of-eight" }, 3);
  const stoodAt = (seq: number): Run[] => [[1, seq - 8, 9]];
  expect(await ask(saved({ seq: 2 }, stoodAt(2)), before, following(own, 4))).toBe(false);
  expect(await ask(saved({ seq: 3 }, stoodAt(2)), before, alien, following(own, 4))).toBe(false);
  expect(await ask(saved({ seq: 3 }, stoodAt(2)), alien, alien, following(own, 4))).toBe(true);
});

it("…nor where its last batch was lost before, and others wrote from the last one that stood", async () => {
  const before = following({ ...own, idx: batchIndex(7), hash: "of-seven" }, 3);
  const lostAt = (seq: number): Run[] => [
    [8, 1, 1],
    [9, seq, 1],
  ];
  expect(await ask(saved({ seq: 3 }, lostAt(9)), before, alien, following(own, 4))).toBe(false);
  expect(await ask(saved({ seq: 3 }, lostAt(9)), alien, alien, following(own, 4))).toBe(true);
});

it("…nor where the place of that one was written over by somebody whom everybody skips", async () => {
  const before = following({ ...own, idx: batchIndex(7), hash: "of-seven" }, 3);
  const stoodAt2: Run[] = [
    [8, 2, 1],
    [9, 9, 1],
  ];
  const store = new MemoryJournalStore();
  for (const bytes of [before, alien, alien, following(own, 4)]) store.insertRival(bytes);
  const readable = {
    async *reaching() {
      yield saved({ seq: 3 }, stoodAt2);
    },
  };
  expect(await isSavedByAnother({ committed: [own] }, { journal: new MemoryJournal(store), readable })).toBe(false);
});

it("is not known while it is not found what stands where it ends", async () => {
  const store = new MemoryJournalStore();
  for (const bytes of [alien, alien, following(own, 4)]) store.insertRival(bytes);
  const journal = new MemoryJournal(store);
  const { read } = journal;
  let isHidden = true;
  journal.read = async (seq) => (seq === 2 && isHidden ? undefined : read.call(journal, seq));
  const readable = {
    async *reaching() {
      yield saved({ seq: 2 });
    },
  };
  expect(await isSavedByAnother({ committed: [own] }, { journal, readable })).toBe(false);
  isHidden = false;
  expect(await isSavedByAnother({ committed: [own] }, { journal, readable })).toBe(true);
});

it("is known after a few records, however many follow", async () => {
  const line = [following(own, 2)];
  for (let idx = 10; idx < 20; idx += 1)
    line.push(following({ ...own, idx: batchIndex(idx), hash: hashOf(line.at(-1) as Uint8Array) }, 2));
  const store = new MemoryJournalStore();
  for (const bytes of [alien, ...line]) store.insertRival(bytes);
  const journal = new MemoryJournal(store);
  const read = vi.spyOn(journal, "read");
  const readable = {
    async *reaching() {
      yield saved({});
    },
  };
  expect(await isSavedByAnother({ committed: [own] }, { journal, readable })).toBe(true);
  expect(read).toHaveBeenCalledTimes(limits.batchesInFlightMax + 2);
});

it("is not known where nothing stands behind the snapshot, or another line: it may be our own", async () => {
  expect(await ask(saved({}))).toBe(false);
  expect(await ask(saved({}), following({ ...own, idx: batchIndex(4), hash: "of-four" }, 3))).toBe(false);
  expect(await ask(saved({ hash: "of-another-nine" }), following(own, 3))).toBe(false);
  expect(await ask(saved({ idx: batchIndex(8) }), following(own, 3))).toBe(false);
});

it("is where a later term's snapshot went past it, and its batch stands there or nowhere", async () => {
  const later = { idx: batchIndex(20), term: term(3), hash: "of-twenty", seq: 40 };
  const batch = following({ ...own, idx: batchIndex(8), hash: "of-eight" }, 2);
  const tail = { ...own, hash: hashOf(batch) };
  expect(await ask(saved(later, [[10, 1, 11]]))).toBe(true);
  const store = new MemoryJournalStore();
  for (const bytes of [batch, following(own, 2)]) store.insertRival(bytes);
  const standsAt = (seq: number) => ({
    journal: new MemoryJournal(store),
    readable: {
      async *reaching() {
        yield saved(later, [[9, seq, 12]]);
      },
    },
  });
  expect(await isSavedByAnother({ committed: [tail] }, standsAt(1))).toBe(true);
  expect(await isSavedByAnother({ committed: [tail] }, standsAt(2))).toBe(false);
  expect(await isSavedByAnother({ committed: [tail] }, standsAt(3))).toBe(false);
  store.purgeBelow(3);
  expect(await isSavedByAnother({ committed: [tail] }, standsAt(2))).toBe(true);
  expect(await isSavedByAnother({ committed: [tail] }, standsAt(3))).toBe(false);
  expect(await ask(saved({ ...later, term: own.term }, [[10, 1, 11]]))).toBe(false);
});

it("is where another, of this term or a later one, saved more of it and went on before where it stood", async () => {
  const more = { idx: batchIndex(20), hash: "of-twenty", seq: 4 };
  expect(await ask(saved(more, [[1, 1, 20]]))).toBe(true);
  expect(await ask(saved({ ...more, term: term(3) }, [[1, 1, 20]]))).toBe(true);
  expect(await ask(saved({ ...more, term: term(1) }, [[1, 1, 20]]))).toBe(false);
  expect(await ask(saved({ ...more, seq: 9 }, [[1, 1, 20]]))).toBe(false);
});

describe("of who saved more than the journal took", () => {
  const ten = { ...own, idx: batchIndex(10), hash: "of-ten" };
  const eleven = { ...own, idx: batchIndex(11), hash: "of-eleven" };
  const isOwn = { ...eleven, seq: 4 };

  it.each<HeldEnd>([
    { committed: [own, ten, eleven] },
    { committed: [own, ten], inFlight: [eleven] },
    { committed: [own], inFlight: [ten, eleven] },
  ])("it is where another went on behind any of it: %j", async (held) => {
    for (const each of [ten, eleven]) {
      expect(await askAs(held, saved(each), following(each, 3))).toBe(true);
      expect(await askAs(held, saved(each))).toBe(false);
      expect(await askAs(held, saved(each), following({ ...own, hash: "of-another-nine" }, 3))).toBe(false);
    }
  });

  it("its own snapshot does not say so of what is before it, another's does", async () => {
    const runs: Run[] = [[1, 1, 20]]; // the ninth stood behind where the journal goes on now
    expect(await askAs({ committed: [own, ten, eleven] }, saved(isOwn, runs))).toBe(false);
    expect(await askAs({ committed: [own], inFlight: [ten, eleven] }, saved(isOwn, runs))).toBe(false);
    expect(await askAs({ committed: [own, ten] }, saved(isOwn, runs))).toBe(true);
  });

  it("it is not where another's line stands in the place of the first, whatever that says of those behind it", async () => {
    const later = { idx: batchIndex(20), term: term(3), hash: "of-twenty", seq: 40 };
    const runs: Run[] = [[9, 1, 1]]; // where the tenth stands is not known
    expect(await askAs({ committed: [own, ten, eleven] }, saved(later, runs))).toBe(false);
    expect(await askAs({ committed: [ten, eleven] }, saved(later, runs))).toBe(true);
  });

  it("what was in flight need not stand where another's snapshot says nothing of it", async () => {
    const later = { idx: batchIndex(20), term: term(3), hash: "of-twenty", seq: 40 };
    const isAnothersNinth: Run[] = [[9, 1, 1]]; // and of no later one a place is known
    expect(await askAs({ committed: [own], inFlight: [ten] }, saved(later, isAnothersNinth))).toBe(false);
  });
});
