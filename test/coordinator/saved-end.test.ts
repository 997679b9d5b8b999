// Whether a journal that goes on differently holds all the same what was committed: only where that can be shown.

import { expect, it } from "vitest";
import { isSavedByAnother } from "../../src/coordinator/repair/saved-end.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import type { Run } from "../../src/journal/batch-places.ts";
import { MemoryJournalStore } from "../../src/journal/memory.ts";
import type { ChainPosition } from "../../src/journal/replay.ts";
import type { Manifest } from "../../src/journal/snapshot/manifest.ts";
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
  return askAs([], manifest, ...records);
}

/** @param ownHashes of the batches up to which who asks saved its own state */
function askAs(
  ownHashes: readonly string[],
  manifest: Manifest,
  ...records: readonly Uint8Array[]
): Promise<boolean> {
  const store = new MemoryJournalStore();
  for (const bytes of [alien, ...records]) store.insertRival(bytes);
  const reaching = async function* (isReaching: (position: ChainPosition) => boolean) {
    if (isReaching(manifest.position)) yield manifest;
  };
  return isSavedByAnother(own, { journal: store.open(), readable: { reaching } }, new Set(ownHashes));
}

it("is where a batch behind a snapshot of it continues that, dead records between or not", async () => {
  expect(await ask(saved({}), following(own, 3))).toBe(true);
  expect(await ask(saved({}), following(own, 2))).toBe(true);
  const other = following({ ...own, idx: batchIndex(4), hash: "of-four" }, 2);
  expect(await ask(saved({}), alien, other, following(own, 3))).toBe(true);
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
    journal: store.open(),
    readable: {
      async *reaching() {
        yield saved(later, [[9, seq, 12]]);
      },
    },
  });
  expect(await isSavedByAnother(tail, standsAt(1))).toBe(true);
  expect(await isSavedByAnother(tail, standsAt(2))).toBe(false);
  expect(await isSavedByAnother(tail, standsAt(3))).toBe(false);
  store.purgeBelow(3);
  expect(await isSavedByAnother(tail, standsAt(2))).toBe(true);
  expect(await isSavedByAnother(tail, standsAt(3))).toBe(false);
  expect(await ask(saved({ ...later, term: own.term }, [[10, 1, 11]]))).toBe(false);
});

it("is where another, of this term or a later one, saved more of it and went on before where it stood", async () => {
  const more = { idx: batchIndex(20), hash: "of-twenty", seq: 4 };
  expect(await ask(saved(more, [[1, 1, 20]]))).toBe(true);
  expect(await ask(saved({ ...more, term: term(3) }, [[1, 1, 20]]))).toBe(true);
  expect(await ask(saved({ ...more, term: term(1) }, [[1, 1, 20]]))).toBe(false);
  expect(await ask(saved({ ...more, seq: 9 }, [[1, 1, 20]]))).toBe(false);
});

it("is not where only the snapshot says so of who asks", async () => {
  const more = { idx: batchIndex(20), hash: "of-twenty", seq: 4 };
  expect(await askAs(["of-thirty", "of-twenty"], saved(more, [[1, 1, 20]]))).toBe(false);
  expect(await askAs(["of-thirty"], saved(more, [[1, 1, 20]]))).toBe(true);
});
