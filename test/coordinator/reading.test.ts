// Reading: the live stream of events with visible gaps, pages of the journal, and states of tasks.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withoutContents } from "../../src/audit/contents.ts";
import { nounAndVerb } from "../../src/coordinator/leader/dispatcher.ts";
import { limits } from "../../src/limits.ts";
import type { Event } from "../../src/state/event.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { insertRecord } from "../support/stored.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

interface EventPush {
  readonly term: number;
  readonly idx: number;
  readonly prevIdx: number;
  readonly at: number;
  readonly events: readonly { readonly type: string; readonly task?: string }[];
}

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
});
afterEach(() => swarm.stop());

const page = (query: object) => swarm.client.ask(subjects.query("_", "journal"), query);

/** From now on earlier batches come from the journal, not from memory. */
async function letGo(): Promise<void> {
  await clock.advance(limits.recentRecordsMs + 1);
  await swarm.client.submit([{ kind: "k" }]);
}

describe("the live stream", () => {
  it("has one message per batch and subject, each naming the last, so that gaps show", async () => {
    const submitted = swarm.client.listen<EventPush>(subjects.event("p", "task", "submitted"));
    const joined = swarm.client.listen<EventPush>(subjects.event("_", "agent", "joined"));
    await swarm.client.submit([{ kind: "k" }, { kind: "k" }, { kind: "k" }], {}, "p");
    await swarm.client.submit([{ kind: "k" }], {}, "other");
    await swarm.agent("a1");
    await swarm.client.submit([{ kind: "k" }], {}, "p");
    await clock.settle();
    expect(submitted.all.map(({ idx, prevIdx, events }) => [idx, prevIdx, events.length])).toEqual([
      [2, 0, 3],
      [5, 2, 1],
    ]);
    expect(joined.all).toMatchObject([{ term: 1, idx: 4, prevIdx: 0, at: clock.now() }]);
  });

  it("says everything that the journal does, except payloads and results", async () => {
    const heard: EventPush[] = [];
    swarm.client.transport.subscribe(subjects.event("*", "*", "*"), ({ data }) =>
      heard.push(JSON.parse(Buffer.from(data).toString())),
    );
    const agent = await swarm.agent("a1");
    await swarm.client.submit([
      { id: "t1", kind: "count", payload: "secret", user: "ann" },
      { id: "t2", kind: "count", payload: 'a "secret", too' },
    ]);
    await agent.complete(await agent.assignment());
    await agent.report(await agent.assignment(), "invalid");
    await swarm.client.submit([{ id: "t3", kind: "nobody", payload: "" }]);
    await swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t3", round: 1 }] });
    await swarm.client.ask(subjects.project("default", "retry"), { tasks: [{ task: "t3", round: 2 }] });
    await clock.settle();
    const { batches } = await page({ from: 2 });
    const journaled = batches.flatMap(({ events }: EventPush) => events) as Event[];
    const byText = (events: readonly object[]) => events.map((event) => JSON.stringify(event)).sort();
    const published = byText(heard.flatMap(({ events }) => events));
    expect(published).toEqual(byText(journaled.map(withoutContents)));
    expect(published.join()).not.toMatch(/secret|"payload"|"result"/);
    expect(JSON.stringify(journaled)).toContain("secret");
  });

  it("keeps projects apart whose events take turns in a batch", async () => {
    const of = (project: string) =>
      swarm.client.listen<EventPush>(subjects.event(project, "task", "assigned"));
    const listening = ["p", "q"].map(of);
    for (const project of ["p", "q"])
      await swarm.client.submit(
        [1, 2].map((n) => ({ id: `${project}${n}`, kind: "count" })),
        {},
        project,
      );
    await swarm.agent("a1");
    await clock.settle();
    const assigned = listening.flatMap(({ all }) => all).map(({ events }) => events.map(({ task }) => task));
    expect(assigned).toEqual([
      ["p1", "p2"],
      ["q1", "q2"],
    ]);
    const { batches } = await page({ from: 2 });
    const inTurn = batches.flatMap(({ events }: EventPush) =>
      events.filter(({ type }) => type === "TaskAssigned"),
    );
    expect(inTurn.map(({ task }: { task: string }) => task)).toEqual(["p1", "q1", "p2", "q2"]);
  });

  it("spells types as noun and verb", () => {
    expect(nounAndVerb("TaskDeadLettered")).toEqual({ noun: "task", verb: "dead-lettered" });
    expect(nounAndVerb("TasksRefused")).toEqual({ noun: "tasks", verb: "refused" });
    expect(nounAndVerb("TermStarted")).toEqual({ noun: "term", verb: "started" });
  });
});

describe("the journal", () => {
  it("is read in pages that go on where the last one ended", async () => {
    const payload = "x".repeat(100 * 1024);
    for (let n = 0; n < 8; n += 1) await swarm.client.submit([{ id: `t${n}`, kind: "k", payload }]);
    const tasks: string[] = [];
    let pages = 0;
    for (let from = 1; ; pages += 1) {
      const { next, last, batches } = await page({ from });
      expect(batches.map(({ idx }: { idx: number }) => idx)).toEqual(
        Array.from({ length: next - from }, (_, at) => from + at),
      );
      for (const { events } of batches)
        for (const { task } of events) if (task !== undefined) tasks.push(task.id);
      expect(last).toBe(9);
      if (next > last) break;
      from = next;
    }
    expect(tasks).toEqual(Array.from({ length: 8 }, (_, n) => `t${n}`));
    expect(pages).toBeGreaterThan(2);
  });

  it("beyond its end is an empty page", async () => {
    expect(await page({ from: 50 })).toEqual({ next: 50, last: 1, batches: [] });
  });

  it("is read from a time on", async () => {
    const at: number[] = [];
    for (let n = 0; n < 12; n += 1) {
      await clock.advance(100);
      at.push(clock.now());
      await swarm.client.submit([{ id: `t${n}`, kind: "k" }]);
    }
    const firstSince = async (since: number) => {
      const { batches } = await page({ since });
      return batches[0]?.events[0]?.task?.id;
    };
    expect(await firstSince(at[5] ?? 0)).toBe("t5");
    expect(await firstSince((at[5] ?? 0) + 1)).toBe("t6");
    expect((await page({ since: 0 })).batches[0].idx).toBe(1);
    expect((await page({ since: clock.now() + 1 })).batches).toEqual([]);
  });

  it("with a lost record reports the damage and the remedy", async () => {
    for (let n = 0; n < 12; n += 1) {
      await clock.advance(100);
      await swarm.client.submit([{ id: `t${n}`, kind: "k" }]);
    }
    await letGo();
    swarm.watched.settled(); // not lost yet
    swarm.store.loseRecords(1, 8, 2);
    const damaged = {
      ok: false,
      code: "WAGGLE_JOURNAL_DAMAGED",
      message: expect.stringContaining("waggle doctor"),
    };
    expect(await page({ from: 4 })).toMatchObject(damaged);
    expect(await page({ since: 0 })).toMatchObject(damaged);
    expect((await page({ from: 8 })).batches[0]).toMatchObject({ idx: 8 });
  });

  it("with a foreign record is read without the foreign record", async () => {
    await swarm.client.submit([{ id: "t1", kind: "k" }]);
    insertRecord(swarm.store, Buffer.from("foreign"));
    await swarm.client.ask(subjects.project("default", "submit"), { tasks: [{ id: "t2", kind: "k" }] });
    const { batches, last } = await page({ from: 1 });
    expect(last).toBe(3);
    expect(batches.map(({ idx }: { idx: number }) => idx)).toEqual([1, 2, 3]);
    expect((await swarm.client.status()).journal).toMatchObject({
      foreignRecords: { count: 1, lastAt: expect.any(Number) },
    });
    const outcome = await swarm.client.ask(subjects.project("default", "cancel"), {
      tasks: [{ task: "t2", round: 1 }],
    });
    expect(outcome.answers).toMatchObject([{ ok: true }]);
    const awaited = await swarm.client.ask(subjects.project("default", "await"), {
      tasks: ["t2"],
      notify: "_INBOX.me",
    });
    expect(awaited.answers).toMatchObject([{ outcome: { task: "t2", state: "cancelled", attempts: 0 } }]);
  });
});

describe("a task that waits", () => {
  it("says where the task stands and why each agent does not take it", async () => {
    await swarm.agent("full", { maxConcurrent: 1 });
    await swarm.agent("other", { kinds: ["other"] });
    await swarm.agent("role", { role: "r" });
    await swarm.client.ask(subjects.operator("drain"), { agent: "role" });
    await swarm.client.submit([{ id: "running", kind: "count" }]);
    await swarm.client.submit([
      { id: "t1", kind: "count" },
      { id: "t2", kind: "count", priority: 1 },
    ]);
    expect(await swarm.client.explain("t1")).toMatchObject({
      state: "queued",
      waiting: {
        obstacles: [{ reason: "all-full", agents: 1, taken: 1, capacity: 1 }],
        position: { project: { place: 1, of: 1 }, user: { place: 1, of: 1 }, task: { place: 2, of: 2 } },
        agents: [
          { agent: "full", standing: "full" },
          { agent: "role", standing: "draining" },
          { agent: "other", standing: "wrong-kind" },
        ],
      },
    });
    expect(await swarm.client.task("running")).toMatchObject({
      state: "assigned",
      agent: "full",
      attempts: 1,
    });
    expect((await swarm.client.status()).queues).toMatchObject([{ kind: "count", waiting: 2, agents: 2 }]);
    await clock.advance(limits.heartbeatMs);
    await swarm.client.submit([{ kind: "other" }]);
    const { queues, projects } = await swarm.client.status();
    expect(queues).toMatchObject([{ oldestMs: limits.heartbeatMs }]);
    expect(projects[0]?.users).toMatchObject([{ started: 2, waitMsMean: 0, waitMsMax: limits.heartbeatMs }]);
  });
});
