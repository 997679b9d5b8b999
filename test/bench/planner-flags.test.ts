// Flags and output of `npm run bench:planner`; the benchmark itself measures.

import { describe, expect, it } from "vitest";
import { isMet, readFlags, requirementLine } from "../../bench/planner-flags.ts";

describe("the flags", () => {
  it("are read", () => {
    const asked = ["--only", "100/1000/10000/10", "--repetitions", "3", "--json"];
    expect(readFlags(asked)).toEqual({
      all: false,
      required: false,
      json: true,
      repetitions: 3,
      only: "100/1000/10000/10",
    });
  });

  it.each([
    [["--smal"], "Unknown option '--smal'"],
    [["100/10/10000/10"], "Unexpected argument"],
    [["--only"], "--only"],
    [["--only", "largest"], "--only is one combination of agents 100, 1000, 10000 / users"],
    [["--only", "7/10/10000/10"], "not '7/10/10000/10'"],
    [["--only", "100/10/10000"], "not '100/10/10000'"],
    [["--repetitions", "many"], "a number from 1 to 9999"],
    [["--repetitions", "0"], "a number from 1 to 9999"],
  ])("%j are refused in a sentence", (argv, sentence) => {
    expect(readFlags(argv)).toEqual({ refused: expect.stringContaining(sentence) });
    expect(readFlags(argv)).toEqual({ refused: expect.not.stringContaining("\n") });
  });
});

describe.each([
  [4.9, "ok      mean: 4.9, at most 5", true, true],
  [5.1, "FAILED  mean: 5.1, at most 5", false, false],
  [undefined, "-       mean: not measured, at most 5", false, true],
])("a requirement that came to %s", (value, line, isMetByAll, isMetByOne) => {
  const requirement = { what: "mean", value, max: 5 };

  it("says so", () => {
    expect(requirementLine(requirement)).toBe(line);
  });

  it("decides the exit code; what --only leaves out does not", () => {
    expect([isMet(requirement, false), isMet(requirement, true)]).toEqual([isMetByAll, isMetByOne]);
  });
});
