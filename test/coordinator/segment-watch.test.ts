// A leader's inspection of its segment: segments of other leaders, and damage that no append meets.

import { beforeEach, expect, it } from "vitest";
import { SegmentWatch, type Watched } from "../../src/coordinator/leader/segment-watch.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { encodeRecord } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { Rival } from "../support/stored.ts";

const timing = timingOf(limits.leaderTimeoutMs);
let clock: ManualClock;
let store: MemoryJournalStore;
let happened: string[];
let faults: string[];

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  happened = [];
  faults = [];
});

/** A leader of the session `own` looks once, and again after a fault. */
async function looking(
  watched: Omit<Watched, "recordHash" | "isLate"> & Partial<Watched>,
  { journal = new MemoryJournal(store), looks = limits.faultLooksAloneMin as number } = {},
): Promise<readonly string[]> {
  const watch = new SegmentWatch(
    { session: "own", journal, timing, clock },
    {
      watched: () => ({ isLate: false, ...watched, recordHash: "" }),
      onReconnected: () => happened.push("reconnected"),
      onWhole: () => happened.push("whole"),
      onSuperseded: () => happened.push("superseded"),
      onFaulty: ({ message }) => {
        happened.push("faulty");
        faults.push(message);
      },
      onBroken: (cause) => happened.push(String(cause)),
    },
  );
  watch.lookSoon();
  await clock.advance((looks - 1) * limits.faultLookMs);
  watch.stop();
  return happened;
}

it("finds its own segment whole", async () => {
  new Rival(store, "own").begin(3);
  expect(await looking({ segment: 1, position: 5 })).toEqual(["whole"]);
});

it("looks at a fault once more, and more often where a server that takes over may not know its records yet", async () => {
  class ReplicatedJournal extends MemoryJournal {
    override readonly durability = { class: "replicated", sentence: "" } as const;
  }
  new Rival(store, "own").begin(3);
  const held = { segment: 1, position: 6 };
  expect(await looking(held, { looks: 1 })).toEqual([]);
  expect(await looking(held)).toEqual(["faulty"]);
  happened = [];
  const journal = new ReplicatedJournal(store);
  expect(await looking(held, { journal, looks: limits.faultLooksMin - 1 })).toEqual([]);
  expect(await looking(held, { journal, looks: limits.faultLooksMin })).toEqual(["faulty"]);
});

it("names the segment that is at fault", async () => {
  const tail = new Rival(store, "earlier").begin(3);
  expect(await looking({ segment: 1, position: 6 })).toEqual(["superseded"]);
  new Rival(store, "own").takeLead(tail);
  await looking({ segment: 2, position: 9 });
  store.loseRecords(1, 3);
  await looking({ segment: 2, position: 3 });
  expect(faults).toEqual([
    "segment 2 is shorter: a restart cannot read up to record 9",
    "a segment before segment 2 is damaged or missing: a restart cannot read up to record 3",
  ]);
});

it("counts no late batch while another session's claim stands above", async () => {
  new Rival(store, "own").begin(3);
  store.create(2);
  store.insert(2, encodeRecord({ kind: "claim", segment: 2, session: "other", attempt: "a" }));
  expect(await looking({ segment: 1, position: 5 })).toEqual(["whole"]);
  happened = [];
  expect(await looking({ segment: 1, position: 5, isLate: true })).toEqual(["faulty"]);
  expect(faults.at(-1)).toContain("another coordinator claimed a segment above segment 1");
});

it("counts a late batch beside a claim of its own session", async () => {
  new Rival(store, "own").begin(3);
  store.create(2);
  store.insert(2, encodeRecord({ kind: "claim", segment: 2, session: "own", attempt: "a" }));
  expect(await looking({ segment: 1, position: 5, isLate: true })).toEqual(["whole"]);
});

it("takes a segment for a rival leader's if a rival session claimed the number again", async () => {
  new Rival(store, "own").begin(1);
  store.loseSegment(1);
  new Rival(store, "other").begin(3);
  expect(await looking({ segment: 1, position: 2 })).toEqual(["superseded"]);
});

it("takes a segment with only a rival session's claim for the rival's", async () => {
  new Rival(store, "own").begin(1);
  store.loseSegment(1);
  store.create(1);
  store.insert(1, encodeRecord({ kind: "claim", segment: 1, session: "other", attempt: "a" }));
  expect(await looking({ segment: 1, position: 1 })).toEqual(["superseded"]);
});

it("finds that the segment's opened record is unreadable", async () => {
  new Rival(store, "own").begin(3);
  store.damageRecord(1, 2);
  expect(await looking({ segment: 1, position: 5 })).toEqual(["faulty"]);
});

it.each([
  ["is gone", () => store.loseSegment(1)],
  ["lost a record", () => store.loseRecords(1, 3)],
])("finds that a continued segment %s", async (_, lose) => {
  const tail = new Rival(store, "earlier").begin(3);
  new Rival(store, "own").takeLead(tail);
  expect(await looking({ segment: 2, position: 3 })).toEqual(["whole"]);
  happened = [];
  lose();
  expect(await looking({ segment: 2, position: 3 })).toEqual(["faulty"]);
});
