// How soon a swarm must be over the end of a leader or an agent, and that it is found when it is not.

import { beforeEach, describe, expect, it } from "vitest";
import { agentId, incarnation, taskId } from "../../../src/ids.ts";
import { Engine } from "../../../src/sim/fault/engine.ts";
import type { Occurrence } from "../../../src/sim/fault/occurrences.ts";
import {
  lostWithinMs,
  newTermAmongAliensWithinMs,
  newTermUnheardWithinMs,
  newTermWithinMs,
  Recovery,
} from "../../../src/sim/fault/recovery.ts";
import type { SwarmState } from "../../../src/state/state.ts";
import { TaskMap } from "../../../src/state/task-map.ts";
import { refOf } from "../../../src/state/task-rows.ts";
import { aTask } from "../../support/turns.ts";

const timeoutMs = 3_000;
const agent = agentId("a1");
const life = incarnation("first");
const heardMs = 40_000;
const ref = refOf(aTask({ id: taskId("t1") }));

let engine: Engine;
let recovery: Recovery;
let state: { term: number; agentById: Map<string, object>; taskById: TaskMap<object> };
let found: string[];
let noted: Occurrence[];

beforeEach(() => {
  engine = new Engine();
  found = [];
  noted = [];
  const open = { agent, incarnation: life };
  state = {
    term: 4,
    agentById: new Map([["a1", { online: true, incarnation: life }]]),
    taskById: new TaskMap(),
  };
  state.taskById.set(ref, { spec: aTask({ id: taskId("t1") }), attempt: 1, open });
  recovery = new Recovery({
    engine,
    state: () => ({ leader: "c1", leaderTimeoutMs: timeoutMs, ...state }) as unknown as SwarmState,
    found: (check, sentence) => void found.push(`${check}: ${sentence}`),
    note: (occurrence) => void noted.push(occurrence),
  });
});

/** Runs on for so long; `happens` after `afterMs` of it. */
async function wait(ms: number, afterMs = 0, happens = () => undefined as unknown): Promise<void> {
  engine.after(afterMs, "happens", happens);
  await engine.run(engine.nowMs + ms, () => {
    recovery.check();
    return false;
  });
}

it("the bounds are within what is promised of the two usual time-outs, and of an agent", () => {
  expect(newTermWithinMs(3_000)).toBeLessThan(5_000);
  expect(newTermWithinMs(1_000)).toBeLessThan(2_000);
  expect(lostWithinMs(3_000)).toBeLessThan(12_000);
});

describe.each([
  ["crashed", () => recovery.leaderCrashed(), newTermWithinMs(timeoutMs), "term-begun-in-calm"],
  ["was told to stop", () => recovery.leaderStopped(), 200, "term-handed-over-in-calm"],
  [
    "crashed while somebody else writes",
    () => recovery.leaderCrashedAmongAliens(),
    newTermAmongAliensWithinMs(timeoutMs),
    "term-begun-among-aliens-in-calm",
  ],
  [
    "could be reached by nobody",
    () => recovery.leaderUnheard(),
    newTermUnheardWithinMs(timeoutMs),
    "unheard-leader-replaced",
  ],
] as const)("after a leader %s", (_, ends, withinMs, occurrence) => {
  it("all is well with a new term in time", async () => {
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
  const isLost = () => state.agentById.set("a1", { online: false, incarnation: life });
  const isTriedAgain = (
    { open }: { open: object | undefined } = { open: { agent: agentId("a2"), incarnation: life } },
  ) => state.taskById.set(ref, { spec: aTask({ id: taskId("t1") }), attempt: 2, open });
  const crash = () => recovery.agentCrashed({ id: agent, incarnation: life }, heardMs);

  it("all is well when it is lost in time after it was last heard, and its task tried again", async () => {
    crash();
    await wait(60_000, dueMs, () => isLost() && isTriedAgain());
    expect({ found, noted }).toEqual({ found: [], noted: ["agent-lost-in-calm"] });
  });

  it("all is well, too, when it is there again as another life, which runs its task", async () => {
    crash();
    await wait(60_000, dueMs, () => {
      state.agentById.set("a1", { online: true, incarnation: incarnation("second") });
      isTriedAgain({ open: { agent, incarnation: incarnation("second") } });
    });
    expect(found).toEqual([]);
  });

  it.each<readonly [string, () => unknown]>([
    ["it is not lost", () => isTriedAgain()],
    ["what it ran is not tried again", isLost],
    ["what it ran has ended instead", () => isLost() && state.taskById.delete(ref)],
    ["what it ran is tried again by nobody yet", () => isLost() && isTriedAgain({ open: undefined })],
    [
      "what it ran is given to the same life again",
      () => isLost() && isTriedAgain({ open: { agent, incarnation: life } }),
    ],
  ])("it is found when %s", async (_, happens) => {
    crash();
    await wait(60_000, 1_000, happens);
    expect(found).toEqual([expect.stringContaining("a1 is lost, which crashed, and t1 run elsewhere")]);
  });

  it("it is found when it is lost too late", async () => {
    crash();
    await wait(60_000, dueMs + 2, () => isLost() && isTriedAgain());
    expect(found).toHaveLength(1);
  });
});
