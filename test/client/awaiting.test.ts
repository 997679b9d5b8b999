// Waiting for outcomes: notifications, and requests that replace lost notifications.

import { describe, expect, it } from "vitest";
import {
  ResultGoneError,
  TaskCancelledError,
  TaskExpiredError,
  TaskFailedError,
  WaitTimedOutError,
} from "../../src/client/task-errors.ts";
import { limits } from "../../src/limits.ts";
import { LossError } from "../../src/protocol/loss-error.ts";
import type { Outcome } from "../../src/protocol/schemas.ts";
import { aClient, aTask, watch } from "./client-fixture.ts";
import type { FakeLeader } from "./fake-leader.ts";
import { settled } from "./manual-clock.ts";

describe("an outcome", () => {
  it("is pushed for tasks submitted over this connection, without a request", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    leader.end(handle.id, { result: "5", tokens: 7, latencyMs: 12, attempts: 2, agent: "a9" });
    const result = await handle.result();
    expect(result).toMatchObject({ attempts: 2, agent: "a9", tokens: 7, latencyMs: 12, taskId: handle.id });
    expect(result.text()).toBe("5");
    expect(result.json<number>()).toBe(5);
    expect([...result.bytes()]).toEqual([0x35]);
    expect(leader.of("await")).toEqual([]);
  });

  it("that overtakes the acknowledgement is kept", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = ({ verb, body }) => {
      if (verb === "submit") {
        const [{ id }] = body.tasks;
        leader.push(body.notify, [
          { project: "default", task: id, state: "completed", attempts: 1, result: "early" },
        ]);
      }
      return undefined;
    };
    const handle = await swarm.submit(aTask());
    expect((await handle.result()).text()).toBe("early");
  });

  it("of a task submitted elsewhere is requested once, then pushed", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.tasks.set("t1", { json: "", outcome: undefined, notify: new Set() });
    const handle = swarm.task("t1");
    const first = watch(handle.result());
    const second = watch(swarm.task("t1").result());
    await settled();
    expect(leader.of("await")).toHaveLength(1);
    leader.end("t1", { result: "5" });
    await settled();
    expect([first.state, second.state]).toEqual(["fulfilled", "fulfilled"]);
    expect((await handle.result()).text()).toBe("5");
    expect(leader.of("await")).toHaveLength(1);
  });

  it("of many tasks is requested in few messages, one project each", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const ids = Array.from({ length: limits.itemsPerMessageMax + 5 }, (_, at) => `t${at}`);
    for (const id of ids) leader.tasks.set(id, { json: "", outcome: undefined, notify: new Set() });
    for (const id of ids)
      void swarm
        .task(id)
        .outcome()
        .catch(() => undefined);
    void swarm
      .task("other", { project: "p2" })
      .outcome()
      .catch(() => undefined);
    await settled();
    expect(leader.of("await").map(({ project, body }) => [project, body.tasks.length])).toEqual([
      ["default", limits.itemsPerMessageMax],
      ["default", 5],
      ["p2", 1],
    ]);
    await swarm.close();
  });

  it("of an unknown task is WAGGLE_UNKNOWN_TASK, and may be requested again later", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const handle = swarm.task("t1");
    await expect(handle.outcome()).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
    leader.tasks.set("t1", {
      json: "",
      outcome: { project: "default", task: "t1", state: "completed", attempts: 1 },
      notify: new Set(),
    });
    expect(await handle.outcome()).toMatchObject({ state: "completed" });
  });

  it("of a duplicate that ended long ago is requested", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const first = await swarm.submit(aTask({ id: "t1" }));
    leader.end("t1");
    await first.result();
    const again = await swarm.submit(aTask({ id: "t1" }));
    expect(again.ack?.duplicate).toBe(true);
    expect(await again.outcome()).toMatchObject({ state: "completed" });
  });

  it("is not requested until the submitter waits", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask(), { notify: false });
    leader.end(handle.id);
    await settled();
    expect(leader.of("await")).toEqual([]);
    expect(await handle.outcome()).toMatchObject({ state: "completed" });
    expect(leader.of("await")).toHaveLength(1);
  });

  const unkept = {
    state: "completed",
    result: undefined,
    resultDigest: { sha256: "ab12", bytes: 7 },
  } as unknown as Partial<Outcome>;

  it("says why a result was not kept, and what is known of it", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask({ id: "t1" }));
    leader.end(handle.id, unkept);
    await expect(handle.result()).rejects.toThrow(
      "Task t1 completed, but its result was not kept: its project journals results as hash. The result had 7 bytes, sha256 ab12",
    );
    expect((await handle.outcome()).resultDigest).toEqual(unkept.resultDigest);
  });

  it.each<[string, Partial<Outcome>, string, new (outcome: Outcome) => Error]>([
    ["failed", { state: "failed", error: "bad input" }, "WAGGLE_TASK_FAILED", TaskFailedError],
    ["dead-lettered", { state: "dead-lettered", attempts: 3 }, "WAGGLE_TASK_FAILED", TaskFailedError],
    ["cancelled", { state: "cancelled" }, "WAGGLE_TASK_CANCELLED", TaskCancelledError],
    ["expired", { state: "expired" }, "WAGGLE_TASK_EXPIRED", TaskExpiredError],
    ["completed, its result not kept", unkept, "WAGGLE_GONE", ResultGoneError],
    ["completed but gone", { state: "completed", gone: true }, "WAGGLE_GONE", ResultGoneError],
  ])("%s: result() throws, outcome() does not", async (_, ending, code, type) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    leader.end(handle.id, ending);
    const error = await handle.result().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, taskId: handle.id, outcome: { state: ending.state } });
    expect(await handle.outcome()).toMatchObject({ state: ending.state });
  });
});

it("a failure whose reason was dropped says that the reason is no longer kept", () => {
  const outcome = {
    project: "default",
    task: "t1",
    state: "failed",
    attempts: 2,
    gone: true,
  } as unknown as Outcome;
  expect(new TaskFailedError(outcome).message).toBe(
    "Task t1 failed after 2 attempts: the reason is no longer kept",
  );
});

describe("a lost notification", () => {
  it("is replaced by requests, repeated from time to time", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    const result = watch(handle.result());
    await clock.advance(limits.awaitRefreshMs * 2);
    expect(leader.of("await").length).toBeGreaterThanOrEqual(1);
    expect(result.state).toBe("pending");
    leader.end(handle.id, {}, { notifies: false });
    await clock.advance(limits.awaitRefreshMs * 2);
    expect(result.state).toBe("fulfilled");
    const asked = leader.of("await").length;
    await clock.advance(limits.awaitRefreshMs * 3);
    expect(leader.of("await")).toHaveLength(asked); // nothing is awaited any more
    expect(clock.pendingTimers).toBe(0);
  });

  it("after a change of leader is requested as soon as a heartbeat shows the leader, until answered", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const handles = await Promise.all([swarm.submit(aTask()), swarm.submit(aTask())]);
    const results = handles.map((handle) => watch(handle.result()));
    for (const { id } of handles) leader.end(id, {}, { notifies: false });
    leader.stop();
    leader.term = 2;
    leader.heartbeat();
    await clock.advance(300);
    expect(results.map(({ state }) => state)).toEqual(["pending", "pending"]);
    leader.start();
    await clock.advance(limits.askBackoffMsMax);
    expect(results.map(({ state }) => state)).toEqual(["fulfilled", "fulfilled"]);
  });

  it("of a stopped leader is requested as soon as a new leader leads", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.heartbeat();
    await settled();
    const { id } = await swarm.submit(aTask());
    leader.script = ({ verb }) => (verb === "await" ? "silence" : undefined);
    const result = watch(swarm.task(id).result());
    await settled();
    leader.end(id, {}, { notifies: false });
    leader.script = () => undefined;
    leader.term = 2;
    leader.heartbeat();
    await clock.advance(limits.askBackoffMs);
    expect(result.state).toBe("fulfilled");
  });

  it("after an announced term without a leader is not requested endlessly", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const result = watch((await swarm.submit(aTask({ id: "t1" }))).result());
    leader.heartbeat({ id: "forger", term: Number.MAX_SAFE_INTEGER });
    await clock.advance(limits.termDoubtedMs + limits.awaitRefreshMs + limits.askBackoffMsMax);
    const asked = leader.of("await").length;
    expect(asked).toBeGreaterThan(10);
    for (let second = 0; second < 30; second += 1) {
      leader.heartbeat({ id: "forger", term: Number.MAX_SAFE_INTEGER - second });
      await clock.advance(1_000);
    }
    const sweeps = 30_000 / limits.awaitRefreshMs;
    expect(leader.of("await").length - asked).toBeLessThanOrEqual(sweeps + 1);
    leader.end("t1");
    await settled();
    expect(result.state).toBe("fulfilled");
    await swarm.close();
  });

  it("after a broken connection is requested on the reconnect", async () => {
    const { swarm, leader, hub, transport } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    const result = watch(handle.result());
    hub.cut(transport);
    leader.end(handle.id);
    await settled();
    expect(result.state).toBe("pending");
    hub.heal(transport);
    await settled();
    expect(result.state).toBe("fulfilled");
  });

  it("of a leader without room for the inbox is requested by the next sweep", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.tasks.set("t1", { json: "", outcome: undefined, notify: new Set() });
    leader.script = ({ verb }) =>
      verb === "await"
        ? { term: 1, idx: 2, answers: [{ ok: false, code: "WAGGLE_BACKPRESSURE", message: "no room" }] }
        : undefined;
    const result = watch(swarm.task("t1").outcome());
    await settled();
    leader.script = () => undefined;
    leader.end("t1", {}, { notifies: false });
    await clock.advance(limits.awaitRefreshMs * 2);
    expect(result.state).toBe("fulfilled");
  });
});

describe("loss", () => {
  it("of an accepted task fails only the wait for the task", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const [lost, kept] = await Promise.all([swarm.submit(aTask()), swarm.submit(aTask())]);
    const results = [watch(lost.result()), watch(kept.result())];
    leader.tasks.delete(lost.id);
    leader.term = 2;
    leader.idx = 9;
    leader.heartbeat();
    await clock.advance(100);
    expect(results[0]?.error).toBeInstanceOf(LossError);
    expect(results[0]?.error).toMatchObject({
      taskId: lost.id,
      known: { term: 1 },
      found: { term: 2, idx: 9 },
    });
    expect(results[1]?.state).toBe("pending");
    await expect(lost.outcome()).rejects.toBeInstanceOf(LossError);
  });

  it("is not requested any more after the last watcher has left", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.script = ({ verb }) =>
      verb === "await" ? { term: 1, idx: 5, answers: [{ ok: true, live: true }] } : "silence";
    leader.start();
    const looking = swarm.task("t1").events$.subscribe();
    await clock.advance(1_000);
    expect(leader.of("await")).toHaveLength(1);
    looking.unsubscribe();
    await clock.advance(3 * limits.awaitRefreshMs);
    expect(leader.of("await")).toHaveLength(1);
  });

  it("is not concluded from a request sent before the task was accepted", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    let answerFirst: (answer: object) => void = () => undefined;
    const held = new Promise<object>((resolve) => {
      answerFirst = resolve;
    });
    leader.script = ({ verb }) => (verb === "await" && leader.of("await").length === 1 ? held : undefined);
    const asked = watch(swarm.task("t1").outcome());
    await clock.advance(1);
    await swarm.submit({ ...aTask(), id: "t1" });
    const unknown = { ok: false, code: "WAGGLE_UNKNOWN_TASK", message: "no task t1" };
    answerFirst({ term: 1, idx: 2, answers: [unknown] });
    await clock.advance(100);
    expect(leader.of("await").length).toBeGreaterThan(1);
    leader.end("t1");
    await clock.advance(100);
    expect(asked).toMatchObject({ state: "fulfilled" });
  });

  it("is not concluded from an old leader, which may not have read the task yet", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start(2);
    leader.idx = 20;
    const handle = await swarm.submit(aTask());
    const result = watch(handle.result());
    const known = leader.tasks.get(handle.id);
    leader.tasks.delete(handle.id);
    leader.term = 1;
    await clock.advance(limits.awaitRefreshMs * 2);
    expect(leader.of("await").length).toBeGreaterThan(1);
    expect(result.state).toBe("pending");
    leader.term = 2;
    if (known !== undefined) leader.tasks.set(handle.id, known);
    await clock.advance(limits.askBackoffMsMax);
    leader.end(handle.id);
    await settled();
    expect(result.state).toBe("fulfilled");
  });

  it.each([
    ["in the same term", 1],
    ["in a later term", 2],
  ])("of the journal's end is reported when an answer shows it: %s", async (_, term) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const losses: LossError[] = [];
    swarm.losses$.subscribe((loss) => losses.push(loss));
    for (let submitted = 0; submitted < 5; submitted += 1) await swarm.submit(aTask());
    expect(losses).toEqual([]);
    const known = leader.idx;
    leader.idx = 2;
    leader.term = term;
    await swarm.submit(aTask());
    expect(losses).toMatchObject([{ known: { term: 1, idx: known }, found: { term, idx: 3 } }]);
    await swarm.submit(aTask());
    expect(losses).toHaveLength(1); // told once
  });

  it.each([
    ["of what a leader's answer to a query showed is reported", {}, 1],
    ["is not concluded from a standby's answer to a query", { stale: true }, 0],
  ])("%s", async (_, mark, count) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const losses: LossError[] = [];
    swarm.losses$.subscribe((loss) => losses.push(loss));
    await swarm.submit({ ...aTask(), id: "t1" });
    const page = { term: 1, idx: 70, at: 0, ...mark, tasks: [], total: 0, more: 0 };
    leader.script = ({ verb }) => (verb === "query.tasks" ? page : undefined);
    for await (const task of swarm.tasks()) throw new Error(`no task is listed, not ${task.task}`);
    await swarm.submit(aTask());
    expect(losses).toHaveLength(count);
  });

  it.each([
    ["a later term began before the known batch", { term: 2, idx: 3, opened: "second" }, "first"],
    ["a term of the same number began again", { term: 1, idx: 1, opened: "other" }, "other"],
    ["the known term began otherwise", { term: 2, idx: 50, opened: "second" }, "other"],
  ])("is reported when an announcement shows it: %s", async (_, start, opened) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const losses: LossError[] = [];
    swarm.losses$.subscribe((loss) => losses.push(loss));
    const first = { term: 1, idx: 1, opened: "first" };
    for (let submitted = 0; submitted < 5; submitted += 1) await swarm.submit(aTask());
    const known = { term: 1, idx: leader.idx };
    leader.heartbeat({ termStarts: [first] });
    await settled();
    leader.term = start.term;
    leader.idx = 100;
    await swarm.submit(aTask());
    await settled();
    expect(losses).toEqual([]);
    const again = { ...first, opened };
    leader.heartbeat({ termStarts: start.term === 1 ? [again] : [again, start] });
    await settled();
    const found = opened === "first" ? start : again;
    expect(losses).toMatchObject([{ known: start.term === 1 ? { term: 1 } : known, found }]);
    leader.heartbeat({ termStarts: [start] });
    await settled();
    expect(losses).toHaveLength(1);
  });

  it("is reported once, although several answers show it", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const losses: LossError[] = [];
    swarm.losses$.subscribe((loss) => losses.push(loss));
    for (let submitted = 0; submitted < 9; submitted += 1) await swarm.submit(aTask());
    leader.idx = 2;
    await Promise.all(["p1", "p2", "p3"].map((project) => swarm.submit(aTask({ project }))));
    expect(losses).toHaveLength(1);
  });

  it("is not reported for reordered answers, nor for answers of an old leader", async () => {
    const { swarm, leader, transport } = await aClient();
    leader.start();
    const losses: LossError[] = [];
    swarm.losses$.subscribe((loss) => losses.push(loss));
    const ended = await swarm.submit(aTask());
    let reply: (() => void) | undefined;
    leader.script = ({ verb, body }) => {
      if (verb !== "submit" || reply !== undefined) return undefined;
      const answer = { term: 1, idx: leader.idx, answers: [{ ok: true, task: body.tasks[0].id }] };
      reply = () => undefined;
      leader.end(ended.id); // a notice with a higher idx goes out first
      return answer;
    };
    await swarm.submit(aTask());
    leader.term = 2;
    leader.idx = 50;
    await swarm.submit(aTask());
    leader.term = 1;
    leader.idx = 10;
    await swarm.submit(aTask());
    expect(transport.status()).toBe("connected");
    expect(losses).toEqual([]);
  });
});

describe("ending a wait", () => {
  it("by time leaves the task and the handle as they are", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    const result = watch(handle.result({ timeoutMs: 100 }));
    await clock.advance(100);
    expect(result.error).toBeInstanceOf(WaitTimedOutError);
    expect(result.error).toMatchObject({ code: "WAGGLE_WAIT_TIMED_OUT", taskId: handle.id });
    leader.end(handle.id);
    expect((await handle.result()).text()).toBe("done");
  });

  it("by a signal rejects with its reason, and stops requests about a task submitted elsewhere", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.tasks.set("t1", { json: "", outcome: undefined, notify: new Set() });
    const given = new AbortController();
    const reason = new Error("enough");
    const result = watch(swarm.task("t1").result({ signal: given.signal }));
    await settled();
    given.abort(reason);
    await settled();
    expect(result.error).toBe(reason);
    const asked = leader.of("await").length;
    await clock.advance(limits.awaitRefreshMs * 3);
    expect(leader.of("await")).toHaveLength(asked);
    expect(clock.pendingTimers).toBe(0);
  });

  /** A wait for t1 has been given up, and the leader has not answered the request yet. */
  async function aWaitGivenUpUnanswered() {
    const { swarm, leader, clock } = await aClient();
    const { pending, script } = heldAnswers();
    leader.script = script;
    leader.start();
    const result = watch(swarm.task("t1").outcome({ timeoutMs: 1_000 }));
    await clock.advance(1_000);
    expect(result.error).toBeInstanceOf(WaitTimedOutError);
    return { swarm, leader, clock, pending };
  }

  it("during a request leaves no further request, whenever the answer comes", async () => {
    const { leader, clock, pending } = await aWaitGivenUpUnanswered();
    pending[0]?.(goesOn);
    await clock.advance(limits.awaitRefreshMs * 3);
    expect(leader.of("await")).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it("during a request does not affect a wait that begins before the answer", async () => {
    const { swarm, leader, clock, pending } = await aWaitGivenUpUnanswered();
    const second = watch(swarm.task("t1").outcome());
    pending[0]?.(goesOn);
    await clock.advance(10);
    const outcome: Outcome = {
      project: "default",
      task: "t1",
      state: "completed",
      attempts: 1,
      agent: "a1",
      result: "done",
    };
    leader.push(leader.of("await")[0]?.body.notify, [outcome]);
    await clock.advance(10);
    expect(second).toMatchObject({ state: "fulfilled", value: outcome });
  });

  it("by closing rejects with WAGGLE_UNREACHABLE, now and afterwards", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    const result = watch(handle.result());
    await swarm.close();
    await settled();
    expect(result.error).toMatchObject({ code: "WAGGLE_UNREACHABLE" });
    await expect(handle.result()).rejects.toMatchObject({ code: "WAGGLE_UNREACHABLE" });
    await clock.advance(limits.requestTimeoutMs);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("bad messages", () => {
  it("on the inbox change nothing", async () => {
    const { swarm, leader, hub } = await aClient();
    leader.start();
    const handle = await swarm.submit(aTask());
    const token = leader.of("submit")[0]?.body.notify as string;
    const stranger = hub.connect();
    const subject = `waggle.v1.test.client.${token}.done`;
    for (const text of [
      "",
      "{",
      "[]",
      '{"ended":5}',
      "[".repeat(10_000),
      '{"term":1,"idx":1,"ended":[{"task":"x"}]}',
    ]) {
      stranger.publish(subject, Buffer.from(text));
    }
    await settled();
    leader.end(handle.id);
    expect((await handle.result()).text()).toBe("done");
  });
});

const goesOn = { term: 1, idx: 5, answers: [{ ok: true, live: true }] };

/** Requests whose answers the test releases: one function per request. */
function heldAnswers() {
  const pending: ((answer: object) => void)[] = [];
  const script: FakeLeader["script"] = ({ verb }) =>
    verb === "await" ? new Promise<object>((resolve) => void pending.push(resolve)) : undefined;
  return { pending, script };
}
