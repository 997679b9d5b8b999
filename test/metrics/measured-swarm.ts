// A swarm in which each metric gets a value. Its tasks have several kinds and outcomes. It has budgets, a resource with
// a waiter, refusals, a silent agent, and an agent with most tasks of a kind.

import { limits } from "../../src/limits.ts";
import { CoordinatorMetrics } from "../../src/metrics/coordinator-metrics.ts";
import type { ProcessFigures } from "../../src/process-watch.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

export interface MeasuredSwarm {
  readonly swarm: TestSwarm;
  readonly clock: ManualClock;
  readonly metrics: CoordinatorMetrics;
  readonly agent: WireAgent;
}

export const version = "1.2.3";

export const processFigures: ProcessFigures = {
  ...{ windowMs: 10_000, loopLagP99Ms: 1.5, loopLagMaxMs: 250 },
  ...{ rssBytes: 3e8, heapUsedBytes: 1e8, heapTotalBytes: 2e8 },
};

/** Time between the submission of the waiting tasks and now, and silence of the silent agent. */
export const waitedMs = 4_000;

export async function startMeasuredSwarm({ byAgent = false } = {}): Promise<MeasuredSwarm> {
  const clock = new ManualClock();
  const metrics = new CoordinatorMetrics({ version, byAgent });
  const swarm = await startTestSwarm({
    ...{ clock, metrics, random: noJitter },
    processFigures: () => processFigures,
  });
  const agent = await swarm.agent("a1", { kinds: ["count", "review"], maxConcurrent: 2 });
  return { swarm, clock, metrics, agent };
}

/** Gives each metric a value. */
export async function live({ swarm, clock, agent }: MeasuredSwarm): Promise<void> {
  const { client } = swarm;
  await client.ask(subjects.operator("resource"), { resource: "gpu", slots: 1 });
  const budget = { tokens: 1_000, windowMs: 60_000, mode: "alert" };
  await client.ask(subjects.operator("project"), { project: "default", budget, creditWeight: 3 });
  await client.ask(subjects.operator("policy"), { budget: { ...budget, tokens: 5_000 } });

  await client.submit([{ id: "t1", kind: "count" }]);
  await agent.report(await agent.assignment(), "completed", { result: "4", tokens: 30 });
  await client.submit([{ id: "t2", kind: "review", maxAttempts: 1 }], {}, "acme");
  const failing = await agent.assignment();
  await clock.advance(700);
  await agent.report(failing, "failed", { error: "no", tokens: 10 });
  await client.submit([{ id: "t3", kind: "nobody" }]);
  await client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t3", round: 1 }] });
  await client.ask(subjects.project("default", "submit"), { tasks: "none" });

  await client.ask(subjects.operator("project"), { project: "small", queueMax: 1 });
  await client.submit([{ kind: "nobody" }, { kind: "nobody" }, { kind: "nobody" }], {}, "small");
  await client.submit([{ id: "w1", kind: "nobody" }]);

  for (const handle of ["h1", "h2"])
    await agent.ask(subjects.agent("_", agent.id, "acquire"), {
      incarnation: agent.joinMessage.incarnation,
      ...{ handle, resources: ["gpu"] },
    });
  await concentrate(swarm);
  await clock.advance(waitedMs);
}

/** One agent of two gets all tasks of a kind. */
async function concentrate(swarm: TestSwarm): Promise<void> {
  const ids = Array.from({ length: limits.concentrationAssignmentsMin }, (_, n) => `c${n}`);
  await swarm.agent("hog", { kinds: ["hogged"], maxConcurrent: limits.maxConcurrentMax });
  const small = await swarm.agent("small", { kinds: ["hogged"], maxConcurrent: 1 });
  await swarm.client.submit(ids.map((id) => ({ id, kind: "hogged" })));
  await small.assignment();
}
