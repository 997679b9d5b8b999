// The checks by hand accept a message if and only if its schema accepts it as it is, over many right and wrong
// messages.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { limits } from "../../src/limits.ts";
import {
  agentIdSchema,
  awaitRequestSchema,
  heartbeatSchema,
  progressSchema,
  resultRequestSchema,
  resultSchema,
  submitRequestSchema,
  taskIdSchema,
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
import { Mutator } from "../support/mutator.ts";

/** Of each sort. */
const MESSAGES = 20_000;

const strange: readonly unknown[] = [
  ...[null, true, false, [], [null], {}, { kind: "k" }, JSON.parse('{"__proto__":1}')],
  ...[0, -0, -1, 1, 1.5, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 1e300, Number.POSITIVE_INFINITY],
  ...[limits.taskWeightMax, limits.priorityMagnitudeMax, limits.tokensPerAttemptMax, limits.maxAttemptsMax],
  ...[limits.attemptTimeoutMsMax, limits.stallMsMin, limits.stallMsMax, limits.maxConcurrentMax, 8.64e15],
  ...[limits.taskWeightMax + 1, limits.priorityMagnitudeMax + 1, limits.tokensPerAttemptMax + 1, 8.64e15 + 2],
  ...[-limits.priorityMagnitudeMax, -limits.priorityMagnitudeMax - 1, limits.maxAttemptsMax + 1],
  ...[
    limits.attemptTimeoutMsMax + 1,
    limits.stallMsMin - 1,
    limits.stallMsMax + 1,
    limits.maxConcurrentMax + 1,
  ],
  ...[
    "",
    "x",
    "a b",
    "\t",
    "~",
    "\u007f",
    "\u0080",
    "\u00a0",
    "\u2028",
    "\ufeff",
    "\ud800",
    "é",
    "蜂",
    "🐝",
    "a.b",
  ],
  ...["x".repeat(64), "x".repeat(65), "x".repeat(128), "x".repeat(129), "🐝".repeat(128), "🐝".repeat(129)],
  ...[
    "base64",
    "completed",
    "revoked",
    "ready",
    "AAAA",
    "AA==",
    "A",
    "A\nAA",
    "_INBOX.ann.x7",
    "_INBOX.*",
    "_INBOX",
  ],
  ...[
    `00-${"0".repeat(32)}-${"1".repeat(16)}-00`,
    `ff-${"1".repeat(32)}-${"1".repeat(16)}-00`,
    `00-${"A".repeat(32)}-${"1".repeat(16)}-00`,
    `01-${"a".repeat(32)}-${"1".repeat(16)}-00`,
    ...[" ".repeat(512), "~".repeat(513)],
  ],
  ...[`_INBOX.${"x".repeat(limits.inboxCharactersMax)}`, "x".repeat(limits.errorCharactersMax + 1)],
];

const mutator = new Mutator(30, strange);

const traceparent = `00-${"4b".repeat(16)}-${"00f067aa".repeat(2)}-01`;
const aTrace = { traceparent, tracestate: "vendor=1" };

const someNeeds: readonly unknown[] = [
  { gpu: "a100", region: ["eu", "us"] },
  ...[{}, { gpu: [] }, { gpu: [""] }, { gpu: "x".repeat(129) }, { "two words": "x" }, { gpu: ["a", 1] }],
  { gpu: Array.from({ length: limits.needValuesMax + 1 }, (_, at) => `${at}`) },
  Object.fromEntries(Array.from({ length: limits.needsMax + 1 }, (_, at) => [`l${at}`, "x"])),
  Object.fromEntries(Array.from({ length: limits.needsMax }, (_, at) => [`l${at}`, "é".repeat(64)])),
];
const someAttributes: readonly unknown[] = [
  { ticket: "OPS-17", note: "any text, é\n" },
  ...[{}, { a: "" }, { a: 1 }, { "two words": "x" }, JSON.parse('{"__proto__":"x"}')],
  { a: "x".repeat(limits.attributesBytesMax - 8) },
  { a: "x".repeat(limits.attributesBytesMax - 7) },
  { a: "é".repeat(limits.attributesBytesMax / 2 - 4) },
];

function aTask() {
  return {
    kind: "count",
    ...mutator.some({ id: `t${mutator.below(9)}`, user: "ann", role: "r", weight: 1.5, priority: -3 }),
    ...mutator.some({
      tokens: 9,
      deadline: 5,
      notBefore: 4,
      maxAttempts: 3,
      timeoutMs: 60_000,
      stallMs: 5_000,
    }),
    ...mutator.some({
      needs: mutator.oneOf(someNeeds),
      affinity: "session-42",
      attributes: mutator.oneOf(someAttributes),
    }),
    ...mutator.some(aTrace),
    ...mutator.some({ payload: mutator.oneOf(["", "AAAA", "{}"]), encoding: "base64" }),
  };
}

const anAttempt = () => ({ project: "p", task: `t${mutator.below(9)}`, attempt: 1 });

function aResult() {
  return {
    ...anAttempt(),
    token: "1.1",
    outcome: mutator.oneOf(["completed", "failed", "infrastructure", "invalid", "revoked"]),
    ...mutator.some({
      result: mutator.oneOf(["", "AAAA", "done"]),
      encoding: "base64",
      error: "no",
      tokens: 7,
      ...aTrace,
    }),
  };
}

/** At least one item. */
const items = <Item>(make: () => Item) => [make(), ...mutator.several(make)];

const makers = {
  submission: () => ({ tasks: items(aTask), ...mutator.some({ v: 1, notify: "_INBOX.a", failFast: true }) }),
  results: () => ({ incarnation: "life", results: items(aResult), ...mutator.some({ v: 1 }) }),
  question: () => ({
    tasks: items(() => `t${mutator.below(9)}`),
    notify: "_INBOX.a",
    ...mutator.some({ v: 1 }),
  }),
  heartbeat: () => ({
    ...{ incarnation: "life", status: mutator.oneOf(["ready", "busy", "offline"]), inFlight: 2, seen: 7 },
    held: mutator.several(() => ({ ...anAttempt(), ...mutator.some({ waiting: true }) })),
    ...mutator.some({
      v: 1,
      saturated: false,
      successRate: 0.5,
      latencyMs: 1.5,
      draining: true,
      maxConcurrent: 4,
    }),
  }),
  progress: () => ({
    ...{ incarnation: "life", ...anAttempt() },
    ...mutator.some({ v: 1, fraction: 0.5, message: "half" }),
  }),
};

/** The schema of a request with its items. */
const withItems = (schema: z.ZodObject, list: string, item: z.ZodType) =>
  schema.extend({ [list]: (item as z.ZodString).array().min(1).max(limits.itemsPerMessageMax) });

describe.each([
  ["submission", isRightSubmitRequest, withItems(submitRequestSchema, "tasks", taskInputSchema)],
  ["results", isRightResultRequest, withItems(resultRequestSchema, "results", resultSchema)],
  ["question", isRightAwaitRequest, withItems(awaitRequestSchema, "tasks", taskIdSchema)],
  ["heartbeat", isPlainHeartbeat, heartbeatSchema],
  ["progress", isProgress, progressSchema],
] as const)("a message: %s", (name, isRight, schema) => {
  it(`passes the quick check if and only if the schema takes it as it is, in ${MESSAGES} messages`, () => {
    let right = 0;
    for (let count = 0; count < MESSAGES; count += 1) {
      const message = mutator.mutated(makers[name]());
      const checked = schema.safeParse(message);
      const isRightBySchema = checked.success && isDeepStrictEqual(checked.data, message);
      if (isRight(message) !== isRightBySchema) expect.unreachable(JSON.stringify(message));
      if (isRightBySchema) right += 1;
    }
    expect(right).toBeGreaterThan(MESSAGES / 10);
    expect(right).toBeLessThan(MESSAGES * 0.9);
  }, 200_000); // on a busy machine ten times as long as on a calm machine

  it("needs no schema while it is right", () => {
    for (let count = 0; count < 1_000; count += 1) {
      const message = makers[name]();
      const checked = schema.safeParse(message);
      expect(isRight(message), JSON.stringify(message)).toBe(checked.success);
    }
  });
});

describe("the bounds of lists", () => {
  it.each([0, 1, limits.itemsPerMessageMax, limits.itemsPerMessageMax + 1])("%i items", (count) => {
    const tasks = Array.from({ length: count }, () => ({ kind: "k" }));
    expect(isRightSubmitRequest({ tasks })).toBe(submitRequestSchema.safeParse({ tasks }).success);
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
