// Where each batch stands, across dead records and batches that were lost.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchIndex } from "../../src/ids.ts";
import { hashOf } from "../../src/journal/batch.ts";
import { BatchPlaces } from "../../src/journal/batch-places.ts";
import { limits } from "../../src/limits.ts";

/** Of no batch in particular. */
const hash = hashOf(Buffer.from(""));

function placesOf(...pairs: readonly (readonly [idx: number, seq: number])[]): BatchPlaces {
  const places = new BatchPlaces();
  for (const [idx, seq] of pairs) places.add(batchIndex(idx), seq, hash);
  return places;
}

describe("batches of a journal", () => {
  it("that it lost are known until another stands behind what is left, though dead records stand before that", () => {
    const places = placesOf([1, 1], [2, 2], [3, 3]);
    places.goOnBehind(1);
    expect(places.runs).toEqual([[1, 1, 3]]);
    places.add(batchIndex(4), 3, hash);
    expect(places.runs).toEqual([
      [1, 1, 1],
      [4, 3, 1],
    ]);
    places.add(batchIndex(5), 4, hash);
    expect(places.lastUntil(2)).toBe(1);
  });

  it("that are found behind where it was said to end stood there all the time", () => {
    const places = placesOf([1, 1], [2, 2], [3, 3], [4, 4]);
    places.goOnBehind(1);
    places.stillStands(2);
    places.stillStands(4); // what stood at 3 was not found, so that this says nothing of the end
    places.add(batchIndex(5), 5, hash);
    expect(places.runs).toEqual([
      [1, 1, 2],
      [5, 5, 1],
    ]);
    places.stillStands(6);
    expect(places.runs).toHaveLength(2);
  });

  it.each([
    [[], undefined],
    [[[5, 9]], undefined],
    [
      [
        [1, 1],
        [2, 4],
        [3, 5],
      ],
      undefined,
    ],
    [
      [
        [1, 1],
        [2, 2],
        [4, 3],
        [5, 6],
      ],
      4,
    ],
    [
      [
        [1, 1],
        [4, 2],
        [5, 3],
        [9, 3],
      ],
      9,
    ],
  ] satisfies [[number, number][], number | undefined][])("at %j are whole from %j on", (pairs, idx) => {
    expect(placesOf(...pairs).firstBehindGap).toBe(idx);
  });

  it("are found across dead records and lost batches", () => {
    const places = placesOf([1, 1], [2, 2], [3, 5], [4, 6], [9, 7]);
    expect([0, 1, 2, 3, 4, 5, 8, 9, 10].map((idx) => places.seqOf(batchIndex(idx)))).toEqual([
      undefined,
      1,
      2,
      5,
      6,
      undefined,
      undefined,
      7,
      undefined,
    ]);
    expect([1, 2, 3, 4, 5, 6, 7, 8].map((seq) => places.idxAt(seq))).toEqual([
      1,
      2,
      undefined,
      undefined,
      3,
      4,
      9,
      undefined,
    ]);
    expect([1, 2, 3, 7, 8].map((seq) => places.firstFrom(seq))).toEqual([1, 2, 3, 9, undefined]);
    expect([0, 1, 2, 4, 5, 6, 7, 9].map((seq) => places.lastUntil(seq))).toEqual([
      undefined,
      1,
      2,
      2,
      3,
      4,
      9,
      9,
    ]);
    expect(places.runs).toEqual([
      [1, 1, 2],
      [3, 5, 2],
      [9, 7, 1],
    ]);
  });

  it("are gone where the journal lost its end and others stand in its place", () => {
    const places = placesOf([1, 1], [2, 2], [3, 5], [4, 6], [5, 7]);
    places.add(batchIndex(6), 6, hash);
    expect([2, 3, 4, 5, 6].map((idx) => places.seqOf(batchIndex(idx)))).toEqual([
      2,
      5,
      undefined,
      undefined,
      6,
    ]);
    places.add(batchIndex(7), 2, hash);
    expect(places.runs).toEqual([
      [1, 1, 1],
      [7, 2, 1],
    ]);
  });

  it("are found where a list of pairs would find them, also when the runs were written and read", () => {
    const gaps = fc.array(
      fc.record({
        dead: fc.nat(2),
        lost: fc.constantFrom(0, 0, 0, 3),
        count: fc.integer({ min: 1, max: 4 }),
      }),
    );
    fc.assert(
      fc.property(gaps, (parts) => {
        const seqByIdx = new Map<number, number>();
        const places = new BatchPlaces();
        let [idx, seq] = [0, 0];
        for (const { dead, lost, count } of parts) {
          seq += dead;
          idx += lost;
          for (let each = 0; each < count; each += 1) {
            idx += 1;
            seq += 1;
            seqByIdx.set(idx, seq);
            places.add(batchIndex(idx), seq, hash);
          }
        }
        const read = new BatchPlaces(JSON.parse(JSON.stringify(places.runs)));
        for (let each = 0; each <= idx + 1; each += 1)
          expect(read.seqOf(batchIndex(each))).toBe(seqByIdx.get(each));
        for (const [of, at] of seqByIdx) expect(read.idxAt(at)).toBe(of);
      }),
    );
  });

  it("are forgotten, the oldest first, where the journal has too many interruptions", () => {
    const places = new BatchPlaces();
    for (let idx = 1; idx <= limits.journalRunsMax + 1; idx += 1) places.add(batchIndex(idx), idx * 2, hash);
    expect(places.runs).toHaveLength(limits.journalRunsMax);
    expect(places.seqOf(batchIndex(1))).toBeUndefined();
    expect(places.firstFrom(1)).toBe(2);
  });
});
