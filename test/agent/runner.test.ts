// How handlers are run and their endings classed.

import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../src/agent/handler.ts";
import type {
  AttemptEnd,
  AttemptOrder,
  EmittedChunks,
  ProgressReport,
  SessionOrder,
} from "../../src/agent/link.ts";
import { Runner } from "../../src/agent/runner.ts";
import { Slots } from "../../src/agent/slots.ts";
import { InvalidMessageError } from "../../src/errors.ts";
import { resourceName, swarmId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock, settled } from "../client/manual-clock.ts";
import { silentLogger } from "../support/swarm.ts";
import { aLogger } from "./attempt-fixture.ts";

function anOrder(overrides: Partial<AttemptOrder> = {}): AttemptOrder {
  return {
    key: "session.1",
    task: "t1",
    attempt: 1,
    kind: "count",
    project: "p",
    user: "u",
    payload: "",
    timeoutMs: 60_000,
    maxAttempts: 3,
    ...overrides,
  };
}

function orders(count: number): AttemptOrder[] {
  return Array.from({ length: count }, (_, at) => anOrder({ key: `session.${at + 1}`, task: `t${at + 1}` }));
}

function start(handler: Handler, maxConcurrent = 4, log = silentLogger, reportsErrorText = true) {
  const clock = new ManualClock();
  const ends: AttemptEnd[] = [];
  const messages: number[] = [];
  const progress: ProgressReport[][] = [];
  const emitted: EmittedChunks[] = [];
  const slotOrders: SessionOrder[] = [];
  const slots = new Slots({ agent: "a1", clock, send: (order) => slotOrders.push(order) });
  const runner = new Runner({
    reportsErrorText,
    agent: "a1",
    reached: { swarm: swarmId("test"), servers: undefined },
    tracing: undefined,
    handler,
    slots,
    maxConcurrent,
    clock,
    log,
    send: (order) => {
      if (order.type === "progress") progress.push([...order.reports]);
      if (order.type === "chunks") emitted.push(order);
      if (order.type !== "ended") return;
      ends.push(...order.ends);
      messages.push(order.ends.length);
    },
  });
  return { runner, clock, ends, messages, progress, emitted, slots, slotOrders };
}

async function endOf(
  handler: Handler,
  order: AttemptOrder = anOrder(),
  log = silentLogger,
): Promise<AttemptEnd> {
  const { runner, ends } = start(handler, 4, log);
  runner.run([order]);
  await settled();
  expect(ends).toHaveLength(1);
  return ends[0] as AttemptEnd;
}

describe("without error text", () => {
  class QuotaError extends Error {
    override readonly name = "QuotaError";
    readonly code = "E_QUOTA";
  }
  it.each<[string, unknown, string]>([
    ["an error", new Error("payload: 4711"), "Error"],
    ["an error with a class and a code", new QuotaError("payload: 4711"), "QuotaError (E_QUOTA)"],
    ["invalid input", new InvalidInputError("payload: 4711"), "InvalidInputError"],
    ["a code that is text", Object.assign(new Error("x"), { code: "payload: 4711!" }), "Error"],
    ["a name that is text", Object.assign(new Error("x"), { name: "payload 4711" }), "Error"],
    ["a string", "payload: 4711", "String"],
  ])("keeps class and code alone of %s, and logs the text", async (_name, thrown, kept) => {
    const { warnings, logger } = aLogger();
    const { runner, ends } = start(
      () => {
        throw thrown;
      },
      4,
      logger,
      false,
    );
    runner.run([anOrder()]);
    await settled();
    expect(ends[0]?.error).toBe(kept);
    expect(warnings.join()).not.toBe("");
  });
});

describe("what a handler returns", () => {
  it.each<[string, unknown, Partial<AttemptEnd>]>([
    ["text", "5 words", { result: "5 words" }],
    ["no text", "", { result: "" }],
    ["bytes", new Uint8Array([0xff, 0]), { result: "/wA=", encoding: "base64" }],
    [
      "a part of a buffer",
      new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
      { result: "AgM=", encoding: "base64" },
    ],
    ["an object", { words: 5 }, { result: '{"words":5}' }],
    ["null", null, { result: "null" }],
    ["a number", 5, { result: "5" }],
  ])("is the result: %s", async (_, value, expected) => {
    const end = await endOf(() => value);
    expect(end).toEqual({ key: "session.1", outcome: "completed", latencyMs: 0, ...expected });
  });

  it("may be nothing", async () => {
    expect(await endOf(() => undefined)).toEqual({ key: "session.1", outcome: "completed", latencyMs: 0 });
  });

  it.each<[string, unknown, RegExp]>([
    ["a function", () => 1, /a function cannot be a result/],
    ["a cycle", cyclic(), /cannot be written as JSON/],
    ["a bigint", 1n, /cannot be written as JSON/],
    ["too much", "x".repeat(limits.payloadBytesMax + 1), /has 262145 bytes, above the maximum of 262144/],
    ["too much in bytes", "é".repeat(limits.payloadBytesMax / 2 + 1), /has 262146 bytes/],
    ["too much as base64", new Uint8Array(limits.payloadBytesMax), /has 349528 bytes/],
  ])("fails the attempt, with the reason, when it is %s", async (_, value, reason) => {
    const end = await endOf(() => value);
    expect(end.outcome).toBe("failed");
    expect(end.error).toMatch(reason);
  });

  it("may be just as large as allowed", async () => {
    expect((await endOf(() => "x".repeat(limits.payloadBytesMax))).outcome).toBe("completed");
  });
});

describe("what a handler throws", () => {
  it.each<[string, unknown, Partial<AttemptEnd>]>([
    ["an error", new Error("no luck"), { outcome: "failed", error: "no luck" }],
    ["an error of a kind", new TypeError("no luck"), { outcome: "failed", error: "TypeError: no luck" }],
    ["invalid input", new InvalidInputError("not a number"), { outcome: "invalid", error: "not a number" }],
    ["infrastructure", new InfrastructureError("quota"), { outcome: "infrastructure", error: "quota" }],
    [
      "infrastructure behind another error",
      new Error("no connection", {
        cause: { lastError: new InfrastructureError("quota", { retryAfterMs: 200 }) },
      }),
      { outcome: "infrastructure", error: "quota", hold: { forMs: 200 } },
    ],
    [
      "infrastructure with a wrong time and a right scope",
      new InfrastructureError("quota", { retryAfterMs: Number.NaN, scope: { resource: "gpt-4o" } }),
      { outcome: "infrastructure", error: "quota", hold: { scope: { resource: resourceName("gpt-4o") } } },
    ],
    ["an error with itself as its cause", itself(), { outcome: "failed", error: "again" }],
    ["text", "no luck", { outcome: "failed", error: "no luck" }],
    ["nothing", undefined, { outcome: "failed", error: "undefined" }],
    ["something odd", Object.create(null), { outcome: "failed", error: "[Object: null prototype] {}" }],
  ])("is the failure: %s", async (_, thrown, expected) => {
    const end = await endOf(() => {
      throw thrown;
    });
    expect(end).toMatchObject(expected);
    expect(end.result).toBeUndefined();
  });

  it("is cut to what is kept", async () => {
    const end = await endOf(() => Promise.reject(new Error("x".repeat(5_000))));
    expect(end.error).toHaveLength(limits.errorCharactersMax);
  });
});

function itself(): Error {
  const error = new Error("again");
  error.cause = error;
  return error;
}

describe("a task", () => {
  it("is given with its payload as text, bytes or JSON", async () => {
    const seen: HandlerTask[] = [];
    await endOf((task) => seen.push(task), anOrder({ attempt: 2, payload: '{"a":"é"}' }));
    const [task] = seen;
    expect(task).toMatchObject({
      id: "t1",
      attempt: 2,
      kind: "count",
      project: "p",
      user: "u",
      payload: '{"a":"é"}',
    });
    expect(task?.json()).toEqual({ a: "é" });
    expect(Buffer.from(task?.bytes() ?? [])).toEqual(Buffer.from('{"a":"é"}'));
  });

  it("is decoded where it is base64", async () => {
    const end = await endOf(
      (task) => Buffer.from(task.bytes()).toString("hex"),
      anOrder({ payload: "/wA=", encoding: "base64" }),
    );
    expect(end.result).toBe("ff00");
  });

  it("whose payload should be JSON and is not, ends as invalid", async () => {
    expect(await endOf((task) => task.json(), anOrder({ payload: "{" }))).toMatchObject({
      outcome: "invalid",
    });
  });
});

describe("the runner", () => {
  it("runs so many at a time, in order, and the next as soon as one ends", async () => {
    const { handler, running, release } = gate();
    const { runner, ends } = start(handler, 2);
    runner.run(orders(5));
    await setImmediate();
    expect(running()).toEqual(["t1", "t2"]);
    expect(runner.counts()).toMatchObject({ running: 2, waiting: 3 });
    release("t2");
    await settled();
    expect(running()).toEqual(["t1", "t3"]);
    for (const task of ["t1", "t3", "t4", "t5"]) {
      release(task);
      await settled();
    }
    expect(ends.map(({ key }) => key)).toEqual([
      "session.2",
      "session.1",
      "session.3",
      "session.4",
      "session.5",
    ]);
    expect(runner.counts()).toMatchObject({ running: 0, waiting: 0, completed: 5 });
  });

  it("reports simultaneous ends in one message", async () => {
    const { runner, messages } = start(() => "done", 64);
    runner.run(orders(64));
    await settled();
    expect(messages).toEqual([64]);
  });

  it("counts the time of the handler alone", async () => {
    const { handler, release } = gate();
    const { runner, clock, ends } = start(handler, 1);
    runner.run(orders(2));
    await setImmediate();
    await clock.advance(100);
    release("t1");
    await settled();
    await clock.advance(30);
    release("t2");
    await settled();
    expect(ends.map(({ latencyMs }) => latencyMs)).toEqual([100, 30]);
  });

  it("aborts the signal of one attempt and waits for its handler", async () => {
    const { handler, signalOf, release } = gate();
    const { runner, ends } = start(handler);
    runner.run(orders(2));
    await setImmediate();
    const signal = signalOf("t1");
    runner.abort(["session.1"], "lease");
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ name: "AbortError", message: expect.stringContaining("lease") });
    expect(signalOf("t2").aborted).toBe(false);
    await settled();
    expect(ends).toEqual([]);
    release("t1");
    await settled();
    expect(ends).toMatchObject([{ key: "session.1", outcome: "completed" }]);
  });

  it("shows an abort also to a handler that looks at its signal only later", async () => {
    const { handler, signalOf } = gate();
    const { runner } = start(handler);
    runner.run(orders(1));
    await setImmediate();
    runner.abort(["session.1"], "stopping");
    expect(signalOf("t1").aborted).toBe(true);
  });

  it("calls what is thrown after an abort aborted, whatever is thrown, and failed where it took too long", async () => {
    const untilAborted: Handler = (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new InfrastructureError("odd words"))),
      );
    const { runner, clock, ends } = start(untilAborted);
    runner.run([anOrder({ key: "a" }), anOrder({ key: "b", timeoutMs: 500 })]);
    await setImmediate();
    runner.abort(["a"], "lapsed");
    await settled();
    await clock.advance(499);
    expect(ends).toHaveLength(1);
    await clock.advance(1);
    expect(ends).toMatchObject([
      { key: "a", outcome: "aborted", error: expect.stringContaining("reassigned the attempt") },
      { key: "b", outcome: "failed", error: expect.stringContaining("longer than the task's timeoutMs") },
    ]);
  });

  it("counts the time limit from the arrival, waiting included", async () => {
    const { handler, signalOf, release } = gate();
    const { runner, clock } = start(handler, 1);
    runner.run([anOrder({ key: "a", task: "t1" }), anOrder({ key: "b", task: "t2", timeoutMs: 1_000 })]);
    await setImmediate();
    await clock.advance(900);
    release("t1");
    await settled();
    const signal = signalOf("t2");
    await clock.advance(99);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
  });

  it("keeps limits longer than a timer of the system holds", async () => {
    const { handler, signalOf } = gate();
    const { runner, clock } = start(handler);
    runner.run([anOrder({ timeoutMs: limits.attemptTimeoutMsMax })]);
    await setImmediate();
    const signal = signalOf("t1");
    await clock.advance(limits.attemptTimeoutMsMax - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
  });

  it("never starts an attempt aborted while waiting, and reports zero tokens", async () => {
    const { handler, running, release } = gate();
    const { runner, ends } = start(handler, 1);
    runner.run(orders(2));
    runner.abort(["session.2"], "revoked");
    await settled();
    expect(ends).toEqual([
      { key: "session.2", outcome: "infrastructure", error: expect.any(String), tokens: 0 },
    ]);
    release("t1");
    await settled();
    expect(running()).toEqual([]);
  });

  it("adds up tokens, also of an attempt that fails", async () => {
    const end = await endOf((_, { reportTokens }) => {
      reportTokens(3);
      reportTokens(4);
      throw new Error("no");
    });
    expect(end).toMatchObject({ outcome: "failed", tokens: 7 });
  });

  it("logs a failed attempt, at most one in ten seconds", async () => {
    const { logger, warnings } = aLogger();
    const { runner, clock } = start(
      () => {
        throw new Error("no such model");
      },
      4,
      logger,
    );
    runner.run(orders(3));
    await settled();
    expect(warnings).toEqual(["attempt failed: no such model"]);
    await clock.advance(limits.failureNoticeMs);
    runner.run([anOrder({ key: "session.9" })]);
    await settled();
    expect(warnings).toHaveLength(2);
  });

  it("logs the class of a failure that is not the handler's", async () => {
    const { logger, warnings } = aLogger();
    const refuse: Handler = () => {
      throw new InfrastructureError("no shell");
    };
    await endOf(refuse, anOrder(), logger);
    expect(warnings).toEqual(["attempt failed (infrastructure): no shell"]);
  });

  it("counts at most the tokens allowed per attempt, and logs the excess once", async () => {
    const { logger, warnings } = aLogger();
    const report: Handler = (_, { reportTokens }) => {
      reportTokens(limits.tokensPerAttemptMax);
      for (const more of [1, 7]) reportTokens(more);
    };
    expect(await endOf(report, anOrder(), logger)).toMatchObject({ tokens: limits.tokensPerAttemptMax });
    expect(warnings).toEqual([
      expect.stringMatching(/^400000001 tokens were reported; at most 400000000 count/),
    ]);
  });

  it.each([-1, 0.5, Number.NaN, "12"])("takes no %s for tokens", async (count) => {
    const end = await endOf((_, { reportTokens }) => reportTokens(count as number));
    expect(end).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("reportTokens: tokens: must be"),
    });
  });
});

describe("progress", () => {
  it("passes the first report at once, then the newest of each attempt now and then", async () => {
    const { handler, contextOf } = gate();
    const { runner, clock, progress } = start(handler);
    runner.run(orders(2));
    await setImmediate();
    contextOf("t1").progress(0.1);
    contextOf("t1").progress(0.2, "two");
    contextOf("t2").progress(undefined, "on it");
    contextOf("t1").progress(0.3, "three");
    expect(progress).toEqual([[{ key: "session.1", fraction: 0.1 }]]);
    await clock.advance(limits.progressMs);
    expect(progress.slice(1)).toEqual([
      [
        { key: "session.1", fraction: 0.3, message: "three" },
        { key: "session.2", message: "on it" },
      ],
    ]);
    await clock.advance(10 * limits.progressMs);
    expect(progress).toHaveLength(2);
    contextOf("t1").progress(1);
    expect(progress).toHaveLength(3);
  });

  it("says nothing of what has ended", async () => {
    const { handler, contextOf, release } = gate();
    const { runner, clock, progress } = start(handler);
    runner.run(orders(1));
    await setImmediate();
    contextOf("t1").progress(0.1);
    contextOf("t1").progress(0.9);
    release("t1");
    await clock.advance(limits.progressMs);
    expect(progress).toHaveLength(1);
  });

  it("keeps within its bounds", async () => {
    const { handler, contextOf } = gate();
    const { runner, progress } = start(handler);
    runner.run(orders(1));
    await setImmediate();
    contextOf("t1").progress(7, "x".repeat(5_000));
    expect(progress).toEqual([
      [{ key: "session.1", fraction: 1, message: "x".repeat(limits.errorCharactersMax) }],
    ]);
  });
});

/** A handler whose calls end when the test says so. */
function gate() {
  const calls = new Map<string, { context: HandlerContext; release: () => void }>();
  const handler: Handler = (task, context) =>
    new Promise<string>((resolve) => {
      calls.set(task.id, { context, release: () => calls.delete(task.id) && resolve("done") });
    });
  const contextOf = (task: string): HandlerContext => {
    const call = calls.get(task);
    if (call === undefined) throw new Error(`${task} does not run`);
    return call.context;
  };
  return {
    handler,
    contextOf,
    signalOf: (task: string) => contextOf(task).signal,
    running: () => [...calls.keys()],
    release: (task: string) => calls.get(task)?.release(),
  };
}

function cyclic(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}

describe("chunks", () => {
  const streamed = anOrder({ stream: true });
  const textsOf = (emitted: readonly EmittedChunks[]) =>
    emitted.map(({ first, chunks }) => [first, chunks.map(({ text }) => text)]);

  it("leave at once, then in steps; the last leave before the end", async () => {
    let go = (): void => undefined;
    const { runner, clock, ends, emitted } = start(async (_, { emit }) => {
      emit("a");
      emit({ b: 1 });
      emit(new Uint8Array([0xff]));
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      emit("last");
      return "whole";
    });
    runner.run([streamed]);
    await settled();
    expect(textsOf(emitted)).toEqual([[0, ["a"]]]);
    await clock.advance(limits.chunksMs);
    expect(textsOf(emitted).slice(1)).toEqual([[1, ['{"b":1}', "/w=="]]]);
    expect(emitted[1]?.chunks[1]?.encoding).toBe("base64");
    go();
    await settled();
    expect(textsOf(emitted).slice(2)).toEqual([[3, ["last"]]]);
    expect(ends).toMatchObject([{ outcome: "completed", result: "whole" }]);
  });

  it("go nowhere for a task without stream, and count as progress", async () => {
    const { runner, emitted, progress } = start((_, { emit }) => emit("a"));
    runner.run([anOrder()]);
    await settled();
    expect(emitted).toEqual([]);
    expect(progress).toEqual([[{ key: "session.1" }]]);
  });

  it("beyond the room for waiting ones are dropped, oldest first, and their numbers are missing", async () => {
    const half = "x".repeat(limits.chunkBytesMax);
    const { runner, clock, emitted } = start(async (_, { emit, signal }) => {
      for (let nth = 0; nth < 6; nth += 1) emit(half);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    runner.run([streamed]);
    await settled();
    await clock.advance(limits.chunksMs);
    expect(emitted.map(({ first, chunks }) => [first, chunks.length])).toEqual([
      [0, 1],
      [4, 2],
    ]);
  });

  it.each<[string, unknown, RegExp]>([
    ["too large", "x".repeat(limits.chunkBytesMax + 1), /the chunk has 131073 bytes.*emit it in parts/],
    ["a function", () => 1, /a function cannot be a chunk/],
    ["a cycle", cyclic(), /cannot be written as JSON/],
    ["undefined", undefined, /undefined cannot be a chunk/],
  ])("that are %s fail the attempt, with a coded error and the reason", async (_, value, reason) => {
    let thrown: unknown;
    const end = await endOf((_task, { emit }) => {
      try {
        emit(value);
      } catch (error) {
        thrown = error;
        throw error;
      }
    }, streamed);
    expect(thrown).toBeInstanceOf(InvalidMessageError);
    expect(thrown).toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "chunk" });
    expect(end).toMatchObject({ outcome: "failed", error: expect.stringMatching(reason) });
  });
});

describe("a generator", () => {
  const streamed = anOrder({ stream: true });

  it.each<[string, Handler, string]>([
    ["its return value", () => yielding(["a", "b"], "whole"), "whole"],
    ["all its text", () => yielding(["a", "b"]), "ab"],
    ["all its values", () => yielding(["a", 1]), '["a",1]'],
    ["all the text of a generator without await", () => plain(), "ab"],
  ])("ends with %s", async (_, handler, result) => {
    expect(await endOf(handler, streamed)).toMatchObject({ outcome: "completed", result });
  });

  it.each<[string, readonly unknown[], object]>([
    ["bytes", [Uint8Array.of(0xff), Uint8Array.of(0)], { result: "/wA=", encoding: "base64" }],
    ["text and bytes", ["é", Uint8Array.of(0xff), ""], { result: "w6n/", encoding: "base64" }],
    ["text, bytes and other values", ["a", Uint8Array.of(0xff), 1], { result: '["a","/w==",1]' }],
  ])("with yields of %s has the yields as result", async (_, values, result) => {
    const end = await endOf(() => yielding(values), streamed);
    expect(end).toMatchObject({ outcome: "completed", encoding: undefined, ...result });
  });

  it("that yields more than a chunk holds emits it in parts, whole characters each", async () => {
    const text = "\u{1f41d}".repeat(50_000);
    const bytes = new Uint8Array(limits.chunkBytesMax + 1).fill(7);
    for (const [value, encoding] of [
      [text, "utf8"],
      [bytes, "base64"],
    ] as const) {
      const { runner, ends, emitted } = start(() => yielding([value]));
      runner.run([streamed]);
      await settled();
      const parts = emitted.flatMap(({ chunks }) => chunks).map((chunk) => Buffer.from(chunk.text, encoding));
      expect(parts.length).toBeGreaterThan(1);
      for (const part of parts) expect(part.toString("utf8")).not.toContain("\ufffd");
      expect(Buffer.concat(parts).equals(Buffer.from(value))).toBe(true);
      expect(ends[0]?.outcome).toBe("completed");
    }
  });

  it("emits every yield, and runs finally after an abort", async () => {
    let isFinished = false;
    let next = (): void => undefined;
    const { runner, ends, emitted } = start(async function* () {
      try {
        yield "one";
        await new Promise<void>((resolve) => {
          next = resolve;
        });
        yield "two";
        yield "three";
      } finally {
        isFinished = true;
      }
    });
    runner.run([streamed]);
    await settled();
    runner.abort([streamed.key], "revoked");
    next();
    await settled();
    expect(emitted.flatMap(({ chunks }) => chunks)).toEqual([{ text: "one" }]);
    expect([isFinished, ends[0]?.outcome]).toEqual([true, "aborted"]);
  });

  it("that throws fails with the error", async () => {
    const end = await endOf(async function* () {
      yield "a";
      throw new InvalidInputError("not like this");
    }, streamed);
    expect(end).toMatchObject({ outcome: "invalid", error: "not like this" });
  });
});

async function* yielding(values: readonly unknown[], result?: unknown): AsyncGenerator<unknown, unknown> {
  yield* values;
  return result;
}

function* plain(): Generator<string> {
  yield "a";
  yield "b";
}
