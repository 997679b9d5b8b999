// The committed launcher must speak plainly before there is anything to launch.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const launcher = fileURLToPath(new URL("../bin/waggle.js", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-launcher-"));
  mkdirSync(join(folder, "bin"));
  cpSync(launcher, join(folder, "bin/waggle.js"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the copy, under a Node that says it is of another version if one is given. */
function launch(nodeVersion?: string) {
  const pretend = `Object.defineProperty(process.versions, "node", { value: "${nodeVersion}" })`;
  const flags =
    nodeVersion === undefined ? [] : ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`];
  return spawnSync(process.execPath, [...flags, join(folder, "bin/waggle.js"), "status"], {
    encoding: "utf8",
  });
}

function compile(main: string): void {
  mkdirSync(join(folder, "dist/src/cli"), { recursive: true });
  writeFileSync(join(folder, "dist/src/cli/main.js"), main);
}

test("says what to do when dist is missing", () => {
  const { status, stderr } = launch();
  expect(stderr).toContain("npm run build");
  expect(stderr).toContain(folder);
  expect(status).toBe(2);
});

test.each(["18.20.4", "20.18.3"])("refuses Node %s before it loads anything", (version) => {
  compile('throw new Error("loaded");');
  const { status, stderr } = launch(version);
  expect(stderr).toBe(`waggle needs Node 20.19 or newer; this is ${version}.\n`);
  expect(status).toBe(2);
});

test.each(["20.19.0", "22.0.0", "26.1.0"])("takes Node %s", (version) => {
  compile("console.log(process.argv[2]);");
  const { status, stdout } = launch(version);
  expect(stdout).toBe("status\n");
  expect(status).toBe(0);
});

describe("the cache of compiled code", () => {
  /** What the launcher asks of Node, whatever version runs the test. */
  function cacheAskedFor(env: NodeJS.ProcessEnv): string {
    compile("");
    const ask = "(folder) => console.log(folder)";
    const pretend = `import nodeModule from "node:module"; nodeModule.enableCompileCache = ${ask};`;
    const flags = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`];
    const { stdout, status } = spawnSync(process.execPath, [...flags, join(folder, "bin/waggle.js")], {
      encoding: "utf8",
      env,
    });
    expect(status).toBe(0);
    return stdout;
  }

  test("is the user's own", () => {
    expect(cacheAskedFor({ HOME: "/ann" })).toBe("/ann/.cache/waggle\n");
    expect(cacheAskedFor({ HOME: "/ann", XDG_CACHE_HOME: "/caches" })).toBe("/caches/waggle\n");
  });

  test("is none without a folder of the user", () => {
    expect(cacheAskedFor({})).toBe("");
  });
});
