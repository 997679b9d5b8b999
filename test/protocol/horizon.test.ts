// When an announced term is believed: until answers of leaders contradict it for some time.

import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { Horizon } from "../../src/protocol/horizon.ts";
import type { JournalPoint } from "../../src/protocol/journal-point.ts";
import type { LossError } from "../../src/protocol/loss-error.ts";

const forged = Number.MAX_SAFE_INTEGER;
let nowMs: number;
let horizon: Horizon;
let losses: LossError[];
let newLeaders: number;

beforeEach(() => {
  nowMs = 1_000;
  horizon = new Horizon({ monotonicMs: () => nowMs });
  losses = [];
  newLeaders = 0;
  horizon.onLoss((loss) => losses.push(loss));
  horizon.onNewLeader(() => {
    newLeaders += 1;
  });
});

const answered = (term: number, idx: number, knownWhenAsked: JournalPoint = horizon.known) =>
  horizon.note({ term, idx }, knownWhenAsked);

/** Answers once a second for so long, from `idx` on. */
function answeredFor(ms: number, term: number, idx: number): number {
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    nowMs += 1_000;
    answered(term, idx + passedMs / 1_000);
  }
  return idx + ms / 1_000;
}

describe("a term without a leader", () => {
  it("is given up when leaders have answered from a lower one for long enough, not before", () => {
    answered(5, 10);
    horizon.noteTerm(forged);
    answered(5, 11);
    const idx = answeredFor(limits.termDoubtedMs - 1_000, 5, 12);
    expect(horizon.term).toBe(forged);
    answeredFor(1_000, 5, idx);
    expect(horizon.term).toBe(5);
    expect(losses, "an announcement says nothing about batches").toEqual([]);
  });

  it("is given up once, despite repeated announcements with any number", () => {
    answered(5, 10);
    horizon.noteTerm(forged);
    answered(5, 11);
    answeredFor(limits.termDoubtedMs, 5, 12);
    for (const term of [6, forged - 1, forged]) {
      horizon.noteTerm(term);
      horizon.note({ term, idx: 1 });
    }
    expect([horizon.term, newLeaders, losses]).toEqual([5, 1, []]);
  });

  it("is believed again after an answer of a later term: the next leader is accepted at once", () => {
    answered(5, 10);
    horizon.noteTerm(forged);
    answered(5, 11);
    answeredFor(limits.termDoubtedMs, 5, 12);
    answered(6, 100);
    expect([horizon.term, newLeaders]).toEqual([6, 2]);
    horizon.noteTerm(7);
    expect([horizon.term, newLeaders]).toEqual([7, 3]);
  });

  it("announced with a batch does not hide a loss forever, and is reported as a loss", () => {
    answered(5, 10);
    horizon.note({ term: forged, idx: 20 });
    answered(5, 11);
    const idx = answeredFor(limits.termDoubtedMs, 5, 12);
    expect(losses).toMatchObject([{ known: { term: forged, idx: 20 }, found: { term: 5 } }]);
    answered(5, idx - 3);
    expect(losses).toHaveLength(2);
  });
});

describe("a term that is led", () => {
  it("is not given up for what a leader that was deposed still answers", () => {
    answered(5, 10);
    horizon.noteTerm(6);
    answered(5, 11);
    answeredFor(limits.termDoubtedMs - 1_000, 5, 12);
    answered(6, 60);
    answered(5, 13);
    answeredFor(limits.termDoubtedMs - 1_000, 5, 14);
    expect([horizon.term, horizon.known]).toEqual([6, { term: 6, idx: 60 }]);
    expect(losses).toEqual([]);
  });
});

describe("the starts of terms", () => {
  const start = (term: number, idx: number, opened = `term ${term}`) => ({ term, idx, opened });

  it("are needed once per term, and again when an answer has a later term", () => {
    expect(horizon.needsTermStarts).toBe(false);
    answered(5, 10);
    expect(horizon.needsTermStarts).toBe(true);
    horizon.noteTermStarts([start(5, 3)]);
    expect(horizon.needsTermStarts).toBe(false);
    answered(6, 60);
    expect(horizon.needsTermStarts).toBe(true);
  });

  it("show a loss that later terms have covered, over several changes of leader", () => {
    answered(5, 10);
    answered(8, 100);
    horizon.noteTermStarts([start(5, 3), start(6, 10), start(7, 40), start(8, 90)]);
    expect(losses).toMatchObject([{ known: { term: 5, idx: 10 }, found: { term: 6, idx: 10 } }]);
  });

  it("show a loss for the furthest batch of each term", () => {
    answered(5, 10);
    answered(6, 30);
    answered(8, 100);
    horizon.noteTermStarts([start(5, 3), start(6, 11), start(8, 30)]);
    expect(losses).toMatchObject([{ known: { term: 6, idx: 30 }, found: { term: 8, idx: 30 } }]);
  });

  it("show no loss if each term begins behind the known batch of the term before", () => {
    answered(5, 10);
    answered(6, 30);
    answered(8, 100);
    horizon.noteTermStarts([start(5, 3), start(6, 11), start(7, 31), start(8, 40)]);
    expect(losses).toEqual([]);
  });

  it("prove nothing if they are of a leader before the last answer's", () => {
    answered(5, 10);
    answered(6, 30);
    horizon.noteTermStarts([start(5, 3)]);
    expect([losses, horizon.needsTermStarts]).toEqual([[], true]);
    horizon.noteTermStarts([start(5, 3), start(6, 9)]);
    expect(losses).toHaveLength(1);
  });

  it("show a second term of the same number", () => {
    answered(5, 10);
    horizon.noteTermStarts([start(5, 3)]);
    answered(5, 40);
    horizon.noteTermStarts([start(5, 3, "another")]);
    expect(losses).toMatchObject([{ known: { term: 5, idx: 40 }, found: { term: 5, idx: 3 } }]);
  });

  it("show that a known term began otherwise, though the present term is a later one", () => {
    answered(1, 5);
    horizon.noteTermStarts([start(1, 1)]);
    answered(2, 100);
    horizon.noteTermStarts([start(1, 1, "another"), start(2, 50)]);
    expect(losses).toMatchObject([{ known: { term: 1, idx: 5 }, found: { term: 1, idx: 1 } }]);
  });

  it.each([
    ["in a later term", { term: 2, idx: 10 }, [start(1, 1, "another"), start(2, 3)]],
    ["in the same term", { term: 1, idx: 10 }, [start(1, 1, "another")]],
  ])("do not show a loss once more that an answer has shown: %s", (_, { term, idx }, starts) => {
    answered(1, 50);
    horizon.noteTermStarts([start(1, 1)]);
    answered(term, idx);
    expect(losses).toHaveLength(1);
    horizon.noteTermStarts(starts);
    expect(losses).toHaveLength(1);
  });
});
