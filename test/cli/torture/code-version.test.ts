// A version of the code is another one as soon as a file that runs is.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { codeVersion } from "../../../src/cli/torture/code-version.ts";
import { packageVersion } from "../../../src/cli/version.ts";

it("is the package's, and changes with the code and with nothing else", () => {
  const folder = mkdtempSync(join(tmpdir(), "waggle-code-"));
  mkdirSync(join(folder, "core"));
  writeFileSync(join(folder, "core", "a.js"), "1");
  const first = codeVersion(folder);
  expect(first.startsWith(`${packageVersion()}+`)).toBe(true);
  writeFileSync(join(folder, "core", "a.d.ts"), "1");
  writeFileSync(join(folder, "core", "a.js.map"), "1");
  expect(codeVersion(folder)).toBe(first);
  writeFileSync(join(folder, "core", "a.js"), "2");
  expect(codeVersion(folder)).not.toBe(first);
  rmSync(folder, { recursive: true });
});

it("is that of the code that runs", () => {
  expect(codeVersion()).toBe(codeVersion(join(import.meta.dirname, "../../../src")));
});
