// Needs, affinities and attributes with real agents over a real coordinator, also over a change of leaders.

import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { describeWait } from "../../src/audit/describe-wait.ts";
import { healthOf } from "../../src/audit/health.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { defineKind } from "../../src/index.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect(), user: "ann" });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

/** An agent whose results are its id and the task's ticket. */
async function start(id: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  await swarm.agent({
    id,
    kinds: ["train", "typed"],
    labels,
    maxConcurrent: 4,
    handler: ({ attributes }) => `${id} ${attributes["ticket"] ?? "none"}`,
  });
}

const attributes = { ticket: "OPS-17" };

it("runs each task at an agent with the needed labels: single tasks, many at once, and a typed kind", async () => {
  await start("none");
  await start("eu", { gpu: "a100", region: "eu" });
  await start("us", { gpu: "a100", region: "us" });
  const run = async (needs: Record<string, string | string[]>) =>
    (await (await swarm.submit({ kind: "train", needs, attributes })).result()).text();
  expect(await run({ region: "us" })).toBe("us OPS-17");
  expect(await run({ gpu: ["h100", "a100"], region: ["eu"] })).toBe("eu OPS-17");

  const wishes = ["eu", "us", "eu", "us"].map((region) => ({ kind: "train", needs: { region } }));
  const results: unknown[] = [];
  for await (const outcome of swarm.submitMany(wishes))
    if (outcome.ok) results.push((await outcome.handle.result()).text());
  expect(results.sort()).toEqual(["eu none", "eu none", "us none", "us none"]);

  const typed = defineKind("typed", { input: z.null(), output: z.unknown() });
  const handle = await swarm.submit({ kind: typed, payload: null, needs: { region: "us" } });
  expect(await handle.outcome()).toMatchObject({ state: "completed", agent: "us" });
});

it("says at once, and later, why a task with needs waits, and runs it when an agent with the labels joins", async () => {
  await start("eu", { gpu: "h100", region: "eu" });
  const handle = await swarm.submit({ id: "t1", kind: "train", needs: { gpu: "h10", region: "eu" } });
  expect(handle.warnings).toEqual([
    {
      code: "no-agent-has-labels",
      message:
        "no agent that serves the kind train has labels gpu=h10 at present (did you mean gpu=h100?): the task waits until one joins",
      nearMisses: ["gpu=h100"],
      needs: "gpu=h10",
    },
  ]);
  const { waiting, needs } = await swarm.explain("t1");
  expect(needs).toEqual({ gpu: ["h10"], region: ["eu"] });
  expect(waiting?.agents).toMatchObject([{ agent: "eu", standing: "label" }]);
  expect(waiting && describeWait(waiting)).toBe(
    "No agent serves train with gpu=h10, and region=eu: start an agent with --kind train --label gpu=h10 --label region=eu — did you mean gpu=h100? (1 agent serves it and lacks only gpu=h10)",
  );
  const status = await swarm.status();
  expect(status.queues).toMatchObject([{ kind: "train", needs, waiting: 1, agents: 0 }]);
  expect(healthOf(status)).toMatchObject({ level: "critical", findings: [{ rule: "nobody-capable" }] });
  await expect(
    swarm.submit({ kind: "train", needs: { gpu: "h10" } }, { failFast: true }),
  ).rejects.toMatchObject({ code: "WAGGLE_NO_CAPABLE_AGENT", field: "needs" });
  await start("new", { gpu: "h10", region: "eu" });
  expect((await handle.result()).text()).toBe("new none");
});

it("keeps a session at its agent, also after a change of leaders, and shows the reason", async () => {
  for (const id of ["a1", "a2", "a3"]) await start(id);
  const ask = async (id: string) => {
    const handle = await swarm.submit({ id, kind: "train", affinity: "session-42" });
    return (await handle.outcome()).agent;
  };
  const agent = await ask("t1");
  expect(await ask("t2")).toBe(agent);
  await test.startAnother("c2");
  await swarm.transferLead();
  expect(await ask("t3")).toBe(agent);
  const { attempts, affinity } = await swarm.explain("t3");
  expect(attempts).toMatchObject([{ agent, receipt: { decidedBy: "affinity", feasible: 3 } }]);
  expect(affinity).toBeUndefined();
  expect(await swarm.replayAssignment("t3")).toMatchObject({ agent, agrees: true });
});

it("finds events by attributes", async () => {
  await start("a1");
  await (await swarm.submit({ id: "t1", kind: "train", attributes })).result();
  await (await swarm.submit({ id: "t2", kind: "train" })).result();
  const types: string[] = [];
  for await (const { event } of swarm.events({ attributes })) {
    types.push(event.type);
    if (event.type === "TaskSubmitted") expect(event.task).toMatchObject({ id: "t1", attributes });
  }
  expect(types).toEqual(["TaskSubmitted", "TaskAssigned", "TaskCompleted"]);
});
