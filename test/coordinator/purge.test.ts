// What is purged of the journal: what the record says is gone, and never what took its place.

import { expect, it, vi } from "vitest";
import { Purge } from "../../src/coordinator/compaction/purge.ts";
import { batchIndex, taskId } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import { nameOf, type SnapshotName } from "../../src/journal/snapshot/manifest.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { StoredHistory } from "../support/stored-history.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, join, submit, Turns } from "../support/turns.ts";

/** Twelve batches, of which those before `firstIdx` are gone by the record, and a snapshot of the tenth. */
async function aPurge(firstIdx = 6, untilSeq = 10, another: Partial<SnapshotName> = {}) {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let number = 1; turns.records.length < 12; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  const stored = new StoredHistory(turns.records);
  const { places } = stored.whole;
  const made = await stored.snapshot(untilSeq);
  const read = { ...nameOf(made), place: 1, ...another };
  const journal = stored.journal.open();
  const clock = new ManualClock();
  const ending = new AbortController();
  const purge = new Purge(
    {
      ...{ journal, places, logger: silentLogger, clock, askAgain: () => undefined },
      ...{ snapshots: stored.snapshots.open(), room: { lookAgain: () => undefined } },
      ...{
        read: () => read,
        readable: { foundMonotonicMs: 0 },
        synced: { isSynced: () => true },
        signal: ending.signal,
      },
    },
    batchIndex(firstIdx),
  );
  return { stored, journal, places, purge, clock, ending };
}

it("goes up to the first batch that is kept", async () => {
  const { stored, purge, clock } = await aPurge();
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(6);
});

it("spares what stands there since the journal lost its end, as the snapshots were looked at", async () => {
  const { stored, journal, places, purge, clock } = await aPurge();
  vi.spyOn(journal, "position").mockImplementationOnce(async () => {
    stored.journal.loseTail(9);
    places.goOnBehind(3); // a snapshot stands for what was lost
    const next = Buffer.from("the next");
    places.add(batchIndex(13), stored.journal.insertRival(next), hashOf(next));
    return { firstSeq: 1, lastSeq: 4, missing: 0 };
  });
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});

it("spares what another wrote there, of which this one has not heard", async () => {
  const { stored, purge, clock } = await aPurge();
  stored.journal.loseTail(9);
  for (let more = 1; more <= 4; more += 1) stored.journal.insertRival(Buffer.from(`another's ${more}`));
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});

it("is none of a leader's whose term is over", async () => {
  const { stored, journal, purge, clock, ending } = await aPurge();
  const read = journal.read.bind(journal);
  vi.spyOn(journal, "read").mockImplementationOnce((seq) => {
    ending.abort();
    return read(seq);
  });
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});

it("spares what stands behind an end that was lost while the newest that is read is of before it", async () => {
  const { stored, places, purge, clock } = await aPurge(13);
  stored.journal.loseTail(9);
  await stored.saveNow(stored.foldedBehind(3)); // of all twelve
  places.goOnBehind(3);
  const next = Buffer.from("the next");
  places.add(batchIndex(13), stored.journal.insertRival(next), hashOf(next));
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});

it.each([
  ["whose batch there is another", {}],
  ["that reaches further than what is known", { idx: batchIndex(13) }],
])("is none by a snapshot of another line, %s", async (_, reach) => {
  const { stored, purge, clock } = await aPurge(6, 10, { batchHash: "of-another", ...reach });
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});

it("spares dead records behind where a lost end was saved, though one from before it reached further", async () => {
  const { stored, places, purge, clock } = await aPurge(13, 12);
  stored.journal.loseTail(9);
  await stored.saveNow(stored.foldedBehind(3)); // of all twelve: whoever begins there reads record 4
  stored.journal.insertRival(Buffer.from("somebody else's"));
  places.goOnBehind(3);
  const next = Buffer.from("the next");
  places.add(batchIndex(13), stored.journal.insertRival(next), hashOf(next));
  purge.look();
  await clock.settle();
  expect(stored.journal.firstSeq).toBe(1);
});
