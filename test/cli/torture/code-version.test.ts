// The version of the code changes with every file that a seed runs.

import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { codeVersion } from "../../../src/cli/torture/code-version.ts";
import { packageFolder, packageVersion } from "../../../src/cli/version.ts";

it("starts with the package's version and changes only with imported files", () => {
  const folder = mkdtempSync(join(tmpdir(), "waggle-code-"));
  const entry = join(folder, "sim", "run-seed.js");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  for (const name of ["sim", "core"]) mkdirSync(join(folder, name));
  write("sim/run-seed.js", 'import { a } from "../core/a.js";\nimport { z } from "zod";\n');
  write("core/a.js", 'export { b } from "./b.js";\nconst more = () => import("./c.js");');
  write("core/b.js", "1");
  write("core/c.js", 'import "../sim/run-seed.js";');
  const first = codeVersion(entry);
  expect(first).toMatch(new RegExp(`^${packageVersion().replaceAll(".", "\\.")}\\+[0-9a-f]{12}$`));
  write("core/other.js", "1");
  write("core/b.js.map", "1");
  expect(codeVersion(entry)).toBe(first);
  for (const name of ["sim/run-seed.js", "core/a.js", "core/b.js", "core/c.js"]) {
    const before = codeVersion(entry);
    appendFileSync(join(folder, name), "\nmore();\n");
    expect(codeVersion(entry), name).not.toBe(before);
  }
  rmSync(folder, { recursive: true });
});

it("covers the entry of a seed by default", () => {
  expect(codeVersion()).toBe(codeVersion(join(packageFolder, "dist/src/sim/fault/seed-thread.js")));
});
