// The demo's plan in virtual time, with the production planner: in each run the broken agent loses its share and gets
// work again. Not here: the processes (demo.test.ts).

import pc from "picocolors";
import { expect, it } from "vitest";
import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import { type DemoMoments, hasLostShare, renderSummary, troubledIn } from "../../src/cli/demo/report.ts";
import { demoAgents, demoTasks, planOf, troubledAgent } from "../../src/cli/demo/scenario.ts";
import { submittedBy } from "../../src/cli/demo/submitting.ts";
import { DemoTally } from "../../src/cli/demo/tally.ts";
import { demoKinds } from "../../src/cli/demo/work.ts";
import { limits } from "../../src/limits.ts";
import type { Assignment } from "../../src/sim/policy/dispatcher.ts";
import { Production } from "../../src/sim/policy/production.ts";
import { SeededRandom } from "../../src/sim/random.ts";

interface Machine {
  readonly tasks: number;
  readonly seed: number;
  /** Mean overhead of an attempt, ms. */
  readonly overheadMs: number;
  /** Longest pause of the whole machine, ms; one pause every 1.5 s on average. */
  readonly stallMs: number;
  /** Of the demo's time, when the first task can be submitted, ms. */
  readonly leftMs: number;
}

const STEP_MS = 5;
const output = { columns: undefined, colors: pc.createColors(false) };

/** The demo's report of a run on this machine. */
function reportOn(machine: Machine): string {
  const random = new SeededRandom(`seed ${machine.seed}`);
  const plan = planOf(machine.tasks, machine.leftMs);
  if (typeof plan.trouble === "string") return plan.trouble;
  const tasks = demoTasks(
    Array.from({ length: machine.tasks / demoKinds.length }, (_, at) => `f${at}`),
    "run",
  );
  const agents = demoAgents.map(({ maxConcurrent }, index) => ({ index, maxConcurrent, kinds: demoKinds }));
  const swarm = new Production({ agents, attemptsMax: 3, jitter: random.split("jitter") });
  const tally = new DemoTally(tasks.map(({ id }) => id));
  const running: { readonly at: number; readonly assignment: Assignment; readonly succeeds: boolean }[] = [];
  const noteEvent = (type: string, { task, agent }: Assignment, at: number) =>
    tally.add({
      at,
      event: { type, task: tasks[task.index]?.id, agent: demoAgents[agent.index]?.id },
    } as unknown as JournaledEvent);
  const moments: { -readonly [Key in keyof DemoMoments]: DemoMoments[Key] } = {
    brokenAt: undefined,
    repairedAt: undefined,
    submittedAt: plan.submitMs,
  };
  let sent = 0;
  let resumesAt = 0;
  for (let now = 0; now < plan.submitMs && sent < tasks.length; now += STEP_MS) {
    if (random.chance(STEP_MS / 1_500)) resumesAt = now + machine.stallMs * random.fraction();
    if (now < resumesAt) continue;
    running.sort((one, other) => one.at - other.at);
    for (let next = running[0]; next !== undefined && next.at <= now; next = running[0]) {
      swarm.ended({ ...next.assignment, succeeds: next.succeeds });
      noteEvent(next.succeeds ? "TaskCompleted" : "AttemptFailed", next.assignment, now);
      running.shift();
    }
    if (now % limits.demoStepMs === 0) {
      const count = submittedBy(now, { ...plan, ended: tally.ended, delayed: tally.delayed });
      for (const { kind } of tasks.slice(sent, count)) {
        swarm.submitted({ index: sent, arrivesAt: now, user: "u", project: "p", kind, weight: 1, size: 1 });
        sent += 1;
      }
      if (sent === tasks.length) moments.submittedAt = now;
    }
    for (const assignment of swarm.plan(now)) {
      noteEvent("TaskAssigned", assignment, now);
      const { id, slowness } = demoAgents[assignment.agent.index] as (typeof demoAgents)[number];
      const isBroken = moments.brokenAt !== undefined && moments.repairedAt === undefined;
      const fails = isBroken && id === troubledAgent;
      const workMs = fails ? 0 : plan.attemptMs * slowness * (0.5 + random.fraction());
      const overheadMs = machine.overheadMs * random.exponential(1);
      running.push({ at: now + workMs + overheadMs, assignment, succeeds: !fails });
    }
    const { brokenAt } = moments;
    if (brokenAt === undefined) {
      if (now >= plan.trouble.fromMs) moments.brokenAt = now;
    } else if (moments.repairedAt === undefined) {
      if (now >= plan.trouble.toMs || hasLostShare(tally, troubledAgent, { brokenAt, now }))
        moments.repairedAt = now;
    }
  }
  return renderSummary(
    {
      files: 1,
      tasks: sent,
      completed: tally.ended,
      open: 0,
      leftOut: tasks.length - sent,
      tookMs: plan.submitMs,
      results: "",
      agents: [],
      troubled: troubledIn(tally, moments),
      untroubled: null,
    },
    output,
  );
}

const quiet = { tasks: limits.demoFilesMax * demoKinds.length, overheadMs: 5, stallMs: 0, leftMs: 38_000 };

it.each([
  ["on a quiet machine", quiet],
  ["on a busy machine that started late", { ...quiet, overheadMs: 80, stallMs: 800, leftMs: 27_000 }],
  ["with the fewest tasks that are enough", { ...quiet, tasks: limits.demoTroubleTasksMin }],
] as const)(
  "shows in each run that the broken agent loses its share and gets work again, %s",
  (_, machine) => {
    for (let seed = 0; seed < 3; seed += 1) {
      const report = reportOn({ ...machine, seed });
      expect(report, `seed ${seed}`).toContain("Broken, it lost share: ");
      expect(report, `seed ${seed}`).toContain("Repaired, it got work again: ");
      if (machine.stallMs === 0) expect(report, `seed ${seed}`).not.toContain("left out");
    }
  },
);
