// What may go of a full journal that lost its end and went on: what a snapshot of an earlier batch reaches there is not
// what it holds.

import { expect, it } from "vitest";
import { RoomMaker } from "../../src/coordinator/compaction/room-maker.ts";
import { batchIndex, taskId } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import { encodeManifest, type Manifest, nameOf } from "../../src/journal/snapshot/manifest.ts";
import { readManifests } from "../../src/journal/snapshot/manifests.ts";
import { StoredHistory } from "../support/stored-history.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, join, submit, Turns } from "../support/turns.ts";

/** Twelve batches, of which the last nine were lost and the tenth was the last in a snapshot; the thirteenth is in
 *  record 4, and so on to the last in record 12. */
async function aJournalThatWentOn() {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let number = 1; turns.records.length < 12; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  const stored = new StoredHistory(turns.records);
  const ofTen = await stored.snapshot(10);
  stored.journal.loseTail(9);
  const { places } = stored.whole;
  places.goOnBehind(3);
  for (let idx = 13; idx <= 21; idx += 1) {
    const bytes = Buffer.from(`batch ${idx}`);
    places.add(batchIndex(idx), stored.journal.insertRival(bytes), hashOf(bytes));
  }
  const snapshots = stored.snapshots.open();
  const maker = new RoomMaker({
    ...{ journal: stored.journal.open(), snapshots, places, logger: silentLogger },
    synced: { isSynced: () => true, stands: () => undefined },
  });
  const asRead = async (manifest: Manifest) => {
    const placed = await readManifests(snapshots, silentLogger);
    const place = placed.find(({ hash }) => hash === nameOf(manifest).hash)?.place;
    return { ...nameOf(manifest), place: place ?? expect.fail("it is there") };
  };
  const batch = (idx: number) => turns.records[idx - 1]?.bytes ?? Buffer.from(`batch ${idx}`);
  const put = async (idx: number, seq: number, bytes: Uint8Array = batch(idx)) => {
    const made = {
      ...ofTen,
      position: { ...ofTen.position, idx: batchIndex(idx), seq, hash: hashOf(bytes) },
    };
    await snapshots.putManifest(encodeManifest(made));
    return await asRead(made);
  };
  return { maker, stored, put, ofTen: await asRead(ofTen) };
}

it("stays where the furthest that a server shows is of before the loss", async () => {
  const { maker, ofTen } = await aJournalThatWentOn();
  expect(maker.stands(ofTen, 9)).toBe(false);
  expect(await maker.purge(ofTen, { keptSeq: 12 })).toBeUndefined();
});

it("stays where another wrote in the place of the first that would be left", async () => {
  const { maker, stored, put } = await aJournalThatWentOn();
  const saved = await put(12, 3);
  stored.journal.loseTail(9);
  for (let more = 1; more <= 9; more += 1) stored.journal.insertRival(Buffer.from(`another's ${more}`));
  expect(await maker.purge(saved, { keptSeq: 12 })).toBeUndefined();
});

it.each([
  ["another's batch", 20],
  ["a batch that is not known here", 22],
])("stays where the furthest is of %s, which the journal has left", async (_, idx) => {
  const { maker, put } = await aJournalThatWentOn();
  const others = await put(idx, 11, Buffer.from("another's"));
  expect(maker.stands(others, 11)).toBe(false);
  expect(await maker.purge(others, { keptSeq: 12 })).toBeUndefined();
});

it("goes up to where what was lost was saved", async () => {
  const { maker, put } = await aJournalThatWentOn();
  const saved = await put(12, 3);
  expect([maker.stands(saved, 3), maker.stands(saved, 4)]).toEqual([true, false]);
  expect(await maker.purge(saved, { keptSeq: 12 })).toBe(4);
});

it("goes no further than the older of the two that hold what goes", async () => {
  const { maker, put } = await aJournalThatWentOn();
  await put(12, 3);
  expect(await maker.purge(await put(20, 11), { keptSeq: 12 })).toBe(4);
});
