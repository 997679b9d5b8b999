// A seed runs the same on every supported version of Node. Engines differ in the last digits of powers, and in orders
// left open by the language, so the simulator must depend on neither. `WAGGLE_NODES` lists the binaries (separated
// like PATH); .ci/run downloads them.

import { execFile } from "node:child_process";
import { delimiter } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const named = (process.env.WAGGLE_NODES ?? "").split(delimiter).filter((path) => path !== "");
const SENTENCE = "seeds on other versions of Node: none are named in WAGGLE_NODES";
if (named.length === 0) console.warn(`${SENTENCE}; skipped`);

/** A line per seed, and the version of Node. */
async function tracesOn(node: string): Promise<{ readonly version: string; readonly traces: string[] }> {
  const { stdout: version } = await run(node, ["--version"]);
  const argv = ["bin/waggle.js", "torture", "--seeds", "6..8", "--for", "15s", "--threads", "1", "--json"];
  const { stdout } = await run(node, argv, { maxBuffer: 64 * 1024 * 1024 });
  const records = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return {
    version: version.trim(),
    traces: records.filter((record) => "trace" in record).map(({ seed, trace }) => `${seed} ${trace}`),
  };
}

describe.skipIf(named.length === 0)("three seeds", () => {
  it("run the same on each version", async () => {
    const here = await tracesOn(process.execPath);
    expect(here.traces).toHaveLength(3);
    for (const node of named) {
      const there = await tracesOn(node);
      expect(there.version).not.toBe(here.version);
      expect({ ...there, version: here.version }).toEqual(here);
    }
  }, 600_000); // on a busy machine a version takes longer than a minute
});
