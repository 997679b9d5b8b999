// The next segment of a leader: a base and copies, made while the leader goes on, and nothing else.

import { describe, expect, it } from "vitest";
import { makeNextSegment } from "../../../src/coordinator/compacting/make-next-segment.ts";
import { JournalDamagedError } from "../../../src/errors.ts";
import { findLive } from "../../../src/journal/live.ts";
import {
  type AnswerFate,
  MemoryJournal,
  type MemoryRequest,
  type RequestFate,
} from "../../../src/journal/memory.ts";
import { decodeRecord, encodeRecord } from "../../../src/journal/records.ts";
import { SegmentLostError } from "../../../src/journal/segment-writer.ts";
import { limits } from "../../../src/limits.ts";
import { bytesOf } from "../../journal/records.ts";
import { Gate } from "../../support/gate.ts";
import { MemoryLedLog } from "./led-log.ts";

const { signal } = new AbortController();

/** The kinds of records in a segment; a run of one kind is one word. */
async function formOf(log: MemoryLedLog, number: number): Promise<string> {
  const kinds: string[] = [];
  for await (const { bytes } of log.journal.segment(number).replay(1)) {
    const kind = decodeRecord(bytes)?.kind ?? "foreign";
    if (kinds.at(-1) !== kind) kinds.push(kind);
  }
  return kinds.join(" ");
}

/** Whether a request appends a record of a kind. */
function isAppendOf(request: MemoryRequest, kind: string): boolean {
  return request.op === "append" && decodeRecord(request.bytes)?.kind === kind;
}

describe("the next segment of a leader", () => {
  it("begins with the claim and a base of all that was committed, and is not live", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(5);
    const made = await log.make(2);
    expect(made).toMatchObject({ number: 2, base: { idx: 6 }, copiedIdx: 6 });
    expect(await formOf(log, 2)).toBe("claim chunk manifest");
    expect(log.store.end(2)?.position).toBe(made.position);
    expect((await findLive(log.journal)).live?.number).toBe(1);
  });

  it("is read by a restart, once the leader opened it", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(5);
    const made = await log.make(2);
    await log.submit(3); // left to the leader
    await log.changeTo(made);
    await log.submit(2);
    expect(await formOf(log, 2)).toBe("claim chunk manifest batch opened batch");
    log.store.remove(1);
    await log.expectWhole();
  });

  it("copies batches that come while the base is written, byte for byte", async () => {
    const gate = new Gate();
    const log = await MemoryLedLog.start();
    const slow = new MemoryJournal(log.store, {
      onRequest: async (request): Promise<RequestFate> => {
        if (isAppendOf(request, "manifest")) await gate.opened;
        return "deliver";
      },
    });
    await log.submit(5);
    const making = log.make(2, slow);
    await log.clock.settle();
    await log.submit(100); // more than are copied together
    gate.open();
    const made = await making;
    expect(made).toMatchObject({ base: { idx: 6 }, copiedIdx: 106 });
    await log.changeTo(made);
    log.store.remove(1);
    await log.expectWhole();
  });

  it("waits with base and copies for the leader's commits", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(2);
    await log.submitUncommitted();
    let isMade = false;
    const making = log.make(2).finally(() => {
      isMade = true;
    });
    await log.clock.advance(1_000);
    expect(isMade).toBe(false);
    expect(await formOf(log, 2)).toBe("claim chunk manifest");
    log.committedIdx += 1;
    await log.clock.advance(limits.committedLookMs);
    expect(await making).toMatchObject({ base: { idx: 3 }, copiedIdx: 4 });
  });

  it("waits with the copies, too", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(2);
    let isBehindBase = false;
    const watched = new MemoryJournal(log.store, {
      onAnswer: async (request): Promise<AnswerFate> => {
        if (isAppendOf(request, "manifest") && !isBehindBase) {
          isBehindBase = true;
          await log.submitUncommitted();
        }
        return "deliver";
      },
    });
    const making = log.make(2, watched);
    await log.clock.advance(1_000);
    expect(await formOf(log, 2)).toBe("claim chunk manifest");
    log.committedIdx += 1;
    await log.clock.advance(limits.committedLookMs);
    expect(await making).toMatchObject({ base: { idx: 3 }, copiedIdx: 4 });
  });

  it("skips foreign records, in the led segment and in its own", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(2);
    const chunks: string[] = [];
    const slow = new MemoryJournal(log.store, {
      onRequest: (request) => {
        if (isAppendOf(request, "manifest") && chunks.length === 0) {
          chunks.push("one");
          log.store.insert(2, bytesOf("not ours"));
        }
        return "deliver";
      },
      onAnswer: async (request): Promise<AnswerFate> => {
        if (isAppendOf(request, "manifest") && log.committedIdx === 3) {
          log.store.insert(1, bytesOf("not ours"));
          await log.submit(1);
        }
        return "deliver";
      },
    });
    const made = await log.make(2, slow);
    expect(await formOf(log, 2)).toBe("claim chunk foreign manifest batch");
    await log.changeTo(made);
    log.store.remove(1);
    await log.expectWhole();
  });

  it("loses no copy to lost requests and lost answers", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(150);
    let count = 0;
    const gate = new Gate();
    const shaky = new MemoryJournal(log.store, {
      onRequest: async (request) => {
        if (isAppendOf(request, "manifest")) await gate.opened;
        if (request.op !== "append") return "deliver";
        count += 1;
        return count % 5 === 0 ? "lose" : "deliver";
      },
      onAnswer: (request) => (request.op === "append" && count % 7 === 0 ? "lose" : "deliver"),
    });
    const making = log.make(2, shaky);
    await log.clock.settle();
    await log.submit(150);
    gate.open();
    await log.clock.advance(60_000);
    const made = await making;
    expect(made.copiedIdx).toBe(301);
    await log.changeTo(made);
    log.store.remove(1);
    await log.expectWhole();
  });
});

describe("no segment is made", () => {
  it("where another session claimed the number", async () => {
    const log = await MemoryLedLog.start();
    log.store.create(2);
    log.store.insert(
      2,
      encodeRecord({ kind: "claim", segment: 2, session: "session-2", attempt: "attempt-1" }),
    );
    await expect(log.make(2)).rejects.toThrow(SegmentLostError);
    expect(await formOf(log, 2)).toBe("claim");
  });

  it("if a coordinator that takes the lead sealed the segment meanwhile", async () => {
    const log = await MemoryLedLog.start();
    const rival = new MemoryJournal(log.store, {
      onRequest: (request) => {
        if (isAppendOf(request, "manifest")) log.store.seal(2);
        return "deliver";
      },
    });
    await expect(log.make(2, rival)).rejects.toThrow(SegmentLostError);
  });

  it("where the base cannot be read back", async () => {
    const log = await MemoryLedLog.start();
    const worn = new MemoryJournal(log.store, {
      onAnswer: (request) => {
        if (isAppendOf(request, "manifest")) log.store.damageRecord(2, 2);
        return "deliver";
      },
    });
    await expect(log.make(2, worn)).rejects.toThrow(JournalDamagedError);
  });

  it("where a power loss takes the end of the base before the copies", async () => {
    const log = await MemoryLedLog.start();
    let batches = 0;
    const worn = new MemoryJournal(log.store, {
      onAnswer: async (request): Promise<AnswerFate> => {
        if (isAppendOf(request, "manifest")) await log.submit(1);
        return "deliver";
      },
      onRequest: (request) => {
        if (isAppendOf(request, "batch") && batches === 0) {
          batches += 1;
          log.store.loseTail(2, 1);
        }
        return "deliver";
      },
    });
    const making = log.make(2, worn);
    const outcome = expect(making).rejects.toThrow(JournalDamagedError);
    await log.clock.advance(60_000);
    await outcome;
  });

  it("where the log cannot be read", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(3);
    log.store.loseRecords(1, 4);
    await expect(log.make(2)).rejects.toThrow("record 4 of segment 1 is missing");
    expect(log.store.list()).toEqual([1]);
  });

  it("where its leader's term ends", async () => {
    const log = await MemoryLedLog.start();
    await log.submitUncommitted();
    const ending = new AbortController();
    const making = makeNextSegment(log, log.order(2), ending.signal);
    const outcome = expect(making).rejects.toThrow("the term is over");
    await log.clock.settle();
    ending.abort(new Error("the term is over"));
    await outcome;
  });

  it("where the journal has no room for its base", async () => {
    const log = await MemoryLedLog.start();
    await log.submit(20, 1_000);
    const making = makeNextSegment(log, log.order(2, { bytesMax: 5_000 }), signal);
    await expect(making).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
    expect(log.store.end(2)?.bytes).toBeLessThan(5_000);
  });
});
