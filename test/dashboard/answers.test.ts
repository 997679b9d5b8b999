// Every answer of the dashboard, over real HTTP, about a real swarm.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import type { WireAgent } from "../support/swarm.ts";
import { Fixture } from "./dashboard-fixture.ts";

let page: Fixture;
let agent: WireAgent;
beforeAll(async () => {
  page = await Fixture.start();
  agent = await page.test.agent("a1");
  const done = await page.swarm.submit({ id: "done", kind: "count", payload: "a b c", project: "red" });
  await agent.complete(await agent.assignment(), "3");
  await done.result();
  await page.swarm.submit({ id: "broken", kind: "count", maxAttempts: 1 });
  await agent.report(await agent.assignment(), "failed", { error: "<b>no</b>" });
  await page.swarm.submit({ id: "stuck", kind: "nobody", payload: "x".repeat(1_000) });
  await page.swarm.setResource("gpt", { slots: 2 });
  await page.swarm.setProject("red", { creditWeight: 3, budget: { tokens: 10, windowMs: 60_000 } });
  await page.swarm.setRate("haiku", { window: "per_minute", tokensMax: 100 });
});
afterAll(() => page.stop());

const get = async (path: string) => {
  const { status, json } = await page.get(`/api/${path}`);
  expect(status).toBe(200);
  return json;
};

describe("pages", () => {
  it("the overview has the verdict with its next command, and the figures", async () => {
    const overview = await get("overview");
    expect(overview.health).toMatchObject({
      level: "critical",
      verdict: "1 task of kind nobody waits, and no agent online serves it",
      next: "waggle agent --kind nobody --exec COMMAND",
    });
    expect(overview).toMatchObject({
      tasks: { queued: 1, completed: 1, "dead-lettered": 1 },
      capacity: { used: 0, total: 4 },
      agents: { online: 1, busy: 0, offline: 0 },
      queues: { nobody: { kind: "nobody", waiting: 1, agents: 0 } },
      isStale: false,
      isPaused: false,
    });
  });

  it("agents, and one agent", async () => {
    const { agents } = await get("agents");
    expect(agents.a1).toMatchObject({
      status: "ready",
      inFlight: 0,
      maxConcurrent: 4,
      kinds: { count: { attempts: 2, completed: 1 } },
    });
    expect(await get("agents/a1")).toMatchObject({
      agent: { id: "a1" },
      ganttRows: 4,
      commands: { drain: "waggle drain a1", events: "waggle events --agent a1 --tail 50" },
    });
    expect(await page.refusal("/api/agents/zz")).toMatchObject({ status: 404, code: "WAGGLE_UNKNOWN_AGENT" });
  });

  it("fairness: the target follows the weights of the projects with work", async () => {
    const { rules, projects, users } = await get("fairness");
    expect(rules).toBe("waggle");
    expect(projects.default).toMatchObject({ creditWeight: 1, queued: 1 });
    expect(projects.red).toMatchObject({ creditWeight: 3 });
    expect(users["default/ann"]).toMatchObject({ queued: 1 });
  });

  it("resources with the command that set the limit; budgets and rates with theirs", async () => {
    expect((await get("resources")).resources.gpt).toMatchObject({
      slots: 2,
      setBy: "waggle resource set gpt --slots 2",
      inUse: 0,
    });
    expect(await get("budgets")).toMatchObject({
      projects: {
        red: {
          tokens: 10,
          mode: "wait",
          isUsedUp: true,
          isBinding: false,
          command: "waggle project set red --budget N",
        },
      },
      rates: { "haiku per_minute": { tokensMax: 100, used: 0 } },
    });
  });

  it("the system: journal, settings with their origin, and charts with counts", async () => {
    const { journal, coordinators, settings, charts, dashboard } = await get("system");
    expect(coordinators.process).toMatchObject({ loopLagP99Ms: 1.5, loopLagMaxMs: 250, heapUsedBytes: 1e8 });
    expect(dashboard.process.rssBytes).toBeGreaterThan(dashboard.process.heapUsedBytes);
    expect(journal).toMatchObject({ durability: "memory", firstIdx: 1 });
    const weight = settings.find((row: { setting: string; name?: string }) => {
      return row.setting === "creditWeight" && row.name === "red";
    });
    expect(weight).toMatchObject({
      value: "3",
      origin: "set by an operator",
      command: "waggle project show red",
    });
    expect(settings.find((row: { setting: string }) => row.setting === "lambda")).toMatchObject({
      origin: "default",
    });
    const task = charts.find(({ id }: { id: string }) => id === "task");
    expect(task.states.find(({ name }: { name: string }) => name === "queued")).toMatchObject({ count: 1 });
    expect(dashboard).toMatchObject({ version: "0.0.0", node: process.version });
  });

  it("the history has equally long columns", async () => {
    const { times, series } = await get("history?window=6h");
    for (const column of Object.values(series)) expect(column).toHaveLength(times.length);
  });
});

describe("tasks", () => {
  it("filters combine, and the command equals them", async () => {
    const { rows, total, command } = await get("tasks?state=completed,dead-lettered&kind=count");
    expect(rows.map(({ task }: { task: string }) => task).sort()).toEqual(["broken", "done"]);
    expect(total).toBe(2);
    expect(command).toBe("waggle tasks --state completed,dead-lettered --kind count");
    expect((await get("tasks?state=completed&project=default")).rows).toEqual([]);
  });

  it("pages follow each other without a gap, also in a search", async () => {
    const namesOf = async (query: string) => {
      const names: string[] = [];
      for (let after = ""; ; ) {
        const { rows, next } = await get(`tasks?limit=1&${query}&after=${encodeURIComponent(after)}`);
        names.push(...rows.map(({ task }: { task: string }) => task));
        if (next === undefined) return names;
        after = next;
      }
    };
    expect((await namesOf("sort=submitted")).sort()).toEqual(["broken", "done", "stuck"]);
    expect((await namesOf("text=COUNT")).sort()).toEqual(["broken", "done"]);
    expect(await namesOf("text=tuc")).toEqual(["stuck"]);
  });

  it("an ended task: history, receipts, possible actions", async () => {
    const done = await get("tasks/done?project=red");
    expect(done).toMatchObject({
      task: { task: "done", project: "red", state: "completed", agent: "a1" },
      spec: { payloadBytes: 5, maxAttempts: 3 },
      attempts: [
        { attempt: 1, agent: "a1", ended: "completed", receipt: { feasible: 1, decidedBy: "only" } },
      ],
      can: { cancel: false, retry: false },
      commands: { show: "waggle task done --project red", events: "waggle events --project red --task done" },
    });
    expect(done.waterfall.map(({ what }: { what: string }) => what)).toContain("queued");
    expect(done.wait).toBeUndefined();
    expect(await get("tasks/broken")).toMatchObject({
      task: { state: "dead-lettered" },
      attempts: [{ ended: "failed", error: "<b>no</b>" }],
      deadLetterReason: "attempts-exhausted",
      can: { retry: true },
    });
  });

  it("a waiting task says why, and what is ahead of it", async () => {
    const { wait, can } = await get("tasks/stuck");
    expect(wait.sentence).toBe("No agent serves nobody: start an agent with --kind nobody");
    expect(wait.position).toMatchObject({ waiting: 1, task: { place: 1, of: 1 } });
    expect(wait.agents).toMatchObject([{ agent: "a1", standing: "wrong-kind" }]);
    expect(can).toMatchObject({ cancel: true, retry: false });
  });

  it("contents come by request alone", async () => {
    expect(await get("tasks/done/contents?project=red")).toMatchObject({
      payload: { text: "a b c", bytes: 5, isCut: false },
      result: { text: "3", bytes: 1, isCut: false },
    });
    expect((await get("tasks/stuck/contents")).missing).toEqual({ result: "the task has not ended" });
  });
});

describe("events", () => {
  it("the newest first page, then older ones, to the beginning", async () => {
    const first = await get("events?limit=2");
    expect(first.rows.length).toBeGreaterThanOrEqual(2);
    const idxs = first.rows.map(({ idx }: { idx: number }) => idx);
    expect(idxs).toEqual([...idxs].sort((one, other) => one - other));
    expect(first.before).toBeLessThanOrEqual(idxs[0]);
    const older = await get(`events?before=${first.before}`);
    expect(older.rows.at(-1).idx).toBeLessThan(first.before);
    expect(older.rows[0]).toMatchObject({ type: "TermStarted" });
    expect(older.before).toBeUndefined();
  });

  it("filters by type, task, kind and text; never shows a payload", async () => {
    const typesOf = async (query: string) =>
      (await get(`events?${query}`)).rows.map(({ type }: { type: string }) => type);
    expect(await typesOf("types=TaskDeadLettered")).toEqual(["TaskDeadLettered"]);
    expect(await typesOf("task=stuck")).toEqual(["TaskSubmitted"]);
    expect(await typesOf("kind=nobody")).toEqual(["TaskSubmitted"]);
    expect(await typesOf("text=DEAD-LETTERED:")).toEqual(["TaskDeadLettered"]);
    expect((await page.get("/api/events?limit=500")).text).not.toContain("xxxxx");
  });
});

describe("bad input", () => {
  it.each([
    ["tasks?state=runing", "state[0]", "must be one of queued"],
    ["tasks?stat=failed", "stat", "did you mean state"],
    ["tasks?limit=0", "limit", "at least 1"],
    ["tasks?limit=abc", "limit", "whole number"],
    ["tasks?limit=9999", "limit", "at most 1024"],
    ["tasks?after=x", "after", "is no place in the order"],
    ["tasks?text=a&after=x", "after", "is no place in a search"],
    ["tasks?state=failed&state=queued", "state", "is given twice"],
    [`tasks?text=${"x".repeat(200)}`, "text", "at most 128 characters"],
    ["tasks?olderThanMs=-1", "olderThanMs", "whole number"],
    ["tasks?project=a%20b", "project", "1–64 characters"],
    ["events?types=TaskDone", "types[0]", "unknown event type"],
    ["events?before=0", "before", "at least 1"],
    ["history?window=1y", "window", "must be one of 15m, 6h"],
    ["live?view=nothing", "view", "must be one of overview"],
    ["live?view=agent", "id", "is missing"],
    ["live?view=task&id=t1", "project", "is missing"],
    ["live?view=overview&id=t1", "id", "is unknown"],
    ["overview?x=1", "x", "is unknown"],
  ])("%s is refused by name", async (path, field, message) => {
    const refusal = await page.refusal(`/api/${path}`);
    expect(refusal).toMatchObject({ status: 400, code: "WAGGLE_INVALID_MESSAGE", field });
    expect(refusal.message).toContain(message);
  });

  it.each(["tasks/none", "tasks/none?project=red", "tasks/none/contents"])(
    "%s is not known",
    async (path) => {
      expect(await page.refusal(`/api/${path}`)).toMatchObject({ status: 404, code: "WAGGLE_UNKNOWN_TASK" });
    },
  );

  it("an id that two projects have needs the project", async () => {
    for (const project of ["p1", "p2"]) await page.swarm.submit({ id: "both", kind: "nobody", project });
    expect(await page.refusal("/api/tasks/both")).toMatchObject({
      status: 400,
      code: "WAGGLE_AMBIGUOUS_TASK",
    });
    expect((await get("tasks/both?project=p2")).task.project).toBe("p2");
  });

  it("a page of events beyond the end is the newest page", async () => {
    const { rows } = await get("events?before=9007199254740991&limit=1");
    expect(rows.length).toBeGreaterThanOrEqual(1);
  });

  it.each(["/api", "/api/nothing", "/api/tasks/a/b/c", "/api/agents/a/b"])(
    "%s does not exist",
    async (path) => {
      expect(await page.refusal(path)).toMatchObject({ status: 404, code: "WAGGLE_INVALID_MESSAGE" });
    },
  );

  it("wrong methods and unreadable paths", async () => {
    expect(await page.refusal("/api/overview", { method: "DELETE" })).toMatchObject({ status: 405 });
    expect(await page.refusal("/api/actions/cancel")).toMatchObject({ status: 405 });
    expect(await page.refusal("/api/tasks/%ff")).toMatchObject({ status: 400 });
  });
});

it("the page and its files, with headers that permit no inline script", async () => {
  for (const path of ["/", "/tasks/t1?x=1"]) expect((await page.get(path)).text).toContain("the page");
  const script = await page.get("/assets/app.js");
  expect(script.headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  const policy = String(script.headers["content-security-policy"]);
  expect(policy).toContain("default-src 'none'; script-src 'self'");
  expect(policy).not.toContain("unsafe");
  for (const path of ["/assets/none.js", "/assets/..%2F..%2Fpackage.json", "/assets/%2e%2e/x"])
    expect((await page.get(path)).text).not.toContain("dependencies");
  expect(limits.dashboardLiveViewsMax).toBe(32);
});

describe("a budget with too little left for the oldest task", () => {
  it("holds tasks up, although it is not used up", async () => {
    await page.swarm.setProject("blue", { budget: { tokens: 1_000, windowMs: 60_000, mode: "wait" } });
    await page.swarm.submit({ id: "runs", kind: "count", project: "blue", tokens: 950 });
    await agent.assignment();
    await page.swarm.submit({ id: "held", kind: "count", project: "blue", tokens: 400 });
    expect((await get("budgets")).projects.blue).toMatchObject({
      ...{ spent: 0, reserved: 950, isUsedUp: false, isBinding: true, needed: 400, queued: 1 },
    });
  });
});

describe("fairness at a past moment", () => {
  const past = async (query: string) => await get(`fairness/past?${query}`);

  it("of an assigned task: the decision, the turns before it, and the users that waited", async () => {
    const found = await past("task=broken");
    expect(found).toMatchObject({
      firstIdx: 1,
      decision: { task: "broken", user: "ann", agent: "a1", kind: "count", attempt: 1, agrees: true },
      projects: expect.arrayContaining([{ project: "red", share: 1, queued: 0, running: 0 }]),
    });
    expect(found.decision.agents).toMatchObject([
      { agent: "a1", standing: "feasible", capacity: 4, free: 4 },
    ]);
    expect(found.decision.command).toBe("waggle explain broken --attempt 1");
    expect(found.waterfall).toMatchObject([
      { task: "done", project: "red", user: "ann", agent: "a1" },
      { task: "broken", project: "default" },
    ]);
    expect(await past(`idx=${found.idx}`)).toEqual(found);
    expect(await past(`idx=${found.idx}&task=broken&project=default`)).toEqual(found);
  });

  it("of a time: the next assignment", async () => {
    const { idx, at } = await past("task=done&attempt=1");
    expect(await past(`at=${Math.floor(at)}`)).toMatchObject({ idx, decision: { task: "done" } });
  });

  it("of a batch without an assignment: only the turns before it", async () => {
    const found = await past("idx=1");
    expect(found).toMatchObject({ waterfall: [], users: [] });
    expect(found).not.toHaveProperty("decision");
  });

  it.each([
    ["no moment", "", 400, "idx"],
    ["two moments", "idx=1&at=5", 400, "idx"],
    ["a batch that is no number", "idx=x", 400, "idx"],
    ["a batch beyond the end", "idx=99999", 400, "idx"],
    ["a task without assignment", "task=stuck", 400, "task"],
    ["an attempt that was not made", "task=broken&attempt=7", 400, "task"],
    ["an unknown task", "task=nothing", 404, undefined],
    ["a time without an assignment after it", `at=${Date.now() + 9e9}`, 400, undefined],
  ])("refuses %s", async (_name, query, status, field) => {
    const refused = await page.refusal(`/api/fairness/past?${query}`);
    expect(refused).toMatchObject({ status, ...(field === undefined ? {} : { field }) });
  });
});
