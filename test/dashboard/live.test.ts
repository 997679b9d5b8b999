// Live views: a whole state first, then what changed; resumed after a break; bounded in number; and honest about a
// leader that is gone.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { patched } from "../../src/dashboard/merge-patch.ts";
import { limits } from "../../src/limits.ts";
import { Fixture, type Live } from "./dashboard-fixture.ts";

let page: Fixture;
let opened: Live[];
beforeEach(async () => {
  page = await Fixture.start();
  opened = [];
});
afterEach(async () => {
  for (const live of opened) live.close();
  await page.stop();
});

function live(query: string, headers: Record<string, string> = {}): Live {
  const stream = page.live(query, headers);
  opened.push(stream);
  return stream;
}

/** The state that a browser holds after all messages so far. */
function stateOf({ messages }: Live): unknown {
  return messages.reduce<unknown>((state, { name, data }) => {
    if (name === "state") return data.data;
    return name === "delta" ? patched(state, data.patch) : state;
  }, undefined);
}

describe("a view", () => {
  it.each(["overview", "agents", "tasks", "fairness", "resources", "budgets", "system"])(
    "%s begins with the answer of its page",
    async (view) => {
      await page.test.agent("a1");
      const { headers } = await live(`view=${view}`).opened();
      expect(headers["content-type"]).toBe("text/event-stream; charset=utf-8");
      const { data } = await (opened[0] as Live).says("state");
      const answer = view === "tasks" ? { tasks: {} } : (await page.get(`/api/${view}`)).json;
      expect(Object.keys(data.data).sort()).toEqual(expect.arrayContaining(Object.keys(answer).sort()));
      await (opened[0] as Live).says("point");
    },
  );

  it("gets changes as patches up to the present", async () => {
    const stream = live("view=overview");
    await stream.says("state");
    await page.swarm.submit({ id: "t1", kind: "count" });
    await stream.says("delta", ({ patch }) => patch.tasks?.queued === 1);
    expect(stateOf(stream)).toMatchObject({ tasks: { queued: 1 }, queues: { count: { waiting: 1 } } });
    const agent = await page.test.agent("a1");
    await agent.complete(await agent.assignment());
    await stream.says("delta", ({ patch }) => patch.tasks?.completed === 1);
    expect(stateOf(stream)).toMatchObject({ tasks: { completed: 1 }, queues: {}, agents: { online: 1 } });
  });

  it("a task: changes come within an update, with attempts and why it waits", async () => {
    await page.swarm.submit({ id: "t1", kind: "count" });
    const stream = live("view=task&id=t1&project=default");
    await stream.says("state", ({ data }) => data.wait.sentence.startsWith("No agent serves count"));
    const agent = await page.test.agent("a1");
    const assignment = await agent.assignment();
    await stream.says("delta", ({ patch }) => patch.task?.state === "assigned");
    expect(stateOf(stream)).toMatchObject({ attempts: [{ agent: "a1" }], can: { cancel: true } });
    await agent.complete(assignment);
    await stream.says("delta", ({ patch }) => patch.task?.state === "completed");
    const last = stateOf(stream);
    expect(last).not.toHaveProperty("wait");
    const { nowAt: _, task: __, ...answer } = (await page.get("/api/tasks/t1?project=default")).json;
    expect(last).toMatchObject(answer);
  });

  it("a retried task keeps the payload, although live events have no payload", async () => {
    await page.swarm.submit({ id: "t1", kind: "count", payload: "a b c" });
    await page.swarm.cancel("t1");
    const stream = live("view=task&id=t1&project=default");
    await stream.says("state", ({ data }) => data.task.state === "cancelled");
    await page.swarm.retry("t1");
    await stream.says("delta", ({ patch }) => patch.task?.round === 2);
    expect(stateOf(stream)).toMatchObject({ task: { state: "queued" }, spec: { payloadBytes: 5 } });
  });

  it("a single agent: attempts, scores and failures", async () => {
    const agent = await page.test.agent("a1");
    const stream = live("view=agent&id=a1");
    await stream.says("state");
    await page.swarm.submit({ id: "t1", kind: "count", maxAttempts: 1 });
    await agent.report(await agent.assignment(), "failed", { error: "broken" });
    await stream.says("delta", ({ patch }) => patch.failures?.length === 1);
    expect(stateOf(stream)).toMatchObject({
      agent: { assigned: 1, failed: 1, share: 1 },
      attempts: [{ task: "t1", ganttRow: 0, ended: "failed" }],
      failures: [{ task: "t1", error: "broken", isFinal: true }],
      scores: { series: { load: [0] } },
    });
  });

  it("of an unknown subject is refused, and ends", async () => {
    for (const query of ["view=agent&id=zz", "view=task&id=zz&project=default"]) {
      const stream = live(query);
      const { data } = await stream.says("refused");
      expect(data.error.code).toMatch(/^WAGGLE_UNKNOWN_(AGENT|TASK)$/);
      await stream.ended;
    }
  });
});

describe("events", () => {
  it("the newest first, then each wanted event on arrival", async () => {
    await page.swarm.submit({ id: "t1", kind: "count" });
    const all = live("view=events");
    const some = live("view=events&types=TaskSubmitted&kind=ocr");
    await all.says("events", ({ rows }) => rows.some((row: { task?: string }) => row.task === "t1"));
    await page.swarm.submit({ id: "t2", kind: "count" });
    await page.swarm.submit({ id: "t3", kind: "ocr" });
    await some.says("events", ({ rows }) => rows.some((row: { task?: string }) => row.task === "t3"));
    const seen = some.messages.filter(({ name }) => name === "events").flatMap(({ data }) => data.rows);
    expect(seen.map(({ task }) => task)).toEqual(["t3"]);
  });

  it("a returning viewer gets the missed events, each event once", async () => {
    const first = live("view=events&types=TaskSubmitted");
    await first.says("state");
    await page.swarm.submit({ id: "t1", kind: "count" });
    const { id = "" } = await first.says("events");
    first.close();
    await first.ended;
    for (const task of ["t2", "t3"]) await page.swarm.submit({ id: task, kind: "count" });
    const other = live("view=events"); // keeps following
    await other.says("events", ({ rows }) => rows.some((row: { task?: string }) => row.task === "t3"));
    const again = live("view=events&types=TaskSubmitted", { "last-event-id": id });
    await again.says("events");
    await page.swarm.submit({ id: "t4", kind: "count" });
    await again.says("events", ({ rows }) => rows.some((row: { task?: string }) => row.task === "t4"));
    const rows = again.messages.filter(({ name }) => name === "events").flatMap(({ data }) => data.rows);
    expect(rows.map(({ task }) => task)).toEqual(["t2", "t3", "t4"]);
  });
});

describe("a connection that breaks", () => {
  it("loses no event: what was published meanwhile is read from the journal", async () => {
    const stream = live("view=events&types=TaskSubmitted");
    await stream.says("state");
    const submit = (id: string) => page.test.submit(id);
    await submit("t1");
    await stream.says("events");
    page.test.hub.cut(page.transport);
    for (const id of ["t2", "t3"]) await submit(id);
    page.test.hub.heal(page.transport);
    await submit("t4");
    await stream.says("events", ({ rows }) => rows.some((row: { task?: string }) => row.task === "t4"));
    const rows = stream.messages.filter(({ name }) => name === "events").flatMap(({ data }) => data.rows);
    expect(rows.map(({ task }) => task)).toEqual(["t1", "t2", "t3", "t4"]);
  });
});

describe("coming back", () => {
  it("soon: only what changed meanwhile", async () => {
    const first = live("view=tasks");
    await first.says("state");
    first.close();
    await first.ended;
    const { id = "" } = first.messages.findLast((message) => message.id !== undefined) ?? {};
    await page.swarm.submit({ id: "t1", kind: "count" });
    const again = live("view=tasks", { "last-event-id": id });
    await again.says("delta", ({ patch }) => patch.tasks?.queued === 1);
    expect(again.messages.some(({ name }) => name === "state")).toBe(false);
  });

  it.each(["x.1.1", "", "nonsense", "a.b.c.d", "9.9"])(
    "with the place %j of another time: a whole state",
    async (id) => {
      const stream = live("view=tasks", { "last-event-id": id });
      expect((await stream.says("state")).data.data.tasks).toMatchObject({ queued: 0 });
    },
  );
});

describe("coming back after an hour", () => {
  it("a whole state, the newest events, and the number of those it missed", async () => {
    const clock = new LateClock();
    const late = await Fixture.start({}, { clock });
    try {
      const tasks = late.live("view=tasks");
      const events = late.live("view=events&types=TaskSubmitted");
      await Promise.all([tasks.says("state"), events.says("state")]);
      await late.swarm.submit({ id: "before", kind: "count" });
      await tasks.says("delta");
      const seen = await events.says("events");
      const lastOf = ({ messages }: Live) => messages.findLast(({ id }) => id !== undefined)?.id ?? "";
      const places = { tasks: lastOf(tasks), events: seen.id ?? "" };
      for (const stream of [tasks, events]) {
        stream.close();
        await stream.ended;
      }
      clock.laterMs += 60 * 60_000;
      const missed = Array.from({ length: limits.dashboardBackfillBatchesMax + 20 }, (_, at) => `t${at}`);
      await Promise.all(missed.map((id) => late.swarm.submit({ id, kind: "count" })));
      const watcher = late.live("view=system"); // with the next look, the views of an hour ago are forgotten
      await watcher.says("point");

      const again = late.live("view=tasks", { "last-event-id": places.tasks });
      const { data } = await again.says("state");
      expect(data.data.tasks).toMatchObject({ queued: missed.length + 1 });
      const tail = late.live("view=events&types=TaskSubmitted", { "last-event-id": places.events });
      const { data: batch } = await tail.says("events");
      expect(batch.rows.at(-1).task).toMatch(/^t\d+$/);
      expect(batch.skipped).toBeGreaterThan(0);
      expect(batch.rows.length + batch.skipped).toBeGreaterThanOrEqual(missed.length);
      for (const stream of [watcher, again, tail]) stream.close();
    } finally {
      await late.stop();
    }
  });
});

/** The system's clock, and a time that can be set forward. Timers keep their pace. */
class LateClock implements Clock {
  laterMs = 0;

  now() {
    return systemClock.now() + this.laterMs;
  }

  monotonicMs() {
    return systemClock.monotonicMs() + this.laterMs;
  }

  after(...args: Parameters<Clock["after"]>) {
    return systemClock.after(...args);
  }

  soon(run: () => void) {
    systemClock.soon(run);
  }
}

describe("many views", () => {
  it("share one state; the 33rd gets 503 with Retry-After, and a place when one is free", async () => {
    const streams = Array.from({ length: limits.dashboardLiveViewsMax }, () => live("view=overview"));
    await Promise.all(streams.map((stream) => stream.says("state")));
    const refused = await page.get("/api/live?view=overview");
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toBe("5");
    expect(refused.json.error).toMatchObject({ code: "WAGGLE_BACKPRESSURE", retryAfterMs: 5_000 });
    expect((await page.get("/api/overview")).status).toBe(200);
    const [left] = streams;
    left?.close();
    await left?.ended;
    await expect.poll(async () => (await page.get("/api/system")).json.dashboard.liveViews).toBe(31);
    await live("view=overview").says("state");
  });

  it("500 connections: 32 are served, each other is refused, and the page still answers", async () => {
    const streams = Array.from({ length: 500 }, () => live("view=events"));
    const statuses = await Promise.all(streams.map(async (stream) => (await stream.opened()).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(limits.dashboardLiveViewsMax);
    expect(statuses.filter((status) => status === 503)).toHaveLength(500 - limits.dashboardLiveViewsMax);
    expect((await page.get("/api/overview")).status).toBe(200);
    for (const stream of streams) stream.close();
    await expect.poll(async () => (await page.get("/api/system")).json.dashboard.liveViews).toBe(0);
  });
});

describe("without a leader", () => {
  it("viewers get each reason once, keep their data, and get a notice at the return", async () => {
    const stream = live("view=overview");
    await stream.says("state");
    await page.test.coordinator.stop();
    const { data: lost } = await stream.says("lost", ({ next }) => next === "waggle up");
    expect(lost).toMatchObject({ what: "leader" });
    await stream.says("point", ({ values }) => values.queued === null);
    const late = live("view=overview");
    await late.says("state");
    expect(late.messages[0]?.name).toBe("lost");
    expect(stateOf(late)).toMatchObject({ swarm: "test" });
    expect(await page.refusal("/api/overview")).toMatchObject({ status: 503, code: "WAGGLE_NO_LEADER" });
    await page.test.startAnother("c2");
    const { data: back } = await stream.says("back");
    expect(back.lostMs).toBeGreaterThan(0);
    await late.says("back");
    await stream.says("delta", ({ patch }) => patch.leader === "c2");
    const batch = stream.messages.filter(({ name }) => name === "lost").map(({ data }) => data.message);
    expect(batch).toEqual([...new Set(batch)]);
  }, 30_000);
});

describe("resources", () => {
  it("waiting requests come in the order of the next grants, with L and its terms", async () => {
    await page.swarm.setResource("gpt", { slots: 1, alpha: 0.5 });
    await using held = await page.swarm.acquire("gpt");
    const stream = live("view=resources");
    await stream.says("state", ({ data }) => data.resources.gpt.inUse === 1);
    const waiting = page.swarm.acquire("gpt", { weight: 2 });
    await stream.says("delta", ({ patch }) => patch.resources?.gpt?.waiters?.length === 1);
    expect(stateOf(stream)).toMatchObject({
      resources: { gpt: { waiting: 1, waiters: [{ order: 1, by: "load", backlogTerm: 0.5 }] } },
    });
    await held.release();
    await (await waiting).release();
    await stream.says(
      "delta",
      ({ patch }) => patch.resources?.gpt?.granted === 2 && patch.resources.gpt.delayed === 1,
    );
  });
});
