// The codec: depth of raw bytes, errors that name the field, and hostile messages.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { check, decode, encode, isDeeperThan } from "../../src/protocol/codec.ts";
import { labelsSchema, submitRequestSchema, taskInputSchema } from "../../src/protocol/schemas.ts";
import { projectPatchSchema } from "../../src/protocol/settings-schemas.ts";
import { isInbox } from "../../src/protocol/subjects.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Depth from the parsed value, to check the byte scan. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("depth", () => {
  it("is that of the parsed value, whatever the strings hold", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 0, max: 8 }), (json, depthMax) => {
        expect(isDeeperThan(bytes(json), depthMax)).toBe(depthOf(JSON.parse(json)) > depthMax);
      }),
      { numRuns: 2_000 },
    );
  });

  it("of 10,000 is refused before it is parsed", () => {
    const answer = decode(bytes(`{"tasks":${"[".repeat(10_000)}${"]".repeat(10_000)}}`), submitRequestSchema);
    expect(answer).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE" });
    expect(answer.ok ? "" : answer.message).toContain("nested deeper");
  });
});

describe("a message that does not parse", () => {
  it.each([
    ["not JSON", bytes("{")],
    ["not UTF-8", new Uint8Array([0x22, 0xff, 0x22])],
    ["empty", new Uint8Array()],
  ])("is refused: %s", (_, data) => {
    expect(decode(data, submitRequestSchema)).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE" });
  });

  it.each([
    [{ kind: "count", weight: Number.NaN }, "weight"],
    [{ kind: "count", weight: 0.5 }, "weight"],
    [{ kind: "with space" }, "kind"],
    [{ kind: "tab\tbed" }, "kind"],
    [{ kind: "x".repeat(129) }, "kind"],
    [{ kind: "count", id: "zero\u200bwidth" }, "id"],
    [{ kind: "count", user: "" }, "user"],
    [{ kind: "count", payload: 7 }, "payload"],
    [{ kind: "count", payload: "not base64!", encoding: "base64" }, "payload"],
    [{ kind: "count", payload: "x".repeat(limits.payloadBytesMax + 1) }, "payload"],
    [{ kind: "count", payload: "\u0000".repeat(limits.payloadBytesMax / 2) }, "payload"],
    [{ kind: "count", maxAttempts: 0 }, "maxAttempts"],
    [{ kind: "count", deadline: "tomorrow" }, "deadline"],
    [{}, "kind"],
  ])("names the field: %#", (task, field) => {
    const answer = check(task, taskInputSchema, "tasks[3]");
    expect(answer).toMatchObject({ ok: false, field: `tasks[3].${field}` });
  });

  it.each([
    [{ kind: "count", weight: Number.NaN }, "weight: must be a number, not NaN"],
    [{ kind: "count", weight: null }, "weight: must be a number, not null"],
    [{ kind: "count", weight: 0.5 }, "weight: must be at least 1, not 0.5"],
    [{ kind: "count", maxAttempts: 1.5 }, "maxAttempts: must be a whole number, not 1.5"],
    [{ kind: "count", maxAttempts: 101 }, "maxAttempts: must be at most 100, not 101"],
    [{ kind: "count", payload: 7 }, "payload: must be text, not 7"],
    [{ kind: "count", encoding: "hex" }, "encoding: must be base64, not 'hex'"],
    [{}, "kind: is missing"],
    [[], "the message: must be an object, not a list of 0"],
  ])("names the required and the actual type: %#", (task, message) => {
    expect(check(task, taskInputSchema)).toMatchObject({ ok: false, message });
  });

  it.each([
    [{ mode: "warn" }, "budget.mode: must be one of wait, reject, alert, downgrade, not 'warn'"],
    [[], "budget: must be an object, not a list of 0"],
  ])("names the allowed values: %#", (budget, message) => {
    expect(check({ budget }, projectPatchSchema)).toMatchObject({ ok: false, message });
  });

  it("says how many there must be", () => {
    const message = "tasks: must be a list of at least 1, not of 0";
    expect(check({ tasks: [] }, submitRequestSchema)).toMatchObject({ ok: false, message });
  });

  it("of another version names v", () => {
    expect(decode(encode({ v: 2, tasks: [{}] }), submitRequestSchema)).toMatchObject({
      ok: false,
      field: "v",
    });
  });
});

it("unknown fields are ignored, and __proto__ is dropped", () => {
  const answer = decode(
    bytes('{"tasks":[{}],"colour":"red","__proto__":{"polluted":true}}'),
    submitRequestSchema,
  );
  expect(answer).toEqual({ ok: true, value: { tasks: [{}] } });
  const labels = check(JSON.parse('{"__proto__":"x","zone":"a"}'), labelsSchema);
  expect(labels.ok && Object.entries(labels.value)).toEqual([["zone", "a"]]);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

it.each([
  ["_INBOX.abc.1", true],
  ["_INBOX", false],
  ["_INBOX.>", false],
  ["_INBOX.*.x", false],
  ["_INBOX_ann.abc", true],
  ["_INBOX-2.abc.1", true],
  ["_INBOX_ann", false],
  ["_INBOX_ann.>", false],
  ["_INBOX$JS.API", false],
  ["a_INBOX.abc", false],
  ["waggle.v1.test.journal", false],
  ["$JS.API.STREAM.DELETE.WAGGLE_test", false],
])("a reply may go to %s: %s", (subject, expected) => expect(isInbox(subject)).toBe(expected));
