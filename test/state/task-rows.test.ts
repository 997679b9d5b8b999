// Rows, queues and the tables of projects and users: moves between them, and evictions from a full table.

import { describe, expect, it } from "vitest";
import { agentId, instant, kind, projectId, taskId, userId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { addFailedBy } from "../../src/state/task-rows.ts";
import { anEndedTask, aRef, liveTask } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

const queuesOf = (turns: Turns) => [...turns.state.queueByKey.keys()];

describe("queues", () => {
  it("separate tasks by kind and role, and go with their last task", () => {
    const turns = new Turns();
    turns.turn(
      submit({ id: taskId("t1") }),
      submit({ id: taskId("t2") }),
      submit({ id: taskId("t3"), kind: kind("l") }),
      submit({ id: taskId("t4"), role: "r" }),
    );
    expect(queuesOf(turns)).toEqual(["k", "l", "k r"]);
    const cancel = (id: string) =>
      ({ type: "CancelTask", project: projectId("p"), task: taskId(id), round: 1 }) as const;
    turns.turn(cancel("t1"));
    expect(queuesOf(turns)).toContain("k");
    turns.turn(cancel("t2"), cancel("t4"));
    expect(queuesOf(turns)).toEqual(["l"]);
  });

  it("never mistake a role for an agent to avoid", () => {
    const turns = new Turns();
    turns.turn(join("r", { role: "r" }));
    turns.turn(submit({ id: taskId("t1") }));
    turns.turn(turns.report("t1", { kind: "failed", error: "" }), {
      type: "DrainAgent",
      agent: agentId("r"),
    });
    turns.turn(submit({ id: taskId("t2"), role: "r" }));
    turns.passToDue();
    expect(queuesOf(turns).sort()).toEqual(["k", "k r"]);
    expect(liveTask(turns.state, "t1")?.partition?.avoid).toEqual(["r"]);
    expect(liveTask(turns.state, "t2")?.partition?.avoid).toEqual([]);
    expect([turns.task("t1").state, turns.task("t2").state]).toEqual(["queued", "queued"]);
  });

  it("are served by priority, then in the order of submission, even with returned tasks in between", () => {
    const turns = new Turns();
    turns.turn(submit({ id: taskId("t1"), notBefore: instant(turns.at + 10) }));
    turns.turn(submit({ id: taskId("t2") }), submit({ id: taskId("t3"), priority: 1 }));
    turns.pass(10);
    turns.turn(join("a1", { maxConcurrent: 3 }));
    expect(turns.all("TaskAssigned").map(({ task }) => task)).toEqual(["t3", "t1", "t2"]);
  });

  it("remember the agents that failed a task, sorted and once", () => {
    const turns = new Turns();
    turns.turn(submit());
    const row = turns.task("t1");
    for (const id of ["b", "a", "b"]) addFailedBy(row, agentId(id));
    expect(row.failedBy).toEqual(["a", "b"]);
  });
});

describe("waiting", () => {
  it("is measured once, from the submission or the not-before, whichever is later", () => {
    const turns = new Turns();
    turns.turn(
      submit({ id: taskId("t1") }),
      submit({ id: taskId("t2"), notBefore: instant(turns.at + 300) }),
    );
    turns.pass(400);
    turns.turn(join("a1", { maxConcurrent: 2 }));
    const user = turns.state.projectById.get(projectId("p"))?.userByName.get(userId("u"));
    expect(user).toMatchObject({ started: 2, waitMsSum: 500, waitMsMax: 400 });
    turns.turn(turns.report("t1", { kind: "failed", error: "" }));
    turns.passToDue();
    expect(turns.task("t1").attempt).toBe(2);
    expect(user).toMatchObject({ started: 2, waitMsSum: 500 });
  });
});

describe("a full table", () => {
  it("of ended tasks forgets the first to end", () => {
    const turns = new Turns();
    const { endedById } = turns.state;
    const count = limits.rememberedTasksMin;
    turns.state.policy = { ...turns.state.policy, rememberedTasks: count };
    for (let n = 0; n < count; n += 1)
      endedById.add(anEndedTask({ id: taskId(`old${n}`), endedAt: turns.at }));
    turns.state.submissions += count;
    turns.state.counts.completed += count;
    turns.turn(submit(), { type: "CancelTask", project: projectId("p"), task: taskId("t1"), round: 1 });
    expect(endedById.size).toBe(count);
    expect([endedById.has(aRef("old0")), endedById.has(aRef("t1"))]).toEqual([false, true]);
  });
});
