// Reading a damaged or slow journal, which the test scripts.

import { describe, expect, it } from "vitest";
import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import { JournalDamagedError, UnreadableAnswerError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { LossError } from "../../src/protocol/loss-error.ts";
import { aClient, type Fixture, watch } from "./client-fixture.ts";
import type { AskedFor } from "./fake-leader.ts";
import { settled } from "./manual-clock.ts";

interface FakeBatch {
  readonly idx: number;
  readonly term: number;
  readonly at: number;
  readonly events: readonly { readonly type: string }[];
}

function aBatch(idx: number, overrides: Partial<FakeBatch> = {}): FakeBatch {
  return { idx, term: 1, at: idx * 10, events: [{ type: "TermRenewed" }], ...overrides };
}

const batches = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => aBatch(from + at));

/** Returns `journal` in pages of `size`; `last` is the position of the answering coordinator. */
function showing(
  fixture: Fixture,
  journal: FakeBatch[],
  options: { size?: number; last?: () => number } = {},
) {
  const { size = 10, last = () => journal.at(-1)?.idx ?? 0 } = options;
  fixture.leader.script = ({ verb, body }: AskedFor) => {
    if (verb !== "query.journal" && verb !== "query.events") return undefined;
    const end = last();
    const from = body.from ?? journal.find(({ at }) => at >= body.since)?.idx ?? end + 1;
    const page = journal.filter(({ idx }) => idx >= from && idx <= end).slice(0, size);
    return { next: (page.at(-1)?.idx ?? from - 1) + 1, last: end, batches: page };
  };
  fixture.leader.start();
}

async function collect(events: AsyncIterable<JournaledEvent>): Promise<number[]> {
  const all: number[] = [];
  for await (const { idx } of events) all.push(idx);
  return all;
}

const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);

describe("a page", () => {
  it("is requested when the last page is used up: a slow loop holds a single page", async () => {
    const fixture = await aClient();
    showing(fixture, batches(1, 50));
    const pages = () => fixture.leader.of("query.journal").length;
    const iterator = fixture.swarm.events()[Symbol.asyncIterator]();
    for (let event = 0; event < 10; event += 1) await iterator.next();
    await settled();
    expect(pages()).toBe(1);
    await iterator.next();
    await settled();
    expect(pages()).toBe(2);
    await iterator.return?.();
  });

  it("is requested once for concurrent readers", async () => {
    const fixture = await aClient();
    showing(fixture, batches(1, 30));
    const all = await Promise.all(Array.from({ length: 8 }, () => collect(fixture.swarm.events())));
    expect(all).toEqual(Array.from({ length: 8 }, () => upTo(30)));
    expect(fixture.leader.of("query.journal")).toHaveLength(3);
  });

  it("of a journal whose beginning was deleted starts at the present beginning", async () => {
    const fixture = await aClient();
    showing(fixture, batches(21, 25));
    expect(await collect(fixture.swarm.events())).toEqual([21, 22, 23, 24, 25]);
  });

  it("from a lagging coordinator is requested again until the present is reached", async () => {
    const fixture = await aClient();
    let lastKnown = 25;
    showing(fixture, batches(1, 25), { last: () => lastKnown });
    const iterator = fixture.swarm.events()[Symbol.asyncIterator]();
    await iterator.next();
    lastKnown = 12; // the next page comes from a standby
    const rest = watch(collect({ [Symbol.asyncIterator]: () => iterator }));
    await fixture.clock.advance(500);
    expect(rest.state).toBe("pending");
    lastKnown = 25;
    await fixture.clock.advance(limits.askBackoffMsMax);
    expect(rest.value).toEqual(upTo(25).slice(1));
  });

  it("from a coordinator without batches of the instant shows no earlier batches", async () => {
    const fixture = await aClient();
    let lastKnown = 5;
    const journal = batches(1, 25);
    showing(fixture, journal, { last: () => lastKnown });
    const show = fixture.leader.script;
    fixture.leader.script = (asked) => {
      if (asked.body.since === undefined) return show(asked);
      const first = journal.find(({ idx, at }) => at >= asked.body.since && idx <= lastKnown);
      return show({ ...asked, body: { from: first?.idx ?? lastKnown + 1 } });
    };
    const seen: number[] = [];
    const since = new Date(aBatch(20).at);
    fixture.swarm.events({ from: since, follow: true }).subscribe(({ idx }) => seen.push(idx));
    await settled();
    lastKnown = 25;
    await fixture.clock.advance(limits.journalPollMs);
    expect(seen).toEqual([20, 21, 22, 23, 24, 25]);
    await fixture.swarm.close();
  });

  it("that is temporarily unreadable is requested again", async () => {
    const fixture = await aClient();
    showing(fixture, batches(1, 5));
    const show = fixture.leader.script;
    const refusals = ["WAGGLE_UNREACHABLE", "WAGGLE_UNREACHABLE"];
    fixture.leader.script = (asked) => {
      const code = refusals.shift();
      return code === undefined
        ? show(asked)
        : { ok: false, code, message: "the journal cannot be read just now" };
    };
    const read = watch(collect(fixture.swarm.events()));
    await fixture.clock.advance(1_000);
    expect(read.value).toEqual(upTo(5));
  });

  it("that no coordinator returns is NoLeaderError at the beginning, and awaited by a follower", async () => {
    const fixture = await aClient();
    const read = watch(collect(fixture.swarm.events({ from: "start", follow: true })));
    await fixture.clock.advance(limits.askTimeoutMs + limits.askBackoffMsMax);
    expect(read.error).toMatchObject({ code: "WAGGLE_NO_LEADER" });

    const journal = batches(1, 3);
    showing(fixture, journal);
    const seen: number[] = [];
    const following = fixture.swarm
      .events({ from: "start", follow: true })
      .subscribe(({ idx }) => seen.push(idx));
    await settled();
    fixture.leader.stop();
    await fixture.clock.advance(3 * limits.askTimeoutMs);
    journal.push(aBatch(4));
    fixture.leader.start();
    await fixture.clock.advance(limits.journalPollMs + limits.askBackoffMsMax);
    expect(seen).toEqual(upTo(4));
    following.unsubscribe();
  });
});

describe("a journal", () => {
  it.each<[string, FakeBatch, new (...given: never[]) => Error]>([
    ["with a gap", aBatch(5), JournalDamagedError],
    ["whose terms fall", aBatch(4, { term: 0 }), JournalDamagedError],
    ["whose end was replaced", aBatch(4, { term: 2 }), LossError],
  ])("%s is an error, not a shorter or another story", async (_, batch, type) => {
    const fixture = await aClient();
    showing(fixture, [...batches(1, 3), batch]);
    const seen: number[] = [];
    const reading = async () => {
      for await (const { idx } of fixture.swarm.events()) seen.push(idx);
    };
    await expect(reading()).rejects.toBeInstanceOf(type);
    expect(seen).toEqual([1, 2, 3]);
  });

  it("in which a term begins correctly is accepted", async () => {
    const fixture = await aClient();
    showing(fixture, [
      ...batches(1, 3),
      aBatch(4, { term: 2, events: [{ type: "TermStarted" }] }),
      aBatch(5, { term: 2 }),
    ]);
    expect(await collect(fixture.swarm.events())).toEqual(upTo(5));
  });

  it("that stays shorter than the part read is a loss", async () => {
    const fixture = await aClient();
    const journal = batches(1, 8);
    showing(fixture, journal);
    const seen: number[] = [];
    let error: unknown;
    fixture.swarm.events({ from: "start", follow: true }).subscribe({
      next: ({ idx }) => seen.push(idx),
      error: (reason: unknown) => {
        error = reason;
      },
    });
    await settled();
    journal.length = 5;
    await fixture.clock.advance(limits.askTimeoutMs / 2);
    expect(error).toBeUndefined();
    await fixture.clock.advance(limits.askTimeoutMs);
    expect(error).toBeInstanceOf(LossError);
    expect(seen).toEqual(upTo(8));
  });
});

describe("a page that does not match the request", () => {
  const asked: [string, object][] = [
    ["shows an earlier batch", { next: 2, last: 5, batches: [aBatch(1)] }],
    ["goes on earlier", { next: -3, last: 5, batches: [] }],
    ["goes on later", { next: 1_000_000, last: 5, batches: [] }],
  ];
  it.each(asked)("and %s is an error at once", async (_, page) => {
    for (const follow of [false, true]) {
      const fixture = await aClient();
      fixture.leader.script = ({ verb }) => (verb === "query.journal" ? page : undefined);
      fixture.leader.start();
      await expect(collect(fixture.swarm.events({ from: 3, follow }))).rejects.toThrow(JournalDamagedError);
      expect(fixture.leader.of("query.journal")).toHaveLength(1);
    }
  });

  it("for a time, that begins beyond the end, is an error at once", async () => {
    const fixture = await aClient();
    fixture.leader.script = ({ verb }) =>
      verb === "query.journal" ? { next: 1_000_000, last: 5, batches: [] } : undefined;
    fixture.leader.start();
    await expect(collect(fixture.swarm.events())).rejects.toThrow(JournalDamagedError);
  });

  it("without existing batches is requested again after pauses, then is an error", async () => {
    const fixture = await aClient();
    fixture.leader.script = ({ verb, body }) =>
      verb === "query.journal" ? { next: body.from, last: 5, batches: [] } : undefined;
    fixture.leader.start();
    const read = watch(collect(fixture.swarm.events({ from: 3, follow: true })));
    await fixture.clock.advance(limits.askTimeoutMs - limits.askBackoffMsMax);
    expect(read.state).toBe("pending");
    await fixture.clock.advance(3 * limits.askBackoffMsMax);
    expect(read.error).toBeInstanceOf(JournalDamagedError);
    expect(fixture.leader.of("query.journal").length).toBeLessThan(100);
  });

  it("without a number to continue from is no answer", async () => {
    const fixture = await aClient();
    fixture.leader.script = ({ verb }) =>
      verb === "query.journal" ? { next: "x", last: 5, batches: [] } : undefined;
    fixture.leader.start();
    const read = watch(collect(fixture.swarm.events({ from: 3, follow: true })));
    await fixture.clock.advance(limits.askTimeoutMs + limits.askBackoffMsMax);
    expect(read.error).toMatchObject({
      code: "WAGGLE_UNREACHABLE",
      message: expect.stringContaining("next"),
    });
    expect(fixture.leader.of("query.journal").length).toBeLessThan(100);
  });

  it("that cannot be read also ends a follower, with advice", async () => {
    const fixture = await aClient();
    showing(fixture, batches(1, 3));
    const seen: number[] = [];
    const reading = async () => {
      for await (const { idx } of fixture.swarm.events({ from: "start", follow: true })) seen.push(idx);
    };
    const read = watch(reading());
    await settled();
    fixture.leader.script = ({ verb }) =>
      verb === "query.journal" ? { next: 4, batches: "none" } : undefined;
    await fixture.clock.advance(limits.askTimeoutMs);
    expect([seen, read.state]).toEqual([upTo(3), "pending"]);
    await fixture.clock.advance(limits.journalPollMs + limits.requestTimeoutMs);
    expect(read.error).toBeInstanceOf(UnreadableAnswerError);
    expect(read.error).toMatchObject({
      code: "WAGGLE_UNREACHABLE",
      message: expect.stringContaining("of one version"),
    });
    const asked = fixture.leader.of("query.journal").length;
    expect(asked).toBeLessThan(100);
    await fixture.clock.advance(limits.askTimeoutMs);
    expect(fixture.leader.of("query.journal")).toHaveLength(asked);
  });
});

describe("a handle's updates", () => {
  const submitted = { type: "TaskSubmitted", task: { id: "t1", project: "default" } };

  it("wait for a coordinator that has read an accepted task", async () => {
    const fixture = await aClient();
    showing(fixture, [...batches(1, 2), aBatch(3, { events: [submitted] })]);
    const show = fixture.leader.script;
    let isKnown = false;
    const status = {
      ok: true,
      term: 1,
      idx: 3,
      at: 0,
      task: "t1",
      project: "default",
      user: "u",
      kind: "count",
    };
    fixture.leader.script = (asked) => {
      if (asked.verb !== "query.task") return show(asked);
      if (!isKnown) return { ok: false, code: "WAGGLE_UNKNOWN_TASK", message: "no task t1" };
      return { ...status, state: "queued", attempts: 0, submittedIdx: 3 };
    };
    const handle = await fixture.swarm.submit({ id: "t1", kind: "count" });
    const seen: string[] = [];
    let error: unknown;
    const observer = {
      next: ({ type }: { type: string }) => seen.push(type),
      error: (reason: unknown) => {
        error = reason;
      },
    };
    handle.events$.subscribe(observer);
    await fixture.clock.advance(500);
    expect([error, seen]).toEqual([undefined, []]);
    isKnown = true;
    await fixture.clock.advance(limits.askBackoffMsMax);
    expect([error, seen]).toEqual([undefined, ["submitted"]]);
    await fixture.swarm.close();
  });
});

describe("a filter by project", () => {
  it("reads the project's own pages, and keeps only the project's events", async () => {
    const fixture = await aClient();
    const task = (id: string, project: string) => ({ type: "TaskSubmitted", task: { id, project } });
    const ended = (project: string) => ({ type: "TaskExpired", project, task: "t1" });
    const events = [task("t1", "p1"), task("t1", "p2"), ended("p1"), ended("p2")];
    showing(fixture, [aBatch(1), aBatch(2, { events })]);
    const types: string[] = [];
    for await (const { event } of fixture.swarm.events({ project: "p2" })) types.push(event.type);
    expect(types).toEqual(["TaskSubmitted", "TaskExpired"]);
    expect(fixture.leader.of("query.events").map(({ project }) => project)).toEqual(["p2"]);
  });
});

describe("news", () => {
  it("of missing batches causes a search, and is then forgotten", async () => {
    const fixture = await aClient();
    const journal = batches(1, 3);
    showing(fixture, journal);
    const seen: number[] = [];
    fixture.swarm.events({ from: "start", follow: true }).subscribe(({ idx }) => seen.push(idx));
    await settled();
    fixture.leader.heartbeat({ idx: Number.MAX_SAFE_INTEGER });
    await fixture.clock.advance(limits.askTimeoutMs + 3 * limits.askBackoffMsMax);
    const asked = fixture.leader.of("query.journal").length;
    await fixture.clock.advance(10 * limits.journalPollMs);
    expect(fixture.leader.of("query.journal").length - asked).toBeLessThanOrEqual(10);
    journal.push(aBatch(4));
    fixture.leader.heartbeat({ idx: 4 });
    await settled();
    expect(seen).toEqual(upTo(4));
    await fixture.swarm.close();
  });

  it("are heard only while a follower exists", async () => {
    const fixture = await aClient();
    showing(fixture, batches(1, 3));
    const subjects: string[] = [];
    const subscribe = fixture.transport.subscribe.bind(fixture.transport);
    fixture.transport.subscribe = (subject, handler, options) => {
      subjects.push(subject);
      const subscription = subscribe(subject, handler, options);
      return {
        unsubscribe: () => {
          subjects.splice(subjects.indexOf(subject), 1);
          subscription.unsubscribe();
        },
      };
    };
    await collect(fixture.swarm.events());
    expect(subjects.filter((subject) => subject.includes("event"))).toEqual([]);
    const following = fixture.swarm.events({ from: "start", follow: true }).subscribe();
    await settled();
    expect(subjects.filter((subject) => subject.includes("event"))).toEqual(["waggle.v1.test.event.>"]);
    following.unsubscribe();
    await settled();
    expect(subjects.filter((subject) => subject.includes("event"))).toEqual([]);
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});
