// Two projects with a task of the same id: neither project sees, ends or retries the task of the other, and an agent
// may run both at once.

import { beforeEach, expect, it } from "vitest";
import type { DonePush } from "../../src/protocol/schemas.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import {
  type Listening,
  startTestSwarm,
  subjects,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";

let swarm: TestSwarm;
let agent: WireAgent;
let pushes: Listening<DonePush>;
const inbox = "_INBOX.ann.x7";

beforeEach(async () => {
  swarm = await startTestSwarm();
  agent = await swarm.agent("a1", { maxConcurrent: 2 });
  pushes = swarm.client.listen<DonePush>(doneSubject(inbox));
  for (const project of ["red", "blue"])
    await swarm.client.submit([{ id: "t1", kind: "count", payload: project }], { notify: inbox }, project);
  return () => swarm.stop();
});

const cancel = (project: string) =>
  swarm.client.ask(subjects.project(project, "cancel"), { tasks: [{ task: "t1", round: 1 }] });
const query = (project: string, what: "task" | "explain" | "tasks" | "status", more: object = {}) =>
  swarm.client.ask(
    subjects.query(project, what),
    what === "status" || what === "tasks" ? more : { task: "t1" },
  );

it("both are accepted, run at once and end on their own", async () => {
  const [red, blue] = [await agent.assignment(), await agent.assignment()];
  expect([red, blue]).toMatchObject([
    { project: "red", task: "t1", payload: "red" },
    { project: "blue", task: "t1", payload: "blue" },
  ]);
  await agent.heartbeat([red, blue], 2);
  expect(await agent.complete(blue, "of blue")).toMatchObject({ answers: [{ ok: true, status: "ok" }] });
  expect((await pushes.next()).ended).toMatchObject([{ project: "blue", task: "t1", result: "of blue" }]);
  expect(await query("red", "task")).toMatchObject({ project: "red", state: "running" });
  expect(await query("blue", "task")).toMatchObject({ project: "blue", state: "completed" });
  await agent.complete(red, "of red");
  expect((await pushes.next()).ended).toMatchObject([{ project: "red", task: "t1", result: "of red" }]);
});

it("a result under the token of the other's attempt is refused", async () => {
  const [red, blue] = [await agent.assignment(), await agent.assignment()];
  expect(
    await agent.report({ ...red, token: blue.token }, "completed", { result: "mixed up" }),
  ).toMatchObject({
    answers: [{ ok: false, code: "WAGGLE_STALE_TOKEN" }],
  });
});

it("a cancellation and a retry touch their own alone", async () => {
  expect(await cancel("red")).toMatchObject({ answers: [{ ok: true, state: "cancelled" }] });
  expect(await query("blue", "task")).toMatchObject({ state: "assigned", round: 1 });
  const retry = { tasks: [{ task: "t1", round: 2 }] };
  expect(await swarm.client.ask(subjects.project("red", "retry"), retry)).toMatchObject({
    answers: [{ ok: true, round: 2 }],
  });
  expect(await query("red", "task")).toMatchObject({ round: 2 });
  expect(await swarm.client.ask(subjects.project("blue", "retry"), retry)).toMatchObject({
    answers: [{ ok: false, code: "WAGGLE_CONFLICT" }],
  });
  expect(await cancel("green")).toMatchObject({ answers: [{ code: "WAGGLE_UNKNOWN_TASK" }] });
});

it("awaited after the end, each gets its own outcome", async () => {
  await agent.complete(await agent.assignment(), "of red");
  await cancel("blue");
  const ask = (project: string) =>
    swarm.client.ask(subjects.project(project, "await"), { tasks: ["t1"], notify: inbox });
  expect(await ask("red")).toMatchObject({ answers: [{ outcome: { project: "red", result: "of red" } }] });
  expect(await ask("blue")).toMatchObject({
    answers: [{ outcome: { project: "blue", state: "cancelled" } }],
  });
});

it("asked of the swarm, the id alone is ambiguous, and the answer names the projects", async () => {
  for (const what of ["task", "explain"] as const)
    expect(await query("_", what)).toMatchObject({
      ok: false,
      code: "WAGGLE_AMBIGUOUS_TASK",
      field: "project",
      message:
        '2 projects have a task t1: blue, red. Name the project (`--project blue`, or { project: "blue" })',
    });
  await swarm.client.submit([{ id: "t2", kind: "count" }], {}, "red");
  expect(await swarm.client.task("t2")).toMatchObject({ ok: true, project: "red" });
});

it("queries answer about the project of their subject alone", async () => {
  await cancel("red");
  expect((await query("red", "tasks")).tasks).toMatchObject([{ project: "red", state: "cancelled" }]);
  expect((await query("_", "tasks")).total).toBe(2);
  const ofBlue = await query("blue", "status");
  expect(ofBlue).toMatchObject({ tasks: { assigned: 1, cancelled: 0 }, agents: [], counters: {} });
  expect(ofBlue.projects).toMatchObject([{ project: "blue" }]);
  expect(ofBlue).not.toHaveProperty("metrics");
  const settings = await swarm.client.ask(subjects.query("blue", "settings"), {});
  expect(settings).toMatchObject({ projects: [{ project: "blue" }], kinds: [], resources: [], rates: [] });
});

it("a project's events come without payloads and results, unless they are asked for", async () => {
  const page = async (what: string, query: object = {}, project = "red") =>
    await swarm.client.ask(`${subjects.prefix}.project.${project}.query.${what}`, { from: 1, ...query });
  const text = async (...asked: Parameters<typeof page>) => JSON.stringify(await page(...asked));
  const secret = "only for those who ask";
  await swarm.client.submit([{ id: "secret", kind: "count", payload: secret }], {}, "red");
  expect(await text("events")).toContain('"id":"secret"');
  expect(await text("events")).not.toContain(secret);
  expect(await text("events", { withContent: true })).toContain(secret);
  expect(await text("events", { withContent: true }, "blue")).not.toContain(secret);
  expect(await text("journal", {}, "_")).toContain(secret);
  expect(await page("events", {}, "_")).toMatchObject({ ok: false, field: "project" });
  expect(await page("journal", {}, "red")).toMatchObject({ ok: false, field: "project" });
});

it("a page of the journal holds the events of its project, and every batch", async () => {
  const page = async (project: string) =>
    await swarm.client.ask(subjects.query(project, project === "_" ? "journal" : "events"), { from: 1 });
  const whole = await page("_");
  const red = await page("red");
  type Batch = {
    idx: number;
    events: { type: string; project?: string; task?: { project: string } | string }[];
  };
  expect(red.batches.map(({ idx }: Batch) => idx)).toEqual(whole.batches.map(({ idx }: Batch) => idx));
  const projects = red.batches.flatMap(({ events }: Batch) =>
    events.map(({ project, task }) => project ?? (typeof task === "object" ? task.project : "none")),
  );
  expect(projects).toEqual(["none", "red", "red"]); // the term began; submitted; assigned
  expect(JSON.stringify(red)).not.toContain("blue");
});
