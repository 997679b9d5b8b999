// Appends records in order, each until known to be stored, or until the writer has lost the segment.

import { beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import {
  type AnswerFate,
  MemoryJournal,
  type MemoryRequest,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { encodeRecord } from "../../src/journal/records.ts";
import { SegmentLostError, SegmentWriter } from "../../src/journal/segment-writer.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

let clock: ManualClock;
let store: MemoryJournalStore;
let onRequest: (request: MemoryRequest) => RequestFate;
let onAnswer: (request: MemoryRequest) => AnswerFate;
let ending: AbortController;
let writer: SegmentWriter;

const claim = (session: string) => encodeRecord({ kind: "claim", segment: 1, session, attempt: "a" });
const chunk = (text: string, session = "own") =>
  encodeRecord({ kind: "chunk", session, bytes: Buffer.from(text) });

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  store.create(1);
  ending = new AbortController();
  onRequest = () => "deliver";
  onAnswer = () => "deliver";
  const journal = new MemoryJournal(store, {
    onRequest: (request) => onRequest(request),
    onAnswer: (request) => onAnswer(request),
  });
  writer = new SegmentWriter({ segment: journal.segment(1), session: "own", clock, signal: ending.signal });
});

/** While time passes. */
async function put(bytes: Uint8Array): Promise<number> {
  const putting = writer.put(bytes);
  putting.catch(() => undefined); // awaited below
  await clock.advance(limits.lossLooksMin * limits.appendRetryMs + limits.appendRetryMs);
  return await putting;
}

const stored = () => {
  const end = store.end(1)?.position ?? 0;
  return Array.from({ length: end }, (_, at) => store.read(1, at + 1)?.bytes);
};

/** Loses the first of each kind. */
function losing(leg: "request" | "answer", times = 1): void {
  let lost = 0;
  const fate = ({ op }: MemoryRequest) => {
    if (op === "append") lost += 1;
    return op === "append" && lost <= times ? "lose" : "deliver";
  };
  if (leg === "request") onRequest = fate;
  else onAnswer = fate;
}

describe("a record", () => {
  it("is stored at the next position", async () => {
    expect([await put(claim("own")), await put(chunk("a"))]).toEqual([1, 2]);
    expect(writer.position).toBe(2);
  });

  it.each(["request", "answer"] as const)("whose %s is lost is stored once", async (leg) => {
    losing(leg, 2);
    expect(await put(claim("own"))).toBe(1);
    expect(stored()).toEqual([claim("own")]);
    expect(writer.sentMonotonicMs).toBeGreaterThan(0);
  });

  it("is stored after foreign records, except for the claim", async () => {
    await put(claim("own"));
    store.insert(1, Buffer.from("foreign"));
    store.insert(1, chunk("b", "another"));
    expect(await put(chunk("a"))).toBe(4);
    store.create(2);
    store.insert(2, Buffer.from("foreign"));
    const other = new SegmentWriter({
      segment: new MemoryJournal(store).segment(2),
      session: "own",
      clock,
      signal: ending.signal,
    });
    await expect(other.put(claim("own"))).rejects.toBeInstanceOf(SegmentLostError);
  });

  it("of a second claimant is refused", async () => {
    store.insert(1, claim("another"));
    await expect(put(claim("own"))).rejects.toBeInstanceOf(SegmentLostError);
    expect(stored()).toEqual([claim("another")]);
  });

  it("ends with the signal's reason", async () => {
    onRequest = () => "lose";
    const putting = writer.put(claim("own"));
    const rejected = expect(putting).rejects.toThrow("enough");
    await clock.advance(3 * limits.appendRetryMs);
    ending.abort(new Error("enough"));
    await clock.settle();
    await rejected;
  });
});

describe("a segment", () => {
  it("is lost if sealed, or if it holds a different record of the writer's session", async () => {
    await put(claim("own"));
    store.insert(1, chunk("b"));
    await expect(put(chunk("a"))).rejects.toMatchObject({ by: "rival" });
    store.seal(1);
    await expect(put(chunk("a"))).rejects.toMatchObject({ by: "rival" });
  });

  it("is lost to a foreign client that writes its first record", async () => {
    store.insert(1, Buffer.from("not a record of ours"));
    await expect(put(claim("own"))).rejects.toMatchObject({ by: "foreign" });
  });

  it("is lost if a power loss removes the segment and a rival coordinator claims the number", async () => {
    await put(claim("own"));
    store.loseSegment(1);
    store.create(1);
    store.insert(1, claim("another"));
    store.insert(1, chunk("b", "another"));
    await expect(put(chunk("a"))).rejects.toMatchObject({ by: "rival" });
    await expect(writer.requireClaim()).rejects.toMatchObject({ by: "rival" });
    expect(stored()).toEqual([claim("another"), chunk("b", "another")]);
  });

  it("is lost and gone if removed", async () => {
    await put(claim("own"));
    store.loseSegment(1);
    await expect(put(chunk("a"))).rejects.toMatchObject({ by: "loss" });
  });

  it("is damaged if the end is lost", async () => {
    await put(claim("own"));
    await put(chunk("a"));
    store.loseTail(1, 1);
    await expect(put(chunk("b"))).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("reports a full journal", async () => {
    store.bytesMax = 10;
    await expect(put(claim("own"))).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
  });
});

describe("records under way together", () => {
  it.each(["request", "answer"] as const)(
    "are stored in order, once each, though the %s of some is lost",
    async (leg) => {
      await put(claim("own"));
      losing(leg, 2);
      const chunks = ["a", "b", "c", "d"].map((text) => chunk(text));
      const putting = writer.putAll(chunks);
      await clock.advance(20 * limits.appendRetryMs);
      await putting;
      expect(stored()).toEqual([claim("own"), ...chunks]);
      expect(writer.position).toBe(5);
    },
  );
});
