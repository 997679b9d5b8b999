// Completion as a user sees it: each shell runs at its own terminal, sources the script, and gets keys.

import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { binNames } from "../../src/cli/command-name.ts";
import { completedShells } from "../../src/cli/completion-scripts.ts";
import { completionTable } from "../../src/cli/completion-table.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { aShell, runIn } from "./shell.ts";

const isThere = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const program = { shell: aShell(), exitCode: 0 as const, asStarted: (text: string) => text };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waggle-completion-"));
  await writeFile(join(folder, "readings.ndjson"), "");
  await writeFile(join(folder, "two words.json"), "");
  for (const shell of completedShells) {
    const { code, stdout } = await runIn(aShell(), "completion", shell);
    expect(code).toBe(0);
    await writeFile(join(folder, `complete.${shell}`), stdout);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const startedBy = {
  bash: `bash --noprofile --norc -i`,
  zsh: `zsh -f -i`,
  fish: `fish --no-config -i`,
};
const preparedBy = {
  bash: `PS1='RE''ADY> '; source complete.bash; waggle() { printf '<%s>' "$@"; printf 'EN''D\\n'; }`,
  zsh: `PS1='RE''ADY> '; source complete.zsh; waggle() { printf '<%s>' "$@"; printf 'EN''D\\n'; }`,
  fish: `source complete.fish; function fish_prompt; printf 'RE''ADY> '; end; function waggle; printf '<%s>' $argv; printf 'EN''D\\n'; end`,
};

/** The command's arguments after `keys` are typed at a terminal of `shell`. */
async function typed(shell: (typeof completedShells)[number], keys: string): Promise<string> {
  const terminal = spawn("script", ["-qfc", startedBy[shell], "/dev/null"], {
    cwd: folder,
    env: { ...process.env, TERM: "dumb", HOME: folder, INPUTRC: "/dev/null" },
  });
  let shown = "";
  const says = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => shown.includes(text) && resolve();
      terminal.stdout.on("data", look);
      terminal.on("close", () => reject(new Error(`${shell} ended before '${text}':\n${shown}`)));
      look();
    });
  terminal.stdout.on("data", (bytes: Buffer) => {
    shown += bytes.toString("utf8");
  });
  try {
    terminal.stdin.write(`${preparedBy[shell]}\n`);
    await says("READY> ");
    terminal.stdin.write(`${keys}\n`);
    await says(">END");
    return shown.match(/(<[^\n]*>)END/)?.[1]?.replace(/^.*?(?=<)/, "") ?? "";
  } finally {
    terminal.kill();
  }
}

describe.each(completedShells)("%s", (shell) => {
  const isSkipped = !isThere(shell) || !isThere("script");

  it.skipIf(isSkipped).each([
    ["a verb", "waggle subm\t", "<submit>"],
    [
      "a verb of a verb, behind a flag with a value",
      "waggle --swarm submit proj\tse\t",
      "<--swarm><submit><project><set>",
    ],
    ["a flag", "waggle status --inter\t1s", "<status><--interval><1s>"],
    [
      "a choice of a flag",
      "waggle project set acme --budget-mode down\t",
      "<project><set><acme><--budget-mode><downgrade>",
    ],
    ["a choice behind =", "waggle --log-level=sil\t status", "<--log-level=silent><status>"],
    ["a flag behind a URL", "waggle --nats nats://a:4222 stat\t", "<--nats><nats://a:4222><status>"],
    ["a file of a flag", "waggle --config two\tstatus", "<--config><two words.json><status>"],
    ["a file behind @", "waggle submit @read\t--wait", "<submit><@readings.ndjson><--wait>"],
    ["a verb to get help for", "waggle help expl\t", "<help><explain>"],
  ])("completes %s", async (_, keys, args) => {
    expect(await typed(shell, keys)).toBe(args);
  });

  it.skipIf(isSkipped)("reads the script for every name of the command", async () => {
    const script = await readFile(join(folder, `complete.${shell}`), "utf8");
    for (const name of binNames)
      expect(script).toMatch(new RegExp(`^(?:complete|  compdef).* ${name}\\b`, "m"));
  });
});

it("has every verb, flag and choice of the command line, and both its names", async () => {
  const root = await buildProgram(program);
  const { commands, globalFlags } = completionTable(root);
  expect(globalFlags).toContainEqual(expect.objectContaining({ word: "--creds", value: "file" }));
  expect(globalFlags).toContainEqual(expect.objectContaining({ word: "--data-folder", value: "folder" }));
  const paths = root.commands.flatMap((verb) => [
    verb.name(),
    ...verb.commands.map((part) => `${verb.name()} ${part.name()}`),
  ]);
  expect(commands.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["", ...paths, "help", "project help"]),
  );
  for (const { path, flags } of commands) {
    const words = flags.map(({ word }) => word);
    expect([path, words]).toEqual([path, [...new Set(words)]]);
  }
  const { bin } = JSON.parse(await readFile("package.json", "utf8")) as { bin: object };
  expect(Object.keys(bin)).toEqual([...binNames]);
});

it("prints its script beside a file of settings that is wrong", async () => {
  await writeFile(join(folder, "waggle.config.json"), "{");
  const { code, stderr } = await runIn(aShell({ cwd: folder }), "completion", "bash");
  expect([code, stderr]).toEqual([0, ""]);
});

it("refuses another shell, and names the three", async () => {
  const { code, stderr } = await runIn(aShell(), "completion", "tcsh");
  expect(code).toBe(2);
  expect(stderr).toContain("bash, zsh or fish");
});
