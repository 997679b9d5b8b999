// Whose line of batches a journal ends with that lost its end: read from what is left of it.

import { expect, it, vi } from "vitest";
import { type LineOwner, ownerOfEnd } from "../../src/coordinator/repair/line-end.ts";
import { batchIndex, term } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { type ChainTail, foldedBehind, Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import { following } from "../support/following.ts";

const alien = Buffer.from("not a batch");

/** Four batches in as many records, as a coordinator folded them. */
function fourBatches() {
  const replay = new Replay();
  const records: Uint8Array[] = [];
  const tails: ChainTail[] = [];
  for (let seq = 1; seq <= 4; seq += 1) {
    const bytes = following(replay.position);
    expect(replay.take({ seq, bytes })).toMatchObject({ kind: "applied" });
    records.push(bytes);
    tails.push(replay.position);
  }
  return { folded: replay, records, tails };
}

interface Scene {
  readonly records: readonly Uint8Array[];
  readonly mayReplace?: boolean;
  readonly mayLack?: boolean;
}

async function ask({ records, mayReplace = false, mayLack = false }: Scene): Promise<LineOwner> {
  const { folded } = fourBatches();
  const store = new MemoryJournalStore();
  for (const bytes of records) store.insertRival(bytes);
  return ownerOfEnd(store.lastSeq, folded, { journal: new MemoryJournal(store), mayReplace, mayLack });
}

it("is ours where it ends with a batch of ours, dead records behind it or not", async () => {
  const { records, tails } = fourBatches();
  const [, , third] = tails as [ChainTail, ChainTail, ChainTail];
  expect(await ask({ records: records.slice(0, 2) })).toBe("ours");
  const elsewhere = following({ ...third, hash: "of-another-three" }, 1);
  for (const mayReplace of [false, true])
    expect(await ask({ records: [...records, alien, elsewhere, alien], mayReplace })).toBe("ours");
});

it("is ours where it ends with a batch of ours that was said to be lost, for its server knew less", async () => {
  const { folded, records } = fourBatches();
  const restarted = new Replay(foldedBehind(folded, 2)); // the third and fourth were not found
  const [, , third = alien] = records;
  expect(restarted.take({ seq: 3, bytes: third })).toMatchObject({ kind: "dead" });
  const begun = following(restarted.position, 2);
  expect(restarted.take({ seq: 4, bytes: begun })).toMatchObject({ kind: "applied" });
  const store = new MemoryJournalStore();
  for (const bytes of records.slice(0, 3)) store.insertRival(bytes);
  for (const mayReplace of [false, true])
    expect(await ownerOfEnd(3, restarted, { journal: new MemoryJournal(store), mayReplace })).toBe("ours");
});

it("is another's where a batch goes on behind ours, in the place of one of ours or not", async () => {
  const { records, tails } = fourBatches();
  const [, second] = tails as [ChainTail, ChainTail];
  const begun = following(second, 2);
  const next = following({ idx: batchIndex(3), hash: hashOf(begun), term: term(2) }, 2);
  for (const mayReplace of [false, true]) {
    const left = records.slice(0, 2);
    expect(await ask({ records: [...left, begun], mayReplace })).toBe("another");
    expect(await ask({ records: [...left, alien, begun, next, alien], mayReplace })).toBe("another");
    expect(await ask({ records: [...left, alien, next], mayReplace }), "its first is lost").toBe("another");
  }
});

it("is taken for another's by whoever stands by where something stands in the place of ours, not by a leader", async () => {
  const records = [...fourBatches().records.slice(0, 2), alien];
  expect(await ask({ records })).toBe("another");
  expect(await ask({ records, mayReplace: true })).toBe("ours");
});

it("is another's to whoever stands by where nothing of ours is left; a leader goes on in the end", async () => {
  for (const records of [[], [alien, alien]]) {
    expect(await ask({ records })).toBe("another");
    expect(await ask({ records, mayReplace: true })).toBe("unknown");
    expect(await ask({ records, mayReplace: true, mayLack: true })).toBe("ours");
  }
  const [, second] = fourBatches().tails as [ChainTail, ChainTail];
  const records = [alien, alien, following(second, 2)];
  expect(await ask({ records, mayReplace: true, mayLack: true })).toBe("another");
});

it("is ours to whoever stands by where all before dead records was purged, but for a batch among them", async () => {
  const { folded, records, tails } = fourBatches();
  const [, , third] = tails as [ChainTail, ChainTail, ChainTail];
  const store = new MemoryJournalStore();
  for (const bytes of [...records, alien]) store.insertRival(bytes);
  store.purgeBelow(5);
  const asked = (mayReplace = false) =>
    ownerOfEnd(store.lastSeq, folded, { journal: new MemoryJournal(store), mayReplace });
  expect([await asked(), await asked(true)]).toEqual(["ours", "unknown"]);
  store.insertRival(following(third, 2));
  expect([await asked(), await asked(true)]).toEqual(["another", "unknown"]);
  store.purgeBelow(7);
  expect([await asked(), await asked(true)], "nothing is left").toEqual(["unknown", "unknown"]);
});

it("is not known where a record is not found", async () => {
  const { folded, records } = fourBatches();
  const store = new MemoryJournalStore();
  for (const bytes of [...records, alien]) store.insertRival(bytes);
  for (const hidden of [5, 4]) {
    const journal = new MemoryJournal(store);
    const read = journal.read.bind(journal);
    vi.spyOn(journal, "read").mockImplementation(async (seq) => (seq === hidden ? undefined : read(seq)));
    expect(await ownerOfEnd(5, folded, { journal, mayReplace: true })).toBe("unknown");
    expect(await ownerOfEnd(5, folded, { journal, mayReplace: true, mayLack: true })).toBe("ours");
  }
});

it("reads no further than a scan of a hole does", async () => {
  const { folded, records } = fourBatches();
  const read = vi.fn(async (seq: number) => ({ seq, bytes: records[seq - 1] ?? alien }));
  const position = async () => ({ firstSeq: 1, lastSeq, missing: 0 });
  const lastSeq = 4 + 2 * limits.holeScanRecordsMax;
  expect(await ownerOfEnd(lastSeq, folded, { journal: { read, position }, mayReplace: true })).toBe(
    "unknown",
  );
  expect(read).toHaveBeenCalledTimes(limits.holeScanRecordsMax + 1);
});
