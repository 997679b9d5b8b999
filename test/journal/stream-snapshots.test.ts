// Snapshots in a stream whose server loses, refuses and forgets, as the simulated JetStream can be told to: whatever
// happens to a put, the place that it returns holds what was put.

import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { swarmId } from "../../src/ids.ts";
import { streamConfigOf, streamNameOf } from "../../src/journal/stream/settings.ts";
import { StreamSnapshotStore } from "../../src/journal/stream/snapshots.ts";
import { limits } from "../../src/limits.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import {
  type PublishFate,
  type QuestionFate,
  SimJetStream,
  type SimStream,
} from "../../src/sim/fault/jetstream.ts";
import { SimStreamWire } from "../../src/sim/fault/jetstream-wire.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bytesOf } from "./records.ts";
import { describeSnapshotStore } from "./snapshot-conformance.ts";

const wanted = { swarm: swarmId("test"), purpose: "snapshots" } as const;
const name = streamNameOf(wanted);

class World {
  publishFates: PublishFate[] = [];
  questionFates: QuestionFate[] = [];
  readonly #clock: Clock;
  readonly #server: SimJetStream;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#server = new SimJetStream(clock, {
      onPublish: () => this.publishFates.shift() ?? "store",
      onQuestion: () => this.questionFates.shift() ?? "answer",
    });
    const config = new TextEncoder().encode(JSON.stringify(streamConfigOf(wanted)));
    this.#server.handle(`$JS.API.STREAM.CREATE.${name}`, config, {}, () => undefined);
  }

  get stream(): SimStream {
    return this.#server.stream(name) as SimStream;
  }

  open(maxPayloadBytes: number = limits.maxPayloadBytesDefault): StreamSnapshotStore {
    const wire = new SimStreamWire({
      server: this.#server,
      line: {
        status: "connected",
        carry: (_, arrive) => this.#clock.soon(arrive),
        onStatus: () => () => undefined,
      },
      reader: "r",
      clock: this.#clock,
      maxPayloadBytes,
    });
    const subjects = subjectsOf(wanted.swarm);
    return new StreamSnapshotStore({ wire, stream: name, subjects, clock: this.#clock });
  }
}

describeSnapshotStore("a simulated JetStream", async () => {
  const world = new World();
  return { open: async () => world.open(), dispose: async () => undefined };
});

describe("snapshots in a stream, under faults", () => {
  it.each<{ fate: PublishFate; copies: number }>([
    { fate: "off", copies: 1 },
    { fate: "nobody", copies: 1 },
    { fate: "false-duplicate", copies: 1 },
    { fate: "drop", copies: 1 },
    { fate: "store-unheard", copies: 2 },
  ])("put a part again when the first try meets $fate", async ({ fate, copies }) => {
    const world = new World();
    const store = world.open();
    world.publishFates = [fate];
    const place = await store.putChunk(bytesOf("chunk"));
    expect(await store.chunk(place)).toEqual(bytesOf("chunk"));
    expect(world.stream.lastSeq).toBe(copies);
    expect(place).toBe(copies);
  });

  it("give a part up that nobody acknowledges for 30 s, and not before", async () => {
    const clock = new ManualClock();
    const world = new World(clock);
    world.publishFates = Array.from({ length: 1_000 }, () => "nobody" as const);
    let failure: unknown;
    void world
      .open()
      .putChunk(bytesOf("a"))
      .catch((error: unknown) => {
        failure = error;
      });
    await clock.advance(limits.journalSilenceMsMax - 1);
    expect(failure).toBeUndefined();
    await clock.advance(limits.journalRetryMsMax + 1);
    expect(failure).toMatchObject({
      code: "WAGGLE_UNREACHABLE",
      message: expect.stringContaining("a part of a snapshot is not known to be stored"),
    });
    expect(world.stream.lastSeq).toBe(0);
  });

  it("do not put a part again that finds no room", async () => {
    const world = new World();
    world.publishFates = ["full"];
    await expect(world.open().putManifest(bytesOf("a"))).rejects.toMatchObject({
      code: "WAGGLE_JOURNAL_FULL",
      message: expect.stringContaining("maximum bytes exceeded"),
    });
    expect(world.stream.lastSeq).toBe(0);
  });

  it("do not send what the server would cut the connection for", async () => {
    const world = new World();
    const store = world.open(1_000);
    await expect(store.putChunk(new Uint8Array(1_001))).rejects.toThrow(
      "the server takes 1000 bytes at most",
    );
    expect(await store.putChunk(new Uint8Array(1_000))).toBe(1);
  });

  it("ask again what is not answered", async () => {
    const world = new World();
    const store = world.open();
    const place = await store.putManifest(bytesOf("manifest"));
    for (const fate of ["nobody", "off"] as const) {
      world.questionFates = [fate];
      expect(await store.manifests()).toEqual([{ place, bytes: bytesOf("manifest") }]);
      world.questionFates = [fate];
      expect((await store.usage()).bytes).toBeGreaterThan(0);
      world.questionFates = [fate];
      await store.removeBelow(place);
    }
  });

  it("give up at once when they are closed", async () => {
    const world = new World();
    const store = world.open();
    world.publishFates = Array.from({ length: 100 }, () => "nobody" as const);
    const put = store.putChunk(bytesOf("a"));
    await new Promise((resolve) => setImmediate(resolve));
    await store.close();
    await expect(put).rejects.toThrow("was closed");
  });

  it("give what is left when a part was lost", async () => {
    const world = new World();
    const store = world.open();
    const lost = await store.putChunk(bytesOf("a"));
    const older = await store.putManifest(bytesOf("older"));
    await store.putManifest(bytesOf("newer"));
    world.stream.loseMiddle(lost, 1);
    world.stream.loseTail(1);
    expect(await store.chunk(lost)).toBeUndefined();
    expect(await store.manifests()).toEqual([{ place: older, bytes: bytesOf("older") }]);
  });
});
