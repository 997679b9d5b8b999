// What the log says of records that everybody skips: at once, and then a line a minute of each sort.

import { beforeEach, expect, it } from "vitest";
import { DeadRecordLog } from "../../src/coordinator/repair/dead-records.ts";
import type { DeadReason } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";

const quietMs = limits.deadRecordsQuietMs;
let clock: ManualClock;
let log: ReturnType<typeof keptLog>;
let dead: DeadRecordLog;

beforeEach(() => {
  clock = new ManualClock();
  log = keptLog();
  dead = new DeadRecordLog({ clock, logger: log.logger });
});

const meet = (seq: number, reason: DeadReason = "alien") =>
  dead.tell({ seq, bytes: new Uint8Array() }, reason);
const said = () => log.lines.map(({ level, seq, records }) => [level, seq, records]);

it("one that is not ours is an alarm, one that a leader left behind a warning", () => {
  for (const reason of ["alien", "other-journal", "broken-chain"] as const) {
    dead = new DeadRecordLog({ clock, logger: log.logger });
    meet(1, reason);
  }
  expect(log.lines.map(({ level, reason }) => [level, reason])).toEqual([
    ["error", "alien"],
    ["error", "other-journal"],
    ["warn", "broken-chain"],
  ]);
});

it("many of them are a line a minute, with their number", async () => {
  for (let second = 0; second < 150; second += 1) {
    for (let count = 1; count <= 100; count += 1) meet(100 * second + count);
    await clock.advance(1_000);
  }
  expect(said()).toEqual([
    ["error", 1, 1],
    ["error", 6_000, 5_999],
    ["error", 12_000, 6_000],
  ]);
  await clock.advance(quietMs);
  expect(said().at(-1)).toEqual(["error", 15_000, 3_000]);
});

it("they keep no alarm from being said at once: not after a quiet minute, and not for those of the other sort", async () => {
  meet(1, "broken-chain");
  meet(2);
  await clock.advance(2 * quietMs);
  expect(said()).toHaveLength(2);
  meet(3);
  expect(said().at(-1)).toEqual(["error", 3, 1]);
});

it("nothing is said once it is stopped", async () => {
  meet(1);
  meet(2);
  dead.stop();
  await clock.advance(2 * quietMs);
  expect(said()).toHaveLength(1);
});
