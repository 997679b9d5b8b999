// Results that stream: from an agent's handler over a real coordinator to the readers of the task.

import { lastValueFrom, map, toArray } from "rxjs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ChunkLog, type ResultChunk } from "../../src/client/chunk-log.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let test: TestSwarm;
let swarm: Swarm;
beforeEach(async () => {
  test = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: test.hub.connect(), user: "ann" });
});
afterEach(async () => {
  await swarm.close();
  await test.stop();
});

async function textsOf(chunks: AsyncIterable<ResultChunk>): Promise<string[]> {
  const texts: string[] = [];
  for await (const chunk of chunks) texts.push(chunk.text());
  return texts;
}

describe("a streamed task", () => {
  it("gives chunks during the run, to each reader from the first chunk, and the whole result", async () => {
    const gate = new Gate();
    await swarm.agent({
      id: "writer",
      kinds: ["write"],
      handler: async function* (task) {
        yield "bees ";
        await gate.opened;
        yield `dance ${task.stream}`;
      },
    });
    const handle = await swarm.submit({ kind: "write", stream: true });
    const reading = handle.chunks()[Symbol.asyncIterator]();
    expect((await reading.next()).value).toMatchObject({
      attempt: 1,
      agent: "writer",
      index: 0,
      data: "bees ",
    });
    const texts = lastValueFrom(
      handle.chunks().pipe(
        map((chunk) => chunk.text()),
        toArray(),
      ),
    );
    gate.open();
    expect((await reading.next()).value?.text()).toBe("dance true");
    expect((await reading.next()).done).toBe(true);
    expect(await texts).toEqual(["bees ", "dance true"]);
    expect((await handle.result()).text()).toBe("bees dance true");
    expect(await textsOf(handle.chunks())).toEqual(["bees ", "dance true"]);
  });

  it("shows a second client the chunks since the client's call", async () => {
    const seen = new Gate();
    const begun = new Gate();
    await swarm.agent({
      id: "writer",
      kinds: ["write"],
      handler: async (_, { emit }) => {
        emit("early");
        begun.open();
        let isSeen = false;
        void seen.opened.then(() => {
          isSeen = true;
        });
        while (!isSeen) {
          await new Promise((resolve) => setTimeout(resolve, limits.chunksMs / 2));
          emit("late");
        }
      },
    });
    const { id } = await swarm.submit({ kind: "write", stream: true });
    await begun.opened;
    const other = await connect({ swarm: "test", transport: test.hub.connect() });
    for await (const chunk of other.task(id).chunks()) {
      expect([chunk.data, chunk.index > 0]).toEqual(["late", true]);
      seen.open();
    }
    await other.close();
  });

  it("begins anew with a later attempt: the chunks of the failed one are void", async () => {
    await swarm.agent({
      id: "writer",
      kinds: ["write"],
      handler: async function* (task) {
        yield `${task.attempt}a`;
        if (task.attempt === 1) throw new Error("not this time");
        yield `${task.attempt}b`;
      },
    });
    const handle = await swarm.submit({ kind: "write", stream: true });
    const seen: [number, number, string][] = [];
    for await (const { attempt, index, data } of handle.chunks()) seen.push([attempt, index, data]);
    expect(seen).toEqual([
      [1, 0, "1a"],
      [2, 0, "2a"],
      [2, 1, "2b"],
    ]);
    expect(await textsOf(handle.chunks())).toEqual(["2a", "2b"]);
    expect((await handle.result()).text()).toBe("2a2b");
  });

  it("whose last attempt sends nothing has no chunks of the failed one", async () => {
    await swarm.agent({
      id: "writer",
      kinds: ["write"],
      handler: async (task, { emit }) => {
        if (task.attempt === 2) return "whole";
        emit("void");
        throw new Error("not this time");
      },
    });
    const handle = await swarm.submit({ kind: "write", stream: true });
    expect(await textsOf(handle.chunks())).toEqual(["void"]);
    expect((await handle.result()).text()).toBe("whole");
    expect(await textsOf(handle.chunks())).toEqual([]);
  });

  it("without a reader, and a task that is not streamed, end as usual; the submitter's handle says so", async () => {
    await swarm.agent({ id: "writer", kinds: ["write"], handler: async (_, { emit }) => emit("a") });
    const [streamed, plain] = await Promise.all([
      swarm.submit({ kind: "write", stream: true }),
      swarm.submit({ kind: "write" }),
    ]);
    await Promise.all([streamed.outcome(), plain.outcome()]);
    const error = expect.objectContaining({ code: "WAGGLE_INVALID_MESSAGE", field: "stream" });
    expect(() => plain.chunks()).toThrow(error);
    expect(() => plain.chunks()).toThrow("submit it with stream: true");
    expect(await textsOf(swarm.task(plain.id).chunks())).toEqual([]);
  });

  it.each<[string, number, string]>([
    ["characters", 60_000, "a"],
    ["text that JSON escapes", 60_000, "\u0001".repeat(4)],
  ])(
    "may flood: %s that come at once leave in messages that the server takes, oldest dropped",
    async (_, count, text) => {
      await swarm.agent({
        kinds: ["write"],
        handler: (_task, { emit }) => {
          for (let nth = 0; nth < count; nth += 1) emit(text);
          return "whole";
        },
      });
      const handle = await swarm.submit({ kind: "write", stream: true });
      const indices: number[] = [];
      for await (const { index } of handle.chunks()) indices.push(index);
      expect((await handle.result()).text()).toBe("whole");
      expect(indices.at(-1)).toBe(count - 1);
      expect(indices).toEqual(indices.toSorted((a, b) => a - b));
      expect(indices.length).toBeGreaterThan(50_000);
    },
  );

  it("that is refused leaves nothing behind, and its chunks end with the connection's error", async () => {
    await expect(swarm.submit({ kind: "nobody", stream: true }, { failFast: true })).rejects.toMatchObject({
      code: "WAGGLE_NO_CAPABLE_AGENT",
    });
    await swarm.agent({ id: "writer", kinds: ["write"], handler: () => new Promise(() => undefined) });
    const handle = await swarm.submit({ kind: "write", stream: true });
    const reading = textsOf(handle.chunks());
    await swarm.close();
    expect(await reading).toEqual([]);
    expect(() => handle.chunks()[Symbol.asyncIterator]()).toThrow("The connection to the swarm is closed");
  });
});

describe("the leader", () => {
  it("passes on chunks of the attempt's holder alone, and counts the others", async () => {
    const agent = await test.agent("a1", { kinds: ["write"] });
    const handle = await swarm.submit({ id: "t1", kind: "write", stream: true });
    const assignment = await agent.assignment();
    expect(assignment).toMatchObject({ task: "t1", stream: true });
    const send = (from: string, more: object = {}) => {
      const chunks = {
        incarnation: "a1-1",
        project: "default",
        task: "t1",
        attempt: 1,
        first: 0,
        chunks: [{ text: from }],
        ...more,
      };
      agent.transport.publish(subjects.agent("_", from, "chunk"), Buffer.from(JSON.stringify(chunks)));
    };
    send("a2");
    send("a1", { attempt: 2 });
    send("a1", { incarnation: "another" });
    send("a1", { chunks: "none" });
    send("a1", { first: 3 });
    send("a1", { first: 3 });
    const reading = handle.chunks()[Symbol.asyncIterator]();
    expect((await reading.next()).value).toMatchObject({ index: 3, data: "a1" });
    await agent.report(assignment, "completed", { result: "whole" });
    expect((await reading.next()).done).toBe(true);
  });
});

describe("the log of chunks", () => {
  const push = (attempt: number, first: number, ...texts: string[]) => ({
    project: "p",
    task: "t",
    agent: "a",
    attempt,
    first,
    chunks: texts.map((text) => ({ text })),
  });
  const never = new AbortController().signal;

  it("drops the chunks of an earlier attempt, and late ones of it", async () => {
    const log = new ChunkLog();
    log.add(push(1, 0, "void", "void"));
    log.add(push(2, 0, "a"));
    log.add(push(1, 2, "late"));
    log.add(push(2, 0, "a", "b"));
    log.end({ attempts: 2 });
    expect(await textsOf(log.read(never))).toEqual(["a", "b"]);
  });

  it("drops the chunks of an attempt before the last, which sent none", async () => {
    const log = new ChunkLog();
    log.add(push(1, 0, "void"));
    log.end({ attempts: 2 });
    expect(await textsOf(log.read(never))).toEqual([]);
  });

  it("keeps the newest chunks within its room: readers see by the numbers what is missing", async () => {
    const log = new ChunkLog();
    const text = "x".repeat(limits.chunkBytesMax);
    const kept = limits.keptChunksBytesMax / limits.chunkBytesMax;
    for (let nth = 0; nth < kept + 2; nth += 1) log.add(push(1, nth, text));
    log.end({ attempts: 1 });
    const indices: number[] = [];
    for await (const { index } of log.read(never)) indices.push(index);
    expect([indices[0], indices.length]).toEqual([2, kept]);
  });

  it("keeps a bounded number of tiny chunks", async () => {
    const log = new ChunkLog();
    log.add(push(1, 0, ...Array.from({ length: limits.keptChunksMax + 5 }, () => "a")));
    log.end({ attempts: 1 });
    const reading = log.read(never);
    expect((await reading.next()).value?.index).toBe(5);
  });

  it("ends its readings with the error of the wait", async () => {
    const log = new ChunkLog();
    log.add(push(1, 0, "a"));
    log.end({ error: new Error("lost") });
    const reading = log.read(never);
    expect((await reading.next()).value?.data).toBe("a");
    await expect(reading.next()).rejects.toThrow("lost");
  });
});
