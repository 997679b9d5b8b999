// Recorded work run again. Under the same rules the work takes the same course. Attempts keep their durations, outcomes
// and tokens. Other rules change the order of assignments, and another capacity changes the waits.

import { beforeAll, describe, expect, it } from "vitest";
import { agentId, incarnation, kind, projectId, resourceName, taskId, userId } from "../../../src/ids.ts";
import { type Batch, decodeRecord } from "../../../src/journal/records.ts";
import { figuresOf } from "../../../src/sim/replay/figures.ts";
import { playBack } from "../../../src/sim/replay/playback.ts";
import { Recorder, type Recording } from "../../../src/sim/replay/recording.ts";
import { rulesPatch, type Variation } from "../../../src/sim/replay/variation.ts";
import { acquire, release, SlotTurns } from "../../support/slots.ts";
import { join, submit, Turns } from "../../support/turns.ts";

function recordingOf({ records }: Turns, fromIdx = 1): Recording {
  const recorder = new Recorder(({ idx }) => idx >= fromIdx);
  for (const { bytes } of records) recorder.take(decodeRecord(bytes) as Batch);
  return recorder.finish();
}

function figuresUnder(recording: Recording, variation: Variation) {
  const { course, endAt, estimated } = playBack(recording, variation);
  return { ...figuresOf(course, endAt), estimated };
}

function happenedIn({ happened, endAt }: Recording) {
  return figuresOf(happened, endAt);
}

/** Runs turns until no attempt is open: each ends after its own time. */
function work(
  turns: Turns,
  msOf: (task: string, attempt: number) => number,
  until = Number.POSITIVE_INFINITY,
): void {
  const outcomeOf = (task: string, attempt: number) =>
    task.endsWith("7") && attempt === 1
      ? ({ kind: "failed", error: "no", tokens: 3 } as const)
      : ({ kind: "completed", result: "", tokens: 10 } as const);
  for (;;) {
    const open = [...turns.state.taskById.values()].flatMap((row) => row.open ?? []);
    const endOf = (of: (typeof open)[number]) => of.assignedAt + msOf(of.task, of.attempt);
    const ends = open.map(endOf);
    const due = turns.state.timers.peek()?.dueAt ?? Number.POSITIVE_INFINITY;
    const next = Math.min(...ends, due, until);
    if (open.length === 0 && turns.state.counts.delayed === 0) return;
    turns.pass(next - turns.at);
    if (next === until) return;
    const ended = open.filter((of) => endOf(of) <= next);
    turns.turn(
      ...ended.map(({ task, attempt }) => turns.report(task, outcomeOf(task, attempt), { jitter: 0.25 })),
    );
  }
}

/** Ann floods two agents, and Bob comes a little later with few tasks. */
function aFlood(): Turns {
  const turns = new Turns();
  turns.turn(join("a1"), join("a2"));
  turns.turn(
    ...Array.from({ length: 20 }, (_, n) => submit({ id: taskId(`ann-${n}`), user: userId("ann") })),
  );
  work(turns, () => 1_000, turns.at + 1_500);
  turns.turn(...Array.from({ length: 4 }, (_, n) => submit({ id: taskId(`bob-${n}`), user: userId("bob") })));
  work(turns, () => 1_000);
  turns.turn({ type: "LeaveAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
  turns.turn({ type: "LeaveAgent", agent: agentId("a2"), incarnation: incarnation("a2-1") });
  return turns;
}

let flood: Recording;
beforeAll(() => {
  flood = recordingOf(aFlood());
});

const waitOf = (figures: ReturnType<typeof happenedIn>, user: string) =>
  figures.users.find(({ name }) => name === user)?.waitMs.mean ?? expect.fail(user);

describe("under the same rules", () => {
  it("takes the recorded course", () => {
    const { estimated, ...replayed } = figuresUnder(flood, {});
    expect(replayed).toEqual(happenedIn(flood));
    expect(estimated).toBe(0);
    expect(replayed.tasks).toMatchObject({ submitted: 24, completed: 24 });
  });

  it("keeps outcomes and tokens: a failure and the retry", () => {
    const replayed = figuresUnder(flood, {});
    expect(replayed).toMatchObject({ attempts: 26, tokens: 24 * 10 + 2 * 3, cost: 26 });
  });

  it("begins in the middle with the tasks that wait and run", () => {
    const turns = aFlood();
    const half = recordingOf(turns, Math.floor(turns.records.length / 2));
    expect(half.happened.tasks.length).toBeLessThan(24);
    const { estimated: _, ...replayed } = figuresUnder(half, {});
    expect(replayed.tasks).toEqual(happenedIn(half).tasks);
    expect(replayed.waitMs).toEqual(happenedIn(half).waitMs);
  });

  it("loses attempts with their agents, and gives the next attempt their record", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(submit({ id: taskId("t") }));
    turns.pass(400);
    turns.turn(join("a2"), { type: "LapseAgent", agent: agentId("a1"), incarnation: incarnation("a1-1") });
    work(turns, () => 1_000);
    const recording = recordingOf(turns);
    expect(happenedIn(recording)).toMatchObject({ lost: 1, attempts: 2, makespanMs: 1_400 });
    const { estimated, ...replayed } = figuresUnder(recording, {});
    expect(replayed).toEqual(happenedIn(recording));
    expect(estimated).toBe(0);
  });

  it("cancels, expires and retries as recorded", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(
      ...["t1", "t2", "t3", "t4"].map((id) =>
        submit({ id: taskId(id), ...(id === "t3" ? { deadline: (turns.at + 1_200) as never } : {}) }),
      ),
    );
    turns.pass(100);
    turns.turn({ type: "CancelTask", project: projectId("p"), task: taskId("t1"), round: 1 });
    const [revoked] = turns.agent("a1").open.values();
    turns.pass(50);
    const {
      agent,
      incarnation: session,
      project,
      task,
      attempt,
      token,
    } = revoked ?? expect.fail("none revoked");
    const identity = { agent, incarnation: session, project, task, attempt, token };
    turns.turn({ type: "ReportResult", ...identity, outcome: { kind: "revoked", tokens: 2 }, jitter: 0 });
    work(turns, () => 2_000);
    turns.turn(turns.retry("t1"));
    work(turns, () => 2_000);
    const recording = recordingOf(turns);
    expect(happenedIn(recording).tasks).toMatchObject({ completed: 3, expired: 1, cancelled: 0 });
    const { estimated: _, ...replayed } = figuresUnder(recording, {});
    expect(replayed).toEqual(happenedIn(recording));
  });

  it("grants slots as recorded, and holds them as long", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2", "a3");
    turns.turn(
      acquire("a1-x", "gpu"),
      acquire("a2-x", "gpu"),
      acquire("a2-y", "gpu"),
      acquire("a3-x", "gpu"),
    );
    for (const handle of ["a1-x", "a2-x", "a3-x", "a2-y"]) {
      const holder = turns.holders("gpu")[0] ?? handle;
      turns.pass(700);
      turns.turn(release(holder));
    }
    const recording = recordingOf(turns);
    const { estimated: _, ...replayed } = figuresUnder(recording, {});
    expect(replayed.resources).toEqual(happenedIn(recording).resources);
    expect(replayed.resources).toMatchObject([{ name: "gpu", count: 4, waitMs: { max: 2_100 } }]);
  });

  it("grants no slot while a refusal that was reported after the release holds the resource", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2");
    turns.turn(acquire("a1-x", "gpu"));
    turns.pass(700);
    turns.turn(release("a1-x"));
    turns.turn(release("a1-x", { resource: resourceName("gpu"), forMs: 3_000 }));
    turns.pass(500);
    turns.turn(acquire("a2-x", "gpu"));
    turns.passToDue();
    turns.pass(100);
    turns.turn(release("a2-x"));
    const recording = recordingOf(turns);
    const { estimated: _, ...replayed } = figuresUnder(recording, {});
    expect(replayed.resources).toEqual(happenedIn(recording).resources);
    expect(replayed.resources).toMatchObject([{ name: "gpu", count: 2, waitMs: { max: 2_500 } }]);
  });
});

it("refusals without a time that were reported after the release hold the resource as they did", () => {
  const turns = SlotTurns.of({ gpu: 3 }, "a1", "a2");
  const handles = ["a1-0", "a1-1", "a1-2"];
  turns.turn(...handles.map((handle) => acquire(handle, "gpu")));
  turns.pass(700);
  turns.turn(...handles.map((handle) => release(handle)));
  turns.turn(...handles.map((handle) => release(handle, { resource: resourceName("gpu") })));
  expect(turns.last("HoldPlaced")).toMatchObject({ name: "gpu", by: "refusals" });
  turns.turn(acquire("a2-x", "gpu"));
  turns.passToDue();
  turns.pass(100);
  turns.turn(release("a2-x"));
  const recording = recordingOf(turns);
  const { estimated: _, ...replayed } = figuresUnder(recording, {});
  expect(replayed.resources).toEqual(happenedIn(recording).resources);
});

describe("under other rules", () => {
  it("a plain queue makes the light user wait for the flood", () => {
    const fair = figuresUnder(flood, { policy: rulesPatch("waggle") ?? {} });
    const fifo = figuresUnder(flood, { policy: rulesPatch("fifo") ?? {} });
    expect(waitOf(fifo, "bob")).toBeGreaterThan(2 * waitOf(fair, "bob"));
    expect(fifo.jain).toBeLessThan(fair.jain);
    expect(fifo.tokens).toBe(fair.tokens);
    expect(fifo.makespanMs).toBeLessThanOrEqual(fair.makespanMs + 2_000);
  });

  it("a changed policy in the record does not undo the other rules", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn({ type: "SetPolicy", patch: { rules: "loco", topN: 5 } });
    turns.turn(submit({ id: taskId("t") }));
    work(turns, () => 100);
    const { course } = playBack(recordingOf(turns), { policy: rulesPatch("lucio") ?? {} });
    expect(course.tasks).toHaveLength(1);
  });

  it("TopN bounds the open attempts", () => {
    expect(figuresUnder(flood, { policy: { topN: 1 } }).makespanMs).toBeGreaterThan(
      1.8 * happenedIn(flood).makespanMs,
    );
  });
});

describe("with another capacity", () => {
  it("more agents, or more tasks at each, shorten the waits", () => {
    const { waitMs } = happenedIn(flood);
    const more = figuresUnder(flood, { agentsAdded: 2 });
    const wider = figuresUnder(flood, { capacityByKind: new Map([["k", 2]]) });
    expect(more.waitMs.p95).toBeLessThan(0.6 * waitMs.p95);
    expect(wider.waitMs).toEqual(more.waitMs);
    expect(more.tasks.completed).toBe(24);
  });

  it("ends with its last event, while a task waits for ever and windows of a budget pass", () => {
    const turns = new Turns();
    const budget = { tokens: 1_000_000, windowMs: 3_600_000, mode: "wait" } as const;
    turns.turn(join("a1"), { type: "SetProject", project: projectId("p"), patch: { budget } });
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2"), kind: kind("nobody") }));
    work(turns, () => 1_000);
    turns.turn(join("a2"));
    const recording = recordingOf(turns);
    const replayed = figuresUnder(recording, {});
    expect(replayed.tasks).toMatchObject({ completed: 1, unfinished: 1 });
    expect(replayed.makespanMs).toBe(happenedIn(recording).makespanMs);
  });

  it("takes the mean of the kind for an attempt that the record does not hold", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(
      submit({ id: taskId("t1") }),
      submit({ id: taskId("t2") }),
      submit({ id: taskId("t3"), kind: kind("k") }),
    );
    work(turns, () => 1_000, turns.at + 1_200);
    const recording = recordingOf(turns);
    expect(happenedIn(recording).tasks).toMatchObject({ completed: 1, unfinished: 2 });
    const replayed = figuresUnder(recording, {});
    expect(replayed).toMatchObject({ estimated: 2, makespanMs: 3_000, tokens: 30 });
    expect(replayed.tasks).toMatchObject({ completed: 3, unfinished: 0 });
  });
});
