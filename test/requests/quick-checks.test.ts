// The checks by hand of a leader's messages accept a message if and only if its schema accepts it as it is.

import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import {
  agentIdSchema,
  awaitRequestSchema,
  HELD_MAX,
  heartbeatSchema,
  progressSchema,
  resultRequestSchema,
  submitRequestSchema,
  taskInputSchema,
} from "../../src/protocol/schemas.ts";
import {
  isPlainHeartbeat,
  isProgress,
  isRightAwaitRequest,
  isRightResultRequest,
  isRightSubmitRequest,
  readMessage,
  readToken,
} from "../../src/requests/quick-checks.ts";
import { expectEqualToSchema } from "../support/quick-check-trial.ts";
import { requestTrials } from "./quick-check-trials.ts";

/** Of each of the ten sorts: 10⁵ together. */
const MESSAGES = 10_000;

describe.each(requestTrials)("the check of $name", (trial) => {
  it(
    `decides as the schema, in ${MESSAGES} messages`,
    () => expectEqualToSchema(trial, MESSAGES, 1),
    200_000,
  );
});

describe("the bounds of lists", () => {
  it.each([0, 1, limits.itemsPerMessageMax, limits.itemsPerMessageMax + 1])("%i items", (count) => {
    const tasks = Array.from({ length: count }, () => ({ kind: "k" }));
    expect(isRightSubmitRequest({ tasks })).toBe(submitRequestSchema.safeParse({ tasks }).success);
  });

  it.each([0, 1, limits.itemsPerMessageMax, limits.itemsPerMessageMax + 1])("%i task ids", (count) => {
    const question = { tasks: Array.from({ length: count }, () => "t"), notify: "_INBOX.a" };
    expect(isRightAwaitRequest(question)).toBe(awaitRequestSchema.safeParse(question).success);
  });

  const attempt = { project: "p", task: "t", attempt: 1 };

  it.each([0, 1, limits.itemsPerMessageMax, limits.itemsPerMessageMax + 1])("%i results", (count) => {
    const result = { ...attempt, token: "1.1", outcome: "failed" };
    const one = { incarnation: "i", results: [result] };
    const several = { incarnation: "i", results: Array.from({ length: count }, () => result) };
    for (const request of [several, { ...one, others: [{ agent: "a", ...several }] }]) {
      expect(isRightResultRequest(request)).toBe(resultRequestSchema.safeParse(request).success);
    }
  });

  it.each([0, limits.agentsPerMessageMax, limits.agentsPerMessageMax + 1])("%i other agents", (count) => {
    const beat = { incarnation: "i", status: "ready", inFlight: 0, seen: 0, held: [] };
    const beats = { ...beat, others: Array.from({ length: count }, () => ({ agent: "a", ...beat })) };
    expect(isPlainHeartbeat(beats)).toBe(heartbeatSchema.safeParse(beats).success);
    const report = { incarnation: "i", results: [{ ...attempt, token: "1.1", outcome: "failed" }] };
    const reports = { ...report, others: Array.from({ length: count }, () => ({ agent: "a", ...report })) };
    expect(isRightResultRequest(reports)).toBe(resultRequestSchema.safeParse(reports).success);
  });

  it.each([HELD_MAX, HELD_MAX + 1])("%i held attempts", (count) => {
    const held = Array.from({ length: count }, () => attempt);
    const beat = { incarnation: "i", status: "ready", inFlight: 0, seen: 0, held };
    expect(isPlainHeartbeat(beat)).toBe(heartbeatSchema.safeParse(beat).success);
  });

  it("payloads", () => {
    const longest = "x".repeat(limits.payloadBytesMax);
    for (const payload of [
      longest,
      `${longest}x`,
      "\u0001".repeat(limits.payloadBytesMax),
      "蜂".repeat(90_000),
    ]) {
      const isRight = taskInputSchema.safeParse({ kind: "k", payload }).success;
      expect(isRightSubmitRequest({ tasks: [{ kind: "k", payload }] })).toBe(isRight);
    }
  });
});

describe("a message that is wrong", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);

  it("is refused in the words of the schema", () => {
    const read = (text: string) => readMessage(bytes(text), progressSchema, isProgress);
    expect(read('{"incarnation":"a b"}')).toMatchObject({ ok: false, field: "incarnation" });
    expect(read("{")).toMatchObject({ ok: false });
    expect(read(`{"x":${"[".repeat(100)}${"]".repeat(100)}}`)).toMatchObject({
      message: expect.stringContaining("nested deeper"),
    });
  });

  it("loses its unknown fields", () => {
    const text = '{"incarnation":"a","project":"p","task":"t","attempt":1,"later":{}}';
    const value = { incarnation: "a", project: "p", task: "t", attempt: 1 };
    expect(readMessage(bytes(text), progressSchema, isProgress)).toEqual({ ok: true, value });
  });
});

it.each(["a1", "a b", "", undefined, "x".repeat(65)])(
  "the token %s of a subject is read as by its schema",
  (token) => {
    expect(readToken(token, agentIdSchema, "agent").ok).toBe(agentIdSchema.safeParse(token).success);
  },
);
