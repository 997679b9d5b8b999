// Every script of package.json with flags prints its usage.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
};
/** They take no flag. */
const without = ["build", "docs:lifecycle", "docs:protocol"];
const entries = Object.entries(scripts).flatMap(([name, command]) => {
  const file = /(?:tsx|--import tsx)(?: --[\w=-]+)* (\S+\.ts)$/.exec(command)?.[1];
  return file === undefined || without.includes(name) ? [] : [{ name, file }];
});

it("scripts with a help text exist", () => {
  expect(entries.length).toBeGreaterThan(20);
});

it.concurrent.each(entries)("npm run $name prints its usage with --help", async ({ name, file }) => {
  const args = ["--import", "tsx", file, "--help"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  expect(stdout).toContain(`npm run ${name} --`);
});
