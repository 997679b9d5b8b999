// A CPU profile as time by file and by function.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { transformSync } from "esbuild";
import { expect, it } from "vitest";
import { type CpuProfile, summaryOf } from "../../bench/harness/cpu-profile.ts";

function frame(id: number, functionName: string, url: string, children: number[] = []) {
  return { id, callFrame: { functionName, url, lineNumber: 0, columnNumber: 0 }, children };
}

const profile: CpuProfile = {
  nodes: [
    frame(1, "(root)", "", [2, 6]),
    frame(2, "turn", "file:///checkout/src/turn.ts", [3, 4]),
    frame(3, "stringify", "node:internal/json", []),
    frame(4, "turn", "file:///checkout/src/turn.ts", [5]),
    frame(5, "parse", "file:///checkout/node_modules/zod/parse.js"),
    frame(6, "(idle)", ""),
  ],
  // A sample before the window, five within, a sample behind.
  samples: [2, 2, 3, 4, 5, 6, 2],
  timeDeltas: [100, 10, 20, 30, 40, 500, 1_000],
  startTime: 0,
};

const summary = summaryOf(profile, { fromUs: 105, toUs: 800 }, "/checkout");

it("counts the samples of the window, without idle time", () => {
  expect(summary.busyUs).toBe(100);
});

it("sums self time by file and by function", () => {
  expect(summary.files).toEqual([
    { what: "src/turn.ts", us: 40 },
    { what: "zod/parse.js", us: 40 },
    { what: "node:internal/json", us: 20 },
  ]);
  expect(summary.functions[0]).toEqual({ what: "src/turn.ts  turn", us: 40 });
});

it("names files of the checkout alike, with a slash behind its folder too", () => {
  expect(summaryOf(profile, { fromUs: 105, toUs: 800 }, "/checkout/").files).toEqual(summary.files);
});

it("counts a function that calls itself once", () => {
  expect(summary.inclusive).toEqual([
    { what: "src/turn.ts  turn", us: 100 },
    { what: "zod/parse.js  parse", us: 40 },
  ]);
});

it("names the source of a bundled file, by its source map", () => {
  const folder = mkdtempSync(join(tmpdir(), "waggle-profile-"));
  const { code, map } = transformSync("\n\nexport function turn(): void {}\n", {
    ...{ loader: "ts", sourcemap: true, sourcefile: "../src/turn.ts" },
  });
  mkdirSync(join(folder, "dist"));
  writeFileSync(join(folder, "dist/chunk.js"), code);
  writeFileSync(join(folder, "dist/chunk.js.map"), map);
  const url = pathToFileURL(join(folder, "dist/chunk.js")).href;
  const bundled = { nodes: [frame(1, "turn", url)], samples: [1], timeDeltas: [10], startTime: 0 };
  expect(summaryOf(bundled, { fromUs: 0, toUs: 100 }, folder).files).toEqual([
    { what: "src/turn.ts", us: 10 },
  ]);
  rmSync(folder, { recursive: true });
});
