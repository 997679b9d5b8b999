// What is found in a journal as it is written, batch by batch.

import { beforeEach, describe, expect, it } from "vitest";
import { batchIndex, type Instant, type Kind, type Term, taskKey } from "../../../src/ids.ts";
import { decodeBatch, encodeBatch, hashOf } from "../../../src/journal/batch.ts";
import { encodeManifest } from "../../../src/journal/snapshot/manifest.ts";
import { subjectsOf } from "../../../src/protocol/subjects.ts";
import { STREAM_BYTES } from "../../../src/sim/fault/fault.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { refOf } from "../../../src/state/task-rows.ts";
import { aTask } from "../../support/turns.ts";

let habitat: Habitat;
let truth: JournalTruth;

beforeEach(() => {
  habitat = new Habitat(new SeededRandom("journal-truth"));
  truth = new JournalTruth(habitat);
});

/** The next batch is stored, sent now. Returns what has been found so far. */
function stored(at: number, ...events: readonly object[]): readonly string[] {
  const { idx, hash } = truth.position;
  const header = { journal: "j", term: 1, idx: idx + 1, prev: hash, at };
  const bytes = encodeBatch(
    header as never,
    events.map((event) => JSON.stringify(event)),
  );
  habitat.pace.sent(bytes, habitat.engine.nowMs);
  habitat.stream.intrude(bytes);
  truth.readOn();
  return habitat.findings.map(({ check }) => check);
}

const began = { type: "TermStarted", term: 1, leader: "c1", timeoutMs: 3_000 };
const renewed = { type: "TermRenewed" };
const joined = { type: "AgentJoined", agent: "a1", incarnation: "x", kinds: ["count"], maxConcurrent: 1 };

it("a batch that does not fit what stands before it is found", () => {
  expect(stored(1_000, began, { type: "TaskReleased", task: "never-submitted" })).toEqual([
    "the-journal-folds",
  ]);
});

it("what breaks an invariant of a state is found after the batch that does", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  expect(stored(2_000, joined)).toEqual(["invariant 14 nothing-is-overdue"]);
});

it("a deadline may have passed where a term only goes on: that is no turn", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  expect(stored(2_000, renewed)).toEqual([]);
});

it("what never may change from one state to the next is found", () => {
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

it("a journal ends with a batch, or with what everybody skips", () => {
  stored(1_000, began);
  expect(truth.endsWithBatch).toBe(true);
  habitat.stream.intrude(Buffer.from("not a batch of ours"));
  truth.readOn();
  expect(truth.endsWithBatch).toBe(false);
  stored(1_100, renewed);
  expect(truth.endsWithBatch).toBe(true);
});

const batchOf = (idx: number, prev: string) => {
  const header = { journal: "j", term: 1, idx, prev, at: 2_000 } as never;
  const bytes = encodeBatch(header, [JSON.stringify(renewed)]);
  return {
    journal: "j",
    idx: batchIndex(idx),
    term: 1 as Term,
    bytes,
    hash: hashOf(bytes),
    startsTerm: false,
  };
};
/** A snapshot up to there is in the storage. */
function saved({ idx, hash }: ReturnType<typeof batchOf>): void {
  const head = { at: 2_000 as Instant, lastEventType: "TermRenewed", runs: [], deadRecords: 0 } as const;
  const position = { ...truth.position, idx, hash };
  const bytes = encodeManifest({ ...head, position, alienRecords: undefined, chunks: [[1, 1, hash]] });
  const { snapshotManifest: subject } = subjectsOf(habitat.swarm);
  habitat.snapshotStream.publish({ subject, bytes, expectedSeq: undefined });
}
const idxs = () => truth.records.map(({ bytes }) => decodeBatch(bytes)?.idx);

it.each([true, false])(
  "behind a hole a batch goes on with what was never stored where that was saved: %s",
  (isSaved) => {
    stored(1_000, began);
    stored(1_100, renewed);
    habitat.stream.loseMiddle(2, 1);
    truth.lostMiddle(3);
    const third = batchOf(3, truth.position.hash);
    truth.pending = () => [third];
    truth.readOn();
    if (isSaved) saved(third);
    habitat.stream.intrude(batchOf(4, third.hash).bytes);
    truth.readOn();
    const went = [idxs(), truth.state.idx, truth.savedIdx];
    expect(went).toEqual(isSaved ? [[1, 2, 3, 4], 4, 3] : [[1, 2, 4], 2, 0]);
  },
);

it.each([true, false])(
  "an end that may come back may be gone on from by its leader all the same, where that saved it: %s",
  (isSaved) => {
    stored(1_000, began);
    stored(1_100, renewed);
    stored(1_200, renewed);
    const fourth = batchOf(4, truth.position.hash);
    habitat.stream.loseTail(1);
    truth.lostTail(2);
    truth.pending = () => [fourth];
    truth.readOn();
    if (isSaved) saved(fourth);
    habitat.stream.intrude(batchOf(5, fourth.hash).bytes);
    truth.readOn();
    const went = [idxs(), truth.state.idx, truth.savedIdx, truth.isWhole];
    expect(went).toEqual(isSaved ? [[1, 2, 3, 4, 5], 5, 4, true] : [[1, 2, 5], 2, 0, true]);
  },
);

describe("an end that is lost for good", () => {
  beforeEach(() => {
    stored(1_000, began);
    stored(1_100, renewed);
    stored(1_200, renewed);
    habitat.stream.loseTail(2);
    truth.lostEnd(1);
  });

  it("counts, and is whole again where a batch goes on behind all of it", () => {
    expect([truth.isWhole, truth.savedIdx, truth.state.idx]).toEqual([false, 3, 3]);
    habitat.stream.intrude(Buffer.from("not a batch of ours"));
    expect([stored(1_300, renewed), truth.isWhole, truth.endsWithBatch]).toEqual([[], true, true]);
    expect(idxs()).toEqual([1, 2, 3, undefined, 4]);
    expect(truth.batchSeqUntil(2)).toBe(1);
  });

  it("may have been saved with what its leader had decided, which was never stored", () => {
    const fourth = batchOf(4, truth.position.hash);
    const fifth = batchOf(5, fourth.hash);
    truth.pending = () => [fourth];
    truth.readOn();
    truth.pending = () => [];
    habitat.stream.intrude(fifth.bytes);
    truth.readOn();
    expect([idxs(), truth.state.idx, truth.isWhole]).toEqual([[1, 2, 3, 4, 5], 5, true]);
    expect(truth.batchSeqUntil(2)).toBe(2);
    expect(truth.savedIdx).toBe(4);
  });

  it("is not gone on with by who knows nothing of it", () => {
    const [first] = truth.records;
    habitat.stream.intrude(batchOf(2, hashOf(first?.bytes ?? new Uint8Array())).bytes);
    truth.readOn();
    expect([truth.isWhole, truth.state.idx]).toEqual([false, 3]);
  });

  it("still counts where what went on behind it is lost, and another stands there", () => {
    stored(1_300, renewed);
    stored(1_400, renewed);
    habitat.stream.loseTail(1);
    truth.lostTail(2);
    habitat.stream.intrude(Buffer.from("not a batch of ours"));
    truth.readOn();
    expect([idxs(), truth.state.idx, truth.isWhole]).toEqual([[1, 2, 3, 4, undefined], 4, true]);
  });

  it("still counts with what was never stored where all that went on behind it is lost", () => {
    const fourth = batchOf(4, truth.position.hash);
    const fifth = batchOf(5, fourth.hash);
    truth.pending = () => [fourth, fifth];
    truth.readOn();
    truth.pending = () => [];
    habitat.stream.intrude(batchOf(6, fifth.hash).bytes);
    truth.readOn();
    habitat.stream.loseTail(1);
    truth.lostTail(1);
    habitat.stream.intrude(Buffer.from("not a batch of ours"));
    truth.readOn();
    expect([stored(3_000, renewed), idxs()]).toEqual([[], [1, 2, 3, 4, 5, undefined, 6]]);
  });
});

it("a purge that is not on record yet is that of a full journal, and counted once", () => {
  const occurrences = () => habitat.occurrences.counts();
  expect(stored(1_000, began, joined)).toEqual([]);
  expect(stored(1_100, renewed)).toEqual([]);
  habitat.stream.purge(2);
  expect(stored(1_200, { type: "AuditTrimmed", firstIdx: 2, reason: "storage-short" })).toEqual([]);
  expect(occurrences()).toMatchObject({ "purged-when-full": 1, "storage-short": 1 });
  habitat.stream.purge(2);
  expect(stored(1_300, { type: "AuditTrimmed", firstIdx: 3, reason: "retention" })).toEqual([]);
  habitat.stream.purge(3);
  truth.readOn();
  expect(occurrences()).toMatchObject({ "purged-when-full": 1, "journal-purged": 1 });
});

it("a task that an agent would take may not wait behind a turn", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  expect(stored(2_000, joined)).toEqual(["invariant 13 work-conserving"]);
});

it("…but where the journal was nearly full a while ago", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  habitat.stream.bound(1);
  truth.readOn();
  habitat.stream.bound(STREAM_BYTES); // which its leader may not know yet
  expect(stored(2_000, joined)).toEqual([]);
});

it("…or would be nearly full by the bound of a while ago", () => {
  expect(
    stored(1_000, began, { type: "TaskSubmitted", task: aTask({ kind: "count" as Kind }), hash: "" }),
  ).toEqual([]);
  habitat.stream.bound(2 * habitat.stream.usage.bytes + 1);
  truth.readOn();
  habitat.stream.bound(STREAM_BYTES);
  expect(stored(2_000, joined)).toEqual([]);
});

it("what is due is done, however full the journal", () => {
  const task = aTask({ deadline: 2_000 as Instant });
  expect(stored(1_000, began, { type: "TaskSubmitted", task, hash: "" })).toEqual([]);
  habitat.stream.bound(1);
  truth.readOn();
  habitat.stream.bound(STREAM_BYTES);
  expect(stored(2_000, joined)).toEqual(["invariant 14 nothing-is-overdue"]);
});

it("a stale result is counted that comes when its task is tried again", () => {
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
    truth.noteObserved({ ...result, attempt, answer, outcome, party: "a1", sentMs: 1, heardMs: 2 });
  row.attempt = 2;
  hear(2, "stale");
  hear(1, "ok");
  hear(1, "stale", "revoked");
  expect(habitat.occurrences.counts()).toEqual({});
  hear(1, "stale");
  expect(habitat.occurrences.counts()).toEqual({ "result-after-a-new-attempt": 1 });
});
