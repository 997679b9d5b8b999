// The command as started, and its use in hints.

import { describe, expect, it } from "vitest";
import { asStartedBy, commandName } from "../../src/cli/command-name.ts";
import { aShell, runIn } from "./shell.ts";

const npm = (event: string, command: string, more = {}) => ({
  npm_lifecycle_event: event,
  npm_command: command,
  npm_package_json: "/srv/app/package.json",
  PATH: "/srv/app/node_modules/.bin:/usr/bin",
  ...more,
});
const cwd = "/srv/app";
const started = [
  ["on the PATH", "/usr/bin/waggle", { PATH: "/bin:/usr/bin" }, "waggle"],
  ["by its other name", "/usr/bin/waggledance", { PATH: "/usr/bin" }, "waggledance"],
  ["by a path", `${cwd}/node_modules/.bin/waggle`, { PATH: "/usr/bin" }, "./node_modules/.bin/waggle"],
  ["by Node", `${cwd}/bin/waggle.js`, { PATH: "/usr/bin" }, "node bin/waggle.js"],
  ["by Node, from elsewhere", "/opt/waggle/bin/waggle.js", {}, "node /opt/waggle/bin/waggle.js"],
  ["by Node, with a space", `${cwd}/my bin/waggle.js`, {}, "node 'my bin/waggle.js'"],
  ["by npx", `${cwd}/node_modules/.bin/waggle`, npm("npx", "exec"), "npx waggle"],
  ["by npx, in the checkout", "/h/.npm/_npx/5e33/node_modules/.bin/waggle", npm("npx", "exec"), "npx waggle"],
  [
    "by npx, by its other name",
    "/h/.npm/_npx/5/node_modules/.bin/waggledance",
    npm("npx", "exec"),
    "npx waggledance",
  ],
  [
    "by npx, from a packed file",
    "/h/.npm/_npx/7/node_modules/.bin/waggle",
    npm("npx", "exec", { npm_config_package: "./waggledance-0.1.0.tgz" }),
    "npx --package=./waggledance-0.1.0.tgz waggle",
  ],
  ["by npm start", `${cwd}/bin/waggle.js`, npm("start", "start"), "npx waggle"],
  ["by a script of a package", `${cwd}/node_modules/.bin/waggle`, npm("swarm", "run"), "npx waggle"],
  [
    "by a script, from another checkout",
    "/opt/w/bin/waggle.js",
    npm("x", "run"),
    "node /opt/w/bin/waggle.js",
  ],
  ["on the PATH, below an npm script", "/usr/bin/waggle", npm("x", "run"), "waggle"],
] as const;

it.each(started)("started %s", (_, script, env, name) => {
  expect(commandName({ env, script, cwd })).toBe(name);
});

describe("a hint", () => {
  const verbs = ["up", "status"];

  it.each(started)("of a command that was started %s can be copied, once", (_, script, env, name) => {
    const asStarted = asStartedBy({ env, script, cwd }, verbs);
    const hint = "`waggle up`; see waggle status --help, or waggle --help";
    const expected = `\`${name} up\`; see ${name} status --help, or ${name} --help`;
    expect(asStarted(hint)).toBe(expected);
    expect(asStarted(expected)).toBe(expected);
  });

  it("leaves names, paths and values of flags alone", () => {
    const asStarted = asStartedBy({ env: {}, script: `${cwd}/bin/waggle.js`, cwd }, verbs);
    const text =
      "`waggle coordinator c1` waggle.config.json --rules waggle --top-n 3 waggle-agent-a /tmp/waggle up";
    expect(asStarted(text)).toBe(text);
  });
});

describe("every text of a command started by npx", () => {
  const aNpxShell = (options: Parameters<typeof aShell>[0] = {}) =>
    aShell({ ...options, env: { npm_command: "exec", npm_lifecycle_event: "npx" } });

  it.each([[["--help"]], [["submit", "--help"]], [["project", "set", "--help"]], [["up", "--help"]]])(
    "says so in %j",
    async (argv) => {
      const { stdout } = await runIn(aNpxShell(), ...argv);
      expect(stdout).toMatch(/^Usage: npx waggle/);
      expect(stdout).toContain("$ npx waggle");
      expect(stdout.match(/(?<!npx )\bwaggle (?=up|submit|project|down|--)/g)).toBeNull();
    },
  );

  it("says so in errors, for people and for programs", async () => {
    const plain = await runIn(aNpxShell(), "status");
    expect(plain.stderr).toContain("`npx waggle up`");
    const json = await runIn(aNpxShell(), "status", "--json");
    expect(JSON.parse(json.stderr).error.message).toContain("`npx waggle up`");
    expect((await runIn(aNpxShell(), "stauts")).stderr).toContain("see npx waggle --help");
  });
});
