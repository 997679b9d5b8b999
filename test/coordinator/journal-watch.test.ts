// What a look at a journal's ends makes of records that are missing.

import { expect, it } from "vitest";
import { ReadableSnapshots } from "../../src/coordinator/compaction/readable-snapshots.ts";
import { JournalWatch } from "../../src/coordinator/repair/journal-watch.ts";
import { taskId } from "../../src/ids.ts";
import type { JournalPosition } from "../../src/chain/journal.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import type { SnapshotStore } from "../../src/journal/snapshot-store.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { StoredHistory } from "../support/stored-history.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, join, submit, Turns } from "../support/turns.ts";

/** Of one that reaches to a record; `isSpoilt`: without the chunks that its manifest names. */
async function snapshotsTo(seq: number, isSpoilt: boolean): Promise<SnapshotStore> {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let number = 1; turns.records.length < seq; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  const stored = new StoredHistory(turns.records);
  const { chunks } = await stored.snapshot();
  for (const [chunk] of isSpoilt ? chunks : []) stored.snapshots.lose(chunk);
  return stored.snapshots.open();
}

/** What is told of as holes, where each look finds the next of `positions`. */
async function holesIn(...positions: readonly JournalPosition[]): Promise<readonly JournalPosition[]> {
  return (await toldBeside({ isSpoilt: false }, positions)).holes;
}

interface Told {
  readonly holes: readonly JournalPosition[];
  /** Where the journal begins. */
  readonly purged: readonly number[];
}

async function toldBeside(
  { isSpoilt }: { readonly isSpoilt: boolean },
  positions: readonly JournalPosition[],
): Promise<Told> {
  const clock = new ManualClock();
  const journal = new MemoryJournalStore().open();
  const left = [...positions];
  journal.position = async () => left.shift() ?? expect.fail("no further look");
  const holes: JournalPosition[] = [];
  const purged: number[] = [];
  const readable = new ReadableSnapshots(await snapshotsTo(12, isSpoilt), { clock, logger: silentLogger });
  const watch = new JournalWatch(
    { journal, readable, clock },
    {
      onHole: (position) => holes.push(position),
      onPurged: (firstSeq) => purged.push(firstSeq),
      onDamaged: (error) => expect.fail(error.message),
    },
  );
  await watch.begin();
  while (left.length > 0) {
    watch.look();
    await clock.advance(limits.journalLookMs);
  }
  return { holes, purged };
}

const whole = { firstSeq: 1, lastSeq: 14, missing: 0 };

it("a hole is told of once", async () => {
  const holed = { ...whole, missing: 4 };
  expect(await holesIn(whole, holed, holed, { ...holed, lastSeq: 15 })).toEqual([holed]);
});

it("one that was there when the journal was read is behind who read it", async () => {
  const holed = { ...whole, missing: 4 };
  expect(await holesIn(holed, holed)).toEqual([]);
});

it("another one is told of, though more was missing before the journal was purged", async () => {
  const holed = { ...whole, missing: 4 };
  const purgedAndHoled = { firstSeq: 10, lastSeq: 15, missing: 1 };
  expect(await holesIn(whole, holed, purgedAndHoled, purgedAndHoled)).toContainEqual(purgedAndHoled);
});

it("a beginning that moved is a purge where a snapshot stands for it, and a loss where that cannot be read", async () => {
  const later = { ...whole, firstSeq: 13 };
  expect(await toldBeside({ isSpoilt: false }, [whole, later, later])).toEqual({ holes: [], purged: [13] });
  expect(await toldBeside({ isSpoilt: true }, [whole, later, later])).toEqual({ holes: [later], purged: [] });
});
