// Whatever user code throws, returns or passes on: the attempt ends with some words, and no capacity is lost.

import { setTimeout } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { startAgent } from "../../src/agent/agent.ts";
import type { Handler } from "../../src/agent/handler.ts";
import type { AttemptEnd, ProgressReport } from "../../src/agent/link.ts";
import { Runner } from "../../src/agent/runner.ts";
import { Slots } from "../../src/agent/slots.ts";
import { textOf, wordsOf } from "../../src/agent/words.ts";
import { connect } from "../../src/client/connect.ts";
import { messageOf } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock, settled } from "../client/manual-clock.ts";
import { silentLogger, startTestSwarm } from "../support/swarm.ts";
import { aNastyValue, nastyValues } from "./nasty-values.ts";

async function endsOf(handler: Handler, log = silentLogger) {
  const clock = new ManualClock();
  const ends: AttemptEnd[] = [];
  const reports: ProgressReport[] = [];
  const runner = new Runner({
    reportsErrorText: true,
    agent: "a1",
    reached: { swarm: swarmId("test"), servers: undefined },
    tracing: undefined,
    handler,
    slots: new Slots({ agent: "a1", clock, send: () => undefined }),
    maxConcurrent: 1,
    clock,
    log,
    send: (order) => {
      if (order.type === "ended") ends.push(...order.ends);
      if (order.type === "progress") reports.push(...order.reports);
    },
  });
  const order = {
    task: "t",
    attempt: 1,
    kind: "k",
    project: "p",
    user: "u",
    payload: "",
    timeoutMs: 60_000,
    maxAttempts: 3,
  };
  runner.run([
    { key: "a", ...order },
    { key: "b", ...order },
  ]);
  await settled();
  await settled();
  await runner.idle();
  return { ends, reports, counts: runner.counts() };
}

describe("what a handler throws", () => {
  it.each(nastyValues)("ends the attempt with some words: %s", async (_, make) => {
    const { ends, counts } = await endsOf(() => {
      throw make();
    });
    expect(ends.map(({ key }) => key)).toEqual(["a", "b"]);
    for (const { outcome, error = "" } of ends) {
      expect(["failed", "invalid", "infrastructure"]).toContain(outcome);
      expect(error.trim()).not.toBe("");
      expect(error.length).toBeLessThanOrEqual(limits.errorCharactersMax);
    }
    expect(counts).toMatchObject({ running: 0, waiting: 0 });
  });

  it("is reported by class, and by the error of an unreadable message", () => {
    const [, make] = nastyValues[0] ?? expect.fail();
    expect(wordsOf(make())).toMatch(
      /^the thrown value, of class ApiError, cannot be read \(TypeError: Cannot read properties of undefined/,
    );
  });

  it("is the attempt's failure, and the agent goes on, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(aNastyValue, fc.boolean(), async (make, isLate) => {
        const { ends } = await endsOf(async () => {
          if (isLate) await Promise.resolve();
          throw make();
        });
        expect(ends).toHaveLength(2);
        for (const { error = "" } of ends) expect(error.trim()).not.toBe("");
      }),
    );
  });
});

describe("what a handler returns or reports", () => {
  it("ends the attempt, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(aNastyValue, async (make) => {
        const { ends } = await endsOf(() => make());
        expect(ends.map(({ key }) => key)).toEqual(["a", "b"]);
      }),
    );
  });

  it("is never thrown back at it by a report of progress, and counts as one", async () => {
    await fc.assert(
      fc.asyncProperty(aNastyValue, aNastyValue, async (fraction, message) => {
        const { ends, reports } = await endsOf((_, { progress }) =>
          progress(fraction() as number, message() as string),
        );
        expect(ends).toMatchObject([{ outcome: "completed" }, { outcome: "completed" }]);
        const [report] = reports;
        expect(report?.key).toBe("a");
        if (report?.fraction !== undefined) expect(report.fraction >= 0 && report.fraction <= 1).toBe(true);
        if (report?.message !== undefined)
          expect(report.message.length).toBeLessThanOrEqual(limits.errorCharactersMax);
      }),
    );
  });

  it.each<[string, unknown[], object]>([
    ["a fraction that is text", ["50%"], {}],
    ["a fraction that is text, and a message", ["0.5", "half"], { message: "half" }],
    ["NaN", [Number.NaN], {}],
    ["infinity", [Number.POSITIVE_INFINITY, "on"], { message: "on" }],
    ["a bigint", [1n], {}],
    ["null", [null, null], {}],
    ["an object", [{ done: 3 }, { of: 7 }], { message: "{ of: 7 }" }],
    ["a message that is a number", [0.5, 42], { fraction: 0.5, message: "42" }],
    ["a message that is an error", [0.5, new TypeError("oh")], { fraction: 0.5, message: "TypeError: oh" }],
    ["nothing", [], {}],
  ])("reports progress of a wrong shape as far as it has one: %s", async (_, args, expected) => {
    const { reports } = await endsOf((_task, { progress }) =>
      (progress as (...any: unknown[]) => void)(...args),
    );
    expect(reports).toEqual(
      [
        { key: "a", ...expected },
        { key: "b", ...expected },
      ].slice(0, reports.length),
    );
  });

  it("costs no attempt where the logger throws", async () => {
    const throwing = { ...silentLogger, child: () => ({ warn: () => expect.fail("no disk") }) };
    const { ends } = await endsOf((_, { reportTokens }) => {
      reportTokens(limits.tokensPerAttemptMax);
      reportTokens(1);
      return "done";
    }, throwing as never);
    expect(ends).toMatchObject([{ outcome: "completed" }, { outcome: "completed" }]);
  });
});

describe("words", () => {
  it("are found for any value, and never throw", () => {
    fc.assert(
      fc.property(aNastyValue, (make) => {
        const value = make();
        for (const words of [wordsOf(value), textOf(value), messageOf(value)])
          expect(typeof words).toBe("string");
      }),
    );
  });
});

describe("an agent with a handler that throws an unreadable value", () => {
  it("ends the task as failed, keeps its capacity, and drains", async () => {
    const there = await startTestSwarm();
    const swarm = await connect({ swarm: "test", transport: there.hub.connect() });
    const agent = await swarm.agent({
      kinds: ["k"],
      handler: (task) => {
        const [, make] = nastyValues[Number(task.payload)] ?? expect.fail();
        throw make();
      },
    });
    for (const at of [0, 1, 4, 7]) {
      const task = await swarm.submit({ kind: "k", payload: String(at), maxAttempts: 1 });
      await expect(task.result()).rejects.toMatchObject({ code: "WAGGLE_TASK_FAILED" });
    }
    expect(agent.counts()).toMatchObject({ running: 0, failed: 4 });
    await agent.drain();
    expect(await agent.closed).toBeUndefined();
    await swarm.close();
    await there.stop();
  });
});

it("counts a report of progress of a wrong shape as a sign of life", async () => {
  const there = await startTestSwarm();
  const swarm = await connect({ swarm: "test", transport: there.hub.connect() });
  await swarm.agent({
    kinds: ["k"],
    handler: async (_, { progress, signal }) => {
      for (let steps = 0; steps < 12 && !signal.aborted; steps += 1) {
        progress("50%" as never);
        await setTimeout(100);
      }
      return "done";
    },
  });
  const task = await swarm.submit({ kind: "k", stallMs: 500, maxAttempts: 1 });
  expect((await task.result()).text()).toBe("done");
  await swarm.close();
  await there.stop();
});

describe("options that cannot be read, or are no plain values", () => {
  it("are refused by name, or taken as the plain values they are", async () => {
    const there = await startTestSwarm();
    const transport = there.hub.connect();
    const deps = { swarm: swarmId("test"), connection: { kind: "transport", transport } } as const;
    const handler = () => undefined;
    const labels = Object.defineProperty({}, "zone", { enumerable: true, get: () => expect.fail("no zone") });
    const refused = { code: "WAGGLE_INVALID_CONFIG" };
    await expect(startAgent({ kinds: ["k"], handler, labels }, deps)).rejects.toMatchObject(refused);
    for (const [, make] of nastyValues) {
      const odd = make() as never;
      if (odd === undefined) continue;
      for (const options of [
        { labels: odd },
        { labels: { zone: odd } },
        { maxConcurrent: odd },
        { signal: odd },
      ]) {
        const joined = startAgent({ kinds: ["k"], handler, ...options }, deps);
        await joined.then(
          (agent) => agent.stop(),
          (error) => expect(error).toMatchObject(refused),
        );
      }
    }
    await there.stop();
  });
});
