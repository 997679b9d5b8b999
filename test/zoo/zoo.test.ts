// The simulator finds planted bugs in the journal, the rules and the agent; the first seed is known to find each. The
// whole zoo takes some 25 minutes (`npm run zoo -- --seeds 100`).

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const zoo = fileURLToPath(new URL("zoo.ts", import.meta.url));
const bugs = ["takes-a-refusal-for-stored", "reserves-twice", "drops-an-unanswered-result"];

it("finds planted bugs, and none in the unchanged code", async () => {
  const only = ["none", ...bugs].join(",");
  const args = ["--import", "tsx", zoo, "--only", only, "--seeds", "1", "--threads", "1", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, args); // rejects unless the exit code is 0
  const hunted = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(hunted.map(({ name }) => name)).toEqual(["none", ...bugs]);
  // The first check to find a bug depends on the course of the seed, and so on all of the code.
  expect(hunted.map(({ found }) => typeof found?.check)).toEqual(["undefined", "string", "string", "string"]);
}, 600_000); // at the lowest priority, beside other suites
