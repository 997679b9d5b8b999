// What a standby is still doing when its time comes: nothing comes of that.

import { expect, it, vi } from "vitest";
import { Announcements } from "../../src/coordinator/announcements.ts";
import { Standby } from "../../src/coordinator/standby/standby.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { Replay } from "../../src/journal/replay.ts";
import { Gate } from "../support/gate.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, silentLogger } from "../support/swarm.ts";

it("calls nobody behind its last call, which came while the journal was asked where it ends", async () => {
  const clock = new ManualClock();
  const timing = timingOf(1_000);
  const store = new MemoryJournalStore();
  const journal = new MemoryJournal(store);
  const gate = new Gate();
  const usage = await journal.position();
  const asked = vi.spyOn(journal, "position").mockImplementation(() => gate.opened.then(() => usage));
  const hooks = {
    onSilence: vi.fn(),
    onHeard: vi.fn(),
    onShort: vi.fn(),
    onUnreachable: vi.fn(),
    onEndLost: vi.fn(),
    onOvertaken: vi.fn(),
    onTime: vi.fn(),
    onUnreadable: vi.fn(),
  };
  const replay = new Replay();
  const standby = new Standby(
    {
      id: "c2",
      journal,
      recent: new RecentRecords(),
      announcements: new Announcements(),
      askOthers: async () => undefined,
      clock,
      random: noJitter,
      logger: silentLogger,
      isConnected: () => true,
      position: () => replay.position,
      timing: () => timing,
      take: (record) => replay.take(record),
      isOvertaken: async () => true,
    },
    hooks,
  );
  await clock.advance(3 * timing.timeoutMs);
  expect(asked).toHaveBeenCalledOnce();
  standby.end(); // as when the term is handed over to it
  gate.open();
  await clock.settle();
  expect(hooks.onOvertaken).not.toHaveBeenCalled();
  expect(hooks.onSilence).toHaveBeenCalledOnce();
});
