// One attempt to lead, and whether what stands in the journal is that very one.

import { expect, it } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import { Announcements } from "../../src/coordinator/announcements.ts";
import { Campaign } from "../../src/coordinator/campaign.ts";
import { FollowedTime } from "../../src/coordinator/journal-clock.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { MemoryJournalStore } from "../../src/journal/memory.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger } from "../support/swarm.ts";

it("does not take for its own the one that the same coordinator won in the same millisecond, before a restart", async () => {
  const store = new MemoryJournalStore();
  const ends: string[] = [];
  const clock = new ManualClock();
  const campaign = () =>
    new Campaign(
      {
        ...{ id: "c1", timeoutMs: 3_000, timing: timingOf(3_000), announcements: new Announcements() },
        journal: store.open(),
        position: { seq: 0, idx: batchIndex(0), term: term(0), hash: "", journal: "j" },
        ...{ lastAt: instant(1_000), recent: new RecentRecords(), followed: new FollowedTime() },
        ...{ clock, random: systemRandom, logger: silentLogger, isSaved: async () => false },
      },
      {
        onWon: () => ends.push("won"),
        onLost: () => ends.push("lost"),
        onFull: () => ends.push("full"),
        onHalted: () => ends.push("halted"),
      },
    );
  campaign();
  await clock.settle();
  campaign(); // read an older journal, and knows nothing of the first
  await clock.settle();
  expect(ends).toEqual(["won", "lost"]);
});
