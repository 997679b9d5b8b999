// A store of snapshots that is nearly full: older ones go for a new one, never the one that was read for it, and
// nothing is begun that would not fit.

import { expect, it } from "vitest";
import { taskId } from "../../../src/ids.ts";
import { MemorySnapshots } from "../../../src/journal/memory-snapshots.ts";
import { limits } from "../../../src/limits.ts";
import { fingerprint } from "../../support/fingerprint.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { StoredHistory } from "../../support/stored-history.ts";
import { aTask, submit, Turns } from "../../support/turns.ts";

/** 40 batches of a task each, and room for so many snapshots of them as there are at the end. */
async function aHistory(snapshots: number) {
  const turns = new Turns();
  while (turns.records.length < 40) {
    const id = taskId(`t${turns.records.length}`);
    turns.turn(submit(aTask({ id, payload: "x".repeat(2_000) })));
  }
  const unbounded = new StoredHistory(turns.records);
  await unbounded.snapshot();
  const bytesMax = Math.ceil(unbounded.snapshots.bytes * snapshots) + 2_048;
  return new StoredHistory(turns.records, [0], new MemorySnapshots({ bytesMax }));
}

it("lets the oldest go where a third does not fit, and keeps the one that was read", async () => {
  const stored = await aHistory(2);
  for (const untilSeq of [36, 38, 40]) await stored.make(untilSeq);
  expect(stored.snapshots.places("manifest")).toHaveLength(2);
  expect(fingerprint((await stored.restart()).state)).toBe(fingerprint(stored.whole.state));
});

it("keeps the last that can be read where another does not fit beside it, and writes nothing of that", async () => {
  const stored = await aHistory(1.5);
  await stored.make(36);
  const { bytes } = stored.snapshots;
  await expect(stored.make(40)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
  expect(stored.snapshots.bytes).toBe(bytes);
  expect(fingerprint((await stored.restart()).state)).toBe(fingerprint(stored.whole.state));
});

it.each([
  ["at once", 0, 2],
  ["longer than its word holds", limits.snapshotReadMs + 1, 3],
])(
  "removes nothing by a snapshot that rotted while the next was written, which took %s",
  async (_, ms, left) => {
    const stored = await aHistory(10);
    for (const untilSeq of [34, 36]) await stored.make(untilSeq);
    const [, newest = 0] = stored.snapshots.places("chunk");
    const clock = new ManualClock();
    stored.clock = clock;
    stored.snapshotFaults.onPut = async ({ kind }) => {
      if (kind === "manifest") {
        stored.snapshots.damage(newest);
        await clock.advance(ms);
      }
      return "deliver" as const;
    };
    const { found } = await stored.make(40);
    expect(stored.snapshots.places("manifest")).toHaveLength(left);
    expect(found).toMatchObject(ms === 0 ? { unreadable: [] } : { read: undefined, unreadable: [{}] });
  },
);
