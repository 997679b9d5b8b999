// The name of the tested code in figures.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { hasProgram } from "../support/programs.ts";
import { codeUnderTest } from "./code-under-test.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-code-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it.runIf(hasProgram("git", "the commit under test"))(
  "is the commit, with a mark once what runs differs from it, and not for a page",
  () => {
    mkdirSync(join(folder, "src"));
    writeFileSync(join(folder, "src", "a.ts"), "1");
    git("init", "--quiet");
    git("add", ".");
    git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--quiet", "--message", "m");
    const commit = codeUnderTest(folder);
    expect(commit).toMatch(/^[0-9a-f]{7}$/);
    writeFileSync(join(folder, "page.md"), "figures");
    expect(codeUnderTest(folder)).toBe(commit);
    writeFileSync(join(folder, "src", "a.ts"), "2");
    expect(codeUnderTest(folder)).toBe(`${commit}+`);
  },
);

it("is unknown where there is no git", () => {
  expect(codeUnderTest(folder)).toBe("unknown");
});

function git(...argv: readonly string[]): void {
  const { status, stderr } = spawnSync("git", ["-C", folder, ...argv], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
}
