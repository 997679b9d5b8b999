// Findings in a journal as it grows, batch by batch, over all its segments.

import { beforeEach, describe, expect, it } from "vitest";
import { type Instant, type Kind, taskKey } from "../../../src/ids.ts";
import { JOURNAL_BYTES } from "../../../src/sim/fault/fault.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { refOf } from "../../../src/state/task-rows.ts";
import { aTask } from "../../support/turns.ts";
import { batchBehind, batchIn, type WrittenBatch, WrittenJournal } from "./written-journal.ts";

let habitat: Habitat;
let truth: JournalTruth;
let journal: WrittenJournal;

beforeEach(() => {
  habitat = new Habitat(new SeededRandom("journal-truth"));
  truth = new JournalTruth(habitat);
  journal = new WrittenJournal(habitat);
  journal.claim(1);
  journal.open(1);
  truth.readOn();
});

/** The batch after the last, in the newest segment. */
function next(at: number, ...events: readonly object[]): WrittenBatch {
  return batchBehind(truth.tail, { term: truth.segment, at, events });
}

/** Sends and stores the next batch. Returns the findings so far. */
function stored(at: number, ...events: readonly object[]): readonly string[] {
  journal.store(truth.segment, next(at, ...events));
  truth.readOn();
  return found();
}

const found = () => habitat.findings.map(({ check }) => check);
const idxs = () => truth.batches.map((bytes) => batchIn(bytes).idx);

const beganTerm = (term: number) => ({
  type: "TermStarted",
  term,
  leader: "c1",
  opened: "hash",
  timeoutMs: 3_000,
});
const began = beganTerm(1);
const renewed = { type: "TermRenewed" };
const joined = { type: "AgentJoined", agent: "a1", incarnation: "x", kinds: ["count"], maxConcurrent: 1 };

it("a batch that does not fit the state before is found", () => {
  expect(stored(1_000, began, { type: "TaskReleased", task: "never-submitted" })).toEqual([
    "the-journal-folds",
  ]);
});

it("a broken invariant of a state is found after the batch that breaks it", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  expect(stored(2_000, joined)).toEqual(["invariant 14 nothing-is-overdue"]);
});

it("a deadline may have passed when a batch only renews the term: that is no turn", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  expect(stored(2_000, renewed)).toEqual([]);
});

it("a forbidden change between two states is found", () => {
  expect(stored(1_000, began, joined)).toEqual([]);
  const agent = truth.state.agentById.get("a1" as never) as { confirmedNumber: number };
  agent.confirmedNumber -= 1;
  expect(stored(1_100, renewed)).toContain("invariant 18 never-back");
});

it("journal time that runs ahead of true time is found", () => {
  expect(stored(1_000, began)).toEqual([]);
  expect(stored(1_001, renewed)).toEqual([]);
  expect(stored(1_002, renewed)).toEqual([]);
  expect(stored(1_003, renewed)).toEqual([]);
  expect(stored(7_003, renewed)).toEqual([]);
  expect(stored(7_004, renewed)).toEqual(["journal-time-keeps-pace"]);
});

it("records of foreign writers, and records that continue no batch, are skipped", () => {
  stored(1_000, began);
  journal.append(1, Buffer.from("not a batch of ours"));
  journal.store(
    1,
    batchBehind({ ...truth.tail, hash: "another" }, { term: 1, at: 1_050, events: [renewed] }),
  );
  journal.store(1, batchBehind(truth.tail, { term: 2, at: 1_050, events: [renewed] }));
  expect(stored(1_100, renewed)).toEqual([]);
  expect([idxs(), truth.isWhole]).toEqual([[1, 2], true]);
  expect(habitat.occurrences.counts()).toMatchObject({ "skipped-record": 3 });
});

describe("the log goes on in the next segment", () => {
  beforeEach(() => {
    stored(1_000, began);
    stored(1_100, renewed);
  });

  it("once it is opened, after the last batch of the previous segment", () => {
    journal.seal(1);
    expect(truth.isSealed).toBe(true);
    journal.claim(2);
    expect([truth.readOn().idx, truth.segment]).toEqual([2, 1]);
    journal.open(2, { tail: truth.tail, previous: 1 });
    truth.readOn();
    expect([truth.segment, truth.isSealed, truth.live?.opened.term]).toEqual([2, false, 2]);
    expect(stored(2_000, beganTerm(2))).toEqual([]);
    expect([idxs(), truth.state.term]).toEqual([[1, 2, 3], 2]);
  });

  it("and no record after the seal counts", () => {
    journal.seal(1);
    journal.store(1, next(1_200, renewed));
    truth.readOn();
    expect(truth.state.idx).toBe(2);
  });

  it("and numbers claimed but never opened may be skipped", () => {
    journal.claim(2);
    journal.claim(3);
    journal.open(3, { tail: truth.tail, previous: 1 });
    expect([truth.readOn().idx, truth.segment, truth.liveOf(2)]).toEqual([2, 3, undefined]);
    expect(found()).toEqual([]);
  });

  it("but not by an `Opened` of a session other than the claimant's", () => {
    journal.claim(2);
    journal.open(2, { tail: truth.tail, previous: 1 });
    expect(truth.liveOf(2)?.number).toBe(2);
    const stream = journal.claim(3);
    const { bytes } = { bytes: journal.stream(2).at(2) ?? new Uint8Array() };
    const other = Buffer.from(Buffer.from(bytes).toString().replace("session-of-c1", "session-of-c2"));
    journal.append(3, other, habitat.subjects.segmentOpened(3));
    expect([stream.lastSeq, truth.liveOf(3)]).toEqual([2, undefined]);
  });

  it("after an unknown batch is found, and nothing more is read", () => {
    const unknown = next(1_200, renewed);
    const after = batchBehind(unknown.tail, { term: 2, at: 2_000, events: [beganTerm(2)] });
    journal.claim(2);
    journal.open(2, { tail: unknown.tail, previous: 1 });
    journal.store(2, after);
    truth.readOn();
    expect([found(), idxs()]).toEqual([["the-log-continues"], [1, 2]]);
  });
});

describe("a base commits batches in flight", () => {
  let third: WrittenBatch;
  let fourth: WrittenBatch;

  beforeEach(() => {
    stored(1_000, began);
    stored(1_100, renewed);
    third = next(1_200, renewed);
    fourth = batchBehind(third.tail, { term: 1, at: 1_300, events: [renewed] });
    const pending = [third, fourth].map(({ bytes, hash, tail }) => ({ ...tail, bytes, hash }));
    truth.pending = () => pending;
    truth.readOn();
    truth.pending = () => [];
  });

  it("never stored in a segment", () => {
    journal.claim(2);
    journal.open(2, { tail: fourth.tail, previous: 1 });
    expect([truth.readOn().idx, idxs(), found()]).toEqual([4, [1, 2, 3, 4], []]);
    expect(habitat.occurrences.counts()).toMatchObject({ "committed-by-a-base": 1 });
    expect(stored(2_000, beganTerm(2))).toEqual([]);
    expect(truth.tail.idx).toBe(5);
  });

  it("except those decided and never committed", () => {
    journal.claim(2);
    journal.open(2, { tail: truth.tail, previous: 1 });
    expect([truth.readOn().idx, stored(2_000, beganTerm(2)), idxs()]).toEqual([2, [], [1, 2, 3]]);
  });

  it("after the lost end of a segment", () => {
    journal.stream(1).loseTail(1);
    truth.lost();
    truth.readOn();
    expect([truth.isWhole, truth.state.idx]).toEqual([false, 2]);
    journal.claim(2);
    journal.open(2, { tail: third.tail, previous: 1 });
    truth.readOn();
    expect([truth.isWhole, idxs(), found()]).toEqual([true, [1, 2, 3], []]);
  });
});

it("a segment of the same term is a planned change, and a segment of a later term is not", () => {
  stored(1_000, began);
  journal.claim(2);
  journal.open(2, { tail: truth.tail, previous: 1, term: 1 });
  journal.claim(3);
  journal.open(3, { tail: truth.tail, previous: 2 });
  truth.readOn();
  expect([truth.segment, found()]).toEqual([3, []]);
  expect(habitat.occurrences.counts()).toEqual({ "segment-changed": 1 });
});

describe("after a loss of the store", () => {
  beforeEach(() => {
    stored(1_000, began);
    stored(1_100, renewed);
    stored(1_200, renewed);
  });

  it.each<readonly [string, () => void]>([
    ["the end of the segment", () => journal.stream(1).loseTail(1)],
    ["records in the middle", () => journal.stream(1).loseMiddle(4, 1)],
    ["a bit of a record", () => journal.stream(1).flipBit(4)],
    ["the segment", () => habitat.jetStream.loseStream(journal.stream(1).name)],
  ])("the journal is not whole: %s", (_, lose) => {
    expect(truth.isWhole).toBe(true);
    lose();
    truth.lost();
    truth.readOn();
    expect([truth.isWhole, truth.state.idx, found()]).toEqual([false, 3, []]);
  });

  it.each([
    ["a seal", () => habitat.subjects.segmentSealed(1)],
    ["a foreign record", () => habitat.subjects.segment(1)],
  ])("the journal is not whole either where %s took the position of the lost record", (_, subject) => {
    journal.stream(1).loseTail(1);
    truth.lost();
    journal.append(1, new Uint8Array(), subject());
    truth.readOn();
    expect([truth.isWhole, truth.state.idx, found()]).toEqual([false, 3, []]);
  });

  it("nothing is read after a record with a flipped bit", () => {
    journal.store(1, next(1_300, renewed));
    journal.stream(1).flipBit(6);
    truth.readOn();
    journal.store(1, next(1_400, renewed));
    truth.readOn();
    expect(truth.state.idx).toBe(3);
  });

  it("the log goes back if the next segment continues an earlier batch", () => {
    const [first = new Uint8Array()] = truth.batches;
    const { idx, term } = batchIn(first);
    const { prev: hash } = batchIn(truth.batches[1] ?? first);
    journal.claim(2);
    journal.open(2, { tail: { journal: "j", term, idx: idx as never, hash }, previous: 1 });
    truth.readOn();
    expect([truth.state.idx, truth.segment, found()]).toEqual([1, 2, []]);
    expect(stored(2_000, beganTerm(2))).toEqual([]);
    expect([idxs(), truth.storedSince(-1)]).toEqual([[1, 2], 2]);
  });

  it("the log does not go back to a different batch in the same position", () => {
    const tail = { ...truth.tail, idx: 2 as never, hash: "another" };
    journal.claim(2);
    journal.open(2, { tail, previous: 1 });
    truth.readOn();
    expect([found(), truth.state.idx]).toEqual([["the-log-continues"], 3]);
  });
});

/** Bounds the journal to so many bytes from now on. */
function bound(bytesMax: number): void {
  const usage = () => ({
    bytes: habitat.jetStream.streams.reduce((sum, stream) => sum + stream.bytes, 0),
    bytesMax,
  });
  Object.defineProperty(habitat, "usage", { get: usage, configurable: true });
  truth.lost();
  truth.readOn();
}

it("no task may wait after a turn if an agent could take it", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  expect(stored(2_000, joined)).toEqual(["invariant 13 work-conserving"]);
});

it("…except if the journal was nearly full a while ago", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  bound(1);
  bound(JOURNAL_BYTES); // its leader may not know yet
  expect(stored(2_000, joined)).toEqual([]);
});

it("…or was nearly full by the bound of a while ago", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  bound(2 * habitat.usage.bytes + 1);
  bound(JOURNAL_BYTES);
  expect(stored(2_000, joined)).toEqual([]);
});

it("due timers fire, however full the journal", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  bound(1);
  bound(JOURNAL_BYTES);
  expect(stored(2_000, joined)).toEqual(["invariant 14 nothing-is-overdue"]);
});

it("a stale result is counted if it comes after the retry of its task", () => {
  const task = aTask();
  stored(1_000, began, { type: "TaskSubmitted", task, hash: "" });
  const row = truth.state.taskById.get(refOf(task)) as { attempt: number };
  const result = {
    kind: "result",
    agent: "a1",
    incarnation: "x",
    task: taskKey(refOf(task)),
    token: "",
  } as const;
  const hear = (attempt: number, answer: "ok" | "stale", outcome: "completed" | "revoked" = "completed") =>
    truth.noteObserved({ ...result, attempt, answer, outcome, node: "a1", sentMs: 1, heardMs: 2 });
  row.attempt = 2;
  hear(2, "stale");
  hear(1, "ok");
  hear(1, "stale", "revoked");
  expect(habitat.occurrences.counts()).toEqual({});
  hear(1, "stale");
  expect(habitat.occurrences.counts()).toEqual({ "result-after-a-new-attempt": 1 });
});

it("tells the positions of decided batches that a log lacks", () => {
  stored(1_000);
  const first = truth.tail;
  const [one, other] = [next(2_000), next(2_500)];
  truth.pending = () => [one, other].map(({ bytes, hash, tail }) => ({ ...tail, bytes, hash }));
  truth.readOn();
  const beside = (hash: string) => truth.pointsBeside(truth.logUpTo(hash) ?? []);
  const point = { term: 1, idx: first.idx + 1 };
  expect(beside(one.hash)).toEqual([point]); // the other
  expect(beside(first.hash)).toEqual([point, point]);
});
