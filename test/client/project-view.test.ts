// The view of a swarm for one project, and warnings to submitters.

import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

let there: TestSwarm;
let swarm: Swarm;
let logged: { level: number; msg: string; kind?: string; code?: string }[];

beforeEach(async () => {
  there = await startTestSwarm();
  logged = [];
  const logger = pino({ base: null }, { write: (line: string) => logged.push(JSON.parse(line)) });
  swarm = await connect({ swarm: "test", transport: there.hub.connect(), logger });
});
afterEach(async () => {
  await swarm.close();
  await there.stop();
});

describe("swarm.project", () => {
  it("submits, cancels, reads and sets only in its project", async () => {
    const red = swarm.project("red");
    const none = await red.status();
    expect(none).toMatchObject({ project: "red", tasks: { queued: 0, completed: 0 }, users: [] });
    expect(none.budget).toBeUndefined();
    const first = await red.submit({ kind: "count", id: "t1" });
    for await (const outcome of red.submitMany([{ kind: "count", project: "red" }]))
      expect(outcome.ok).toBe(true);
    await swarm.submit({ kind: "count", id: "other" });
    expect(await red.status()).toMatchObject({ project: "red", tasks: { queued: 2 } });

    const listed: string[] = [];
    for await (const { project } of red.tasks()) listed.push(project);
    expect(listed).toEqual(["red", "red"]);
    expect(await red.taskPage({ limit: 1 })).toMatchObject({ total: 2, more: 1 });

    const submitted: unknown[] = [];
    for await (const { event } of red.events({ types: ["TaskSubmitted"] }))
      submitted.push("task" in event && typeof event.task === "object" && event.task.project);
    expect(submitted).toEqual(["red", "red"]);

    expect(await red.cancel("t1")).toMatchObject({ cancelled: true });
    expect(await red.task("t1").outcome()).toMatchObject({ state: "cancelled" });
    expect(await first.outcome()).toMatchObject({ state: "cancelled" });
    await expect(red.cancel("other")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });

    expect(await red.cancel({ kind: "count" })).toMatchObject([{ ok: true, cancelled: true }]);
    expect((await swarm.taskPage({ state: "queued" })).tasks).toMatchObject([{ task: "other" }]);
    await red.submit({ kind: "count" });

    const budget = { tokens: 9_000, windowMs: 3_600_000, mode: "reject" } as const;
    const blue = swarm.project("blue");
    await blue.set({ budget });
    expect(await blue.status()).toMatchObject({ project: "blue", tasks: { queued: 0 }, budget });
    await expect(blue.status({ timeout: 1 } as never)).rejects.toMatchObject({ field: "timeout" });

    expect(await red.set({ creditWeight: 2 })).toMatchObject({ settings: { creditWeight: 2 } });
    const { projects, kinds } = await red.settings();
    expect(projects).toMatchObject([{ project: "red", settings: { creditWeight: 2 } }]);
    expect(kinds).toEqual([]);
    expect(await swarm.settings({ project: "blue" })).toMatchObject({ projects: [{ project: "blue" }] });
    expect(await swarm.status({ project: "red" })).toMatchObject({
      agents: [],
      projects: [{ project: "red" }],
    });
    expect(await red.pause()).toMatchObject({ settings: { project: "red", paused: true } });
    expect(await red.resume()).toMatchObject({ settings: { paused: false } });
    await expect(red.remove()).rejects.toMatchObject({ code: "WAGGLE_CONFLICT" });
  });

  it("refuses another project, in tasks and in options", async () => {
    const red = swarm.project("red");
    const refused = {
      code: "WAGGLE_INVALID_MESSAGE",
      field: "project",
      message: "project: must be 'red' or left out in this view of the project; not 'blue'",
    };
    await expect(red.submit({ kind: "count", project: "blue" })).rejects.toMatchObject(refused);
    await expect(red.cancel("t1", { project: "blue" })).rejects.toMatchObject(refused);
    expect(() => red.task("t1", { project: "blue" })).toThrow(refused.message);
    expect(() => red.events({ project: "blue" })).toThrow(refused.message);
    await expect(red.cancel(["t1", { task: "t2", project: "blue" }])).rejects.toMatchObject(refused);
    await expect(red.cancel({ kind: "count", project: "blue" })).rejects.toMatchObject(refused);
    expect(() => red.tasks({ project: "blue" })).toThrow(refused.message);
    await expect(red.retry("t1", { project: "blue" })).rejects.toMatchObject(refused);
    for await (const outcome of red.submitMany([{ kind: "count", project: "blue" }]))
      expect(outcome).toMatchObject({ ok: false, error: refused });
    expect(() => swarm.project("no good")).toThrow("project: must be 1–64 characters");
  });
});

describe("a handle's warnings", () => {
  it("say that no agent serves the kind, once in the log for all its tasks", async () => {
    await swarm.agent({ kinds: ["count"], handler: () => 1 });
    const handles = [await swarm.submit({ kind: "cuont" }), await swarm.submit({ kind: "cuont" })];
    for (const { warnings } of handles)
      expect(warnings).toEqual([
        {
          code: "no-agent-serves-kind",
          nearMisses: ["count"],
          message:
            "no agent serves the kind cuont at present (did you mean count?): the task waits until one joins",
        },
      ]);
    await swarm.submit({ kind: "another" });
    const warned = logged.filter(({ level }) => level === 40);
    expect(warned.map(({ kind, code }) => `${code} ${kind}`)).toEqual([
      "no-agent-serves-kind cuont",
      "no-agent-serves-kind another",
    ]);
  });

  it("say that the task's times leave no room, and are empty otherwise", async () => {
    await swarm.agent({ kinds: ["count"], handler: () => 1 });
    const now = Date.now();
    const late = await swarm.submit({ kind: "count", deadline: 1_000 });
    expect(late.warnings).toMatchObject([
      { code: "deadline-passed", message: expect.stringContaining("1970-01-01") },
    ]);
    const never = await swarm.submit({ kind: "count", deadline: now + 60_000, notBefore: now + 60_000 });
    expect(never.warnings).toMatchObject([{ code: "deadline-before-start" }]);
    await never.cancel();
    expect((await swarm.submit({ kind: "count" })).warnings).toEqual([]);
    expect(swarm.task("t9").warnings).toEqual([]);
  });
});
