// The demo as a user runs it, on a small folder and the development broker.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { processes } from "../support/processes.ts";
import { Workplace } from "../support/waggle-process.ts";

// Each starts some ten processes: 10 s where nothing else runs.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.make();
});
afterEach(() => workplace.clear());

const files = {
  "notes.md": "# Notes\n\ntext → here\n\n```sh\n# not a heading\n```\n\n## More\n",
  "code.ts": "export const a = 1;\n// export const no = 2;\nexport function b() {}\n",
  "plain text.txt": "three words here",
};

async function aFolder(): Promise<string> {
  const folder = join(workplace.folder, "input");
  await mkdir(folder);
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

async function results(): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(workplace.dataFolder, "demo", "results.ndjson"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Processes with the text in their command line. */
function processesWith(text: string): string[] {
  return processes().flatMap(({ command }) => (command.includes(text) ? [command] : []));
}

it("does real work, reports its results, and leaves nothing running", async () => {
  const demo = await workplace.run("demo", await aFolder());
  expect(demo.stderr).toMatch(/^demo +a swarm at work on /);
  expect(demo.stderr).toMatch(/^swarm +a coordinator and the agents amber, /m);
  expect(demo.stdout).toMatch(/^gale +\d+ % +\d+ +0$/m);
  expect(demo.stdout).toContain("9 tasks are too few to show how routing reacts to an agent that breaks");
  expect(demo.stdout).toContain("9 of 9 tasks on 3 files completed");
  expect(demo.code).toBe(0);

  const lines = await results();
  const find = (file: string, kind: string) =>
    lines.find((line) => line["file"] === file && line["kind"] === kind);
  expect(lines.length).toBe(9);
  expect(find("notes.md", "outline")).toMatchObject({ headings: ["Notes", "More"], exports: [] });
  expect(find("code.ts", "outline")).toMatchObject({ headings: [], exports: ["a", "b"] });
  for (const [name, content] of Object.entries(files)) {
    const sha256 = createHash("sha256").update(content).digest("hex");
    expect(find(name, "digest")).toMatchObject({ sha256 });
    const [l, w, c] = execFileSync("wc", ["-lwc"], {
      input: content,
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    })
      .trim()
      .split(/\s+/)
      .map(Number);
    expect(find(name, "count")).toMatchObject({ lines: l, words: w, bytes: c });
  }

  expect(await workplace.run("status")).toMatchObject({ code: 3 });
  expect(processesWith(workplace.folder)).toEqual([]);
});

it("breaks an agent if there is enough work, and reports the journal's figures", async () => {
  const folder = await aFolder();
  const more = Array.from({ length: 120 }, (_, at) => writeFile(join(folder, `more-${at}.txt`), "x"));
  await Promise.all(more);
  const startedAt = performance.now();
  const demo = await workplace.run("demo", folder, "--json");
  expect((performance.now() - startedAt) / 1_000).toBeLessThan(45);
  expect(demo.code).toBe(0);
  expect(demo.stderr).toMatch(/^ +\d+ s {2}amber \d+ %, .*gale \d+ % \(\d+ of 369 tasks\)$/m);
  expect(demo.stderr).toMatch(/^ +\d+ s {2}the demo has broken gale$/m);
  expect(demo.stderr).toMatch(/^ +\d+ s {2}the demo has repaired gale$/m);
  const { troubled, ...summary } = JSON.parse(demo.stdout);
  expect(summary).toMatchObject({ type: "summary", open: 0, untroubled: null });
  expect(summary.completed).toBe(summary.tasks);
  expect(summary.tasks + summary.leftOut).toBe(369);
  expect(troubled.failed).toBeGreaterThan(0);
  expect(troubled.retried.completed).toBe(troubled.retried.tasks);
});

it("names the next command, and the command works as typed", async () => {
  const demo = await workplace.run("demo", await aFolder());
  const commands = [...demo.stderr.matchAll(/^ {2}(?:npx waggle|node \S*waggle\.js) (.*)$/gm)].map(
    ([, rest]) => rest ?? "",
  );
  expect(commands.map((command) => command.split(" ")[0])).toEqual(["up", "agent", "submit", "up", "task"]);
  const [up = "", agent = "", submit = "", upAgain = "", task = ""] = commands;
  await workplace.start(...wordsOf(up)).says("leading");
  await workplace.start(...wordsOf(agent)).says("joined");
  expect(await workplace.run(...wordsOf(submit))).toMatchObject({ code: 0, stdout: "5\n" });
  await workplace.start(...wordsOf(upAgain)).says("leading");
  expect(await workplace.run(...wordsOf(task))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("attempt 1 at "),
  });
  const demoFolder = join(workplace.dataFolder, "demo", "swarm");
  for (const folder of [[], ["--data-folder", demoFolder]])
    expect(await workplace.run("down", ...folder)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^stopped /),
    });
});

it("leaves nothing in the user's swarm", async () => {
  await workplace.start("up").says("leading");
  expect(await workplace.run("demo", await aFolder())).toMatchObject({ code: 0 });
  const status = await workplace.run("status", "--json");
  expect(JSON.parse(status.stdout)).toMatchObject({ swarm: "default", agents: [], projects: [] });
});

it("refuses a second demo beside it", async () => {
  const folder = await aFolder();
  const more = Array.from({ length: 120 }, (_, at) => writeFile(join(folder, `more-${at}.txt`), "x"));
  await Promise.all(more);
  const demo = workplace.start("demo", folder);
  await demo.says(/^swarm /m);
  const second = await workplace.run("demo", folder);
  expect(second.code).not.toBe(0);
  expect(second.stderr).toContain("a second demo uses ");
  expect(await demo.kill("SIGINT")).toMatchObject({ code: 130 });
});

it.each([
  ["at once", /^demo /m, "SIGINT"],
  ["while its processes start", /^files /m, "SIGINT"],
  ["at work", /^work /m, "SIGINT"],
  ["when it is killed at work", /^work /m, "SIGKILL"],
] as const)("leaves no process and no work behind: ended %s", async (_, line, signal) => {
  const folder = await aFolder();
  const more = Array.from({ length: 50 }, (_, at) => writeFile(join(folder, `more-${at}.txt`), "x"));
  await Promise.all(more);
  const demo = workplace.start("demo", folder);
  await demo.says(line);
  const { code } = await demo.kill(signal);
  if (signal === "SIGINT") expect(code).toBe(130);
  await vi.waitFor(() => expect(processesWith(workplace.folder)).toEqual([]), { timeout: 30_000 });
  if (signal === "SIGINT") await expect(stat(join(workplace.dataFolder, "demo", "swarm"))).rejects.toThrow();
  await expect(stat(join(workplace.dataFolder, "demo", "results.ndjson"))).rejects.toThrow();
});

/** Splits like a shell, for commands with at most single quotes. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
