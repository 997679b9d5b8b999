// The checks written by hand accept a message if and only if its schema does, over many right and wrong messages.

import { describe, expect, it } from "vitest";
import { isAssignPush, isRevokePush, isUsualResultResponse, readPush } from "../../src/agent/quick-checks.ts";
import { agentPushSchema, resultResponseSchema } from "../../src/protocol/schemas.ts";
import { Mutator } from "../support/mutator.ts";

const MESSAGES = 20_000;

/** Values that JSON can hold and that a field may wrongly have. */
const strange: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  1.5,
  2 ** 53,
  2 ** 53 - 1,
  -(2 ** 53),
  1e300,
  "",
  "1",
  "ok",
  "stale",
  "assign",
  "rejoin",
  "base64",
  [],
  [null],
  {},
  { ok: true, status: "ok" },
  { ok: false, code: "WAGGLE_GONE", message: "gone" },
];

function anAssignment(mutator: Mutator) {
  return {
    number: mutator.below(9),
    project: "p",
    task: `t${mutator.below(9)}`,
    attempt: 1,
    token: "1.1",
    kind: "count",
    user: "u",
    payload: "x".repeat(mutator.below(4)),
    ...(mutator.below(3) === 0 ? { encoding: "base64" } : {}),
    timeoutMs: 60_000,
    ...(mutator.below(3) === 0 ? { stallMs: 5_000 } : {}),
    maxAttempts: 3,
    ...(mutator.below(3) === 0 ? { revoked: true } : {}),
    ...(mutator.below(3) === 0 ? { traceparent: "00-1-2-01", tracestate: "a=1", waitedMs: 1.5 } : {}),
  };
}

describe("an assignment", () => {
  it("passes the quick check if and only if it passes the schema", () => {
    const mutator = new Mutator(1, strange);
    let right = 0;
    for (let count = 0; count < MESSAGES; count += 1) {
      const assignments = mutator.several(() => anAssignment(mutator));
      const message = mutator.mutated({ type: "assign", term: 3, incarnation: "life", assignments });
      const checked = agentPushSchema.safeParse(message);
      const isRight = checked.success && checked.data.type === "assign";
      if (isAssignPush(message) !== isRight) expect.unreachable(JSON.stringify(message));
      if (isRight) right += 1;
    }
    expect(right).toBeGreaterThan(MESSAGES / 10);
    expect(right).toBeLessThan(MESSAGES * 0.9);
  });

  it("that is wrong is refused in the words of the schema", () => {
    const bytes = new TextEncoder().encode('{"type":"assign","term":1,"incarnation":"a","assignments":[{}]}');
    expect(readPush(bytes)).toMatchObject({ ok: false, field: "assignments[0].number" });
    expect(readPush(new TextEncoder().encode("{"))).toMatchObject({ ok: false });
    expect(readPush(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ ok: false });
  });

  it("keeps every field that the schema keeps", () => {
    const mutator = new Mutator(2, strange);
    for (let count = 0; count < 1_000; count += 1) {
      const assignments = mutator.several(() => anAssignment(mutator));
      const message = { type: "assign", term: 3, incarnation: "life", assignments };
      const bytes = new TextEncoder().encode(JSON.stringify(message));
      expect(readPush(bytes)).toEqual({ ok: true, value: agentPushSchema.parse(message) });
    }
  });
});

describe("a revocation", () => {
  it("passes the quick check if and only if it passes the schema", () => {
    const mutator = new Mutator(4, strange);
    let right = 0;
    for (let count = 0; count < MESSAGES; count += 1) {
      const attempts = mutator.several(() => ({ project: "p", task: `t${mutator.below(9)}`, attempt: 1 }));
      const message = mutator.mutated({
        type: "revoke",
        term: 3,
        incarnation: "life",
        attempts,
        reason: "ended",
      });
      const checked = agentPushSchema.safeParse(message);
      const isRight = checked.success && checked.data.type === "revoke";
      if (isRevokePush(message) !== isRight) expect.unreachable(JSON.stringify(message));
      if (isRight) right += 1;
    }
    expect(right).toBeGreaterThan(MESSAGES / 10);
    expect(right).toBeLessThan(MESSAGES * 0.9);
  });
});

describe("an answer to results", () => {
  it("passes the quick check if and only if the schema accepts it and no result was refused", () => {
    const mutator = new Mutator(3, strange);
    let usual = 0;
    for (let count = 0; count < MESSAGES; count += 1) {
      const answers = mutator.several(() => ({ ok: true, status: mutator.oneOf(["ok", "stale", "gone"]) }));
      const message = mutator.mutated({ term: 3, idx: 7, answers });
      const checked = resultResponseSchema.safeParse(message);
      const isUsual = checked.success && checked.data.answers.every(({ ok }) => ok);
      if (isUsualResultResponse(message) !== isUsual) expect.unreachable(JSON.stringify(message));
      if (isUsual) usual += 1;
    }
    expect(usual).toBeGreaterThan(MESSAGES / 10);
    expect(usual).toBeLessThan(MESSAGES * 0.9);
  });
});
