// Reads a segment from a stream while the server loses, withholds and forgets messages. Every case ends with
// all records once and in order, or with an error that names the missing record.

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bytesOf, Follower, fill, filled, linesOf, range } from "./records.ts";
import { type OpenOptions, StreamWorld } from "./stream-world.ts";

/** Segment 1 with `last` records, and a reader of it with a connection of its own. */
async function aSegment(last: number, options: OpenOptions = {}) {
  const { world, journal } = await StreamWorld.withSegment();
  const writer = journal.segment(1);
  await fill(writer, last);
  const reading = world.open(options);
  return { world, writer, journal: reading, reader: reading.segment(1), tap: world.tapOf(reading) };
}

/** The absence of heartbeats would bring the same, only later. */
async function withoutWaitingForHeartbeats(reading: Promise<void>): Promise<void> {
  const started = performance.now();
  await reading;
  const silenceMs = limits.journalHeartbeatMs * limits.journalHeartbeatsMissedMax;
  expect(performance.now() - started).toBeLessThan(silenceMs);
}

describe("reading a segment from a stream", () => {
  it("requests again when a pull is used up", async () => {
    const count = 2 * limits.journalPullRecords + 3;
    const { reader, tap } = await aSegment(count);
    expect(await linesOf(reader.replay(1))).toEqual(filled(1, count));
    expect(tap.begun).toEqual([1]);
  });

  it("requests more at once if a record exceeds the bytes requested ahead", async () => {
    const { world, writer, tap, reader } = await aSegment(0);
    for (const [at, size] of [100, 5_000, 100].entries()) await writer.append(new Uint8Array(size), at);
    const positions: number[] = [];
    for await (const { position } of reader.replay(1, { aheadBytes: 1_000 })) positions.push(position);
    expect(positions).toEqual([1, 2, 3]);
    expect(tap.begun).toEqual([1]);
    expect(world.stream.lastSeq).toBe(3);
  });

  it("makes a consumer at the record read last when a delivery is lost", async () => {
    const { reader, tap } = await aSegment(10);
    tap.lost.add(6);
    expect(await linesOf(reader.replay(1))).toEqual(filled(1, 10));
    expect(tap.begun).toEqual([1, 5]);
  });

  it("makes a consumer when the last delivery is lost and only a heartbeat counts it", async () => {
    const { writer, reader, tap } = await aSegment(3);
    tap.lost.add(4);
    const follower = new Follower(reader);
    await follower.hasRead(3);
    await fill(writer, 4, 4);
    tap.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 4 });
    await withoutWaitingForHeartbeats(follower.hasRead(4));
    await follower.stop();
    expect(follower.lines).toEqual(filled(1, 4));
  });

  it("keeps its consumer while heartbeats count no more than arrived", async () => {
    const { writer, reader, tap } = await aSegment(3);
    const follower = new Follower(reader);
    await follower.hasRead(3);
    tap.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 3, lastStreamSeq: 3 });
    tap.say({ code: 408, description: "Request Timeout" });
    tap.say({ code: 409, description: "Message Size Exceeds MaxBytes" });
    await fill(writer, 4, 4);
    await follower.hasRead(4);
    await follower.stop();
    expect(tap.begun).toEqual([1]);
  });

  it.each([
    { code: 409, description: "Consumer Deleted" },
    { code: 409, description: "Leadership Change" },
    { code: 503, description: "" },
  ])("makes a consumer after $code $description", async (status) => {
    const { world, writer, reader, tap } = await aSegment(3);
    const follower = new Follower(reader);
    await follower.hasRead(3);
    tap.say(status);
    world.stream.forgetConsumers();
    await fill(writer, 4, 4);
    await withoutWaitingForHeartbeats(follower.hasRead(4));
    await follower.stop();
    expect(follower.lines).toEqual(filled(1, 4));
    expect(tap.begun).toEqual([1, 3]);
  });

  it("makes a consumer when heartbeats stay away", async () => {
    const { world, writer, reader } = await aSegment(3);
    const follower = new Follower(reader);
    await follower.hasRead(3);
    world.stream.forgetConsumers();
    await fill(writer, 4, 4);
    await follower.hasRead(4);
    await follower.stop();
    expect(follower.lines).toEqual(filled(1, 4));
  });

  it("makes a consumer if heartbeats arrive and a stored record does not", async () => {
    const { reader, tap } = await aSegment(5);
    tap.staleConsumers = 1;
    expect(await linesOf(reader.replay(1))).toEqual(filled(1, 5));
    expect(tap.begun).toEqual([1, 1]);
  });

  it("gives up a replay if no consumer delivers the stored records", async () => {
    const { reader, tap } = await aSegment(5);
    tap.staleConsumers = Number.POSITIVE_INFINITY;
    const replaying = linesOf(reader.replay(1, { patienceMs: 1_000 }));
    await expect(replaying).rejects.toThrow("consumers keep breaking");
  });

  it("makes a consumer when a request expires without any record", async () => {
    const { writer, reader, tap } = await aSegment(3);
    tap.staleConsumers = 1;
    const follower = new Follower(reader, 4);
    await expect.poll(() => tap.begun).toEqual([4]);
    await fill(writer, 4, 4);
    tap.say({ code: 408, description: "Request Timeout" });
    await withoutWaitingForHeartbeats(follower.hasRead(1));
    await follower.stop();
    expect(follower.lines).toEqual(filled(4, 4));
  });

  it("waits for the connection and continues after the last record read", async () => {
    const { world, writer, reader, tap } = await aSegment(3);
    const follower = new Follower(reader);
    await follower.hasRead(3);
    tap.become("reconnecting");
    world.stream.forgetConsumers();
    await fill(writer, 5, 4);
    tap.become("connected");
    await withoutWaitingForHeartbeats(follower.hasRead(5));
    await follower.stop();
    expect(follower.lines).toEqual(filled(1, 5));
  });

  it("returns as soon as the seal arrives, and keeps no bytes that arrived with a record", async () => {
    const { writer, reader } = await aSegment(0);
    await writer.append(Buffer.alloc(65_536).subarray(8, 18), 0);
    const sizes: number[] = [];
    const following = (async () => {
      for await (const { bytes } of reader.follow(1, new AbortController().signal))
        sizes.push(bytes.buffer.byteLength);
    })();
    await expect.poll(() => sizes).toEqual([10]);
    await writer.seal();
    await withoutWaitingForHeartbeats(following);
  });

  it("understands deliveries that name domain and account", async () => {
    const { reader, tap } = await aSegment(5);
    tap.ackPrefix = "$JS.ACK.hub.A1B2.STREAM";
    expect(await linesOf(reader.replay(2))).toEqual(filled(2, 5));
  });

  it("buffers at most one and a half pulls while the reader takes no records", async () => {
    const { writer, reader, tap } = await aSegment(0);
    const megabyte = new Uint8Array(1_000_000);
    for (const at of range(0, 19)) await writer.append(megabyte, at);
    const heldMax = Math.ceil((1.5 * limits.journalPullBytes) / megabyte.length);
    let taken = 0;
    for await (const _ of reader.replay(1)) {
      taken += 1;
      await new Promise((resolve) => setImmediate(resolve));
      expect(tap.delivered - taken).toBeLessThanOrEqual(heldMax);
    }
    expect(taken).toBe(20);
  });

  it("lets Node warn of no leak, however many read at once, and leaves no listener at a signal", async () => {
    const { journal, reader, tap, world } = await aSegment(3);
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on("warning", note);
    tap.isMute = true;
    const readings = range(1, 12).map(() => linesOf(reader.replay(1)));
    await expect.poll(() => tap.begun.length).toBe(12);
    await journal.close();
    await Promise.allSettled(readings);
    process.off("warning", note);
    expect(warnings).toEqual([]);
    const { signal } = new AbortController();
    for await (const { position } of world.open().segment(1).follow(1, signal)) if (position === 3) break;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("reading a segment that lost records", () => {
  it("names the first record of a gap", { timeout: 30_000 }, async () => {
    const { world, reader } = await aSegment(9);
    world.stream.loseMiddle(5, 2);
    const startedMs = performance.now();
    const endings = await Promise.allSettled([linesOf(reader.replay(1)), linesOf(reader.replay(6))]);
    expect(performance.now() - startedMs).toBeLessThan(limits.journalGapMs); // the word of the only server
    expect(endings.map((ending) => ending.status === "rejected" && ending.reason.message)).toEqual([
      expect.stringContaining("record 5 of segment 1 is missing, and the segment ends at 9"),
      expect.stringContaining("record 6 of segment 1 is missing"),
    ]);
    expect(await linesOf(reader.replay(7))).toEqual(filled(7, 9));
  });

  it("reports a gap of a cluster only after it lasted, for a server that takes over may not know", {
    timeout: 30_000,
  }, async () => {
    const { world, reader } = await aSegment(9, { servers: "cluster" });
    world.stream.loseMiddle(5, 2);
    const startedMs = performance.now();
    await expect(linesOf(reader.replay(1))).rejects.toThrow("record 5 of segment 1 is missing");
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(limits.journalGapMs);
  });

  it("names the first record of an end that the server counts and passes over", {
    timeout: 30_000,
  }, async () => {
    const { world, writer, reader } = await aSegment(6);
    world.publishFates = ["forget", "forget"];
    await fill(writer, 8, 7);
    const follower = new Follower(reader);
    await expect(linesOf(reader.replay(1))).rejects.toThrow("record 7 of segment 1 is missing");
    await expect(follower.ended).rejects.toThrow("record 7 of segment 1 is missing");
    expect(follower.lines).toEqual(filled(1, 6));
  });
});

describe("a stream that a cluster does not know", () => {
  it("is missing only after the same answer for long enough, without a different answer in between", async () => {
    const clock = new ManualClock();
    const world = new StreamWorld(clock);
    const segment = world.open({ servers: "cluster" }).segment(7);
    const known = world.open({ servers: "cluster" });
    let end: unknown = "not known";
    void segment.end().then((value) => {
      end = value;
    });
    const append = async () => (await segment.append(bytesOf("a"), 0)).kind;
    await clock.advance(limits.streamMissingMs / 2);
    expect([end, await append()]).toEqual(["not known", "unknown"]);
    await clock.advance(limits.streamMissingMs);
    expect([end, await append()]).toEqual([undefined, "missing"]);
    await known.create(7);
    expect(await append()).toBe("stored");
  });

  it("is not missing without an answer", async () => {
    const { world, journal } = await StreamWorld.withSegment({ servers: "cluster" });
    world.questionFates = [{ verb: "STREAM.INFO", fate: "nobody" }];
    await expect(journal.segment(2).end()).rejects.toThrow(UnreachableError);
    world.publishFates = ["nobody"];
    expect(await journal.segment(1).append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
  });
});
