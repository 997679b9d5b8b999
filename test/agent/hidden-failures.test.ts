// A framework hides errors of models' streams: some results fail because of a hidden error, and others stand.

import { describe, expect, it } from "vitest";
import { HiddenFailures } from "../../src/agent/hidden-failures.ts";

const refused = new Error("refused");
const standIn = "NoOutputError";

/** The first stream delivered "one " and ended. The second stream delivered "two" and failed. */
function afterFailure(): HiddenFailures {
  const failures = new HiddenFailures();
  const first = failures.begin();
  first.delivered("one ");
  first.succeeded();
  const second = failures.begin();
  second.delivered("two");
  second.failed(refused, standIn);
  return failures;
}

describe("after a hidden failure, a result", () => {
  it.each([
    undefined,
    null,
    "",
    "\n",
    "two",
    "one two",
    [],
    {},
    ["one ", "two"],
    { summary: "two", more: [{ text: "" }] },
  ])("without content of the handler fails: %j", (result) => {
    expect(() => afterFailure().check(result)).toThrow(refused);
  });

  it.each([["busy"], [0], [false], [{ summary: "two", tries: 1 }], [new Uint8Array()], [new Date(0)]])(
    "with content of the handler stands: %j",
    (result) => {
      expect(() => afterFailure().check(result)).not.toThrow();
    },
  );

  it("that cannot be read stands", () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    expect(() => afterFailure().check(cyclic)).not.toThrow();
  });

  it("stands when a later call succeeded", () => {
    const failures = afterFailure();
    failures.begin().succeeded();
    expect(() => failures.check("")).not.toThrow();
  });

  it("fails when only an earlier call succeeded", () => {
    const failures = new HiddenFailures();
    const beside = failures.begin();
    failures.begin().failed(refused, standIn);
    beside.succeeded();
    expect(() => failures.check("")).toThrow(refused);
  });

  it("of a call beside the failed one stands", () => {
    const failures = new HiddenFailures();
    const beside = failures.begin();
    failures.begin().failed(refused, standIn);
    beside.delivered("its text");
    beside.succeeded();
    expect(() => failures.check("its text")).not.toThrow();
  });
});

it("only the framework's replacement error stands for the hidden error", () => {
  const thrown = Object.assign(new Error("no output"), { name: standIn });
  const other = new Error("other");
  expect(afterFailure().behind(thrown)).toBe(refused);
  expect(afterFailure().behind(other)).toBe(other);
  expect(new HiddenFailures().behind(thrown)).toBe(thrown);
});
