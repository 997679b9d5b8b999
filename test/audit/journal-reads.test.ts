// Bounds for reads of the journal: few pages at once, few more waiting, one read for equal questions. Readings resume,
// and each project and all projects have a budget.

import { describe, expect, it, onTestFinished } from "vitest";
import { JournalReads, ReadBudget } from "../../src/audit/reading/journal-reads.ts";
import { BackpressureError, UnreachableError } from "../../src/errors.ts";
import type { LogReader, StoredBatch } from "../../src/journal/log-reader.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import type { BatchHeader } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects } from "../support/swarm.ts";

const RECORD_BYTES = 64 * 1024;
const PER_PAGE = limits.queryPageBytesMax / RECORD_BYTES;

/** A journal of so many records, which counts readings and holds them back until `gate` opens. */
function aJournal(lastSeq = 1_000) {
  const counts = { opened: 0, open: 0, openMost: 0 };
  const held = { gate: undefined as Gate | undefined };
  const replay = async function* (fromSeq: number): AsyncGenerator<StoredBatch> {
    counts.opened += 1;
    counts.open += 1;
    counts.openMost = Math.max(counts.openMost, counts.open);
    try {
      await held.gate?.opened;
      for (let seq = fromSeq; seq <= lastSeq; seq += 1) {
        const header = { idx: seq } as BatchHeader;
        yield { header, bytes: new Uint8Array(RECORD_BYTES) };
      }
    } finally {
      counts.open -= 1;
    }
  };
  return { counts, held, logReader: { replay } as unknown as LogReader };
}

function theReads(lastSeq?: number, role: "leader" | "standby" | "alone" = "leader") {
  const clock = new ManualClock();
  const log = keptLog();
  const { counts, held, logReader } = aJournal(lastSeq);
  const reads = new JournalReads({
    logReader,
    clock,
    logger: log.logger,
    isLeading: () => role === "leader",
    isLed: () => role !== "alone",
  });
  onTestFinished(() => reads.stop());
  return { clock, log, counts, held, reads };
}

const seqsOf = (batches: readonly StoredBatch[]) => batches.map(({ header }) => header.idx as number);

describe("pages of the journal", () => {
  it("in sequence come from one reading", async () => {
    const { reads, counts } = theReads();
    const seqs: number[] = [];
    for (let from = 1; from < 5 * PER_PAGE; from = (seqs.at(-1) ?? 0) + 1)
      seqs.push(...seqsOf(await reads.page(from)));
    expect(seqs).toEqual(Array.from({ length: 5 * PER_PAGE }, (_, at) => at + 1));
    expect(counts.opened).toBe(1);
  });

  it("that are asked for at the same time share a read, and for a moment afterwards", async () => {
    const { reads, counts, clock } = theReads();
    const pages = await Promise.all(Array.from({ length: 100 }, () => reads.page(7)));
    expect(new Set(pages).size).toBe(1);
    expect(await reads.page(7)).toBe(pages[0]);
    await clock.advance(limits.pageSharedMs);
    expect(await reads.page(7)).not.toBe(pages[0]);
    expect(counts.opened).toBe(2);
  });

  it("are read a few at once, some more wait, and later requests are refused and told when to ask again", async () => {
    const { reads, counts, held } = theReads();
    held.gate = new Gate();
    const places = limits.pageReadsAtOnce + limits.pageReadsWaitingMax;
    const pages = Array.from({ length: places }, (_, at) => reads.page(1 + at * PER_PAGE));
    const refused = await reads.page(1 + places * PER_PAGE).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(BackpressureError);
    expect(refused).toMatchObject({ retryAfterMs: limits.retryAfterMs });
    expect(counts.opened).toBe(limits.pageReadsAtOnce);
    held.gate.open();
    for (const [at, page] of (await Promise.all(pages)).entries())
      expect(seqsOf(page)[0]).toBe(1 + at * PER_PAGE);
    expect(counts.openMost).toBe(limits.pageReadsAtOnce);
  });

  it("are read one at a time by a standby without a leader", async () => {
    const { reads, counts } = theReads(1_000, "alone");
    await Promise.all([reads.page(1), reads.page(100), reads.page(200)]);
    expect(counts.opened).toBe(3);
    expect(counts.openMost).toBe(1);
    expect(await reads.page(300)).toHaveLength(PER_PAGE);
  });

  it("are left to the leader by a standby that hears one", async () => {
    const { reads, counts } = theReads(1_000, "standby");
    await expect(reads.page(1)).rejects.toThrow(BackpressureError);
    await expect(reads.slot(() => Promise.resolve())).rejects.toThrow(BackpressureError);
    expect(counts.opened).toBe(0);
  });

  it("leave open no unused reading, nor a reading at its end", async () => {
    const { reads, counts, clock } = theReads(10);
    await reads.page(1);
    expect(counts.open).toBe(1);
    await clock.advance(limits.journalReadingIdleMs);
    expect(counts.open).toBe(0);
    expect(seqsOf(await reads.page(9))).toEqual([9, 10]);
    expect(counts.open).toBe(0);
  });

  it("that cannot be read are asked for again the next time", async () => {
    const { reads, held } = theReads();
    const gate = new Gate();
    held.gate = Object.assign(gate, { opened: Promise.reject(new UnreachableError("away")) });
    await expect(reads.page(1)).rejects.toThrow(UnreachableError);
    held.gate = undefined;
    expect(seqsOf(await reads.page(1))[0]).toBe(1);
  });
});

describe("the budget of reads", () => {
  const page = limits.queryPageBytesMax;

  it("of one project is used up by it alone, and comes back with time", async () => {
    const clock = new ManualClock();
    const budget = new ReadBudget(clock);
    const burst = (limits.pageBytesPerSecond * limits.pageBurstMs) / 1_000;
    for (let taken = 0; taken < burst; taken += page) budget.take("red", page);
    const refused = (() => {
      try {
        budget.take("red", page);
      } catch (error) {
        return error;
      }
    })();
    expect(refused).toBeInstanceOf(BackpressureError);
    const { retryAfterMs } = refused as BackpressureError;
    expect(retryAfterMs).toBeGreaterThanOrEqual(limits.pageRetryMsMin);
    budget.take("blue", page);
    await clock.advance(retryAfterMs);
    budget.take("red", page);
  });

  it("of all is kept, however many projects there are", () => {
    const budget = new ReadBudget(new ManualClock());
    const most = (limits.pageBytesPerSecondOfAll * limits.pageBurstMs) / 1_000 / page;
    let pages = 0;
    const takeAll = () => {
      for (; ; pages += 1) budget.take(`p${pages}`, page);
    };
    expect(takeAll).toThrow(BackpressureError);
    expect(pages).toBe(most);
  });

  it("has room for a small page where a whole one does not fit", () => {
    const budget = new ReadBudget(new ManualClock());
    expect(() => {
      for (;;) budget.take("red", page + 1);
    }).toThrow(BackpressureError);
    budget.take("red", limits.pageCostMin);
  });
});

describe("a standby", () => {
  it("leaves old pages to an audible leader, and answers old pages without a leader", async () => {
    const { recentRecordsBytes } = limits;
    Object.assign(limits, { recentRecordsBytes: 1 });
    onTestFinished(() => void Object.assign(limits, { recentRecordsBytes }));
    const clock = new ManualClock();
    const log = keptLog();
    const swarm = await startTestSwarm({ clock, logger: log.logger });
    onTestFinished(() => swarm.stop());
    await swarm.client.submit([{ id: "t1", kind: "k" }]);
    const journal = new MemoryJournal(swarm.store);
    await swarm.startAnother("c2", journal);
    await clock.advance(limits.leaderTimeoutMs); // hears the leader
    const segmentOf = journal.segment.bind(journal);
    let readings = 0;
    journal.segment = (number) => {
      const segment = segmentOf(number);
      const replay = segment.replay.bind(segment);
      segment.replay = (...given) => {
        readings += 1;
        return replay(...given);
      };
      return segment;
    };
    const ask = async () => {
      const page = swarm.client.ask(subjects.query("_", "journal"), { from: 1 });
      await clock.advance(2 * limits.standbyAnswerMs);
      expect(await page).toHaveProperty("last");
    };

    await ask();
    expect(readings).toBe(0);
    expect(log.lines.filter(({ msg }) => msg.includes("more of the journal"))).toEqual([]);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("it has a connection"));
    await clock.advance(limits.leaderTimeoutMs);
    await ask();
    expect(readings).toBeGreaterThan(0);
  });
});

describe("a client that asks for too much of the journal", () => {
  it("is refused by the intake, logged once a minute, and keeps no client from submitting", async () => {
    const clock = new ManualClock();
    const log = keptLog();
    const swarm = await startTestSwarm({ clock, logger: log.logger });
    onTestFinished(() => swarm.stop());
    const payload = "x".repeat(200 * 1024);
    for (let n = 0; n < 4; n += 1) await swarm.client.submit([{ id: `t${n}`, kind: "k", payload }]);
    const inbox = "_INBOX.flood.1";
    const answers = swarm.client.listen<{ readonly code?: string; readonly retryAfterMs?: number }>(inbox);
    const subject = subjects.query("flooding", "events");
    const flood = () => {
      for (let n = 0; n < 300; n += 1)
        swarm.client.transport.publish(subject, Buffer.from('{"from":2}'), inbox);
    };
    flood();
    await clock.settle();
    const refused = answers.all.filter(({ code }) => code === "WAGGLE_BACKPRESSURE");
    expect(answers.all).toHaveLength(300);
    expect(refused.length).toBeGreaterThan(100);
    for (const { retryAfterMs } of refused) expect(retryAfterMs).toBeGreaterThan(0);
    expect(await swarm.client.ask(subjects.query("_", "journal"), { from: 2 })).toMatchObject({ last: 5 });
    expect(await swarm.client.submit([{ kind: "k" }])).toMatchObject({ answers: [{ ok: true }] });
    const lines = () => log.lines.filter(({ msg }) => msg.includes("more of the journal than is read"));
    expect(lines()).toMatchObject([{ project: "flooding", requests: 1 }]);
    await clock.advance(limits.readsRefusedQuietMs);
    expect(lines()).toMatchObject([{ requests: 1 }, { requests: refused.length - 1 }]);
    expect((await swarm.client.status()).counters).toMatchObject({ refused: refused.length });
  });
});
