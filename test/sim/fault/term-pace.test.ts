// The pace of journal time against true time within a term.

import { expect, it } from "vitest";
import { hashOf } from "../../../src/journal/records.ts";
import { TermPace } from "../../../src/sim/fault/term-pace.ts";

/** Sends batches in sequence at their times. Returns the finding for the last. */
function verdictOn(
  ...batches: readonly { readonly term: number; readonly at: number; readonly sentMs: number }[]
): string | undefined {
  const pace = new TermPace();
  return batches
    .map((batch) => {
      const bytes = Buffer.from(JSON.stringify(batch));
      pace.sent(bytes, batch.sentMs);
      pace.sent(bytes, batch.sentMs + 60_000); // a second send changes nothing
      return pace.check({ ...batch, hash: hashOf(bytes) });
    })
    .at(-1);
}

const start = { term: 1, at: 1_000_000, sentMs: 5_000 };
const second = { term: 1, at: 1_000_010, sentMs: 5_010 };
const third = { term: 1, at: 1_000_020, sentMs: 5_020 };
const fourth = { term: 1, at: 1_000_030, sentMs: 5_030 };

it("within a term journal time runs at most a little faster than true time", () => {
  const behindStart = (at: number, sentMs: number) =>
    verdictOn(start, second, third, fourth, { term: 1, at, sentMs });
  expect(behindStart(1_106_000, 105_000)).toBeUndefined();
  expect(behindStart(1_112_000, 105_000)).toContain("went by in term 1");
  expect(behindStart(1_007_000, 5_100)).toContain("went by in term 1");
});

it("an election and the first batches of its term may be decided long before they are sent", () => {
  const later = { term: 1, at: 1_009_002, sentMs: 14_002 };
  const slowStart = { ...start, sentMs: 14_000 };
  const slowSecond = { ...second, sentMs: 14_001 };
  const slowThird = { ...third, sentMs: 14_001 };
  expect(verdictOn(slowStart, later)).toBeUndefined();
  expect(verdictOn(start, slowSecond, later)).toBeUndefined();
  expect(verdictOn(slowStart, slowSecond, later)).toBeUndefined();
  expect(verdictOn(slowStart, slowSecond, slowThird, later)).toBeUndefined();
  expect(verdictOn(slowStart, slowSecond, slowThird, later, { ...later, at: later.at + 7_000 })).toContain(
    "went by in term 1",
  );
});

it("a new term begins at its leader's time", () => {
  expect(verdictOn(start, { term: 2, at: 4_600_000, sentMs: 6_000 })).toBeUndefined();
});

it("a batch never sent is not checked", () => {
  expect(new TermPace().check({ term: 1, at: 9e9, hash: "unknown" })).toBeUndefined();
});

it("a batch is decided when sent, or earlier if it waits for its predecessor", () => {
  const pace = new TermPace();
  const takes = ({ term, at, sentMs }: typeof start) => {
    const bytes = Buffer.from(JSON.stringify({ term, at }));
    pace.sent(bytes, sentMs);
    const stamped = { term, at, hash: hashOf(bytes) };
    const decidedMs = pace.decidedMs(stamped);
    pace.check(stamped);
    return decidedMs;
  };
  expect(takes(start)).toBe(5_000);
  expect(takes({ term: 1, at: 1_001_000, sentMs: 6_000 })).toBe(6_000);
  expect(takes({ term: 1, at: 1_001_500, sentMs: 30_000 })).toBe(6_500);
  expect(takes({ term: 2, at: 1_001_600, sentMs: 31_000 })).toBe(31_000);
});
