// One attempt to lead, and whether what stands in the journal is that very one.

import { beforeEach, expect, it, vi } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import { Announcements } from "../../src/coordinator/announcements.ts";
import { Campaign } from "../../src/coordinator/leader/campaign.ts";
import { FollowedTime } from "../../src/coordinator/leader/journal-clock.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { UnreachableError } from "../../src/errors.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import type { Journal } from "../../src/chain/journal.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger } from "../support/swarm.ts";

const timeoutMs = 3_000;

let store: MemoryJournalStore;
let clock: ManualClock;
let ends: string[];
beforeEach(() => {
  store = new MemoryJournalStore();
  clock = new ManualClock();
  ends = [];
});

function campaign(
  journal: Journal = new MemoryJournal(store),
  { recent = new RecentRecords(), seq = 0, announcements = new Announcements() } = {},
): void {
  new Campaign(
    {
      ...{ id: "c1", timeoutMs, timing: timingOf(timeoutMs), announcements },
      journal,
      position: { seq, idx: batchIndex(0), term: term(0), hash: "", journal: "j" },
      ...{ lastAt: instant(1_000), recent, followed: new FollowedTime() },
      ...{ clock, random: systemRandom, logger: silentLogger, isSaved: async () => false },
    },
    {
      onWon: () => ends.push("won"),
      onLost: () => ends.push("lost"),
      onFull: () => ends.push("full"),
      onHalted: () => ends.push("halted"),
    },
  );
}

it("does not take for its own the one that the same coordinator won in the same millisecond, before a restart", async () => {
  campaign();
  await clock.settle();
  campaign(); // read an older journal, and knows nothing of the first
  await clock.settle();
  expect(ends).toEqual(["won", "lost"]);
});

it("is won where somebody else writes in less time than it takes to compare what was read", async () => {
  const alien = () => store.insertRival(Buffer.from("no batch"));
  const recent = new RecentRecords();
  for (let seq = 1; seq <= 5; seq += 1) {
    alien();
    recent.add(store.at(seq) ?? expect.fail("it stands there"), 0, { isDead: true });
  }
  const journal = new MemoryJournal(store);
  const read = journal.read.bind(journal);
  let compared = 0;
  journal.read = async (seq) => {
    if (seq === 1) compared += 1;
    if (seq === 1 && compared < 50) alien();
    return await read(seq);
  };
  campaign(journal, { recent, seq: 5 });
  await clock.advance(limits.appendRetryMs);
  expect(ends).toEqual(["won"]);
  expect(compared, "before it was sent, and of what was sent again").toBe(2);
});

it("is not sent again where another holds more of a journal that lost its end, however long that went on meanwhile", async () => {
  const announcements = new Announcements();
  const journal = new MemoryJournal(store);
  const append = vi.spyOn(journal, "append");
  insertUnknown();
  const read = vi.spyOn(journal, "read").mockRejectedValue(new UnreachableError("nobody answers"));
  campaign(journal, { announcements });
  await heardFor(2 * limits.announcementWaitsMax * timeoutMs, announcements);
  store.loseTail(1);
  read.mockRestore();
  await heardFor(2 * timeoutMs, announcements);
  expect([append.mock.calls.length, ends]).toEqual([0, []]);
  append.mockRestore();
  await heardFor(limits.announcementWaitsMax * timeoutMs, announcements); // words that no deeds follow
  expect(ends).toEqual(["won"]);
});

it("waits anew for who holds more after the journal went on, by what it could not read", async () => {
  const announcements = new Announcements();
  const journal = new MemoryJournal(store);
  const append = vi.spyOn(journal, "append");
  announcements.note(holder, clock.monotonicMs());
  campaign(journal, { announcements });
  const almostMs = (limits.announcementWaitsMax - 1) * timeoutMs;
  await heardFor(almostMs, announcements);
  const read = vi.spyOn(journal, "read").mockRejectedValue(new UnreachableError("nobody answers"));
  insertUnknown();
  await heardFor(timeoutMs, announcements);
  store.loseTail(1);
  read.mockRestore();
  await heardFor(almostMs, announcements);
  expect([append.mock.calls.length, ends]).toEqual([0, []]);
  await heardFor(3 * timeoutMs, announcements);
  expect(ends).toEqual(["won"]);
});

const holder = { id: "c2", term: 2, idx: 2, leading: false };

async function heardFor(ms: number, announcements: Announcements): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += timeoutMs / 3) {
    announcements.note(holder, clock.monotonicMs());
    await clock.advance(timeoutMs / 3);
  }
}

function insertUnknown(): void {
  store.insertRival(Buffer.from("what the other wrote, which the candidate does not know"));
}
