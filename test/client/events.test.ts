// Following the journal through the client, against real coordinators: everything, once, in order, whatever
// happens to leaders, connections and pushes in between.

import { lastValueFrom, take, toArray } from "rxjs";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { withoutContents } from "../../src/audit/contents.ts";
import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { InvalidMessageError, UnreachableError } from "../../src/errors.ts";
import { LogReader } from "../../src/journal/log-reader.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import type { Batch } from "../../src/journal/records.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { startTestSwarm, type TestSwarm, type WireAgent } from "../support/swarm.ts";
import { watch } from "./client-fixture.ts";
import { ManualClock, settled } from "./manual-clock.ts";

let test: TestSwarm;
let transport: Transport;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  transport = test.hub.connect();
  swarm = await connect({ swarm: "test", transport });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

/** The journal's events without payloads and results, read without the client. */
async function journal(bare = withoutContents): Promise<JournaledEvent[]> {
  const events: JournaledEvent[] = [];
  for await (const { bytes } of new LogReader(new MemoryJournal(test.store)).replay(1)) {
    const { idx, term, at, events: ofBatch } = JSON.parse(Buffer.from(bytes).toString()) as Batch;
    for (const event of ofBatch) events.push({ idx, term, at, event: bare(event) });
  }
  return events;
}

async function collect(events: AsyncIterable<JournaledEvent>): Promise<JournaledEvent[]> {
  const all: JournaledEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** Collects until an event of the given type about the task has come. */
async function collectUntil(
  events: AsyncIterable<JournaledEvent>,
  type: string,
  task: string,
): Promise<JournaledEvent[]> {
  const all: JournaledEvent[] = [];
  for await (const journaled of events) {
    all.push(journaled);
    const { event } = journaled;
    if (event.type === type && "task" in event && event.task === task) break;
  }
  return all;
}

/** Completes all assigned tasks until stopped. */
function serve(agent: WireAgent): () => void {
  let isServing = true;
  const loop = async () => {
    while (isServing) await agent.complete(await agent.assignment());
  };
  loop().catch(() => undefined); // the coordinator is gone: the test is over
  return () => {
    isServing = false;
  };
}

const types = (events: readonly JournaledEvent[]) => events.map(({ event }) => event.type);

describe("reading", () => {
  it("to the present gives the whole journal and ends", async () => {
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count" });
    await agent.complete(await agent.assignment());
    const events = await collect(swarm.events());
    expect(events).toEqual(await journal());
    expect(types(events)).toEqual(
      expect.arrayContaining([
        "TermStarted",
        "AgentJoined",
        "TaskSubmitted",
        "TaskAssigned",
        "TaskCompleted",
      ]),
    );
  });

  it("leaves payloads and results out unless they are asked for", async () => {
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count", payload: "secret" });
    await agent.complete(await agent.assignment());
    await swarm.submit({ id: "t2", kind: "nobody", payload: "secret" });
    await swarm.cancel("t2");
    await swarm.retry("t2");
    for await (const { event } of swarm.events())
      if (event.type === "TaskSubmitted")
        expectTypeOf(event.task.payload).toEqualTypeOf<string | undefined>();
    for await (const { event } of swarm.events({ contents: true })) {
      if (event.type === "TaskSubmitted") expectTypeOf(event.task.payload).toEqualTypeOf<string>();
      if (event.type === "TaskCompleted") expectTypeOf(event.result).toEqualTypeOf<string | undefined>();
    }
    const bare = await collect(swarm.events());
    expect(JSON.stringify(bare)).not.toMatch(/"payload"|"result"|secret/);
    const whole = await collect(swarm.events({ contents: true }));
    expect(whole).toEqual(await journal((event) => event));
    expect(JSON.stringify(whole).match(/"payload":"secret"/g)).toHaveLength(3);
    expect(JSON.stringify(whole)).toContain('"result":"done"');
  });

  it("of a kind gives all events of its tasks, and what names the kind", async () => {
    const agent = await test.agent("a1", { kinds: ["count", "digest"] });
    for (const kind of ["count", "digest"]) await swarm.submit({ id: kind, kind, user: "ann" });
    await agent.complete(await agent.assignment());
    await agent.report(await agent.assignment(), "invalid");
    await swarm.setKind("digest", { importance: 2 });
    const ofKind = await collect(swarm.events({ kind: "digest" }));
    expect(types(ofKind)).toEqual([
      ...["AgentJoined", "TaskSubmitted", "TaskAssigned", "TaskFailed", "KindConfigured"],
    ]);
    const combined = { kind: "digest", agent: "a1", project: "default", task: "digest" };
    expect(types(await collect(swarm.events(combined)))).toEqual(["TaskAssigned", "TaskFailed"]);
    const fromAssignment = ofKind[2]?.idx ?? 0;
    expect(types(await collect(swarm.events({ kind: "digest", from: fromAssignment + 1 })))).toEqual([
      "KindConfigured",
    ]);
  });

  it("goes on over many pages", async () => {
    const payload = "x".repeat(100_000);
    for (let task = 0; task < 12; task += 1) await swarm.submit({ id: `t${task}`, kind: "count", payload });
    const events = await collect(swarm.events());
    expect(events).toEqual(await journal());
    expect(types(events).filter((type) => type === "TaskSubmitted")).toHaveLength(12);
  });

  it("begins at a batch, or at an instant", async () => {
    for (let task = 0; task < 5; task += 1) await swarm.submit({ id: `t${task}`, kind: "count" });
    const all = await journal();
    const middle = all[3] as JournaledEvent;
    expect(await collect(swarm.events({ from: middle.idx }))).toEqual(
      all.filter(({ idx }) => idx >= middle.idx),
    );
    expect(await collect(swarm.events({ from: new Date(middle.at) }))).toEqual(
      all.filter(({ at }) => at >= middle.at),
    );
    const end = all.at(-1)?.idx ?? 0;
    expect(await collect(swarm.events({ from: end + 1 }))).toEqual([]);
    expect(await collect(swarm.events({ from: new Date(middle.at + 3_600_000) }))).toEqual([]);
  });

  it("refuses a batch beyond the journal's end, to readers and followers", async () => {
    for (const follow of [false, true]) {
      const refused = await collect(swarm.events({ from: 10_000, follow })).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(InvalidMessageError);
      expect(refused).toMatchObject({
        field: "from",
        message: expect.stringMatching(
          /^events: from: batch 10000 does not exist yet: the journal ends at batch \d+\. For new/,
        ),
      });
    }
    const ofProject = swarm.project("p1").events({ from: 10_000 });
    await expect(collect(ofProject)).rejects.toThrow(InvalidMessageError);
  });

  it("passes the requested events: by task, agent, type and project", async () => {
    const agent = await test.agent("a1");
    await swarm.submit({ id: "t1", kind: "count", project: "p1" });
    await swarm.submit({ id: "t2", kind: "count", project: "p2" });
    await agent.complete(await agent.assignment());
    await agent.complete(await agent.assignment());
    const ofTask = ["TaskSubmitted", "TaskAssigned", "TaskCompleted"];
    expect(types(await collect(swarm.events({ task: "t1" })))).toEqual(ofTask);
    expect(types(await collect(swarm.events({ project: "p2" })))).toEqual(ofTask);
    const ofAgent = await collect(swarm.events({ agent: "a1", types: ["TaskAssigned", "TaskCompleted"] }));
    expect(types(ofAgent)).toEqual(
      ["TaskAssigned", "TaskAssigned", "TaskCompleted", "TaskCompleted"].sort(byFirst(ofAgent)),
    );
    expect(await collect(swarm.events({ agent: "nobody" }))).toEqual([]);
  });

  it("knows the project of a task that was submitted before the reading begins", async () => {
    const agent = await test.agent("a1");
    const { ack } = await swarm.submit({ id: "t1", kind: "count", project: "p1" });
    await agent.complete(await agent.assignment());
    const late = await collect(swarm.events({ from: (ack?.idx ?? 0) + 1, project: "p1" }));
    expect(types(late)).toContain("TaskCompleted");
  });
});

/** Sorted by the first appearance of each type, because the order within batches varies. */
function byFirst(events: readonly JournaledEvent[]) {
  const order = types(events);
  return (one: string, other: string) => order.indexOf(one as never) - order.indexOf(other as never);
}

describe("following", () => {
  it("gives the past, then the present, without a seam", async () => {
    const stop = serve(await test.agent("a1"));
    await swarm.submit({ id: "t0", kind: "count" });
    const following = collectUntil(swarm.events({ from: "start", follow: true }), "TaskCompleted", "last");
    for (let round = 0; round < 40; round += 1) {
      await Promise.all([0, 1, 2].map((n) => swarm.submit({ id: `t-${round}-${n}`, kind: "count" })));
    }
    await (await swarm.submit({ id: "last", kind: "count" })).result();
    const followed = await following;
    expect(followed).toEqual((await journal()).slice(0, followed.length));
    stop();
  });

  it("begins now unless told otherwise", async () => {
    await swarm.submit({ id: "before", kind: "count" });
    const following = collectUntil(swarm.events({ follow: true }), "TaskCancelled", "after");
    await swarm.submit({ id: "after", kind: "count" });
    await swarm.cancel("after");
    expect(await following).toMatchObject([
      { event: { type: "TaskSubmitted", task: { id: "after" } } },
      { event: { type: "TaskCancelled", task: "after" } },
    ]);
  });

  it("goes on over leaders that hand over", async () => {
    const following = collectUntil(swarm.events({ from: "start", follow: true }), "TaskCancelled", "last");
    let leader = test.coordinator;
    for (const id of ["c2", "c3", "c4"]) {
      await swarm.submit({ id: `before-${id}`, kind: "count" });
      const next = await test.startAnother(id);
      await leader.stop();
      await next.whenLeading();
      leader = next;
    }
    await swarm.submit({ id: "last", kind: "count" });
    await swarm.cancel("last");
    const followed = await following;
    const written = await journal();
    expect(followed).toEqual(written.slice(0, followed.length));
    expect(types(followed).filter((type) => type === "TermStarted")).toHaveLength(4);
  });

  it("of one project or one task goes on over leaders, too", async () => {
    await swarm.submit({ id: "t1", kind: "count" });
    const following = collectUntil(
      swarm.events({ from: "start", project: "default", follow: true }),
      "TaskCancelled",
      "t1",
    );
    const next = await test.startAnother("c2");
    await test.coordinator.stop();
    await next.whenLeading();
    await swarm.cancel("t1");
    expect(types(await following)).toEqual(["TaskSubmitted", "TaskCancelled"]);
    expect(types((await swarm.story("t1")).events)).toEqual(["TaskSubmitted", "TaskCancelled"]);
  });

  it("goes on after its connection broke", async () => {
    const following = collectUntil(swarm.events({ from: "start", follow: true }), "TaskCancelled", "last");
    await swarm.submit({ id: "t1", kind: "count" });
    test.hub.cut(transport);
    await test.client.submit([{ id: "t2", kind: "count" }]);
    test.hub.heal(transport);
    await swarm.submit({ id: "last", kind: "count" });
    await swarm.cancel("last");
    const followed = await following;
    expect(followed).toEqual((await journal()).slice(0, followed.length));
  });

  it("works without pushes, with a delay", async () => {
    const clock = new ManualClock();
    const unreachable = await connect({ swarm: "test", transport: withoutPushes(test.hub.connect()), clock });
    const following = watch(
      collectUntil(unreachable.events({ from: "start", follow: true }), "TaskCancelled", "t1"),
    );
    await settled();
    await swarm.submit({ id: "t1", kind: "count" });
    await swarm.cancel("t1");
    await settled();
    expect(following.state).toBe("pending");
    await clock.advance(10_000);
    expect(following.state).toBe("fulfilled");
    await unreachable.close();
  });

  it("by several readers at once gives the same to each", async () => {
    const options = { from: "start", follow: true } as const;
    const followings = Array.from({ length: 5 }, () =>
      collectUntil(swarm.events(options), "TaskCancelled", "last"),
    );
    for (let task = 0; task < 10; task += 1) await swarm.submit({ id: `t${task}`, kind: "count" });
    await swarm.submit({ id: "last", kind: "count" });
    await swarm.cancel("last");
    const [first, ...others] = await Promise.all(followings);
    for (const other of others) expect(other).toEqual(first);
  });
});

/** A connection without permission for events and heartbeats. */
function withoutPushes(inner: Transport): Transport {
  return new Proxy(inner, {
    get(target, name) {
      if (name === "subscribe") {
        const subscribe: Transport["subscribe"] = (subject, handler, options) =>
          subject.includes(".event.") || subject.endsWith(".coordinator")
            ? { unsubscribe: () => undefined }
            : target.subscribe(subject, handler, options);
        return subscribe;
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

describe("as an Observable", () => {
  it("works with operators, and each subscriber reads on its own", async () => {
    for (let task = 0; task < 5; task += 1) await swarm.submit({ id: `t${task}`, kind: "count" });
    const stream = swarm.events({ types: ["TaskSubmitted"] });
    const [three, all] = await Promise.all([
      lastValueFrom(stream.pipe(take(3), toArray())),
      lastValueFrom(stream.pipe(toArray())),
    ]);
    expect(all).toHaveLength(5);
    expect(three).toEqual(all.slice(0, 3));
  });

  it("emits nothing after unsubscribing", async () => {
    const seen: JournaledEvent[] = [];
    const subscription = swarm.events({ from: "start", follow: true }).subscribe((event) => seen.push(event));
    await swarm.submit({ id: "t1", kind: "count" });
    await settled();
    subscription.unsubscribe();
    const before = seen.length;
    expect(before).toBeGreaterThan(0);
    await swarm.submit({ id: "t2", kind: "count" });
    await settled();
    expect(seen).toHaveLength(before);
  });
});

describe("ending", () => {
  it("by a signal is no error, for a loop as for a subscriber", async () => {
    const given = new AbortController();
    const stream = swarm.events({ follow: true, signal: given.signal });
    const loop = watch(collect(stream));
    let isComplete = false;
    stream.subscribe({
      complete: () => {
        isComplete = true;
      },
    });
    await settled();
    given.abort();
    await settled();
    expect(loop).toMatchObject({ state: "fulfilled", value: [] });
    expect(isComplete).toBe(true);
  });

  it("by closing the connection is no error either; a stream of a closed connection is one", async () => {
    const stream = swarm.events({ follow: true });
    const loop = watch(collect(stream));
    const handle = await swarm.submit({ kind: "nobody-does-this" });
    const updates = watch(lastValueFrom(handle.events$.pipe(toArray())));
    await settled();
    await swarm.close();
    await settled();
    expect(loop.state).toBe("fulfilled");
    expect(updates).toMatchObject({ state: "fulfilled", value: [{ type: "submitted" }] });
    expect(() => swarm.events()[Symbol.asyncIterator]()).toThrow(UnreachableError);
    await expect(lastValueFrom(stream)).rejects.toBeInstanceOf(UnreachableError);
  });

  it("by breaking out of a loop that waits is possible from outside", async () => {
    const iterator = swarm.events({ follow: true })[Symbol.asyncIterator]();
    const next = watch(iterator.next());
    await settled();
    expect(next.state).toBe("pending");
    await iterator.return?.();
    await settled();
    expect(next).toMatchObject({ state: "fulfilled", value: { done: true } });
  });
});
