// The way of a task through a leader, message by message.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let swarm: TestSwarm;
beforeEach(async () => {
  swarm = await startTestSwarm();
});
afterEach(() => swarm.stop());

describe("a task", () => {
  it("is accepted after the commit, assigned with a receipt, completed, and the submitter notified", async () => {
    const agent = await swarm.agent("a1");
    const done = swarm.client.listen<{ ended: object[] }>(doneSubject("_INBOX.inbox1"));
    const accepted = await swarm.client.submit([{ id: "t1", kind: "count", payload: "hello" }], {
      notify: "_INBOX.inbox1",
    });
    expect(accepted).toMatchObject({ term: 1, answers: [{ ok: true, task: "t1" }] });
    expect(accepted.idx).toBeGreaterThan(1);

    const assignment = await agent.assignment();
    expect(assignment).toMatchObject({
      number: 1,
      task: "t1",
      attempt: 1,
      kind: "count",
      payload: "hello",
      project: "default",
    });
    expect(await agent.complete(assignment, "5")).toMatchObject({ answers: [{ ok: true, status: "ok" }] });

    const { ended } = await done.next();
    expect(ended).toEqual([
      expect.objectContaining({ task: "t1", state: "completed", result: "5", attempts: 1, agent: "a1" }),
    ]);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed", attempts: 1 });
  });

  it("is the same task when submitted again with the same content, and a conflict with other content", async () => {
    const first = await swarm.client.submit([{ id: "t1", kind: "count", payload: "a" }]);
    const again = await swarm.client.submit([{ id: "t1", kind: "count", payload: "a" }]);
    const other = await swarm.client.submit([{ id: "t1", kind: "count", payload: "b" }]);
    expect(first.answers[0]).toMatchObject({ ok: true, task: "t1" });
    expect(again.answers[0]).toMatchObject({ ok: true, task: "t1", duplicate: true });
    expect(other.answers[0]).toMatchObject({ ok: false, code: "WAGGLE_CONFLICT", field: "id" });
  });

  it("of a kind without agents is queued with a warning and near misses, or refused with failFast", async () => {
    await swarm.agent("a1", { kinds: ["count", "digest"] });
    const queued = await swarm.client.submit([{ id: "t1", kind: "cuont" }]);
    const refused = await swarm.client.submit([{ id: "t2", kind: "digets" }], { failFast: true });
    expect(queued.answers[0].warnings).toEqual([{ code: "no-agent-serves-kind", nearMisses: ["count"] }]);
    expect(refused.answers[0]).toMatchObject({ ok: false, code: "WAGGLE_NO_CAPABLE_AGENT" });
    expect(await swarm.client.task("t1")).toMatchObject({ state: "queued" });
    expect(await swarm.client.task("t2")).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_TASK" });
  });

  it("with one bad neighbour in its message is accepted all the same", async () => {
    const { answers } = await swarm.client.submit([
      { kind: "count", weight: 0 },
      { id: "t2", kind: "count" },
      { kind: "no spaces please" },
    ]);
    expect(answers[0]).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", field: "tasks[0].weight" });
    expect(answers[1]).toMatchObject({ ok: true, task: "t2" });
    expect(answers[2]).toMatchObject({ ok: false, field: "tasks[2].kind" });
  });

  it("cancelled before the result loses the result; after the result, the cancellation fails", async () => {
    const agent = await swarm.agent("a1");
    await swarm.client.submit([
      { id: "t1", kind: "count" },
      { id: "t2", kind: "count" },
    ]);
    const [first, second] = [await agent.assignment(), await agent.assignment()];
    const cancelled = await swarm.client.ask(subjects.project("default", "cancel"), {
      tasks: [{ task: "t1", round: 1 }],
    });
    expect(cancelled.answers).toEqual([{ ok: true, task: "t1", state: "cancelled" }]);
    expect(await agent.push("revoke")).toMatchObject({ attempts: [{ task: "t1", attempt: 1 }] });
    expect((await agent.complete(first)).answers).toEqual([{ ok: true, status: "stale" }]);

    await agent.complete(second);
    const late = await swarm.client.ask(subjects.project("default", "cancel"), {
      tasks: [
        { task: "t2", round: 1 },
        { task: "nobody", round: 1 },
      ],
    });
    expect(late.answers).toMatchObject([
      { ok: true, task: "t2", state: "completed" },
      { ok: false, code: "WAGGLE_UNKNOWN_TASK" },
    ]);
  });
});
