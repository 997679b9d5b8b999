// Threads change only the duration: the results and their order stay, and no thread outlives a failed or
// aborted run.

import { describe, expect, it } from "vitest";
import { runAll } from "../../src/sim/policy/seed-threads.ts";
import { type RunRequest, runOnce } from "../../src/sim/policy/simulate.ts";

/** Enough for threads to be worthwhile, whatever the scenario. */
const MANY_TASKS = 1_000_000;

const runs = Array.from(
  { length: 6 },
  (_, seed): RunRequest => ({
    scenario: "loco-spike",
    rule: seed % 2 === 0 ? "waggle" : "random",
    alpha: 0.25,
    seed,
    wantsTimeline: seed === 0,
  }),
);

function options(overrides: { readonly tasksPerRun?: number; readonly signal?: AbortSignal } = {}) {
  let done = 0;
  return {
    signal: new AbortController().signal,
    tasksPerRun: MANY_TASKS,
    onDone: () => {
      done += 1;
    },
    doneCount: () => done,
    ...overrides,
  };
}

describe.each([
  ["threads", MANY_TASKS],
  ["no threads", 1],
])("on %s", (_, tasksPerRun) => {
  it("results are those of the runs, in their order", async () => {
    const given = options({ tasksPerRun });
    expect(await runAll(runs, given)).toEqual(runs.map((run) => runOnce(run)));
    expect(given.doneCount()).toBe(runs.length);
  });

  it("a run that fails is told", async () => {
    const broken = runs.map((run) => ({ ...run, rule: "none" }));
    await expect(runAll(broken, options({ tasksPerRun }))).rejects.toThrow("none runs loco-spike");
  });

  it("a run that is told to end, ends", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(runAll(runs, options({ tasksPerRun, signal }))).rejects.toThrow();
  });
});
