// Changes from the page: done by the swarm, told with the equal command line, and refused with a reason.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { submitCommand } from "../../src/dashboard/command-text.ts";
import { type Answer, Fixture } from "./dashboard-fixture.ts";

let page: Fixture;
beforeEach(async () => {
  page = await Fixture.start();
});
afterEach(() => page.stop());

const done = async (verb: string, body: unknown): Promise<Answer["json"]> => {
  const { status, json } = await page.act(verb, body);
  expect(status).toBe(200);
  return json;
};
const refused = async (verb: string, body: unknown) => {
  const { status, json } = await page.act(verb, body);
  return { status, ...json.error };
};

describe("submit", () => {
  it("accepts a task once, and warns as the command line does", async () => {
    const task = { kind: "count", id: "t1", project: "red", payload: "it's", priority: 5 };
    const dry = await done("submit", { task, dryRun: true });
    const command = "waggle submit --kind count --id t1 --project red --priority 5 --text 'it'\\''s'";
    expect(dry).toMatchObject({ isDryRun: true, command, count: 1 });
    expect(await page.swarm.taskPage()).toMatchObject({ total: 0 });
    const sent = await done("submit", { task });
    expect(sent).toMatchObject({ ok: true, command, results: [{ task: "t1", project: "red", ok: true }] });
    expect(sent.text).toContain("no agent serves the kind count");
    expect((await done("submit", { task })).text).toContain("had been accepted before");
    expect(await page.swarm.story("t1", { project: "red" })).toMatchObject({
      spec: { payload: "it's", priority: 5, user: "ann" },
    });
    expect(await refused("submit", { task: { ...task, payload: "other" } })).toMatchObject({
      status: 409,
      code: "WAGGLE_CONFLICT",
    });
  });

  it("takes bytes as base64, and times as instants", async () => {
    const notBeforeAt = Date.now() + 60_000;
    await done("submit", {
      task: { kind: "count", id: "b", payload: "AAEC", encoding: "base64", notBeforeAt },
    });
    expect(await page.swarm.story("b")).toMatchObject({
      spec: { payload: "AAEC", encoding: "base64", notBefore: notBeforeAt },
    });
  });

  it.each([
    [{}, "task"],
    [{ task: {} }, "task.kind"],
    [{ task: { kind: "a b" } }, "task.kind"],
    [{ task: { kind: "count", weight: 0 } }, "task.weight"],
    [{ task: { kind: "count", payload: 5 } }, "task.payload"],
    [{ task: { kind: "count", payload: "x".repeat(300_000) } }, "task.payload"],
    [{ task: { kind: "count", payload: "no base64!", encoding: "base64" } }, "payload"],
    [{ tsk: {} }, "tsk"],
    ["text", undefined],
  ])("%# wrong fields are named", async (body, field) => {
    const refusal = await refused("submit", body);
    expect(refusal).toMatchObject({ status: 400, code: "WAGGLE_INVALID_MESSAGE" });
    if (field !== undefined && field !== "task") expect(refusal.field).toContain(field);
  });
});

describe("cancel and retry", () => {
  it("named tasks: one result each, refusals first", async () => {
    await page.swarm.submit({ id: "t1", kind: "count" });
    const cancelled = await done("cancel", {
      tasks: [
        { task: "t1", project: "default" },
        { task: "none", project: "default" },
      ],
    });
    expect(cancelled).toMatchObject({
      ok: false,
      command: "waggle cancel t1 none",
      count: 2,
      results: [
        { task: "none", ok: false, code: "WAGGLE_UNKNOWN_TASK" },
        { task: "t1", ok: true, text: "cancelled" },
      ],
    });
    const retried = await done("retry", { tasks: [{ task: "t1", project: "default" }] });
    expect(retried).toMatchObject({ ok: true, results: [{ task: "t1", text: "round 2 began" }] });
  });

  it("all that match: a count first, then exactly that many, or nothing", async () => {
    for (const id of ["t1", "t2", "t3"]) await page.swarm.submit({ id, kind: "count" });
    const filter = { kind: ["count"] };
    const dry = await done("cancel", { filter, dryRun: true });
    expect(dry).toMatchObject({ isDryRun: true, count: 3, command: "waggle cancel --kind count --yes" });
    expect(dry.sample.map(({ task }: { task: string }) => task)).toEqual(["t1", "t2", "t3"]);
    await page.swarm.submit({ id: "t4", kind: "count" });
    expect(await refused("cancel", { filter, expected: 3 })).toMatchObject({
      status: 409,
      code: "WAGGLE_CONFLICT",
      count: 4,
    });
    expect((await page.swarm.taskPage({ state: "queued" })).total).toBe(4);
    expect(await done("cancel", { filter, expected: 4 })).toMatchObject({ ok: true, count: 4 });
    expect((await page.swarm.taskPage({ state: "cancelled" })).total).toBe(4);
    expect(await done("retry", { filter, expected: 4 })).toMatchObject({ ok: true, text: "4 tasks retried" });
  });

  it.each([
    [{ filter: {}, dryRun: true }, "at least one condition"],
    [{ filter: { state: ["completed"] }, dryRun: true }, "no task in state completed can be cancelled"],
    [{ filter: { state: ["queud"] }, dryRun: true }, "must be one of"],
    [{ filter: { kind: ["count"] } }, "expected"],
    [{ filter: { text: "x" }, dryRun: true }, "text"],
    [{ tasks: [] }, "at least 1"],
    [{ tasks: [{ task: "t1" }] }, "project"],
    [{ tasks: [{ task: "t1", project: "default" }], expected: 1 }, "expected"],
    [{}, "tasks"],
  ])("%# a wrong body changes nothing and says what is right", async (body, message) => {
    await page.swarm.submit({ id: "t1", kind: "count" });
    const refusal = await refused("cancel", body);
    expect(refusal).toMatchObject({ status: 400, code: "WAGGLE_INVALID_MESSAGE" });
    expect(refusal.message).toContain(message);
    expect((await page.swarm.taskPage({ state: "queued" })).total).toBe(1);
  });
});

describe("one task", () => {
  it("revoke frees a stuck attempt, once", async () => {
    const agent = await page.test.agent("a1");
    await page.swarm.submit({ id: "t1", kind: "count" });
    await agent.assignment();
    const ref = { task: "t1", project: "default" };
    expect((await page.get("/api/tasks/t1")).json.can).toMatchObject({ revoke: true, reschedule: false });
    expect(await done("revoke", { ...ref, dryRun: true })).toMatchObject({ command: "waggle revoke t1" });
    expect(await done("revoke", { ...ref, attempt: 1 })).toMatchObject({
      ok: true,
      text: expect.stringMatching(/^attempt 1 revoked; the task is /),
    });
    expect((await done("revoke", { ...ref, attempt: 1 })).text).toContain("had ended before");
    expect((await page.swarm.story("t1")).attempts[0]).toMatchObject({ ended: "revoked" });
    expect(await refused("revoke", { task: "t1" })).toMatchObject({ status: 400, field: "project" });
    expect(await refused("revoke", { ...ref, task: "zz" })).toMatchObject({ status: 404 });
  });

  it("reschedule changes the earliest start", async () => {
    await page.swarm.submit({ id: "t1", kind: "count" });
    const ref = { task: "t1", project: "default" };
    const notBeforeAt = Date.now() + 3_600_000;
    const time = new Date(notBeforeAt).toISOString();
    expect(await done("reschedule", { ...ref, notBeforeAt })).toMatchObject({
      command: `waggle reschedule t1 --not-before ${time}`,
      text: `delayed until ${time}`,
    });
    expect((await page.get("/api/tasks/t1")).json).toMatchObject({
      task: { state: "delayed" },
      can: { reschedule: true, revoke: false },
      wait: { sentence: expect.stringContaining(`Not due before ${time}`) },
    });
    expect((await done("reschedule", { ...ref, notBeforeAt: 0 })).text).toBe("due at once: queued");
    await page.swarm.cancel("t1");
    expect(await refused("reschedule", { ...ref, notBeforeAt })).toMatchObject({ status: 409 });
    expect(await refused("reschedule", { ...ref, notBeforeAt: "soon" })).toMatchObject({
      status: 400,
      field: "notBeforeAt",
    });
  });
});

describe("agents and pauses", () => {
  it("drain, undrain", async () => {
    await page.test.agent("a1");
    expect(await done("drain", { agent: "a1", dryRun: true })).toMatchObject({ command: "waggle drain a1" });
    expect((await page.swarm.status()).agents[0]).toMatchObject({ draining: false });
    await done("drain", { agent: "a1" });
    expect((await page.swarm.status()).agents[0]).toMatchObject({ draining: true });
    await done("undrain", { agent: "a1" });
    expect((await page.swarm.status()).agents[0]).toMatchObject({ draining: false });
    expect(await refused("drain", { agent: "zz" })).toMatchObject({
      status: 404,
      code: "WAGGLE_UNKNOWN_AGENT",
    });
    expect(await refused("drain", {})).toMatchObject({ status: 400, field: "agent" });
  });

  it("pause, resume: the swarm, or a project", async () => {
    expect(await done("pause", {})).toMatchObject({ command: "waggle pause" });
    expect((await done("pause", {})).text).toContain("was paused before");
    expect(await done("pause", { project: "red" })).toMatchObject({ command: "waggle pause red" });
    expect(await page.swarm.settings()).toMatchObject({
      paused: true,
      projects: [{ project: "red", paused: true }],
    });
    await done("resume", {});
    await done("resume", { project: "red" });
    expect((await page.swarm.settings()).paused).toBe(false);
  });

  it("an unknown verb does not exist", async () => {
    expect(await refused("explode", {})).toMatchObject({ status: 404 });
  });
});

it("a submit command for the shell carries every field", () => {
  const command = submitCommand({
    task: {
      ...{ kind: "k", payload: "AAEC", encoding: "base64", deadlineAt: 0, timeoutMs: 90_000, stallMs: 1_500 },
      ...{ weight: 2, tokens: 5, maxAttempts: 1, user: "ann", role: "r" },
    },
  });
  expect(command).toBe(
    "printf %s AAEC | base64 -d | waggle submit --kind k --user ann --role r --weight 2 --tokens 5 " +
      "--deadline 1970-01-01T00:00:00.000Z --max-attempts 1 --timeout 90s --stall 1500ms -",
  );
});
