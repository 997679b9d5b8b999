// Kinds with schemas: checked and typed at the submitter and in the agent, against a real coordinator.

import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { StandardSchema } from "../../src/agent/standard-schema.ts";
import { defineKind } from "../../src/agent/typed-kind.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

const count = defineKind("count", {
  input: z.object({ text: z.string(), least: z.number().default(1) }),
  output: z.object({ words: z.number().int() }),
});

let there: TestSwarm;
let swarm: Swarm;

beforeEach(async () => {
  there = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: there.hub.connect() });
});
afterEach(async () => {
  await swarm.close();
  await there.stop();
});

describe("a kind with schemas", () => {
  it("gives the handler its input and the submitter its result, typed and with defaults", async () => {
    await swarm.agent({
      kind: count,
      handler: (task) => {
        expectTypeOf(task.input).toEqualTypeOf<{ text: string; least: number }>();
        return {
          words: task.input.text.split(" ").filter(({ length }) => length >= task.input.least).length,
        };
      },
    });
    const handle = await swarm.submit({ kind: count, payload: { text: "one two three" } });
    const { value, attempts } = await handle.result();
    expectTypeOf(value).toEqualTypeOf<{ words: number }>();
    expect(value).toEqual({ words: 3 });
    expect(attempts).toBe(1);
    for await (const outcome of swarm.submitMany([{ kind: count, payload: { text: "a bc", least: 2 } }])) {
      if (!outcome.ok) throw outcome.error;
      expectTypeOf((await outcome.handle.result()).value).toEqualTypeOf<{ words: number }>();
      expect((await outcome.handle.result()).value).toEqual({ words: 1 });
    }
  });

  it("refuses a payload that does not fit before it is sent, with the path of each problem", async () => {
    const wrong = { text: 5, least: "x" } as unknown as { text: string };
    await expect(swarm.submit({ kind: count, payload: wrong })).rejects.toMatchObject({
      code: "WAGGLE_INVALID_MESSAGE",
      field: "payload.text",
      message: expect.stringMatching(/^payload\.text: .*string.*; payload\.least: /),
    });
    expect((await swarm.status()).queues).toEqual([]);
  });

  it("checks the value on the wire: a Date becomes text, and is refused where text does not fit", async () => {
    const dated = defineKind("dated", { input: z.object({ at: z.date() }), output: z.null() });
    await expect(swarm.submit({ kind: dated, payload: { at: new Date() } })).rejects.toMatchObject({
      field: "payload.at",
    });
  });

  it("ends a task of another submitter as invalid, without a retry", async () => {
    await swarm.agent({ kind: count, handler: () => ({ words: 1 }) });
    for (const payload of ["no JSON", { text: 5 }]) {
      const outcome = await (await swarm.submit({ kind: "count", payload })).outcome();
      expect(outcome).toMatchObject({ state: "failed", failureClass: "invalid", attempts: 1 });
      expect(outcome.error).toMatch(/^payload/);
    }
  });

  it("fails the attempt whose result does not fit, with a clear text", async () => {
    await swarm.agent({ kind: count, handler: () => ({ words: 1.5 }) });
    const handle = await swarm.submit({ kind: count, payload: { text: "a" }, maxAttempts: 1 });
    const outcome = await handle.outcome();
    expect(outcome).toMatchObject({ state: "dead-lettered", attempts: 1 });
    expect(outcome.error).toMatch(/^the result does not fit the output of kind count: result\.words: /);
  });

  it("refuses a result that does not fit where it is waited for", async () => {
    await swarm.agent({ kinds: ["count"], handler: () => "three" });
    const handle = await swarm.submit({ kind: count, payload: { text: "a" } });
    await expect(handle.result()).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field: "result" });
    expect((await handle.outcome()).result).toBe("three");
  });

  it("accepts any Standard Schema, also an asynchronous or throwing schema", async () => {
    const later = <Value>(check: (value: unknown) => Value): StandardSchema<Value> => ({
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) => {
          await new Promise((resolve) => setImmediate(resolve));
          return { value: check(value) };
        },
      },
    });
    const double = defineKind("double", { input: later(Number), output: later(Number) });
    await swarm.agent({ kind: double, handler: ({ input }) => input * 2 });
    const { value } = await (await swarm.submit({ kind: double, payload: 21 })).result();
    expectTypeOf(value).toEqualTypeOf<number>();
    expect(value).toBe(42);
    const broken = defineKind("broken", {
      input: later<number>(() => {
        throw new Error("no database");
      }),
      output: later(Number),
    });
    await expect(swarm.submit({ kind: broken, payload: 1 })).rejects.toMatchObject({
      code: "WAGGLE_INVALID_MESSAGE",
      message: "payload: its schema threw: no database",
    });
  });

  it.each<[unknown, unknown, string]>([
    ["two words", { input: z.string(), output: z.string() }, "name"],
    [null, { input: z.string(), output: z.string() }, "name"],
    ["k", { input: z.string() }, "output"],
    ["k", { input: z.string(), output: { type: "string" } }, "output"],
    ["k", { input: z.string(), output: z.string(), outputs: z.string() }, "outputs"],
    ["k", null, ""],
  ])("is refused when invalid: %j", (name, schemas, field) => {
    const define = defineKind as (name: unknown, schemas: unknown) => unknown;
    expect(() => define(name, schemas)).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_MESSAGE" }));
    expect(() => define(name, schemas)).toThrow(
      field === "" ? "its options must be an object" : `${field}: `,
    );
  });
});

it("types of submit and agent follow the schemas", () => {
  const typed = () => {
    // @ts-expect-error the payload is none of the kind's
    void swarm.submit({ kind: count, payload: { text: 5 } });
    // @ts-expect-error a kind with a schema needs its payload
    void swarm.submit({ kind: count });
    // @ts-expect-error the result is none of the kind's
    void swarm.agent({ kind: count, handler: () => ({ words: "three" }) });
  };
  expect(typed).toBeTypeOf("function");
});
