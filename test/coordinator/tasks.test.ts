// Lists of tasks, against a real leader: filters, orders, pages, and refusals.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect(), user: "ann" });
  const agent = await test.agent("a1");
  await swarm.submit({ id: "done", kind: "count" });
  await agent.report(await agent.assignment(), "completed", { result: "" });
  await swarm.submit({ id: "bad", kind: "count", user: "bob" });
  await agent.report(await agent.assignment(), "invalid", { error: "bad" });
  await swarm.submit({ id: "gone", kind: "nobody", project: "other" });
  await swarm.cancel("gone", { project: "other" });
  await swarm.submit({ id: "waits", kind: "nobody" });
  await swarm.submit({ id: "runs", kind: "count" });
  await agent.assignment();
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

async function idsOf(options: Parameters<Swarm["tasks"]>[0]): Promise<string[]> {
  const ids: string[] = [];
  for await (const { task } of swarm.tasks(options)) ids.push(task);
  return ids;
}

describe("a list of tasks", () => {
  it("has live tasks first, running before waiting, then the newest ended", async () => {
    const ids = await idsOf({});
    expect([ids.slice(0, 2), ids.slice(2).sort()]).toEqual([
      ["runs", "waits"],
      ["bad", "done", "gone"],
    ]);
    expect(await idsOf({ sort: "submitted" })).toEqual(["done", "bad", "gone", "waits", "runs"]);
  });

  it("matches all conditions, and any value of each list", async () => {
    expect(await idsOf({ state: ["failed", "cancelled"], sort: "submitted" })).toEqual(["bad", "gone"]);
    expect(await idsOf({ project: "other" })).toEqual(["gone"]);
    expect(await idsOf({ kind: "nobody", state: "queued" })).toEqual(["waits"]);
    expect(await idsOf({ user: "bob" })).toEqual(["bad"]);
    expect(await idsOf({ agent: "a1", sort: "submitted" })).toEqual(["done", "bad", "runs"]);
    expect(await idsOf({ olderThanMs: 3_600_000 })).toEqual([]);
  });

  it("finds tasks by their attributes, live and ended, and refuses wrong ones", async () => {
    const mine = { ticket: "OPS-17" };
    await swarm.submit({ id: "marked", kind: "nobody", attributes: { ...mine, team: "a" } });
    await swarm.submit({ id: "ended", kind: "nobody", attributes: mine });
    await swarm.cancel("ended");
    expect(await idsOf({ attributes: mine, sort: "submitted" })).toEqual(["marked", "ended"]);
    expect(await idsOf({ attributes: { ...mine, team: "a" } })).toEqual(["marked"]);
    expect(await idsOf({ attributes: { ticket: "OPS-1" } })).toEqual([]);
    const { tasks } = await swarm.taskPage({ attributes: mine, state: "cancelled" });
    expect(tasks).toMatchObject([{ task: "ended", attributes: mine }]);
    expect(await swarm.cancel({ attributes: mine, state: "queued" })).toMatchObject([
      { taskId: "marked", ok: true },
    ]);
  });

  it("goes on page by page, says how many more there are, and knows rounds", async () => {
    const first = await swarm.taskPage({ sort: "submitted", limit: 2 });
    expect(first).toMatchObject({
      total: 5,
      more: 3,
      tasks: [{ task: "done" }, { task: "bad", agent: "a1", round: 1 }],
    });
    const { next = "" } = first;
    const second = await swarm.taskPage({ sort: "submitted", limit: 9, after: next });
    expect(second).toMatchObject({ total: 5, more: 0 });
    expect(second.tasks.map(({ task }) => task)).toEqual(["gone", "waits", "runs"]);
    expect(second.next).toBeUndefined();
    await swarm.retry("gone", { project: "other" });
    expect(await swarm.taskPage({ project: "other" })).toMatchObject({
      tasks: [{ state: "queued", round: 2 }],
    });
    expect(await idsOf({ limit: 1, sort: "submitted" })).toEqual(["done", "bad", "gone", "waits", "runs"]);
  });

  it("refuses unknown values, by name", async () => {
    const refused = (options: object) => expect(swarm.taskPage(options)).rejects;
    for (const [options, message] of [
      [{ states: "failed" }, "taskPage: states: is unknown; did you mean state?"],
      [{ state: "faild" }, "state"],
      [{ limit: Number.NaN }, "limit: must be a number, not NaN"],
      [{ limit: limits.tasksPageMax + 1 }, "limit"],
      [{ after: "nonsense" }, "after: is no place in the order newest"],
    ] as const)
      await refused(options).toMatchObject({
        code: "WAGGLE_INVALID_MESSAGE",
        message: expect.stringContaining(message),
      });
  });

  it("is made for no more at once than may wait", async () => {
    const asked = Array.from({ length: 3 * limits.taskScansMax }, () =>
      test.client.ask(subjects.query("_", "tasks"), {}),
    );
    const codes = (await Promise.all(asked)).map((answer) => answer.code ?? "listed");
    expect(codes).toContain("listed");
    expect(new Set(codes).size).toBeLessThanOrEqual(2);
  });
});
