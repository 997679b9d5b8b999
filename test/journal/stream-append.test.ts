// The outcome of an append by JetStream's answer.

import { describe, expect, it } from "vitest";
import { readAppendAnswer } from "../../src/journal/stream/append.ts";
import { bytesOf } from "./records.ts";

function read(answer: unknown) {
  const text = typeof answer === "string" ? answer : JSON.stringify(answer);
  return readAppendAnswer(bytesOf(text), { stream: "WAGGLE_t_2", position: 8 });
}

function readError(err_code: number, description: string) {
  return read({ error: { code: 400, err_code, description }, stream: "WAGGLE_t_2", seq: 0 });
}

describe("the answer to an append", () => {
  it("is an acknowledgement only with the expected position", () => {
    expect(read({ stream: "WAGGLE_t_2", seq: 8 })).toEqual({ kind: "stored" });
    expect(read('{"stream":"WAGGLE_t_2", "seq":8}')).toEqual({ kind: "stored" }); // as earlier servers write it
    expect(read({ seq: 8, stream: "WAGGLE_t_2" })).toEqual({ kind: "stored" });
    expect(read({ stream: "WAGGLE_t_2", seq: 8, domain: "hub" })).toEqual({ kind: "stored" });
  });

  it.each([
    ["another position", { stream: "WAGGLE_t_2", seq: 9 }],
    ["position 0 of a duplicate, as 2.10.27 may answer", { stream: "WAGGLE_t_2", seq: 0, duplicate: true }],
    ["a duplicate at the expected position", { stream: "WAGGLE_t_2", seq: 8, duplicate: true }],
    ["another segment", { stream: "WAGGLE_t_1", seq: 8 }],
    ["no position", { stream: "WAGGLE_t_2" }],
    ["nothing", ""],
    ["text that is not JSON", "+OK"],
    ["a list", "[]"],
    ["null", "null"],
    ["a position that is text", { stream: "WAGGLE_t_2", seq: "8" }],
    ["an error without a number", { error: { code: 500 } }],
  ])("proves nothing: %s", (_, answer) => {
    expect(read(answer)).toMatchObject({ kind: "unknown" });
  });

  it.each([
    [10164, "wrong last sequence"],
    [10076, "jetstream not enabled"],
    [10008, "temporarily unavailable"],
    [10077, "write: input/output error"],
    [10059, "stream not found"],
  ])("proves nothing with %i, %s", (code, description) => {
    expect(readError(code, description)).toMatchObject({ kind: "unknown" });
  });

  it("is a refusal when the server compared positions", () => {
    expect(readError(10071, "wrong last sequence: 12")).toEqual({ kind: "refused" });
  });

  it.each([
    [10077, "maximum bytes exceeded"],
    [10077, "write /data/msgs/1.blk: no space left on device"],
    [10023, "insufficient resources"],
    [10047, "insufficient storage resources available"],
    [10028, "insufficient memory resources available"],
    [10002, "resource limits exceeded for account"],
    [10054, "message size exceeds maximum allowed"],
  ])("is full with %i, %s", (code, description) => {
    expect(readError(code, description)).toEqual({ kind: "full", message: `JetStream says: ${description}` });
  });
});
