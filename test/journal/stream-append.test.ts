// What an answer to an append proves, and above all what it does not.

import { describe, expect, it } from "vitest";
import { nowhereHeaders, readAppendAnswer, readRefusedAt } from "../../src/journal/stream/append.ts";
import { bytesOf } from "./records.ts";

function read(answer: unknown) {
  const text = typeof answer === "string" ? answer : JSON.stringify(answer);
  return readAppendAnswer(bytesOf(text), { stream: "WAGGLE_t", seq: 8 });
}

describe("the answer to an append", () => {
  it("is an acknowledgement only with the expected position", () => {
    expect(read({ stream: "WAGGLE_t", seq: 8 })).toEqual({ kind: "stored", seq: 8 });
    expect(read({ stream: "WAGGLE_t", seq: 8, domain: "hub" })).toEqual({ kind: "stored", seq: 8 });
  });

  it.each([
    ["another position", { stream: "WAGGLE_t", seq: 9 }],
    ["position 0 of a duplicate, as 2.10.27 may answer", { stream: "WAGGLE_t", seq: 0, duplicate: true }],
    ["a duplicate at the expected position", { stream: "WAGGLE_t", seq: 8, duplicate: true }],
    ["another stream", { stream: "OTHER", seq: 8 }],
    ["no position", { stream: "WAGGLE_t" }],
    ["nothing", ""],
    ["not JSON", "+OK"],
    ["a list", "[]"],
    ["null", "null"],
    ["a position that is text", { stream: "WAGGLE_t", seq: "8" }],
    [
      "a conflict with what is under way",
      { error: { code: 400, err_code: 10164, description: "wrong last sequence" } },
    ],
    ["JetStream off", { error: { code: 503, err_code: 10076, description: "jetstream not enabled" } }],
    ["no leader", { error: { code: 503, err_code: 10008, description: "temporarily unavailable" } }],
    [
      "a disk that fails",
      { error: { code: 503, err_code: 10077, description: "write: input/output error" } },
    ],
    ["an error without a number", { error: { code: 500 } }],
  ])("proves nothing: %s", (_, answer) => {
    expect(read(answer)).toMatchObject({ kind: "unknown" });
  });

  it("is a refusal where the server compared positions", () => {
    const error = { code: 400, err_code: 10071, description: "wrong last sequence: 12" };
    expect(read({ error, stream: "WAGGLE_t", seq: 0 })).toEqual({ kind: "refused" });
  });

  it.each([
    [10077, "maximum bytes exceeded"],
    [10077, "write /data/msgs/1.blk: no space left on device"],
    [10023, "insufficient resources"],
    [10047, "insufficient storage resources available"],
    [10028, "insufficient memory resources available"],
    [10002, "resource limits exceeded for account"],
    [10054, "message size exceeds maximum allowed"],
  ])("is full with %i, %s", (err_code, description) => {
    expect(read({ error: { code: 503, err_code, description } })).toEqual({
      kind: "full",
      message: `JetStream: ${description}`,
    });
  });
});

describe("the answer to an append at which no stream ends", () => {
  it("says where the server counts it to end", () => {
    expect(nowhereHeaders).toEqual({ "Nats-Expected-Last-Sequence": "9007199254740991" });
    const refusal = { err_code: 10071, description: "wrong last sequence: 12" };
    expect(readRefusedAt(bytesOf(JSON.stringify({ error: refusal })))).toBe(12);
  });

  it.each([
    ["it was stored", { stream: "WAGGLE_t", seq: 8 }],
    ["it was refused for something else", { error: { err_code: 10077, description: "no room: 12" } }],
    ["no number is told", { error: { err_code: 10071, description: "wrong last sequence" } }],
    ["it is no answer", "+OK"],
  ])("says nothing where %s", (_, answer) => {
    expect(readRefusedAt(bytesOf(JSON.stringify(answer)))).toBeUndefined();
  });
});
