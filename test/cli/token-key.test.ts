// The file with the key of the attempts' tokens: what `waggle up` refuses before it starts anything.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { tokenKeyIn } from "../../src/cli/token-key.ts";
import { aShell, runIn } from "./shell.ts";

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "waggle-token-key-"));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function keyFile(content: string, mode: number): string {
  const file = join(cwd, "token.key");
  writeFileSync(file, content, { mode });
  return file;
}

it("reads the key without white space around it", () => {
  expect(tokenKeyIn(keyFile(`${"k".repeat(32)}\n`, 0o600))).toEqual(new TextEncoder().encode("k".repeat(32)));
});

it.each([
  ["a short key", "k".repeat(31), 0o600, "has 31 bytes, and a key has at least 32"],
  ["a key that other users may read", "k".repeat(32), 0o640, "run `chmod 600 "],
])("up refuses %s, named by the settings file, and starts nothing", async (_, content, mode, sentence) => {
  keyFile(content, mode);
  writeFileSync(join(cwd, "waggle.config.json"), JSON.stringify({ tokenKeyFile: "./token.key" }));
  const { code, stderr } = await runIn(aShell({ cwd }), "up");
  expect([code, stderr]).toEqual([2, expect.stringContaining("WAGGLE_INVALID_CONFIG")]);
  expect(stderr).toContain(sentence);
  expect(existsSync(join(cwd, ".waggle"))).toBe(false);
});

it("up refuses a missing file", async () => {
  const { code, stderr } = await runIn(aShell({ cwd }), "up", "--token-key-file", "absent.key");
  expect(code).toBe(2);
  expect(stderr).toContain(`cannot read ${join(cwd, "absent.key")}`);
});
