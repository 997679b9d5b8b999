// The bounds of recovery from the end of a leader or an agent; a late recovery is found.

import { beforeEach, describe, expect, it } from "vitest";
import { agentId, incarnation, taskId } from "../../../src/ids.ts";
import { Engine } from "../../../src/sim/fault/engine.ts";
import type { Occurrence } from "../../../src/sim/fault/occurrences.ts";
import {
  lostWithinMs,
  newTermAmongForeignWithinMs,
  newTermUnheardWithinMs,
  newTermWithinMs,
  RecoveryCheck,
} from "../../../src/sim/fault/recovery-check.ts";
import type { SwarmState } from "../../../src/state/state.ts";
import { TaskMap } from "../../../src/state/task-map.ts";
import { refOf } from "../../../src/state/task-rows.ts";
import { aTask } from "../../support/turns.ts";

const timeoutMs = 3_000;
const agent = agentId("a1");
const session = incarnation("first");
const heardMs = 40_000;
const ref = refOf(aTask({ id: taskId("t1") }));

let engine: Engine;
let recovery: RecoveryCheck;
let state: { term: number; agentById: Map<string, object>; taskById: TaskMap<object> };
let found: string[];
let noted: Occurrence[];

beforeEach(() => {
  engine = new Engine();
  found = [];
  noted = [];
  const open = { agent, incarnation: session };
  state = {
    term: 4,
    agentById: new Map([["a1", { online: true, incarnation: session }]]),
    taskById: new TaskMap(),
  };
  state.taskById.set(ref, { spec: aTask({ id: taskId("t1") }), attempt: 1, open });
  recovery = new RecoveryCheck({
    engine,
    state: () => ({ leader: "c1", leaderTimeoutMs: timeoutMs, ...state }) as unknown as SwarmState,
    found: (check, sentence) => void found.push(`${check}: ${sentence}`),
    note: (occurrence) => void noted.push(occurrence),
  });
});

/** Runs for a while; calls `happens` after `afterMs`. */
async function wait(ms: number, afterMs = 0, happens = () => undefined as unknown): Promise<void> {
  engine.after(afterMs, "happens", happens);
  await engine.run(engine.nowMs + ms, () => {
    recovery.check();
    return false;
  });
}

it("the bounds are within the promises for the two usual time-outs, and for an agent", () => {
  expect(newTermWithinMs(3_000)).toBeLessThan(5_000);
  expect(newTermWithinMs(1_000)).toBeLessThan(2_000);
  expect(lostWithinMs(3_000)).toBeLessThan(12_000);
});

describe.each([
  ["crashed", () => recovery.leaderCrashed(), newTermWithinMs(timeoutMs), "term-begun-in-calm"],
  ["was asked to stop", () => recovery.leaderStopped(), 200, "term-handed-over-in-calm"],
  [
    "crashed while a foreign client writes",
    () => recovery.leaderCrashedAmongForeign(),
    newTermAmongForeignWithinMs(timeoutMs),
    "term-begun-among-foreign-in-calm",
  ],
  [
    "was unreachable",
    () => recovery.leaderUnheard(),
    newTermUnheardWithinMs(timeoutMs),
    "unheard-leader-replaced",
  ],
] as const)("after a leader %s", (_, ends, withinMs, occurrence) => {
  it("a new term in time is no finding", async () => {
    ends();
    await wait(60_000, withinMs, () => {
      state.term = 5;
    });
    expect({ found, noted, isOver: recovery.isOver }).toEqual({
      found: [],
      noted: [occurrence],
      isOver: true,
    });
  });

  it("a new term that comes too late is found, once", async () => {
    ends();
    await wait(60_000, withinMs + 2, () => {
      state.term = 5;
    });
    expect(found).toEqual([expect.stringMatching(/^recovery-is-bounded: .*a new term after .*c1.* term 4/)]);
    expect(noted).toEqual([]);
  });
});

describe("after an agent crashed", () => {
  const dueMs = heardMs + lostWithinMs(timeoutMs);
  const isLost = () => state.agentById.set("a1", { online: false, incarnation: session });
  const isTriedAgain = (
    { open }: { open: object | undefined } = { open: { agent: agentId("a2"), incarnation: session } },
  ) => state.taskById.set(ref, { spec: aTask({ id: taskId("t1") }), attempt: 2, open });
  const crash = () => recovery.agentCrashed({ id: agent, incarnation: session }, heardMs);

  it("a loss in time after the last message, and a new attempt, are no finding", async () => {
    crash();
    await wait(60_000, dueMs, () => isLost() && isTriedAgain());
    expect({ found, noted }).toEqual({ found: [], noted: ["agent-lost-in-calm"] });
  });

  it("a new session that runs the task again is no finding", async () => {
    crash();
    await wait(60_000, dueMs, () => {
      state.agentById.set("a1", { online: true, incarnation: incarnation("second") });
      isTriedAgain({ open: { agent, incarnation: incarnation("second") } });
    });
    expect(found).toEqual([]);
  });

  it.each<readonly [string, () => unknown]>([
    ["the agent is not lost", () => isTriedAgain()],
    ["the task is not tried again", isLost],
    ["the task has ended instead", () => isLost() && state.taskById.delete(ref)],
    ["the task is not assigned yet", () => isLost() && isTriedAgain({ open: undefined })],
    [
      "the task is assigned to the same session again",
      () => isLost() && isTriedAgain({ open: { agent, incarnation: session } }),
    ],
  ])("a finding if %s", async (_, happens) => {
    crash();
    await wait(60_000, 1_000, happens);
    expect(found).toEqual([
      expect.stringContaining("the loss of a1 after its crash, and new attempts of t1"),
    ]);
  });

  it("a finding if the agent is lost too late", async () => {
    crash();
    await wait(60_000, dueMs + 2, () => isLost() && isTriedAgain());
    expect(found).toHaveLength(1);
  });
});
