// Clients that await tasks: noted within bounds, notified once, then forgotten. And answers about ended tasks whose
// outcome the journal does not show.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AuditReader } from "../../src/audit/reading/audit-reader.ts";
import { JournalReads } from "../../src/audit/reading/journal-reads.ts";
import { systemClock } from "../../src/clock.ts";
import { JournalDamagedError, MissingRecordsError, UnreachableError } from "../../src/errors.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import type { Segment } from "../../src/journal/journal.ts";
import type { LogReader } from "../../src/journal/log-reader.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { RecentBatches } from "../../src/journal/recent-batches.ts";
import { type Batch, decodeBatchHeader, decodeRecord, encodeBatch } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import { Awaiting } from "../../src/requests/outbox.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger, startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { aRef } from "../support/task-refs.ts";

const [t1, t2] = [aRef("t1"), aRef("t2")];

describe("clients that await a task", () => {
  it("are notified once each, and forgotten", () => {
    const awaiting = new Awaiting();
    for (const token of ["a", "b", "a"]) expect(awaiting.add(t1, token)).toBe(true);
    expect(awaiting.of(t1)).toEqual(["a", "b"]);
    expect(awaiting.take(t1)).toEqual(["a", "b"]);
    expect([awaiting.take(t1), awaiting.of(t1), awaiting.of(t2)]).toEqual([[], [], []]);
  });

  it("for one task are bounded; noted clients stay", () => {
    const awaiting = new Awaiting();
    for (let n = 0; n < limits.awaitersPerTaskMax; n += 1) expect(awaiting.add(t1, `inbox${n}`)).toBe(true);
    expect(awaiting.add(t1, "one more")).toBe(false);
    expect(awaiting.add(t1, "inbox0")).toBe(true);
    expect(awaiting.add(t2, "one more")).toBe(true);
  });

  it("are for no more tasks than there may be", () => {
    const awaiting = new Awaiting();
    for (let n = 0; n < limits.awaitedTasksMax; n += 1) awaiting.add(aRef(`${n}`), "a");
    expect(awaiting.add(t1, "a")).toBe(false);
    expect(awaiting.add(aRef("0"), "b")).toBe(true);
    awaiting.take(aRef("0"));
    expect(awaiting.add(t1, "a")).toBe(true);
  });
});

function aBatchThatEnds(task: string): Uint8Array {
  const header = {
    journal: "j",
    session: "l",
    term: term(1),
    idx: batchIndex(3),
    prev: "",
    at: instant(0),
  };
  const event = { type: "TaskCompleted", ...aRef(task), agent: "a1", result: "done", latencyMs: 1 };
  return encodeBatch(header, [JSON.stringify(event)]);
}

describe("reading how a task ended", () => {
  const ended = {
    project: t1.project,
    id: t1.task,
    endedIdx: batchIndex(3),
    state: "completed",
    attempts: 1,
  } as EndedTask;
  const firstIdx = batchIndex(1);
  let nowMs: number;
  let found: Batch | undefined;
  let recentBatches: RecentBatches;
  let reader: AuditReader;

  beforeEach(() => {
    nowMs = 1_000;
    found = undefined;
    recentBatches = new RecentBatches();
    const logReader = { batch: async () => found } as unknown as LogReader;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    const reads = new JournalReads({
      logReader,
      clock,
      logger: silentLogger,
      isLeading: () => true,
      isLed: () => false,
    });
    reader = new AuditReader({ reads, recentBatches, clock });
  });

  it("counts a batch as lost only after a long search: after a takeover a server may not know the batch yet", async () => {
    for (; nowMs < 1_000 + limits.outcomeMissMs; nowMs += 500)
      await expect(reader.outcome(ended, firstIdx)).rejects.toThrow(MissingRecordsError);
    const lost = await reader.outcome(ended, firstIdx).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(JournalDamagedError);
    expect(lost).not.toBeInstanceOf(MissingRecordsError);
  });

  it("begins anew after a time without reads, and finds the batch after all", async () => {
    await expect(reader.outcome(ended, firstIdx)).rejects.toThrow(MissingRecordsError);
    nowMs += limits.journalGapMs + 1;
    await expect(reader.outcome(ended, firstIdx)).rejects.toThrow(MissingRecordsError);
    nowMs += limits.outcomeMissMs - 1;
    found = decodeRecord(aBatchThatEnds("t1")) as Batch;
    expect(await reader.outcome(ended, firstIdx)).toMatchObject({ result: "done" });
  });

  it("takes from memory a batch that the journal lost, also where the record begins behind it", async () => {
    recentBatches.add(3, aBatchThatEnds("t1"), nowMs);
    expect(await reader.outcome(ended, firstIdx)).toMatchObject({ result: "done" });
    expect(await reader.outcome(ended, batchIndex(4))).toMatchObject({ result: "done" });
  });

  it("says of a removed batch that it is gone, without looking", async () => {
    const outcome = { ...t1, state: "completed", attempts: 1, gone: true };
    expect(await reader.outcome(ended, batchIndex(4))).toEqual(outcome);
  });
});

describe("an await about tasks that have ended", () => {
  const ids = ["t1", "t2", "t3"];
  let clock: ManualClock;
  let journal: MemoryJournal;
  let swarm: TestSwarm;
  let log: ReturnType<typeof keptLog>;
  /** Where each outcome stands in segment 1. */
  let positions: readonly number[];

  beforeEach(async () => {
    clock = new ManualClock();
    log = keptLog();
    const store = new MemoryJournalStore();
    journal = new MemoryJournal(store);
    swarm = await startTestSwarm({ clock, store, journal, logger: log.logger });
    const agent = await swarm.agent("a1");
    await swarm.submit(...ids);
    const ends: number[] = [];
    for (let n = 0; n < ids.length; n += 1) {
      await agent.complete(await agent.assignment());
      ends.push(store.end(1)?.position ?? 0);
    }
    positions = ends;
    clock.stall(limits.recentRecordsMs + 1);
    await swarm.client.submit([{ id: "later0", kind: "other" }]); // the batches before are in memory no more
  });

  /** Reads of the coordinator from now on. */
  function reading(read: (position: number, stored: Segment["read"]) => ReturnType<Segment["read"]>): void {
    const segmentOf = journal.segment.bind(journal);
    journal.segment = (number) => {
      const segment = segmentOf(number);
      const stored = segment.read.bind(segment);
      segment.read = (position) => (position === 1 ? stored(1) : read(position, stored));
      return segment;
    };
  }
  afterEach(() => swarm.stop());

  const ask = (tasks: readonly string[]) =>
    swarm.client.ask(subjects.project("default", "await"), { tasks, notify: "_INBOX.me" });
  const completed = (task: string) => ({ ok: true, outcome: { task, state: "completed", result: "done" } });

  it("leaves a task open whose batch is missing just now, and answers about all others", async () => {
    swarm.watched.settled(); // not lost yet
    swarm.store.loseRecords(1, positions[1] ?? 0);
    const { answers } = await ask([...ids, "later0", "nobody's"]);
    expect(answers).toMatchObject([
      completed("t1"),
      { ok: false, code: "WAGGLE_OUTCOME_UNKNOWN" },
      completed("t3"),
      { ok: true, live: true },
      { ok: false, code: "WAGGLE_UNKNOWN_TASK" },
    ]);
  });

  it("says what the state knows of a task whose batch was replaced, and answers about all others", async () => {
    const [first = 0, second] = positions;
    reading(async (position, stored) => {
      const record = await stored(position);
      if (position !== second || record === undefined) return record;
      const header = decodeBatchHeader(record.bytes) ?? expect.fail("a batch stands there");
      const other = decodeRecord((await stored(first))?.bytes ?? new Uint8Array());
      const events = other?.kind === "batch" ? other.events : [];
      const bytes = encodeBatch(
        header,
        events.map((event) => JSON.stringify(event)),
      );
      return { position, bytes };
    });
    const { answers } = await ask(ids.slice(1));
    expect(answers).toMatchObject([
      {
        ok: false,
        code: "WAGGLE_JOURNAL_DAMAGED",
        message: expect.stringMatching(
          /^task t2 ended \(completed, 1 attempt\), but .*another record is in the place/,
        ),
      },
      completed("t3"),
    ]);
    expect(log.lines.filter(({ msg }) => msg === "the outcome of a task could not be read")).toMatchObject([
      { level: "warn", coordinator: "c1", task: "t2" },
    ]);
  });

  it("leaves tasks open that cannot be read just now, and tries no further", async () => {
    const tried: number[] = [];
    reading(async (position, stored) => {
      tried.push(position);
      if (position !== positions[0]) throw new UnreachableError("the server is away");
      return await stored(position);
    });
    const { answers } = await ask([...ids, "later0"]);
    const open = { ok: false, code: "WAGGLE_OUTCOME_UNKNOWN" };
    expect(answers).toMatchObject([completed("t1"), open, open, { ok: true, live: true }]);
    expect(tried).toEqual(positions.slice(0, 2));
  });

  it("is answered in time where the journal does not answer", async () => {
    let isAway = true;
    reading((position, stored) => (isAway ? new Promise(() => undefined) : stored(position)));
    const answered = ask(["t1", "later0"]);
    await clock.advance(limits.awaitReadMs);
    expect((await answered).answers).toMatchObject([
      { ok: false, code: "WAGGLE_OUTCOME_UNKNOWN" },
      { ok: true, live: true },
    ]);
    isAway = false;
  });
});
