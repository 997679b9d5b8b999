// Retrying and cancelling many tasks over the wire, against a real leader: results per task, and how many messages.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { ListedTask } from "../../src/protocol/task-list-schemas.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect() });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

async function cancelled(ids: readonly string[], project = "default"): Promise<void> {
  const requests = ids.map((id) => ({ id, kind: "nobody", project, payload: `of ${id}` }));
  for await (const outcome of swarm.submitMany(requests)) expect(outcome.ok).toBe(true);
  for (const result of await swarm.cancel(ids, { project }))
    expect(result).toMatchObject({ cancelled: true });
}

/** Messages on a verb's subject of any project. */
function messagesOf(verb: "retry" | "cancel"): unknown[] {
  const seen: unknown[] = [];
  test.hub.connect().subscribe(subjects.project("*", verb), ({ data }) => seen.push(data));
  return seen;
}

const ids = (count: number, name = "t") => Array.from({ length: count }, (_, n) => `${name}${n}`);

describe("a bulk retry", () => {
  it("of a filter takes one message per 1,024 tasks of a project, and opens each round once", async () => {
    await cancelled(ids(1_200));
    await cancelled(["other"], "red");
    const messages = messagesOf("retry");
    const results = await swarm.retry({ state: "cancelled" });
    expect(results).toHaveLength(1_201);
    for (const result of results) expect(result).toMatchObject({ ok: true, round: 2 });
    expect(messages).toHaveLength(3);
    expect(await swarm.retry({ state: "cancelled" })).toEqual([]);
    expect(await swarm.taskPage({ state: "queued", limit: 1 })).toMatchObject({
      total: 1_201,
      tasks: [{ round: 2 }],
    });
  });

  it("has a result for each task, in order, and goes on after a refusal", async () => {
    await cancelled(["t1"]);
    await cancelled(["t2"], "red");
    await swarm.submit({ id: "lives", kind: "nobody" });
    const results = await swarm.retry([
      "t1",
      "lives",
      "nobody",
      "t2",
      { task: "t2", project: "red", round: 1 },
    ]);
    expect(results).toMatchObject([
      { ok: true, taskId: "t1", round: 2 },
      { ok: false, taskId: "lives", error: { code: "WAGGLE_CONFLICT" } },
      { ok: false, taskId: "nobody", error: { code: "WAGGLE_UNKNOWN_TASK" } },
      { ok: false, taskId: "t2", error: { code: "WAGGLE_UNKNOWN_TASK" } },
      { ok: true, taskId: "t2", round: 2 },
    ]);
  });

  it("takes tasks as they were listed", async () => {
    await cancelled(["t1", "t2"]);
    const listed: ListedTask[] = [];
    for await (const task of swarm.tasks({ state: "cancelled" })) listed.push(task);
    expect(await swarm.retry(listed)).toEqual([
      { ok: true, taskId: "t2", round: 2 },
      { ok: true, taskId: "t1", round: 2 },
    ]);
    expect(await swarm.retry([{ task: "t1", rounds: 2 } as never]).catch(({ message }) => message)).toContain(
      "tasks[0]: rounds: is unknown; did you mean round?",
    );
  });

  it("refuses a filter that is empty or not a filter, by name", async () => {
    for (const [tasks, message] of [
      [{}, "a filter without a condition matches every task"],
      [{ state: undefined }, "a filter without a condition matches every task"],
      [{ state: "failed", limit: 10 }, "limit: is unknown"],
      [{ states: "failed" }, "did you mean state?"],
      [undefined, "must be an id, a list of ids, or a filter"],
      [["t1", 7], "tasks[1]: must be a task's id, or an object such as"],
      [[{ id: "t1" }], "tasks[0]: id: is unknown; did you mean task?"],
      [[{ task: "t1", round: 0 }], "tasks[0]: round: must be at least 1, not 0"],
    ] as const)
      for (const verb of ["retry", "cancel"] as const)
        await expect(swarm[verb](tasks as never)).rejects.toMatchObject({
          code: "WAGGLE_INVALID_MESSAGE",
          message: expect.stringContaining(message),
        });
  });
});

describe("a bulk cancel", () => {
  it("of a filter touches live tasks only, and says of named ones how they had ended", async () => {
    await cancelled(["before"]);
    for (const id of ids(3)) await swarm.submit({ id, kind: "nobody" });
    const messages = messagesOf("cancel");
    expect(await swarm.cancel({ kind: "nobody" })).toEqual(
      ids(3).map((taskId) => ({ ok: true, taskId, cancelled: true, state: "cancelled" })),
    );
    expect(messages).toHaveLength(1);
    expect(await swarm.cancel(["before", "nobody"])).toMatchObject([
      { ok: true, state: "cancelled" },
      { ok: false, error: { code: "WAGGLE_UNKNOWN_TASK" } },
    ]);
  });
});

/** A connection that loses the first answer on a verb's subject. Then `meanwhile` happens. */
async function aLossyClient(verb: "retry" | "cancel", meanwhile: () => Promise<unknown>): Promise<Swarm> {
  const wire = test.hub.connect();
  const request = wire.request.bind(wire);
  let isLost = false;
  wire.request = async (...asked) => {
    const answer = await request(...asked);
    if (isLost || asked[0] !== subjects.project("default", verb)) return answer;
    isLost = true;
    await meanwhile();
    return { kind: "disconnected" };
  };
  return await connect({ swarm: "test", transport: wire });
}

describe("a request with a lost answer", () => {
  it("to cancel, is sent again, and does not end the round that a retry opened meanwhile", async () => {
    await swarm.submit({ id: "t1", kind: "nobody" });
    await using lossy = await aLossyClient("cancel", () => swarm.retry("t1"));
    await expect(lossy.cancel("t1")).rejects.toMatchObject({
      code: "WAGGLE_CONFLICT",
      field: "round",
      message: expect.stringContaining("round 1 of task t1 has ended, and a retry opened round 2 since"),
    });
    expect(await swarm.taskPage({})).toMatchObject({ tasks: [{ task: "t1", state: "queued", round: 2 }] });
    expect(await lossy.cancel("t1")).toEqual({ taskId: "t1", cancelled: true, state: "cancelled" });
  });

  it("to cancel, is sent again, and is answered the same where nothing else happened", async () => {
    await swarm.submit({ id: "t1", kind: "nobody" });
    await using lossy = await aLossyClient("cancel", async () => undefined);
    expect(await lossy.task("t1").cancel({ round: 1 })).toMatchObject({ cancelled: true });
  });

  it("to retry, is sent again, and opens one round", async () => {
    await cancelled(["t1"]);
    await using lossy = await aLossyClient("retry", () => swarm.cancel("t1"));
    expect(await lossy.retry("t1")).toEqual({ taskId: "t1", round: 2 });
    expect(await swarm.taskPage({})).toMatchObject({ tasks: [{ state: "cancelled", round: 2 }] });
  });
});

describe("a project in the options", () => {
  it("is a condition of a filter, too", async () => {
    for (const project of ["red", "blue"]) await swarm.submit({ id: project, kind: "nobody", project });
    expect(await swarm.cancel({ kind: "nobody" }, { project: "red" })).toMatchObject([{ taskId: "red" }]);
    expect(await swarm.retry({ state: "cancelled" }, { project: "blue" })).toEqual([]);
    const both = swarm.cancel({ state: "queued", project: "blue" }, { project: "red" });
    await expect(both).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "project" });
    const ofRound = swarm.cancel({ state: "queued" }, { round: 1 });
    await expect(ofRound).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "round" });
    expect(await swarm.taskPage({ state: "queued" })).toMatchObject({ tasks: [{ task: "blue" }] });
  });
});

describe("a task of another project", () => {
  it("is refused with the name of that project", async () => {
    await cancelled(["t1"], "red");
    for (const verb of ["retry", "cancel"] as const)
      await expect(swarm[verb]("t1")).rejects.toMatchObject({
        code: "WAGGLE_UNKNOWN_TASK",
        message: expect.stringContaining("not in project default but in project red"),
      });
    await expect(swarm.retry("nobody")).rejects.toThrow("never accepted, or ended too long ago");
  });
});
