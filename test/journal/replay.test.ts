// A record counts if the record continues the log. All readers skip the same records, and distinguish damage.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { batchIndex, instant, taskId, term } from "../../src/ids.ts";
import { encodeBatch, encodeRecord, hashOf } from "../../src/journal/records.ts";
import { emptyTail, type LiveSegment, Replay, UnfitBatchError } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import type { Event } from "../../src/state/event.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { aRef } from "../support/task-refs.ts";
import { aTask, join, segmentOfTurns, submit, Turns } from "../support/turns.ts";

function someTurns(): Turns {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let n = 0; n < 6; n += 1) {
    turns.pass(100);
    turns.turn(submit(aTask({ id: taskId(`t${n}`) })));
  }
  return turns;
}

const history = someTurns();
const bytesOf = history.records.map(({ bytes }) => bytes);

/** Takes records one behind the other. */
function taking(records: readonly Uint8Array[], live: LiveSegment = segmentOfTurns) {
  const replay = new Replay();
  replay.enter(live, 0);
  const verdicts = records.map((bytes, at) => replay.take({ position: at + 1, bytes }));
  return { replay, kinds: verdicts.map(({ kind }) => kind), verdicts };
}

/** A batch behind the first ones, with any header. */
function aBatch(more: object = {}, events: readonly Event[] = [{ type: "TermRenewed" }]): Uint8Array {
  const { tail } = taking(bytesOf.slice(0, 3)).replay;
  const header = {
    journal: "j",
    session: "a-session",
    term: term(1),
    idx: batchIndex(4),
    prev: tail.hash,
    at: instant(9_000_000),
    ...more,
  };
  return encodeBatch(
    header,
    events.map((event) => JSON.stringify(event)),
  );
}

describe("a replay", () => {
  it("gives the decided state, whatever foreign and superseded records lie between", () => {
    const other = aBatch({ journal: "another" });
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 3 }), { minLength: 8, maxLength: 8 }), (between) => {
        const records: Uint8Array[] = [];
        for (const [at, bytes] of bytesOf.entries()) {
          const noise = [Buffer.from("foreign"), other, bytesOf[Math.max(0, at - 1)] as Uint8Array];
          records.push(...noise.slice(0, between[at]), bytes);
        }
        const { replay } = taking(records);
        expect(fingerprint(replay.state)).toBe(fingerprint(history.state));
        expect(replay.tail.idx).toBe(history.state.idx);
      }),
      { numRuns: 30 },
    );
  });

  it.each<[string, object]>([
    ["of another journal", { journal: "another" }],
    ["of another session", { session: "another" }],
    ["of another term", { term: term(2) }],
    ["of another branch", { prev: hashOf(Buffer.from("another")) }],
    ["that stands already", { idx: batchIndex(3) }],
    ["of the one behind it, whose predecessor never came", { idx: batchIndex(5) }],
  ])("skips a batch %s, and goes on", (_, more) => {
    const { kinds, replay } = taking([...bytesOf.slice(0, 3), aBatch(more), ...bytesOf.slice(3)]);
    expect(kinds[3]).toBe("skipped");
    expect(replay.tail.idx).toBe(history.state.idx);
  });

  it("counts foreign records, but not superseded batches of the journal's leaders", () => {
    const superseded = bytesOf[1] as Uint8Array;
    const { replay, verdicts } = taking([
      ...bytesOf.slice(0, 3),
      superseded,
      Buffer.from("foreign"),
      aBatch({ journal: "another", session: "another" }),
    ]);
    expect(verdicts.slice(3)).toEqual([
      { kind: "skipped", isForeign: false },
      { kind: "skipped", isForeign: true },
      { kind: "skipped", isForeign: true },
    ]);
    expect(replay.foreign).toMatchObject({ count: 2 });
  });

  it("accepts a copied batch before the segment's `Opened` by the hash chain alone, from any writer", () => {
    const tail = taking(bytesOf).replay.tail;
    const opened = { ...segmentOfTurns.opened, session: "next", term: term(1), tail };
    const live = { ...segmentOfTurns, opened, position: bytesOf.length + 1 };
    const { replay } = taking([...bytesOf, encodeRecord(opened)], live);
    expect(replay.tail).toEqual(tail);
    expect(() => taking([...bytesOf.slice(0, -1), Buffer.from("x"), encodeRecord(opened)], live)).toThrow(
      JournalDamagedError,
    );
  });

  it("passes by headers the batches that it would apply, and leaves the state behind", () => {
    const records = [
      ...bytesOf.slice(0, 3),
      Buffer.from("foreign"),
      aBatch({ journal: "another", session: "another" }),
      bytesOf[1] as Uint8Array,
      ...bytesOf.slice(3),
    ];
    const taken = taking(records);
    const passing = taking(records.slice(0, 2)).replay;
    const at = passing.state.idx;
    const isNext = records.slice(2).map((bytes, n) => passing.pass({ position: n + 3, bytes }));
    expect(isNext).toEqual(taken.kinds.slice(2).map((kind) => kind === "applied"));
    expect(passing.tail).toEqual(taken.replay.tail);
    expect(passing.recordHash).toBe(taken.replay.recordHash);
    expect(passing.state.idx).toBe(at);
    const next = aBatch({ prev: passing.tail.hash, idx: passing.tail.idx + 1 });
    expect(() => passing.take({ position: records.length + 1, bytes: next })).toThrow("after `pass`");
  });

  it("accepts the writer's `Closing`, and no foreign `Closing`", () => {
    const closing = { kind: "closing", segment: 1, session: "a-session", reason: "handing-over" } as const;
    const foreign = encodeRecord({ ...closing, session: "another" });
    expect(taking([...bytesOf, foreign]).replay.closing).toBeUndefined();
    expect(taking([...bytesOf, encodeRecord(closing)]).replay.closing).toMatchObject(closing);
  });
});

describe("damage", () => {
  it("is a missing record", () => {
    const replay = new Replay();
    expect(() => replay.take({ position: 1, bytes: bytesOf[0] as Uint8Array })).toThrow(JournalDamagedError);
    replay.enter(segmentOfTurns, 0);
    replay.take({ position: 1, bytes: bytesOf[0] as Uint8Array });
    expect(() => replay.take({ position: 3, bytes: bytesOf[2] as Uint8Array })).toThrow(
      /records are missing/,
    );
  });

  it("is a batch further ahead than a leader may have in flight", () => {
    const idx = (ahead: number) => batchIndex(3 + limits.batchesInFlightMax + ahead);
    expect(taking([...bytesOf.slice(0, 3), aBatch({ idx: idx(0) })]).kinds[3]).toBe("skipped");
    expect(() => taking([...bytesOf.slice(0, 3), aBatch({ idx: idx(1) })])).toThrow(/batches are missing/);
  });

  it("is a segment of a different journal", () => {
    const { replay } = taking(bytesOf);
    const opened = { ...segmentOfTurns.opened, journal: "another" };
    expect(() => replay.enter({ ...segmentOfTurns, opened }, 0)).toThrow(JournalDamagedError);
  });

  it.each<[string, Uint8Array]>([
    ["whose events do not fit", aBatch({}, [{ type: "TaskReleased", ...aRef("nothing") }])],
    ["that is earlier than the one before it", aBatch({ at: instant(1) })],
  ])("is a batch %s: nothing is taken behind it", (_, unfit) => {
    const { replay } = taking(bytesOf.slice(0, 3));
    const next = (bytes: Uint8Array) => replay.take({ position: (replay.place?.position ?? 0) + 1, bytes });
    expect(() => next(unfit)).toThrow(UnfitBatchError);
    expect(() => next(bytesOf[3] as Uint8Array)).toThrow(UnfitBatchError);
    expect(replay.tail.idx).toBe(3);
  });
});

it("a replay continued from a leader's state accepts the leader's next batch", () => {
  const { replay } = taking(bytesOf);
  const { tail } = replay;
  const going = new Replay({ state: replay.state, tail: emptyTail });
  going.enter(segmentOfTurns, 0);
  going.continueAt(tail, bytesOf.length, "");
  const header = {
    ...tail,
    session: "a-session",
    term: term(1),
    idx: batchIndex(tail.idx + 1),
    prev: tail.hash,
  };
  const bytes = encodeBatch({ ...header, at: instant(9_000_000) }, ['{"type":"TermRenewed"}']);
  expect(going.take({ position: bytesOf.length + 1, bytes }).kind).toBe("applied");
});
