// What a record means that stands where a batch was expected: the whole table, for a leader and for a candidate.

import { describe, expect, it } from "vitest";
import { type Expectation, type Meaning, meaningOf } from "../../src/coordinator/append/found-record.ts";
import type { PendingBatch } from "../../src/coordinator/append/sends.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { encodeBatch, hashOf } from "../../src/journal/batch.ts";
import type { ChainTail } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";

/** The last batch that was committed. */
const tail: ChainTail = { idx: batchIndex(9), term: term(2), hash: "of-nine", journal: "j" };

interface BatchOptions {
  readonly of?: number;
  readonly idx?: number;
  readonly prev?: string;
  readonly journal?: string;
  readonly by?: string;
}

function aBatch({
  of = 2,
  idx = 10,
  prev = tail.hash,
  journal = "j",
  by = "c1",
}: BatchOptions): PendingBatch {
  const startsTerm = of > tail.term;
  const started = { type: "TermStarted", term: of, leader: by, campaign: by, timeoutMs: 3_000 };
  const header = { journal, term: term(of), idx: batchIndex(idx), prev, at: instant(1) };
  const renewed = { type: "TermRenewed", by };
  const bytes = encodeBatch(header, [JSON.stringify(startsTerm ? started : renewed)]);
  return { journal, term: term(of), idx: batchIndex(idx), bytes, hash: hashOf(bytes), startsTerm };
}

const leaders = aBatch({});
const candidates = aBatch({ of: 3 });

function found(bytes: Uint8Array, oldest: PendingBatch, more: Partial<Expectation> = {}): Meaning {
  return meaningOf(
    { seq: 20, bytes },
    { oldest, tail, mayBeHidden: false, isInFlight: () => false, ...more },
  );
}

const strayed = { prev: "of-another-nine" };
const far = { idx: tail.idx + 1 + limits.batchesInFlightMax, prev: "of-one-not-read" };

describe("a record where a leader expected its batch", () => {
  it.each<[string, Uint8Array, Meaning]>([
    ["its own bytes", leaders.bytes, "ours"],
    ["no batch at all", Buffer.from("not a batch"), "alien"],
    ["of another journal", aBatch({ journal: "k" }).bytes, "other-journal"],
    ["what a former leader sent", aBatch({ of: 1 }).bytes, "lower-term"],
    ["of its term, behind another batch", aBatch(strayed).bytes, "broken-chain"],
    ["of its term, in the same place", aBatch({ by: "c2" }).bytes, "another-of-the-term"],
    ["another leader's first", aBatch({ of: 3, by: "c2" }).bytes, "another-leads"],
    ["another leader's, of another line", aBatch({ of: 3, ...strayed }).bytes, "another-line"],
  ])("%s", (_, bytes, meaning) => expect(found(bytes, leaders)).toBe(meaning));

  it("of another line, where others may have read what is in flight and gone on behind that", () => {
    expect(found(aBatch({ of: 3, ...strayed }).bytes, leaders, { mayBeHidden: true })).toBe("another-leads");
  });
});

describe("a record where a candidate expected its election", () => {
  it.each<[string, Uint8Array, Meaning]>([
    ["another's election", aBatch({ of: 3, by: "c2" }).bytes, "another-leads"],
    ["a batch of the leader before it", leaders.bytes, "another-leads"],
    ["of its term, behind batches that it has not read", aBatch({ of: 3, ...far }).bytes, "another-leads"],
    ["of the leader before, further than that one had in flight", aBatch(far).bytes, "another-leads"],
    ["of the leader before, behind another batch", aBatch(strayed).bytes, "broken-chain"],
    ["of a later term, of another line", aBatch({ of: 4, ...strayed }).bytes, "another-line"],
  ])("%s", (_, bytes, meaning) => expect(found(bytes, candidates)).toBe(meaning));

  it("what is in flight itself is no other leader's", () => {
    const own = aBatch({ of: 3, ...far });
    expect(found(own.bytes, candidates, { isInFlight: () => true })).toBe("broken-chain");
  });
});
