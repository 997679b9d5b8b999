// Messages written by hand against `JSON.stringify`, over many messages. The arbitraries name every field of a type:
// the compiler finds a field that is added to a message later.

import fc from "fast-check";
import { expect, it } from "vitest";
import { JsonWriter } from "../../src/core/json-writer.ts";
import { assignPushJson, donePushJson } from "../../src/protocol/push-json.ts";
import {
  type Assignment,
  agentPushSchema,
  donePushSchema,
  endedTaskStateSchema,
  type Outcome,
} from "../../src/protocol/schemas.ts";
import { record, text } from "../support/json-arbitraries.ts";

const count = fc.oneof(fc.nat(), fc.maxSafeInteger());
const encoding = fc.constant("base64");
/** No message has this name: it is refused as a label (LABEL_PATTERN). */
const name = text.filter((each) => each !== "__proto__");

const assignment = record<Assignment>(
  {
    number: count,
    project: text,
    task: text,
    attempt: count,
    token: text,
    kind: text,
    user: text,
    payload: text,
    timeoutMs: count,
    maxAttempts: count,
    encoding,
    stallMs: count,
    stream: fc.constant(true),
    attributes: fc.dictionary(name, text, { noNullPrototype: true }),
    revoked: fc.constant(true),
    traceparent: text,
    tracestate: text,
    waitedMs: count,
  },
  ["number", "project", "task", "attempt", "token", "kind", "user", "payload", "timeoutMs", "maxAttempts"],
);

const outcome = record<Outcome>(
  {
    project: text,
    task: text,
    state: fc.constantFrom(...endedTaskStateSchema.options),
    attempts: count,
    round: count,
    agent: text,
    result: text,
    resultDigest: fc.record({ sha256: text, bytes: count }, { noNullPrototype: true }),
    encoding,
    tokens: count,
    latencyMs: fc.oneof(count, fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })),
    failureClass: text,
    reason: text,
    error: text,
    gone: fc.constant(true),
  },
  ["project", "task", "state", "attempts"],
);

function parsed(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}

it("assignments are written as by JSON.stringify, up to the order of fields", () => {
  const json = new JsonWriter();
  fc.assert(
    fc.property(count, text, fc.array(assignment, { maxLength: 3 }), (term, incarnation, assignments) => {
      const message = { type: "assign", term, incarnation, assignments };
      const bytes = assignPushJson(json, { term, incarnation, assignments });
      expect(parsed(bytes)).toEqual(JSON.parse(JSON.stringify(message)));
      expect(bytes.length).toBe(Buffer.byteLength(JSON.stringify(message)));
      expect(agentPushSchema.parse(parsed(bytes))).toEqual(parsed(bytes));
    }),
    { numRuns: 1_500 },
  );
});

it("outcomes are written as by JSON.stringify, up to the order of fields", () => {
  const json = new JsonWriter();
  fc.assert(
    fc.property(count, count, fc.array(outcome, { maxLength: 3 }), (term, idx, ended) => {
      const message = { term, idx, ended };
      const bytes = donePushJson(json, message);
      expect(parsed(bytes)).toEqual(JSON.parse(JSON.stringify(message)));
      expect(bytes.length).toBe(Buffer.byteLength(JSON.stringify(message)));
      expect(donePushSchema.parse(parsed(bytes))).toEqual(parsed(bytes));
    }),
    { numRuns: 1_500 },
  );
});
