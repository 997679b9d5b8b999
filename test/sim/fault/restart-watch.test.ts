// A removal that makes a restart impossible is found; the same loss by a fault is not.

import { beforeEach, describe, expect, it } from "vitest";
import type { ChainTail } from "../../../src/journal/records.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { RestartWatch } from "../../../src/sim/fault/restart-watch.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { batchBehind, WrittenJournal } from "./written-journal.ts";

let habitat: Habitat;
let truth: JournalTruth;
let watch: RestartWatch;
let journal: WrittenJournal;

beforeEach(() => {
  habitat = new Habitat(new SeededRandom("restart-watch"));
  truth = new JournalTruth(habitat);
  watch = new RestartWatch(habitat, truth);
  journal = new WrittenJournal(habitat);
  journal.claim(1);
  journal.open(1);
  began(1);
});

/** Stores the first batch of a term in the newest segment. */
function began(term: number): ChainTail {
  truth.readOn();
  const event = { type: "TermStarted", term, leader: "c1", opened: "hash", timeoutMs: 3_000 };
  const batch = batchBehind(truth.tail, { term, at: 1_000 * term, events: [event] });
  journal.store(term, batch);
  truth.readOn();
  return batch.tail;
}

/** Opens the next segment. @returns the position of its base's chunk */
function opened(number: number, { hasBase }: { readonly hasBase: boolean }): number {
  const { tail } = truth;
  journal.claim(number);
  const base = hasBase ? journal.base(number, tail) : undefined;
  journal.open(number, { tail, previous: number - 1, base: base?.ref });
  began(number);
  return base?.chunk ?? 0;
}

/** Removes a segment as a leader, through the API. */
function removed(number: number): void {
  const { name } = journal.stream(number);
  habitat.jetStream.handle(`$JS.API.STREAM.DELETE.${name}`, new Uint8Array(), {}, () => undefined);
}

const checks = () => habitat.findings.map(({ check }) => check);

describe("a removal", () => {
  it("of a segment before a base is no finding", () => {
    opened(2, { hasBase: true });
    removed(1);
    expect([checks(), watch.isPossible]).toEqual([[], true]);
  });

  it("of a segment continued by the newest segment by reference is found, once", () => {
    opened(2, { hasBase: false });
    opened(3, { hasBase: false });
    removed(1);
    removed(2);
    expect([checks(), watch.isPossible]).toEqual([["a-restart-is-possible"], false]);
  });

  it("of the only base is found, even if segments lead back to it", () => {
    opened(2, { hasBase: true });
    removed(1);
    opened(3, { hasBase: false });
    expect(checks()).toEqual([]);
    removed(2);
    expect(checks()).toEqual(["a-restart-is-possible"]);
  });

  it("of a base is no finding if a newer base exists", () => {
    opened(2, { hasBase: true });
    opened(3, { hasBase: true });
    removed(2);
    removed(1);
    expect([checks(), watch.isPossible]).toEqual([[], true]);
  });

  it("is found again if a restart was possible meanwhile", () => {
    opened(2, { hasBase: false });
    removed(1);
    opened(3, { hasBase: true });
    journal.claim(4);
    removed(4);
    expect(checks()).toEqual(["a-restart-is-possible"]);
    opened(4, { hasBase: false });
    removed(3);
    expect(checks()).toEqual(["a-restart-is-possible", "a-restart-is-possible"]);
  });
});

describe("an unreadable base", () => {
  it.each<readonly [string, (chunk: number) => void]>([
    ["lost a chunk", (chunk) => journal.stream(2).loseMiddle(chunk, 1)],
    ["has a chunk that differs from its manifest", (chunk) => journal.stream(2).flipBit(chunk)],
    ["lost its manifest", (chunk) => journal.stream(2).loseMiddle(chunk + 1, 1)],
  ])("%s: the segment before is needed", (_, damage) => {
    const chunk = opened(2, { hasBase: true });
    damage(chunk);
    expect(watch.isPossible).toBe(true);
    // Far after the damage: the segment counts as whole.
    Object.defineProperty(truth, "isWhole", { value: true });
    removed(1);
    expect([checks(), watch.isPossible]).toEqual([["a-restart-is-possible"], false]);
  });
});

it("nothing is found while the journal lacks records lost by faults", () => {
  opened(2, { hasBase: false });
  journal.stream(2).loseTail(1);
  truth.lost();
  removed(1);
  expect([checks(), watch.isPossible]).toEqual([[], false]);
});

it("a segment lost in a power loss is no removal", () => {
  opened(2, { hasBase: false });
  habitat.jetStream.loseStream(journal.stream(1).name);
  truth.lost();
  expect(checks()).toEqual([]);
});
