// Reading a recorded trace: valid requests, and invalid lines.

import { describe, expect, it } from "vitest";
import { InvalidValueError } from "../../src/errors.ts";
import { parseTrace } from "../../src/sim/policy/trace-file.ts";

const heading = "TIMESTAMP,ContextTokens,GeneratedTokens";
const first = "2023-11-16 18:15:46.6805900,374,44";

function refusal(...lines: readonly string[]): unknown {
  try {
    return parseTrace(lines.join("\n"));
  } catch (error) {
    return error instanceof InvalidValueError ? [error.code, error.field, error.message] : error;
  }
}

describe("a trace", () => {
  it("is requests by their time since the first, whatever order they stand in", () => {
    const text = [heading, "2023-11-16 18:15:50.9951690,396,109", first, ""].join("\r\n");
    expect(parseTrace(text)).toEqual([
      { arrivesAt: 0, contextTokens: 374, generatedTokens: 44 },
      { arrivesAt: 4_315, contextTokens: 396, generatedTokens: 109 },
    ]);
  });

  it("may have spaces, a byte order mark and a zone", () => {
    const text = `\uFEFFTIMESTAMP, ContextTokens, GeneratedTokens\n2024-01-01T00:00:00Z, 1, 2\n2024-01-01T01:00:01+01:00, 3, 4`;
    expect(parseTrace(text).map(({ arrivesAt }) => arrivesAt)).toEqual([0, 1_000]);
  });

  it.each([
    ["no heading", [first, first], 1],
    ["nothing", [""], 1],
    ["one request", [heading, first], 2],
    ["two values", [heading, first, "2023-11-16 18:15:46.68,374"], 3],
    ["four values", [heading, "2023-11-16 18:15:46.68,374,1,2"], 2],
    ["no time", [heading, first, "yesterday,374,44"], 3],
    ["no such day", [heading, "2023-13-46 18:15:46,374,44"], 2],
    ["a day that no calendar has", [heading, first, "2023-02-30 18:15:46,374,44"], 3],
    ["an hour that no day has", [heading, first, "2023-02-27 24:00:00,374,44"], 3],
    ["a negative count", [heading, first, first, "2023-11-16 18:15:46.68,-1,44"], 4],
    ["half a token", [heading, "2023-11-16 18:15:46.68,1.5,44"], 2],
  ])("with %s is refused, naming the line", (_, lines, line) => {
    expect(refusal(...lines)).toEqual([
      "WAGGLE_INVALID_VALUE",
      `line ${line}`,
      expect.stringMatching(new RegExp(`^line ${line} of the trace: `)),
    ]);
  });
});
