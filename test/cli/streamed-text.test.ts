// The text of `submit --stream`: what is printed after the chunks, so that standard output never lacks the result.

import { describe, expect, it } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { PrintedChunks } from "../../src/cli/streamed-text.ts";
import { ResultChunk } from "../../src/client/chunk-log.ts";
import { limits } from "../../src/limits.ts";
import type { Outcome } from "../../src/protocol/schemas.ts";
import { aShell } from "./shell.ts";

type Part = readonly [attempt: number, index: number, data: string, encoding?: "base64"];

function printed(parts: readonly Part[], outcome: Partial<Outcome>) {
  const shell = aShell();
  const chunks = new PrintedChunks(new Output(shell, { json: false }));
  for (const [attempt, index, data, encoding] of parts)
    chunks.add(new ResultChunk({ attempt, agent: "a", index, data, encoding }));
  chunks.printResult({ project: "p", task: "t", state: "completed", attempts: 1, ...outcome });
  return [shell.stdout.text, shell.stderr.text];
}

const differs = "the result differs from the printed parts; it follows\n";
const lost = "chunk 1 was lost on the way; the result has it\n";

describe("after the chunks of a result", () => {
  it.each<[string, readonly Part[], Partial<Outcome>, string, string]>([
    [
      "nothing follows that was printed",
      [
        [1, 0, "a "],
        [1, 1, "b"],
      ],
      { result: "a b" },
      "a b\n",
      "",
    ],
    ["the rest follows", [[1, 0, "a "]], { result: "a ü\n" }, "a ü\n", ""],
    ["all follows without a chunk", [], { result: "whole" }, "whole\n", ""],
    [
      "a lost chunk brings all of it",
      [
        [1, 0, "a"],
        [1, 2, "c"],
      ],
      { result: "abc" },
      "ac\nabc\n",
      lost + differs,
    ],
    ["another result follows", [[1, 0, "half done"]], { result: "42" }, "half done\n42\n", differs],
    ["an empty result differs, too", [[1, 0, "half done\n"]], {}, "half done\n\n", differs],
    [
      "values of a generator are its result",
      [
        [1, 0, '{"a":1}'],
        [1, 1, "2"],
      ],
      { result: '[{"a":1},2]' },
      '{"a":1}2\n',
      "",
    ],
    [
      "bytes get no line end",
      [[1, 0, "/w==", "base64"]],
      { result: "//4=", encoding: "base64" },
      "\xff\xfe",
      "",
    ],
  ])("%s", (_, parts, outcome, stdout, stderr) => {
    expect(printed(parts, outcome)).toEqual([stdout, stderr]);
  });

  it("the result follows of a last attempt that sent none", () => {
    expect(printed([[1, 0, "void"]], { result: "whole", attempts: 2 })).toEqual([
      "void\nwhole\n",
      "attempt 2 begins; the output of attempt 1 is void\n",
    ]);
  });

  it("a flood that is larger than a result is not kept, and the result follows", () => {
    const flood = "x".repeat(limits.payloadBytesMax);
    const [stdout, stderr] = printed(
      [0, 1, 2].map((index) => [1, index, flood] as const),
      { result: "done" },
    );
    expect([stdout?.endsWith("x\ndone\n"), stderr]).toEqual([true, differs]);
  });
});
