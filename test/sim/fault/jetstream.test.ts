// The simulated JetStream under the production journal of segments: it must pass the checks of real servers, and each
// fault must do what its name says.

import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { JournalDamagedError, UnreachableError } from "../../../src/errors.ts";
import type { StreamJournal } from "../../../src/journal/stream/stream-journal.ts";
import { limits } from "../../../src/limits.ts";
import type { PublishFate, QuestionFate } from "../../../src/sim/fault/jetstream.ts";
import { describeJournal } from "../../journal/conformance.ts";
import { bytesOf, Follower, fill, filled, linesOf, range } from "../../journal/records.ts";
import { StreamWorld } from "../../journal/stream-world.ts";

const subject = "waggle.v1.test.journal.1";

describeJournal("a simulated JetStream", async (options) => {
  const world = new StreamWorld();
  return {
    open: async () => world.open(options),
    cutOff: async (journal) => {
      const tap = world.tapOf(journal as StreamJournal);
      tap.become("reconnecting");
      return async () => tap.become("connected");
    },
    dispose: async () => undefined,
  };
});

describe("an append to the simulated JetStream", () => {
  it.each<{ fate: PublishFate; outcome: string; stored: number }>([
    { fate: "refuse-uncommitted", outcome: "refused", stored: 0 },
    { fate: "false-duplicate", outcome: "unknown", stored: 0 },
    { fate: "full", outcome: "full", stored: 0 },
    { fate: "off", outcome: "unknown", stored: 0 },
    { fate: "nobody", outcome: "unknown", stored: 0 },
    { fate: "store", outcome: "stored", stored: 1 },
  ])("with fate $fate is $outcome", async ({ fate, outcome, stored }) => {
    const { world, journal } = await StreamWorld.withSegment();
    world.publishFates = [fate];
    expect((await journal.segment(1).append(bytesOf("a"), 0)).kind).toBe(outcome);
    expect(world.stream.lastSeq).toBe(stored);
  });

  it.each<{ fate: PublishFate; stored: number }>([
    { fate: "drop", stored: 0 },
    { fate: "store-unheard", stored: 1 },
    { fate: { lateMs: limits.appendTimeoutMs + 200 }, stored: 0 },
  ])("with fate $fate ends as unknown in time", async ({ fate, stored }) => {
    const { world, journal } = await StreamWorld.withSegment();
    world.publishFates = [fate];
    expect((await journal.segment(1).append(bytesOf("a"), 0)).kind).toBe("unknown");
    expect(world.stream.lastSeq).toBe(stored);
    if (typeof fate === "object") await expect.poll(() => world.stream.lastSeq).toBe(1);
  });

  it("acknowledged and forgotten is counted and never found", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    world.publishFates = ["store", "forget", "store"];
    await fill(segment, 3);
    expect(await segment.end()).toMatchObject({ position: 3, missing: 1 });
    expect(await segment.read(2)).toBeUndefined();
    await expect(linesOf(segment.replay(1))).rejects.toThrow(/record 2 of segment 1 is missing/);
  });
});

describe("an API request to the simulated JetStream", () => {
  it.each<{ fate: QuestionFate }>([
    { fate: "drop" },
    { fate: "unheard" },
    { fate: "nobody" },
    { fate: { lateMs: limits.appendTimeoutMs + 200 } },
  ])("to create a segment with fate $fate is repeated until the server answers", async ({ fate }) => {
    const world = new StreamWorld();
    const journal = world.open();
    world.questionFates = [{ verb: "STREAM.CREATE", fate }];
    await journal.create(1);
    expect(world.questionFates).toEqual([]);
    expect(await journal.list()).toEqual([1]);
  });

  it("to create a segment fails while JetStream is off", async () => {
    const world = new StreamWorld();
    const journal = world.open();
    world.questionFates = [{ verb: "STREAM.CREATE", fate: "off" }];
    await expect(journal.create(1)).rejects.toThrow(UnreachableError);
    expect(await journal.list()).toEqual([]);
  });

  it("to create a segment finds no room", async () => {
    const world = new StreamWorld();
    world.questionFates = [{ verb: "STREAM.CREATE", fate: "full" }];
    await expect(world.open().create(1)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
  });

  it("is answered by a server that lacks the newest records and the newest segment", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await journal.create(2);
    await fill(journal.segment(1), 3);
    const staleBy = 1;
    world.questionFates = ["STREAM.INFO", "STREAM.MSG.GET", "STREAM.NAMES"].map((verb) => ({
      verb,
      fate: { staleBy },
    }));
    expect(await journal.segment(1).end()).toMatchObject({ position: 2, missing: 0 });
    expect(await journal.list()).toEqual([1]);
    expect(await journal.segment(1).end()).toMatchObject({ position: 3 });
    expect(await journal.list()).toEqual([1, 2]);
  });

  it("does not find an existing record", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 2);
    world.questionFates = [{ verb: "STREAM.MSG.GET", fate: "not-found" }];
    expect(await journal.segment(1).read(1)).toBeUndefined();
    expect(await journal.segment(1).read(1)).toBeDefined();
  });

  it("does not find an existing stream: a cluster is asked again, a single server is believed", async () => {
    const { world, journal } = await StreamWorld.withSegment({ servers: "cluster" });
    await fill(journal.segment(1), 2);
    const missing = range(1, 3).map(() => ({ verb: "STREAM.INFO", fate: "not-found" as const }));
    world.questionFates = [...missing];
    expect(await journal.segment(1).end()).toMatchObject({ position: 2 });
    expect(world.questionFates).toEqual([]);
    world.questionFates = [...missing];
    expect(await world.open().segment(1).end()).toBeUndefined();
  });

  it("refuses subjects of a second stream, and lists names page by page", async () => {
    const { world } = await StreamWorld.withSegment();
    const ask = (verb: string, body: object) => {
      const reply = vi.fn();
      world.server.handle(`$JS.API.STREAM.${verb}`, bytesOf(JSON.stringify(body)), {}, reply);
      return reply.mock.calls[0]?.[0];
    };
    expect(ask("CREATE.OTHER", { name: "OTHER", subjects: [subject] })).toMatchObject({
      error: { err_code: 10065 },
    });
    expect(ask("CREATE.WAGGLE_test_1", { name: "WAGGLE_test_1", subjects: [] })).toMatchObject({
      error: { err_code: 10058 },
    });
    for (const number of range(1, 1_030))
      ask(`CREATE.S${number}`, { name: `S${number}`, subjects: [`s.${number}`] });
    expect(ask("NAMES", { subject: "s.*" })).toMatchObject({ total: 1_030, streams: { length: 1_024 } });
    expect(ask("NAMES", { subject: "s.>", offset: 1_024 }).streams).toHaveLength(6);
    expect(ask("NAMES", { subject: "s" })).toMatchObject({ total: 0, streams: [] });
  });
});

describe("a seal in the simulated JetStream", () => {
  it("is repeated until stored, whatever happens to its messages", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 2);
    world.publishFates = ["off", "store-unheard"];
    expect(await journal.segment(1).seal()).toBe(true);
    expect(world.stream.firstOf(`${subject}.sealed`)).toBe(3);
    expect(await journal.segment(1).end()).toMatchObject({ position: 2, isSealed: true });
  });

  it("is seen late by a lagging replica: no append passes it, and its sealer waits for the true end", async () => {
    const { world } = await StreamWorld.withSegment();
    const journal = world.open({ servers: "cluster" });
    await fill(journal.segment(1), 2);
    const rival = world.open({ servers: "cluster" }).segment(1);
    expect(await journal.segment(1).seal()).toBe(true);
    world.questionFates = [{ verb: "STREAM.MSG.GET", fate: { staleBy: 1 } }];
    expect(await rival.end()).toMatchObject({ position: 3, isSealed: false });
    const verb = "STREAM.MSG.GET";
    world.questionFates = [
      { verb, fate: "answer" },
      { verb, fate: { staleBy: 1 } },
    ];
    expect(await world.open({ servers: "cluster" }).segment(1).read(3)).toBeUndefined(); // a seal is no record
    world.questionFates = [];
    expect(await rival.append(bytesOf("late"), 2)).toEqual({ kind: "sealed" });
    world.questionFates = [{ verb: "STREAM.INFO", fate: { staleBy: 3 } }];
    expect(await journal.segment(1).end()).toMatchObject({ position: 2, isSealed: true, missing: 0 });
    expect(world.questionFates).toEqual([]);
  });

  it("ends a replay that took the seal for the last record, because a replica did not know the seal yet", async () => {
    const { world, journal } = await StreamWorld.withSegment({ servers: "cluster" });
    await fill(journal.segment(1), 2);
    expect(await journal.segment(1).seal()).toBe(true);
    world.questionFates = [{ verb: "STREAM.MSG.GET", fate: { staleBy: 1 } }];
    expect(await linesOf(world.open({ servers: "cluster" }).segment(1).replay(1))).toEqual(filled(1, 2));
    expect(world.questionFates).toEqual([]);
    await expect(linesOf(journal.segment(1).replay(1, { until: 3 }))).rejects.toThrow("ends at record 2");
  });

  it("stored before two overlapping appends refuses the first and hides the second from readers", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 2);
    const reader = world.open().segment(1);
    world.publishFates = [{ lateMs: 40 }, { lateMs: 80 }];
    const appends = [segment.append(bytesOf("first"), 2), segment.append(bytesOf("second"), 3)];
    expect(await reader.seal()).toBe(true);
    expect((await Promise.all(appends)).map(({ kind }) => kind)).toEqual(["sealed", "stored"]);
    expect(Buffer.from(world.stream.at(4) ?? []).toString()).toBe("second");
    expect(await reader.end()).toMatchObject({ position: 2, isSealed: true });
    expect(await reader.read(4)).toBeUndefined();
    expect(await linesOf(world.open().segment(1).follow(1, new AbortController().signal))).toEqual(
      filled(1, 2),
    );
  });

  it("is lost in a power loss: the segment is open again, and its sealer reports it as cut", {
    timeout: 10_000,
  }, async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 3);
    await journal.segment(1).seal();
    world.stream.loseTail(2);
    const other = world.open().segment(1);
    expect(await other.end()).toMatchObject({ position: 2, isSealed: false });
    expect(await journal.segment(1).append(bytesOf("late"), 2)).toEqual({ kind: "sealed" });
    expect(await journal.segment(1).end()).toMatchObject({ position: 2, isSealed: true });
    expect(await other.append(bytesOf("again"), 2)).toEqual({ kind: "stored" });
  });
});

describe("a power loss in the simulated JetStream", () => {
  it("takes the last records, and a follower waits for new records in their place", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 5);
    const follower = new Follower(segment);
    await follower.hasRead(5);
    world.tapOf(journal).become("reconnecting");
    world.stream.loseTail(2);
    world.server.restart();
    world.tapOf(journal).become("connected");
    await fill(segment, 6, 4);
    await follower.hasRead(6);
    await follower.stop();
    expect(follower.lines).toEqual(filled(1, 6));
  });

  it("tells a follower that records were written differently", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    const follower = new Follower(segment);
    await follower.hasRead(3);
    world.tapOf(journal).become("reconnecting");
    world.stream.loseTail(1);
    world.stream.intrude(bytesOf("other"));
    world.server.restart();
    world.tapOf(journal).become("connected");
    await expect(follower.ended).rejects.toThrow(/record 3 of segment 1 changed since it was read/);
  });

  it("takes messages that the server held or that were on their way", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    world.publishFates = [{ lateMs: 60 }];
    const held = segment.append(bytesOf("held"), 2);
    world.copyMs = 50;
    const refused = await world.open().segment(1).append(bytesOf("a rival's"), 2);
    world.copyMs = undefined;
    world.stream.loseTail(1);
    expect(refused).toEqual({ kind: "refused" });
    await segment.append(bytesOf("later"), 2);
    await expect.poll(() => world.copiesArrived).toBeGreaterThan(0);
    expect((await held).kind).toBe("unknown");
    expect(Buffer.from(world.stream.at(3) ?? []).toString()).toBe("later");
    expect(world.stream.lastSeq).toBe(3);
  });

  it("takes a new segment, or brings back a removed one", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await journal.create(2);
    await fill(journal.segment(2), 2);
    world.server.loseStream("WAGGLE_test_2");
    expect(await journal.list()).toEqual([1]);
    expect(await journal.segment(2).append(bytesOf("a"), 2)).toEqual({ kind: "missing" });
    await fill(journal.segment(1), 2);
    await journal.remove(1);
    expect(await journal.list()).toEqual([]);
    world.server.undoRemoval("WAGGLE_test_1");
    expect(await journal.list()).toEqual([1]);
    expect(await linesOf(journal.segment(1).replay(1))).toEqual(filled(1, 2));
  });
});

describe("damage in the simulated JetStream", () => {
  it("is a gap for every reader", { timeout: 10_000 }, async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 5);
    world.stream.loseMiddle(3, 1);
    expect(await journal.segment(1).end()).toMatchObject({ position: 5, missing: 1 });
    await expect(linesOf(journal.segment(1).replay(1))).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("flips a bit, and the server delivers the damaged record", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 3);
    world.stream.flipBit(2);
    const found = await journal.segment(1).read(2);
    expect(found?.bytes).toHaveLength(bytesOf("record 2").length);
    expect(found?.bytes).not.toEqual(bytesOf("record 2"));
  });

  it("is a foreign record, which takes a position", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    world.stream.intrude(bytesOf("foreign"));
    expect(await journal.segment(1).append(bytesOf("a"), 0)).toEqual({ kind: "refused" });
    expect(await linesOf(journal.segment(1).replay(1))).toEqual(["1:foreign"]);
  });
});

describe("a consumer of the simulated JetStream", () => {
  const request = { reader: "r", batch: 10, max_bytes: 1_000, idle_heartbeat: 5_000_000 };

  function heardBy(world: StreamWorld, name: string, fromSeq: number): string[] {
    const heard: string[] = [];
    world.stream.createConsumer(name, fromSeq);
    world.stream.pull(
      name,
      request,
      ({ data, status }) => void heard.push(status?.description ?? Buffer.from(data).toString()),
      systemClock,
    );
    return heard;
  }

  it("no longer served hears of no new records until it is recreated", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 2);
    const heard = heardBy(world, "one", 1);
    world.stream.stopServing("r");
    await fill(journal.segment(1), 3, 3);
    await vi.waitFor(() => expect(heard).toContain("Idle Heartbeat"));
    expect(heard).not.toContain("record 3");
    expect(heardBy(world, "two", 3)).toContain("record 3");
    world.stream.forgetConsumers();
  });

  it("requested twice stays unchanged, and hears of the stream's removal", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    await fill(journal.segment(1), 2);
    const heard = heardBy(world, "one", 1);
    world.stream.createConsumer("one", 1);
    await fill(journal.segment(1), 3, 3);
    await journal.remove(1);
    expect(heard.filter((line) => line !== "Idle Heartbeat")).toEqual([
      "record 1",
      "record 2",
      "record 3",
      "Consumer Deleted",
    ]);
  });
});
