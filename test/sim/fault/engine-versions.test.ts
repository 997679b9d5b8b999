// A seed takes the same course on every supported version of Node: engines differ in the last digits of powers and in
// how they order what the language leaves open, and nothing here may depend on either. Binaries are named by
// `WAGGLE_NODES` (separated like PATH); .ci/run gets them.

import { execFile } from "node:child_process";
import { delimiter } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const named = (process.env.WAGGLE_NODES ?? "").split(delimiter).filter((path) => path !== "");
const SENTENCE = "seeds on other versions of Node: none are named in WAGGLE_NODES";
if (named.length === 0) console.warn(`${SENTENCE}; skipped`);

/** One line a seed, and the version that ran them. */
async function tracesOn(node: string): Promise<{ readonly version: string; readonly traces: string[] }> {
  const { stdout: version } = await run(node, ["--version"]);
  const argv = ["bin/waggle.js", "torture", "--seeds", "0..11", "--for", "15s", "--threads", "1", "--json"];
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

describe.skipIf(named.length === 0)("twelve seeds", () => {
  it("take the same course on each version", async () => {
    const here = await tracesOn(process.execPath);
    expect(here.traces).toHaveLength(12);
    for (const node of named) {
      const there = await tracesOn(node);
      expect(there.version).not.toBe(here.version);
      expect({ ...there, version: here.version }).toEqual(here);
    }
  }, 300_000); // on a busy machine a version takes longer than a minute
});
