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

/** Processes whose command line holds the text. */
function processesWith(text: string): string[] {
  return processes().flatMap(({ command }) => (command.includes(text) ? [command] : []));
}

it("does real work, tells what it did, and leaves nothing running", async () => {
  const demo = await workplace.run("demo", await aFolder());
  expect(demo.stderr).toMatch(/^broker +the development broker at /m);
  expect(demo.stderr).toMatch(/^durability +\S/m);
  expect(demo.stdout).toMatch(/^gale +4 +\d+ /m);
  expect(demo.stdout).toMatch(/^ann +\d+ /m);
  expect(demo.stdout).toMatch(
    /^gale fails three of ten outlines on purpose: \d+ of its \d+ attempts failed/m,
  );
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

it("names what to type next, and it works as typed", async () => {
  const demo = await workplace.run("demo", await aFolder());
  const commands = [...demo.stderr.matchAll(/^ {2}(?:npx waggle|node \S*waggle\.js) (.*)$/gm)].map(
    ([, rest]) => rest ?? "",
  );
  expect(commands.map((command) => command.split(" ")[0])).toEqual([
    "up",
    "agent",
    "submit",
    "task",
    "events",
    "status",
  ]);
  expect(demo.stderr).toContain("it ends with the demo");
  expect(demo.stderr).not.toContain("waggle down");
  const [up = "", agent = "", submit = "", task = "", events = ""] = commands;
  await workplace.start(...wordsOf(up)).says("leading");
  await workplace.start(...wordsOf(agent)).says("joined");
  expect(await workplace.run(...wordsOf(submit))).toMatchObject({ code: 0, stdout: "5\n" });
  expect(await workplace.run(...wordsOf(task))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("attempt 1 at "),
  });
  expect(await workplace.run(...wordsOf(events))).toMatchObject({ code: 0 });
  expect(await workplace.run("down")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^stopped /),
  });
});

it("leaves a swarm alone that runs already, and takes a name of its own beside it", async () => {
  await workplace.start("up").says("leading");
  const demo = await workplace.run("demo", await aFolder(), "--json");
  expect(demo.code).toBe(0);
  expect(demo.stderr).toContain("on the swarm demo");
  expect(JSON.parse(demo.stdout)).toMatchObject({ type: "summary", files: 3, tasks: 9, completed: 9 });
  const status = await workplace.run("status", "--json");
  expect(JSON.parse(status.stdout)).toMatchObject({ swarm: "default", agents: [] });
});

it("stops what it started when Ctrl-C ends it, and leaves no work behind", async () => {
  const folder = await aFolder();
  const more = Array.from({ length: 50 }, (_, at) => writeFile(join(folder, `more-${at}.txt`), "x"));
  await Promise.all(more);
  const demo = workplace.start("demo", folder);
  await demo.says(/^ann \d/m);
  expect(await demo.kill("SIGINT")).toMatchObject({ code: 130 });
  expect(processesWith(workplace.folder)).toEqual([]);
  await expect(stat(join(workplace.dataFolder, "demo"))).rejects.toThrow();

  await workplace.start("up").says("leading");
  const { tasks } = JSON.parse((await workplace.run("status", "--json")).stdout);
  expect(tasks).toMatchObject({ queued: 0, delayed: 0, assigned: 0, running: 0 });
});

/** As a shell splits them, for commands with single quotes at most. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
