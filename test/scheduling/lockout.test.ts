// An agent as good as the others gets a fair share of the work: after one slow task, and when it joins late. Planner,
// state and steps are a coordinator's; time is virtual.

import { describe, expect, it } from "vitest";
import { agentDispatcherOf } from "../../src/sim/policy/agent-rules.ts";
import { type AttemptLog, runTasks, type Workload } from "../../src/sim/policy/run-tasks.ts";
import { SeededRandom } from "../../src/sim/random.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

const QUICK_MS = 20;
const SLOW_MS = 4_000;
const THIRTY_SECONDS_MS = 30_000;
const TWO_MINUTES_MS = 120_000;

interface Course {
  readonly everyMs: number;
  /** Of a quick task. Default: all take 20 ms. */
  readonly latencyMs?: () => number;
  /** Tasks before the slow one. */
  readonly before: number;
}

/** The first of two equal agents gets a slow task. @returns the share of the attempts in the given time afterwards */
function partAfterSlowTask({ everyMs, before, latencyMs = () => QUICK_MS }: Course): (ms: number) => number {
  const count = before + Math.ceil((SLOW_MS + TWO_MINUTES_MS) / everyMs);
  let slowAt: number | undefined;
  const workload: Workload = {
    agents: [0, 1].map((index) => ({ index, maxConcurrent: 1, kinds: ["call"] })),
    tasks: Array.from({ length: count }, (_, index) => ({
      index,
      arrivesAt: (index + 1) * everyMs,
      user: "u",
      project: "p",
      kind: "call",
      weight: 1,
      size: 1,
    })),
    attemptsMax: 1,
    attemptOf: ({ task, agent }, _attempt, at) => {
      const isSlow = slowAt === undefined && agent.index === 0 && task.index >= before;
      if (isSlow) slowAt = at;
      return { ms: isSlow ? SLOW_MS : latencyMs(), succeeds: true };
    },
  };
  const init = {
    rule: "waggle",
    alpha: 0.25,
    random: new SeededRandom("lockout"),
    wantsTimeline: false,
    share: 1,
  };
  const { attempts } = runTasks(workload, agentDispatcherOf(workload, init));
  const from = slowAt ?? Number.NaN;
  return (ms) => partOf(attempts.filter(({ startedAt }) => startedAt > from && startedAt <= from + ms));
}

function partOf(attempts: readonly AttemptLog[]): number {
  return attempts.filter(({ agent }) => agent.index === 0).length / attempts.length;
}

/** One task after another, for two equal agents, one with 40 tasks done. @returns how many tasks the joiner ran */
function doneByJoiner(tasks: number, latencyMs = () => QUICK_MS): number {
  const swarm = new SwarmFixture();
  let done = 0;
  const run = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const task = `t${swarm.state.submissions}`;
      swarm.submit(task);
      const [assigned] = swarm.plan();
      if (assigned?.agent === "joiner") done += 1;
      const took = Math.max(1, Math.round(latencyMs()));
      swarm.pass(took);
      swarm.complete(task, took);
    }
  };
  swarm.join("veteran");
  run(40);
  swarm.join("joiner");
  run(tasks);
  return done;
}

describe("an equal agent with one slow task", () => {
  it.each([
    ["10 tasks a second", { everyMs: 100, before: 40 }],
    ["10 tasks a second, the slow task first", { everyMs: 100, before: 0 }],
    ["30 % load", { everyMs: 33, before: 40 }],
  ])("gets a quarter of the work within 30 s and two fifths within 2 min: %s", (_, course) => {
    const partWithin = partAfterSlowTask(course);
    expect(partWithin(THIRTY_SECONDS_MS)).toBeGreaterThanOrEqual(0.25);
    expect(partWithin(TWO_MINUTES_MS)).toBeGreaterThanOrEqual(0.4);
  });
});

describe("latencies that vary", () => {
  const normal = (random: SeededRandom) =>
    Math.sqrt(-2 * Math.log(1 - random.fraction())) * Math.cos(2 * Math.PI * random.fraction());
  const distributions: Readonly<Record<string, (random: SeededRandom) => number>> = {
    "by a quarter": (random) => QUICK_MS * (0.75 + random.fraction() / 2),
    "by half": (random) => QUICK_MS * (0.5 + random.fraction()),
    "by a factor, log-normal with σ = 0.5": (random) => QUICK_MS * Math.exp(normal(random) / 2),
    "by orders, exponential": (random) => 1 - QUICK_MS * Math.log(1 - random.fraction()),
  };
  const seeds = [0, 1, 2, 3, 4];

  it.each(Object.entries(distributions))(
    "do not keep an equal agent with one slow task from its part: %s",
    (name, draw) => {
      for (const seed of seeds) {
        const random = new SeededRandom(`${name} ${seed}`);
        const partWithin = partAfterSlowTask({ everyMs: 100, before: 40, latencyMs: () => draw(random) });
        expect(partWithin(THIRTY_SECONDS_MS), `seed ${seed}`).toBeGreaterThanOrEqual(0.25);
        expect(partWithin(TWO_MINUTES_MS), `seed ${seed}`).toBeGreaterThanOrEqual(0.4);
      }
    },
  );

  it.each(Object.entries(distributions))("give a joining agent a fair share: %s", (name, draw) => {
    const parts = seeds.map((seed) => {
      const random = new SeededRandom(`${name} ${seed}`);
      return doneByJoiner(300, () => draw(random)) / 300;
    });
    expect(parts.reduce((sum, part) => sum + part, 0) / seeds.length).toBeGreaterThanOrEqual(0.4);
    expect(Math.min(...parts)).toBeGreaterThanOrEqual(0.15);
  });
});

describe("an agent that joins beside an agent with 40 tasks done", () => {
  it("does at least 90 of the next 300", () => {
    expect(doneByJoiner(300)).toBeGreaterThanOrEqual(90);
  });
});
