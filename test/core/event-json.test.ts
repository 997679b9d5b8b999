// Events written by hand against `JSON.stringify`, over many events with all fields and odd texts and numbers. The
// arbitraries name every field of a type: the compiler finds a field that is added to an event later.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutContents } from "../../src/audit/contents.ts";
import { writeEvent } from "../../src/core/event-json.ts";
import { JsonWriter, piece } from "../../src/core/json-writer.ts";
import type { Event, EventOf, TaskSpec } from "../../src/state/event.ts";
import { type CandidateTerms, ineligibleReasons, type Receipt } from "../../src/state/receipt.ts";
import { record, text } from "../support/json-arbitraries.ts";

const number = fc.oneof(
  fc.nat(),
  fc.nat({ max: 20_000 }).map((scaled) => scaled / 1e4),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(
    0,
    -0,
    9,
    10,
    99,
    100,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 53,
    0.1,
    1.0001,
    214_748.3647,
    0.00001,
    -1,
  ),
);
const encoding = fc.constant("base64");

const spec = record<TaskSpec>(
  {
    id: text,
    kind: text,
    role: text,
    needs: fc.dictionary(text, fc.array(text, { minLength: 1, maxLength: 3 }), { noNullPrototype: true }),
    affinity: text,
    project: text,
    user: text,
    weight: number,
    priority: number,
    payload: text,
    encoding,
    tokens: number,
    deadline: number,
    notBefore: number,
    maxAttempts: number,
    timeoutMs: number,
    stallMs: number,
    stream: fc.constant(true),
    attributes: fc.dictionary(text, text, { noNullPrototype: true }),
    traceparent: text,
    tracestate: text,
  },
  ["id", "kind", "project", "user", "weight", "priority", "payload", "maxAttempts", "timeoutMs"],
);

const terms = record<CandidateTerms>(
  { agent: text, score: number, successRate: number, load: number, backlog: number, speed: number },
  ["agent", "score", "successRate", "load"],
);

const receipt = record<Receipt>(
  {
    feasible: number,
    candidates: fc.array(terms, { maxLength: 3 }),
    ineligible: fc.dictionary(fc.constantFrom(...ineligibleReasons), number, { noNullPrototype: true }),
    decidedBy: fc.constantFrom("only", "score"),
    queue: text,
    waiting: number,
    waitedMs: number,
    turn: fc.constant({ project: "guarantee", user: "rule" }),
    budget: fc.constant({ project: "alert" }),
  },
  ["feasible", "candidates", "ineligible", "decidedBy", "queue", "waiting", "waitedMs"],
);

const event: fc.Arbitrary<Event> = fc.oneof(
  record<EventOf<"TaskSubmitted">>({ type: fc.constant("TaskSubmitted"), task: spec, hash: text }, [
    "type",
    "task",
    "hash",
  ]),
  record<EventOf<"TaskAssigned">>(
    {
      type: fc.constant("TaskAssigned"),
      project: text,
      task: text,
      attempt: number,
      agent: text,
      incarnation: text,
      number,
      token: text,
      receipt,
      tokensReserved: number,
      runsAs: text,
      cheaperType: text,
    },
    ["type", "project", "task", "attempt", "agent", "incarnation", "number", "token", "receipt"],
  ),
  record<EventOf<"TaskCompleted">>(
    {
      type: fc.constant("TaskCompleted"),
      project: text,
      task: text,
      attempt: number,
      agent: text,
      result: text,
      resultDigest: fc.record({ sha256: text, bytes: number }, { noNullPrototype: true }),
      latencyMs: number,
      encoding,
      tokens: number,
    },
    ["type", "project", "task", "attempt", "agent", "latencyMs"],
  ),
  record<EventOf<"TaskRetried">>(
    { type: fc.constant("TaskRetried"), task: spec, hash: text, round: number },
    ["type", "task", "hash", "round"],
  ),
  record<EventOf<"AssignmentsConfirmed">>(
    { type: fc.constant("AssignmentsConfirmed"), agent: text, upTo: number },
    ["type", "agent", "upTo"],
  ),
  fc.record({ type: fc.constant("AgentDrained"), agent: text }, { noNullPrototype: true }),
) as fc.Arbitrary<Event>;

describe("an event", () => {
  it("is written as by JSON.stringify", () => {
    const json = new JsonWriter();
    fc.assert(
      fc.property(event, (written) => {
        json.clear();
        writeEvent(json, written);
        const bytes = Buffer.from(json.written);
        expect(bytes.toString()).toBe(JSON.stringify(written));
        const { contentsFrom: from, contentsTo: to } = json;
        const bare = from < 0 ? bytes : Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
        expect(bare.toString()).toBe(JSON.stringify(withoutContents(written)));
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("a writer", () => {
  it("writes every number as JSON.stringify does", () => {
    const json = new JsonWriter();
    const written = (value: number) => {
      json.clear();
      json.number(piece(""), value);
      return Buffer.from(json.written).toString();
    };
    fc.assert(
      fc.property(number, (value) => {
        expect(written(value)).toBe(JSON.stringify(value));
      }),
      { numRuns: 3_000 },
    );
    const decimals = Array.from({ length: 30_001 }, (_, scaled) => scaled / 1e4);
    expect(decimals.filter((value) => written(value) !== JSON.stringify(value))).toEqual([]);
  });

  it("keeps all written bytes while the memory grows", () => {
    const json = new JsonWriter();
    const texts = Array.from({ length: 300 }, (_, n) => "蜂".repeat(n));
    for (const each of texts) json.text(piece("\n"), each);
    expect(
      Buffer.from(json.written)
        .toString()
        .trim()
        .split("\n")
        .map((each) => JSON.parse(each)),
    ).toEqual(texts);
  });
});
