// Packages that a program has and a linked checkout has not: found from the program's folder.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { importPeer } from "../../src/adapters/peer.ts";

const [node = "", program = ""] = process.argv;
let folder: string;

function install(name: string, manifest: object, files: Readonly<Record<string, string>>): void {
  const home = join(folder, "node_modules", name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ name, ...manifest }));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(home, file), text);
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-peer-"));
  const conditions = { types: "./index.d.ts", require: "./index.cjs", import: { default: "./index.mjs" } };
  install(
    "peer-with-exports",
    { exports: { ".": conditions } },
    { "index.mjs": "export const is = 'a module';" },
  );
  install("@peer/with-main", { main: "lib.cjs" }, { "lib.cjs": "exports.is = 'common';" });
  install("peer-that-lacks", { exports: "./index.mjs" }, { "index.mjs": "import 'a-package-of-its-own';" });
  mkdirSync(join(folder, "src"));
});
afterEach(() => {
  process.argv = [node, program];
});
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ["peer-with-exports", "a module"],
  ["@peer/with-main", "common"],
])("%s is found from the folder of the program alone", async (name, is) => {
  await expect(importPeer(name, "swarmModel")).rejects.toMatchObject({
    code: "WAGGLE_MISSING_PACKAGE",
    message: `swarmModel needs the package ${name}, which is not installed: run \`npm install ${name}\``,
  });
  process.argv = [node, join(folder, "src", "main.js")];
  expect(await importPeer(name, "swarmModel")).toMatchObject({ is });
});

it("a package that lacks an own dependency reports the missing dependency", async () => {
  process.argv = [node, join(folder, "src", "main.js")];
  await expect(importPeer("peer-that-lacks", "swarmModel")).rejects.toThrow("a-package-of-its-own");
});
