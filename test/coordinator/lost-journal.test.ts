// A coordinator that starts on an empty journal while another holds batches of the swarm's: it begins no new swarm.

import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

const begins = "nothing was ever written here: a new journal begins";

let log: ReturnType<typeof keptLog>;
let swarm: TestSwarm;
beforeEach(async () => {
  log = keptLog();
  swarm = await startTestSwarm({ clock: new ManualClock(), logger: log.logger });
});
afterEach(() => swarm.stop());

const timesBegun = () => log.lines.filter(({ msg }) => msg === begins).length;

it("halts and says what to do, and writes nothing", async () => {
  const made = new MemoryJournalStore();
  await expect(swarm.startAnother("c2", made.open())).rejects.toMatchObject({
    code: "WAGGLE_JOURNAL_DAMAGED",
    message: expect.stringMatching(
      /^another coordinator of this swarm holds batch \d+ of term 1, and the journal is empty/,
    ),
  });
  expect(made.lastSeq).toBe(0);
  expect(timesBegun()).toBe(1); // the first one's
});

it("stands by where the other has only begun since it looked", async () => {
  const journal = new MemoryJournal(swarm.store);
  const position = journal.position.bind(journal);
  let looks = 0;
  journal.replay = async function* () {
    // read before the other's first batch
  };
  journal.position = async () => {
    looks += 1;
    return looks === 1 ? { firstSeq: 1, lastSeq: 0, missing: 0 } : await position();
  };
  const second = await swarm.startAnother("c2", journal);
  expect(timesBegun()).toBe(1);
  await second.stop();
});
