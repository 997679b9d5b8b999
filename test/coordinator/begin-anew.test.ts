// Whether what was folded is thrown away for what the journal says now: only where nothing is lost with it.

import { pino } from "pino";
import { expect, it } from "vitest";
import { ReadableSnapshots } from "../../src/coordinator/compaction/readable-snapshots.ts";
import { mayBeginAnew } from "../../src/coordinator/standby/begin-anew.ts";
import { UnreachableError } from "../../src/errors.ts";
import { forkError } from "../../src/journal/journal-errors.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { MemorySnapshots } from "../../src/journal/memory-snapshots.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

it("is not refused for looks between which nobody answered: who saved it may not be known yet", async () => {
  const clock = new ManualClock();
  const snapshots = new MemorySnapshots().open();
  const readable = new ReadableSnapshots(snapshots, { clock, logger: pino({ level: "silent" }) });
  let verdict: boolean | undefined;
  const looking = mayBeginAnew(forkError(3), {
    clock,
    journal: new MemoryJournalStore().open(),
    readable,
    recent: () => new RecentRecords(),
    folded: () => new Replay(),
    isLed: () => false,
    isOver: () => false,
  });
  void looking.then((may) => {
    verdict = may;
  });
  await clock.settle();
  const manifests = snapshots.manifests.bind(snapshots);
  snapshots.manifests = async () => {
    throw new UnreachableError("nobody answers");
  };
  await clock.advance(2 * limits.readBackPatienceMs);
  snapshots.manifests = manifests;
  await clock.advance(limits.readBackPatienceMs - 2 * limits.catchUpRetryMs);
  expect(verdict).toBeUndefined();
  await clock.advance(4 * limits.catchUpRetryMs);
  expect(verdict).toBe(false);
});
