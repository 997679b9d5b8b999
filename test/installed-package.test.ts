// The package as npm installs it beside other packages: its files, its dependencies, and no optional package.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

const checkout = fileURLToPath(new URL("..", import.meta.url));
let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "waggle-installed-"));
  const packages = join(project, "node_modules");
  for (const part of ["bin", "dist", "package.json"])
    cpSync(join(checkout, part), join(packages, "waggledance", part), { recursive: true });
  const { dependencies } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8"));
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(packages, name)), { recursive: true });
    symlinkSync(join(checkout, "node_modules", name), join(packages, name));
  }
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

function node(...args: string[]) {
  return spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
}

it("names the package that draws, and how to install it, before anything is simulated", () => {
  const waggle = join("node_modules", "waggledance", "bin", "waggle.js");
  const { status, stdout, stderr } = node(waggle, "simulate", "lucio-1", "--svg", "picture.svg");
  expect(stderr).toMatch(/^error WAGGLE_MISSING_PACKAGE: .*run `npm install vega` .*or leave out --svg\n$/);
  expect(stdout).toBe("");
  expect(status).toBe(2);
  expect(existsSync(join(project, "picture.svg"))).toBe(false);
  expect(node(waggle, "simulate", "lucio-1", "--seeds", "1")).toMatchObject({ status: 0, stderr: "" });
});

it.each([
  ["@modelcontextprotocol/client", ["agent", "--kind", "k", "--mcp", "x", "--tool", "t"]],
  ["@a2a-js/sdk", ["agent", "--kind", "k", "--a2a", "http://127.0.0.1:9"]],
  ["@a2a-js/sdk", ["serve", "a2a", "--kind", "k"]],
])("names the package %s, and how to install it", (name, args) => {
  const { status, stdout, stderr } = node(join("node_modules", "waggledance", "bin", "waggle.js"), ...args);
  expect(stderr).toContain("error WAGGLE_MISSING_PACKAGE: ");
  expect(stderr).toContain(`run \`npm install ${name}\``);
  expect([status, stdout]).toEqual([2, ""]);
});

it("gives the published rules, and the reader of the record, by their own names", () => {
  const script =
    'import { loads } from "waggledance/rules"; import { describeEvent } from "waggledance/audit"; console.log(typeof loads, typeof describeEvent);';
  const run = node("--no-warnings", "--input-type=module", "-e", script);
  expect(run).toMatchObject({ status: 0, stdout: "function function\n", stderr: "" });
});

it("gives the adapters without their frameworks, and names the package that a convenience needs", () => {
  const script = `
    import { swarmMiddleware, swarmModel } from "waggledance/ai";
    import { swarmMiddleware as ofAnthropic } from "waggledance/anthropic";
    import { withSwarm } from "waggledance/langchain";
    import { swarmFetch } from "waggledance/openai";
    import { swarmModelProvider } from "waggledance/openai-agents";
    const swarm = { acquire() {}, currentAttempt() {} };
    console.log(typeof swarmMiddleware(swarm).wrapStream, typeof ofAnthropic(swarm), typeof swarmFetch(swarm), typeof withSwarm);
    const say = ({ code, message }) => console.log(code, message);
    await swarmModel({ doGenerate() {}, doStream() {} }, swarm).catch(say);
    await swarmModelProvider(swarm).getModel("gpt-4o").catch(say);`;
  const { status, stdout, stderr } = node("--no-warnings", "--input-type=module", "-e", script);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout.split("\n")).toEqual([
    "function function function function",
    expect.stringMatching(/^WAGGLE_MISSING_PACKAGE .*`npm install ai`$/),
    expect.stringMatching(/^WAGGLE_MISSING_PACKAGE .*`npm install @openai\/agents`$/),
    "",
  ]);
});

it.each([
  [
    "import",
    ["--input-type=module", "-e", 'import { connect } from "waggledance"; console.log(typeof connect);'],
  ],
  ["require", ["-e", 'console.log(typeof require("waggledance").connect);']],
])("gives its names to %s", (_, args) => {
  expect(node("--no-warnings", ...args)).toMatchObject({ status: 0, stdout: "function\n", stderr: "" });
});

it("connects without OpenTelemetry, which is not installed", () => {
  const script =
    'import { connect } from "waggledance"; try { await connect({ nats: "nats://127.0.0.1:1" }); } catch (error) { console.log(error.code); }' +
    'try { await import("@opentelemetry/api"); } catch (error) { console.log(error.code); }';
  const run = node("--no-warnings", "--input-type=module", "-e", script);
  expect(run).toMatchObject({ status: 0, stdout: "WAGGLE_UNREACHABLE\nERR_MODULE_NOT_FOUND\n", stderr: "" });
});
