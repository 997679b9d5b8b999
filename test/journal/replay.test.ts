// Which records of a journal count, and what is damage: the one rule that leader, standby and every reader share.

import { describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { type BatchHeader, decodeBatch, encodeBatch, hashOf } from "../../src/journal/batch.ts";
import { Replay } from "../../src/journal/replay.ts";
import type { Event } from "../../src/state/event.ts";

const renewed: Event = { type: "TermRenewed" };
const started = (of: number): Event => ({
  type: "TermStarted",
  term: term(of),
  leader: "c",
  campaign: "k1",
  timeoutMs: 3_000,
});

class Line {
  readonly replay = new Replay();
  #seq = 0;

  /** Bytes that continue the line, unless overridden. */
  batch(events: readonly Event[], overrides: Partial<BatchHeader> = {}): Uint8Array {
    const { idx, term: of, hash, journal } = this.replay.position;
    const header = {
      journal: journal || "j",
      term: of,
      idx: batchIndex(idx + 1),
      prev: hash,
      at: instant(Math.max(1_000, this.replay.state.at)),
      ...overrides,
    };
    return encodeBatch(
      header,
      events.map((event) => JSON.stringify(event)),
    );
  }

  take(bytes: Uint8Array): string {
    this.#seq += 1;
    const verdict = this.replay.take({ seq: this.#seq, bytes });
    return verdict.kind === "dead" ? verdict.reason : verdict.kind;
  }
}

function begun(): Line {
  const line = new Line();
  expect(line.take(line.batch([started(1)], { term: term(1) }))).toBe("applied");
  return line;
}

describe("a record that does not continue the line", () => {
  it.each([
    ["of a later term says that batches before it are missing", { term: term(2) }, 2],
    ["of this term, further on than what is in flight, does too", { idx: batchIndex(4) }, 2],
    ["of this term, one that was in flight, is dead and no more", { idx: batchIndex(3) }, undefined],
  ])("%s", (_, overrides, strayedAtSeq) => {
    const line = begun();
    expect(line.take(line.batch([renewed], { prev: "another's", ...overrides }))).toBe("broken-chain");
    expect(line.take(line.batch([renewed]))).toBe("applied");
    expect(line.replay.strayedAtSeq).toBe(strayedAtSeq);
  });

  it("of a former term is dead and no more", () => {
    const line = begun();
    line.take(line.batch([started(2)], { term: term(2) }));
    const late = line.batch([renewed], { prev: "another's", term: term(1), idx: batchIndex(9) });
    expect(line.take(late)).toBe("broken-chain");
    expect(line.replay.strayedAtSeq).toBeUndefined();
  });
});

describe("a record", () => {
  it("that continues the line is applied", () => {
    const line = begun();
    expect(line.take(line.batch([renewed]))).toBe("applied");
    expect(line.take(line.batch([started(3)], { term: term(3) }))).toBe("applied");
    expect(line.replay.position).toMatchObject({ seq: 3, idx: 3, term: 3, journal: "j" });
    expect(line.replay.lastEventType).toBe("TermStarted");
  });

  it.each([
    ["not a batch", () => Buffer.from("{}"), "alien"],
    ["not text", () => Buffer.from([0xff, 0xfe]), "alien"],
    ["nested beyond reason", () => Buffer.from("[".repeat(200_000)), "alien"],
    [
      "of a later format",
      (line: Line) =>
        Buffer.from(
          Buffer.from(line.batch([renewed]))
            .toString()
            .replace(/"v":\d+/, '"v":99'),
        ),
      "alien",
    ],
    ["of another journal", (line: Line) => line.batch([renewed], { journal: "other" }), "other-journal"],
    [
      "of a rival behind a refused batch",
      (line: Line) => line.batch([renewed], { prev: hashOf(Buffer.from("x")) }),
      "broken-chain",
    ],
    ["that skips an index", (line: Line) => line.batch([renewed], { idx: batchIndex(4) }), "broken-chain"],
    ["that repeats an index", (line: Line) => line.batch([renewed], { idx: batchIndex(1) }), "broken-chain"],
    ["of a term gone by", (line: Line) => line.batch([renewed], { term: term(1) }), "lower-term"],
    [
      "of a term that nobody began",
      (line: Line) => line.batch([renewed], { term: term(9) }),
      "no-term-start",
    ],
  ])("%s is dead, and the line goes on behind it", (_, bytesOf, reason) => {
    const line = begun();
    expect(line.take(line.batch([started(2)], { term: term(2) }))).toBe("applied");
    const before = line.replay.position;
    expect(line.take(bytesOf(line))).toBe(reason);
    expect(line.replay.position).toEqual({ ...before, seq: 3 });
    expect(line.take(line.batch([renewed]))).toBe("applied");
    expect(line.replay.deadRecords).toBe(1);
    expect([1, 2, 3].map((idx) => line.replay.places.seqOf(batchIndex(idx)))).toEqual([1, 2, 4]);
  });

  it("after a gap is damage", () => {
    const line = begun();
    const bytes = line.batch([renewed]);
    expect(() => line.replay.take({ seq: 3, bytes })).toThrow(JournalDamagedError);
  });

  it("whose events do not fit is damage", () => {
    const line = begun();
    expect(() => line.take(line.batch([started(1)]))).toThrow(JournalDamagedError);
  });

  it("of an earlier time than the one before is damage", () => {
    const line = begun();
    line.take(line.batch([renewed], { at: instant(5_000) }));
    expect(() => line.take(line.batch([renewed], { at: instant(4_999) }))).toThrow(JournalDamagedError);
  });
});

describe("a batch", () => {
  it("reads back as it was written", () => {
    const line = begun();
    const bytes = line.batch([renewed, { type: "TermEnded" }]);
    const batch = decodeBatch(bytes);
    expect(batch).toMatchObject({ journal: "j", term: 1, idx: 2, events: [renewed, { type: "TermEnded" }] });
  });
});
