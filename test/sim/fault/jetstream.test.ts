// The simulated JetStream under the production journal: it must pass what real servers pass, and its faults must be
// what they are called.

import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { JournalDamagedError } from "../../../src/errors.ts";
import { swarmId } from "../../../src/ids.ts";
import { streamConfigOf } from "../../../src/journal/stream/settings.ts";
import { StreamJournal } from "../../../src/journal/stream/stream-journal.ts";
import { limits } from "../../../src/limits.ts";
import {
  type PublishFate,
  type QuestionFate,
  SimJetStream,
  type SimStream,
} from "../../../src/sim/fault/jetstream.ts";
import { type Line, SimStreamWire } from "../../../src/sim/fault/jetstream-wire.ts";
import { describeJournal } from "../../journal/conformance.ts";
import { bytesOf, Follower, fill, tell, toldOf } from "../../journal/records.ts";

const config = streamConfigOf({ swarm: swarmId("test"), purpose: "journal", bytesMax: 1024 ** 3 });
const { name, subjects } = config as { name: string; subjects: string[] };

/** A line without delay, and what happens to messages at its end. */
class World {
  /** Of what goes to the server: it arrives so much later again, ms. */
  copyMs: number | undefined;
  copiesArrived = 0;
  publishFates: PublishFate[] = [];
  questionFates: QuestionFate[] = [];
  status: Line["status"] = "connected";
  readonly #listeners = new Set<() => void>();
  readonly server = new SimJetStream(systemClock, {
    onPublish: () => this.publishFates.shift() ?? "store",
    onQuestion: () => this.questionFates.shift() ?? "answer",
  });

  constructor() {
    this.server.handle(
      `$JS.API.STREAM.CREATE.${name}`,
      new TextEncoder().encode(JSON.stringify(config)),
      {},
      () => undefined,
    );
  }

  get stream(): SimStream {
    return this.server.stream(name) as SimStream;
  }

  open(): StreamJournal {
    const line: Line = {
      status: "connected",
      carry: (direction, arrive) => {
        setImmediate(arrive);
        if (direction !== "there" || this.copyMs === undefined) return;
        setTimeout(() => {
          arrive();
          this.copiesArrived += 1;
        }, this.copyMs);
      },
      onStatus: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
    Object.defineProperty(line, "status", { get: () => this.status });
    const maxPayloadBytes = limits.maxPayloadBytesDefault;
    const wire = new SimStreamWire({
      ...{ server: this.server, line, reader: "r", clock: systemClock, maxPayloadBytes },
    });
    return new StreamJournal({ wire, stream: name, subject: subjects[0] ?? "", replicas: 3 });
  }

  become(status: Line["status"]): void {
    this.status = status;
    for (const listener of [...this.#listeners]) listener();
  }
}

describeJournal("a simulated JetStream", async () => {
  const world = new World();
  return { open: async () => world.open(), dispose: async () => undefined };
});

describe("the simulated JetStream's faults", () => {
  it.each<{ fate: PublishFate; outcome: string; stored: number }>([
    { fate: "refuse-uncommitted", outcome: "refused", stored: 0 },
    { fate: "false-duplicate", outcome: "unknown", stored: 0 },
    { fate: "full", outcome: "full", stored: 0 },
    { fate: "off", outcome: "unknown", stored: 0 },
    { fate: "nobody", outcome: "unknown", stored: 0 },
    { fate: "store", outcome: "stored", stored: 1 },
  ])("an append that meets $fate is $outcome", async ({ fate, outcome, stored }) => {
    const world = new World();
    world.publishFates = [fate];
    expect((await world.open().append(bytesOf("a"), 0)).kind).toBe(outcome);
    expect(world.stream.lastSeq).toBe(stored);
  });

  it.each<{ fate: PublishFate; stored: number }>([
    { fate: "drop", stored: 0 },
    { fate: "store-unheard", stored: 1 },
    { fate: { lateMs: limits.appendTimeoutMs + 200 }, stored: 0 },
  ])("an append that meets $fate ends unknown, in time", async ({ fate, stored }) => {
    const world = new World();
    world.publishFates = [fate];
    expect((await world.open().append(bytesOf("a"), 0)).kind).toBe("unknown");
    expect(world.stream.lastSeq).toBe(stored);
    if (typeof fate === "object") await expect.poll(() => world.stream.lastSeq).toBe(1);
  });

  it("a stale answer knows neither the newest record nor that there is one", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 3);
    world.questionFates = [{ staleBy: 1 }, { staleBy: 1 }];
    expect(await journal.position()).toMatchObject({ lastSeq: 2 });
    expect(await journal.read(3)).toBeUndefined();
    expect(await journal.position()).toMatchObject({ lastSeq: 3 });
  });

  it("a tail is lost with the server's life, and followers wait for it to be refilled", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 5);
    const follower = new Follower(journal);
    await follower.hasRead(5);
    world.become("reconnecting");
    world.stream.loseTail(2);
    world.server.restart();
    world.become("connected");
    await fill(journal, 6, 4);
    await follower.hasRead(6);
    await follower.stop();
    expect(follower.lines).toEqual(toldOf(1, 6));
  });

  it("a server that loses its end has lost what it held and had not stored", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 3);
    const lateMs = 100;
    world.publishFates = [{ lateMs }, { lateMs: 2 * lateMs }];
    const lost = journal.append(bytesOf("late"), 2);
    await expect.poll(() => world.publishFates).toHaveLength(1);
    world.stream.loseTail(1);
    await journal.append(bytesOf("later"), 2);
    expect(Buffer.from(world.stream.at(3) ?? []).toString()).toBe("later");
    expect((await lost).kind).toBe("unknown");
  });

  it("…and the copy of an append that it refused, whose place is free now", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 3);
    world.copyMs = 50;
    expect(await journal.append(bytesOf("a rival's"), 2)).toEqual({ kind: "refused" });
    world.copyMs = undefined;
    world.stream.loseTail(1);
    await expect.poll(() => world.copiesArrived).toBe(1);
    expect(world.stream.lastSeq).toBe(2);
  });

  it("…and a purge on its way, which would take what stands there now", async () => {
    const world = new World();
    await fill(world.open(), 5);
    const subject = `$JS.API.STREAM.PURGE.${name}`;
    const purge = new TextEncoder().encode(JSON.stringify({ seq: 4 }));
    const reply = vi.fn();
    const sent = { tailLosses: world.server.tailLossesOf(subject) };
    world.stream.loseTail(3);
    for (const line of ["another's", "line", "of three"]) world.stream.intrude(bytesOf(line));
    world.server.handle(subject, purge, {}, reply, sent);
    expect([world.stream.firstSeq, reply.mock.calls]).toEqual([1, []]);
    world.server.handle(subject, purge, {}, reply, { tailLosses: world.server.tailLossesOf(subject) });
    expect([world.stream.firstSeq, reply.mock.calls]).toEqual([4, [[{ success: true, purged: 3 }]]]);
  });

  it("a hole is damage to whoever reads across it", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 5);
    world.stream.loseMiddle(3, 1);
    await expect(tell(journal.replay(1))).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("what only a stale answer does not find is no hole", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 5);
    world.questionFates = ["answer", "answer", { staleBy: 5 }];
    expect(await tell(journal.replay(1))).toEqual(toldOf(1, 5));
    expect(world.questionFates).toEqual([]);
  });

  it("what is acknowledged and forgotten is counted, and never found", async () => {
    const world = new World();
    const journal = world.open();
    world.publishFates = ["store", "forget", "store"];
    await fill(journal, 3);
    expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 3, missing: 1 });
    expect(await journal.read(2)).toBeUndefined();
    await expect(tell(journal.replay(1))).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("an intruder's record takes a place", async () => {
    const world = new World();
    const journal = world.open();
    world.stream.intrude(bytesOf("alien"));
    expect(await journal.append(bytesOf("a"), 0)).toEqual({ kind: "refused" });
    expect(await tell(journal.replay(1))).toEqual(["1:alien"]);
  });

  it("a stream that is bounded anew keeps what it holds, and takes more once it is purged", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 3);
    world.stream.bound(1);
    expect(world.stream.fullShare).toBe(1);
    const { bytes, bytesMax } = await journal.usage();
    expect(bytesMax).toBe(bytes);
    expect((await journal.append(bytesOf("b"), 3)).kind).toBe("full");
    world.stream.purge(3);
    expect((await journal.append(bytesOf("b"), 3)).kind).toBe("stored");
    expect(await tell(journal.replay(3))).toEqual([...toldOf(3, 3), "4:b"]);
  });

  it("what is purged is gone, and reading begins behind it", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 5);
    world.stream.purge(4);
    expect(await journal.position()).toMatchObject({ firstSeq: 4, lastSeq: 5 });
    expect(await tell(journal.replay(4))).toEqual(toldOf(4, 5));
  });

  it("a reader that is served no longer hears that there is nothing new, until it asks anew", async () => {
    const world = new World();
    await fill(world.open(), 2);
    const heard: string[] = [];
    const request = { reader: "r", batch: 10, max_bytes: 1_000, idle_heartbeat: 5_000_000 };
    const listen = ({ data, status }: { data: Uint8Array; status?: { description: string } }) =>
      void heard.push(status?.description ?? Buffer.from(data).toString());
    world.stream.createConsumer("one", 1);
    world.stream.pull("one", request, listen, systemClock);
    world.stream.stopServing("r");
    await fill(world.open(), 3, 3);
    await vi.waitFor(() => expect(heard).toContain("Idle Heartbeat"));
    expect(heard).not.toContain("record 3");
    world.stream.forgetConsumers();
    world.stream.createConsumer("two", 3);
    world.stream.pull("two", request, listen, systemClock);
    expect(heard).toContain("record 3");
    world.stream.forgetConsumers();
  });

  it("a record is not found though it is there", async () => {
    const world = new World();
    const journal = world.open();
    await fill(journal, 2);
    world.questionFates = ["not-found"];
    expect(await journal.read(1)).toBeUndefined();
    expect(await journal.read(1)).toBeDefined();
  });

  it("a consumer that is asked for twice goes on as it was", async () => {
    const world = new World();
    await fill(world.open(), 2);
    world.stream.createConsumer("one", 1);
    const heard: string[] = [];
    const request = { reader: "r", batch: 10, max_bytes: 1_000, idle_heartbeat: 1e12 };
    world.stream.pull(
      "one",
      request,
      ({ data }) => void heard.push(Buffer.from(data).toString()),
      systemClock,
    );
    world.stream.createConsumer("one", 1);
    await fill(world.open(), 3, 3);
    expect(heard).toEqual(["record 1", "record 2", "record 3"]);
    world.stream.forgetConsumers();
  });
});
