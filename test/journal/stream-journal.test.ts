// Reading a stream whose server loses, withholds and forgets. Every case ends with all records once and in
// order, or with an error that names what is missing.

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { StreamJournal } from "../../src/journal/stream/stream-journal.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { FAKE_SUBJECT, FakeStream } from "./fake-stream.ts";
import { bytesOf, Follower, range, tell, toldOf } from "./records.ts";

function aStream(lastSeq: number) {
  const stream = new FakeStream();
  for (const seq of range(1, lastSeq)) stream.put(bytesOf(`record ${seq}`));
  const options = { wire: stream, stream: "STREAM", subject: FAKE_SUBJECT, replicas: 1 };
  const clock = new ManualClock();
  return {
    stream,
    clock,
    journal: new StreamJournal(options),
    timed: new StreamJournal({ ...options, clock }),
  };
}

function putMore(stream: FakeStream, count: number): void {
  for (const seq of range(stream.lastSeq + 1, stream.lastSeq + count)) stream.put(bytesOf(`record ${seq}`));
}

/** What the absence of heartbeats would bring about as well, only later. */
async function withoutWaitingForHeartbeats(reading: Promise<void>): Promise<void> {
  const started = performance.now();
  await reading;
  expect(performance.now() - started).toBeLessThan(
    limits.journalHeartbeatMs * limits.journalHeartbeatsMissedMax,
  );
}

describe("reading a stream", () => {
  it("asks again when a pull is used up", async () => {
    const count = 2 * limits.journalPullRecords + 3;
    const { stream, journal } = aStream(count);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, count));
    expect(stream.begun).toEqual([1]);
  });

  it("has Node warn of no leak, however many read at once", async () => {
    const { stream, journal } = aStream(3);
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on("warning", note);
    stream.isMute = true;
    const readings = range(1, 12).map(() => tell(journal.replay(1)));
    await expect.poll(() => stream.begun.length).toBe(12);
    await journal.close();
    await Promise.allSettled(readings);
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  it("leaves no listener at a signal that outlives it, as of a follower that opens the journal again and again", async () => {
    const { signal } = new AbortController();
    for (const _ of range(1, 12)) {
      const { journal } = aStream(3);
      for await (const { seq } of journal.follow(1, signal)) if (seq === 3) break;
      await journal.close();
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("asks for more at once where a record does not fit what it asks for ahead", async () => {
    const { stream, journal } = aStream(0);
    for (const bytes of [100, 5_000, 100]) stream.put(new Uint8Array(bytes));
    const seqs: number[] = [];
    for await (const { seq } of journal.replay(1, { aheadBytes: 1_000 })) seqs.push(seq);
    expect(seqs).toEqual([1, 2, 3]);
    expect(stream.begun).toEqual([1]);
  });

  it("begins anew at the record read last when one is lost on the way", async () => {
    const { stream, journal } = aStream(10);
    stream.lost.add(6);
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 10));
    expect(stream.begun).toEqual([1, 5]);
  });

  it("begins anew when the last one is lost and only a heartbeat knows", async () => {
    const { stream, journal } = aStream(3);
    stream.lost.add(4);
    const follower = new Follower(journal);
    await follower.hasRead(3);
    putMore(stream, 1);
    stream.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 4 });
    await withoutWaitingForHeartbeats(follower.hasRead(4));
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 4));
  });

  it("stays with its consumer while heartbeats know no more than came", async () => {
    const { stream, journal } = aStream(3);
    const follower = new Follower(journal);
    await follower.hasRead(3);
    stream.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 3, lastStreamSeq: 3 });
    stream.say({ code: 408, description: "Request Timeout" });
    stream.say({ code: 409, description: "Message Size Exceeds MaxBytes" });
    putMore(stream, 1);
    await follower.hasRead(4);
    await follower.stop();
    expect(stream.begun).toEqual([1]);
  });

  it.each([
    { code: 409, description: "Consumer Deleted" },
    { code: 409, description: "Leadership Change" },
    { code: 503, description: "" },
  ])("begins anew after $code $description", async (status) => {
    const { stream, journal } = aStream(3);
    const follower = new Follower(journal);
    await follower.hasRead(3);
    stream.say(status);
    stream.forgetConsumers();
    putMore(stream, 1);
    await follower.hasRead(4);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 4));
    expect(stream.begun).toEqual([1, 3]);
  });

  it("begins anew when heartbeats stay away", async () => {
    const { stream, journal } = aStream(3);
    const follower = new Follower(journal);
    await follower.hasRead(3);
    stream.forgetConsumers();
    putMore(stream, 1);
    await follower.hasRead(4);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 4));
  });

  it("waits for the connection and goes on behind what it has", async () => {
    const { stream, journal } = aStream(3);
    const follower = new Follower(journal);
    await follower.hasRead(3);
    stream.become("reconnecting");
    stream.forgetConsumers();
    putMore(stream, 2);
    stream.become("connected");
    await withoutWaitingForHeartbeats(follower.hasRead(5));
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 5));
  });

  it("holds of what arrived only the record, not what arrived along with it", async () => {
    const { stream, journal } = aStream(0);
    stream.put(Buffer.alloc(65_536).subarray(8, 18));
    for await (const { bytes } of journal.replay(1)) expect(bytes.buffer.byteLength).toBe(10);
  });

  it("understands deliveries that name domain and account", async () => {
    const { stream, journal } = aStream(5);
    stream.ackPrefix = "$JS.ACK.hub.A1B2.STREAM";
    expect(await tell(journal.replay(2))).toEqual(toldOf(2, 5));
  });

  it("names the record of a hole", async () => {
    const { stream, journal } = aStream(9);
    stream.records.delete(5);
    stream.records.delete(6);
    const replay = tell(journal.replay(1));
    await expect(replay).rejects.toThrow(JournalDamagedError);
    await expect(replay).rejects.toThrow("lost record 5 and goes on to 9");
    await expect(tell(journal.replay(6))).rejects.toThrow("lost record 6");
    expect(await tell(journal.replay(7))).toEqual(toldOf(7, 9));
  });

  it("names the first record of an end that the server counts and passes over", async () => {
    const { stream, timed, clock } = aStream(9);
    for (const seq of range(7, 9)) stream.records.delete(seq);
    const reasons: string[] = [];
    for (const reading of [timed.follow(1, new AbortController().signal), timed.replay(1)])
      tell(reading).catch((error: Error) => reasons.push(error.message));
    await clock.settle();
    for (let beats = 0; beats * limits.journalHeartbeatMs <= limits.journalHoleMs + 1_000; beats += 1) {
      stream.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 6, lastStreamSeq: 9 });
      await clock.advance(limits.journalHeartbeatMs);
    }
    const lost = expect.stringContaining("lost record 7");
    expect(reasons).toEqual([lost, lost]);
  });

  it("stays with its consumer where all that it read was purged, and no more", async () => {
    const { stream, timed, clock } = aStream(3);
    const follower = new Follower(timed);
    await follower.hasRead(3);
    await stream.ask("$JS.API.STREAM.PURGE.STREAM", bytesOf('{"seq":4}'));
    stream.say({ code: 409, description: "Consumer Deleted" });
    await clock.advance(limits.journalRetryMs);
    for (let beats = 0; beats < 2; beats += 1) {
      stream.say({ code: 100, description: "Idle Heartbeat", lastConsumerSeq: 0, lastStreamSeq: 3 });
      await clock.advance(limits.journalHeartbeatMs);
    }
    putMore(stream, 1);
    await follower.hasRead(4);
    await follower.stop();
    expect(stream.begun).toEqual([1, 3]);
  });

  it("counts what is missing between the first record and the last", async () => {
    const { stream, journal } = aStream(9);
    stream.records.delete(5);
    stream.records.delete(6);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 9, missing: 2 });
    await journal.purgeBelow(4);
    expect(await journal.position()).toEqual({ firstSeq: 4, lastSeq: 9, missing: 2 });
    await journal.purgeBelow(8);
    expect(await journal.position()).toEqual({ firstSeq: 8, lastSeq: 9, missing: 0 });
  });

  it("asks the server to purge no further than its last record, and nothing that is purged already", async () => {
    const { stream, journal } = aStream(9);
    for (const seq of [100, 9, 3]) await journal.purgeBelow(seq);
    expect(stream.purges).toEqual([9]);
  });

  it("asks for its last record to be purged only where it ends there, and no other server could lead it", async () => {
    const { stream, journal } = aStream(9);
    const options = { wire: stream, stream: "STREAM", subject: FAKE_SUBJECT, replicas: 3 };
    const replicated = new StreamJournal(options);
    expect([await journal.purgeThrough(8), await replicated.purgeThrough(9)]).toEqual([false, false]);
    putMore(stream, 1);
    expect(await journal.purgeThrough(9)).toBe(false);
    expect(stream.purges).toEqual([]);
    expect(await journal.purgeThrough(10)).toBe(true);
    expect(stream.purges).toEqual([11]);
    expect(await journal.position()).toEqual({ firstSeq: 11, lastSeq: 10, missing: 0 });
  });

  it("asks for it, too, where the server describes less than it counts, as 2.9 behind a damaged block", async () => {
    const { stream, journal } = aStream(6);
    expect(await journal.purgeThrough(9)).toBe(false);
    stream.countsMoreBy = 4;
    expect(await journal.purgeThrough(9)).toBe(false); // somebody went on
    expect(stream.purges).toEqual([]);
    stream.countsMoreBy = 3;
    expect(await journal.purgeThrough(9)).toBe(true);
    expect(stream.purges).toEqual([10]);
    stream.become("reconnecting");
    await expect(journal.purgeThrough(12)).rejects.toThrow(UnreachableError);
  });

  it("waits for a stream that is shorter than it was, and reads on when it is refilled", async () => {
    const { stream, journal } = aStream(4);
    const follower = new Follower(journal);
    await follower.hasRead(4);
    stream.become("reconnecting");
    stream.forgetConsumers();
    stream.records.delete(4);
    stream.records.delete(3);
    stream.lastSeq = 2;
    stream.become("connected");
    putMore(stream, 3);
    await follower.hasRead(5);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 5));
  });

  it("holds no more than a pull and a half while nobody takes what came", async () => {
    const { stream, journal } = aStream(0);
    const megabyte = new Uint8Array(1_000_000);
    for (const _ of range(1, 40)) stream.put(megabyte);
    const heldMax = Math.ceil((1.5 * limits.journalPullBytes) / megabyte.length);
    let taken = 0;
    for await (const _ of journal.replay(1)) {
      taken += 1;
      await new Promise((resolve) => setImmediate(resolve));
      expect(stream.delivered - taken).toBeLessThanOrEqual(heldMax);
    }
    expect(taken).toBe(40);
  });
});

it("a record that the server cannot read is not found", async () => {
  const { stream, journal } = aStream(3);
  stream.unreadable.add(2);
  expect(await journal.read(2)).toBeUndefined();
  expect(await journal.read(3)).toMatchObject({ seq: 3 });
});

describe("a stream that is another one", () => {
  it("is damage, whoever asks: it was deleted and made again", async () => {
    const { stream, journal } = aStream(3);
    await journal.position();
    const follower = new Follower(journal);
    await follower.hasRead(3);
    stream.created = "2026-11-21T21:00:00Z";
    await expect(journal.position()).rejects.toThrow(/made again.*Stop all coordinators/s);
    await expect(journal.usage()).rejects.toBeInstanceOf(JournalDamagedError);
    await expect(tell(journal.replay(1))).rejects.toBeInstanceOf(JournalDamagedError);
    stream.say({ code: 409, description: "Consumer Deleted" });
    await expect(follower.ended).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("is none that its server was just making, and says no time of yet", async () => {
    const { stream, journal } = aStream(3);
    const { created } = stream;
    const notYet = "0001-01-01T00:00:00Z";
    stream.created = notYet;
    await journal.position();
    stream.created = created;
    expect(await journal.position()).toMatchObject({ lastSeq: 3 });
    stream.created = notYet;
    expect(await journal.position()).toMatchObject({ lastSeq: 3 });
    stream.created = "2026-11-21T21:00:00Z";
    await expect(journal.position()).rejects.toThrow(/made again/);
  });

  it("is gone only when that was said for long enough, without a word to the contrary", async () => {
    const { stream, clock, timed } = aStream(3);
    await timed.position();
    stream.created = undefined;
    const look = async () => await expect(timed.position()).rejects.toBeInstanceOf(UnreachableError);
    await look();
    await clock.advance(limits.streamMissingMs - 1);
    await timed.read(1);
    for (let looks = 1; looks < limits.lossLooksMin; looks += 1) {
      await look();
      await clock.advance(limits.streamMissingMs / (limits.lossLooksMin - 1));
    }
    await expect(timed.position()).rejects.toThrow(/is gone.*Stop all coordinators/s);
  });

  it("is not gone for words of that between which nobody answered", async () => {
    const { stream, clock, timed } = aStream(3);
    await timed.position();
    stream.created = undefined;
    const look = async () => await expect(timed.position()).rejects.toBeInstanceOf(UnreachableError);
    for (let looks = 0; looks < limits.lossLooksMin; looks += 1) await look();
    await clock.advance(limits.streamMissingMs);
    stream.become("reconnecting");
    await look();
    stream.become("connected");
    await look();
    await clock.advance(limits.streamMissingMs - 1);
    for (let looks = 0; looks < limits.lossLooksMin; looks += 1) await look();
  });
});
