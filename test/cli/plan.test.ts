// `waggle plan`: snapshots in, actions out, and errors about invalid snapshots.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { aShell, runIn } from "./shell.ts";

const good = {
  projects: [{ id: "p", creditWeight: 1, status: "active", budgetLimit: null, maxConcurrentAgents: 2 }],
  tasks: [{ id: "t", projectId: "p", status: "ready", priority: 100 }],
  agents: [{ id: "a", state: "idle" }],
  projectTokenUsage: {},
  projectActiveAgentCounts: {},
  tasksCompletedInWindow: {},
  globalBudget: null,
  globalTokensUsed: 0,
};
const action = { agentId: "a", taskId: "t", projectId: "p" };
const project = good.projects[0];

async function plan(stdin: string, ...flags: string[]) {
  return await runIn(aShell({ stdin }), "plan", ...flags);
}

function linesOf(text: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

describe("one snapshot", () => {
  it.each([[], ["--rules", "budget"], ["--rules", "waggle"]])(
    "prints its actions as JSON: %s",
    async (...flags) => {
      const { code, stdout, stderr } = await plan(JSON.stringify(good), ...flags);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(JSON.parse(stdout)).toEqual([action]);
    },
  );

  it("is one line with --json, and an action a line without", async () => {
    expect((await plan(JSON.stringify(good), "--json")).stdout).toBe(`${JSON.stringify([action])}\n`);
    expect((await plan(JSON.stringify(good))).stdout).toBe(`[\n  ${JSON.stringify(action)}\n]\n`);
    expect((await plan(JSON.stringify({ ...good, tasks: [] }))).stdout).toBe("[]\n");
  });

  it("may stand in a file, over several lines", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "waggle-plan-"));
    writeFileSync(join(cwd, "s.json"), `\ufeff${JSON.stringify(good, undefined, 2)}`);
    const { code, stdout } = await runIn(aShell({ cwd }), "plan", "@s.json");
    expect({ code, actions: JSON.parse(stdout) }).toEqual({ code: 0, actions: [action] });
  });

  it.each<[string, unknown, string, RegExp]>([
    ["no object", [], "", /must be an object/],
    [
      "a field missing",
      { ...good, globalBudget: undefined },
      "globalBudget",
      /is missing.*null for no limit/,
    ],
    ["a map missing", { ...good, projectTokenUsage: undefined }, "projectTokenUsage", /is missing/],
    ["a wrong type", { ...good, tasks: {} }, "tasks", /must be a list of tasks/],
    [
      "a wrong type inside",
      { ...good, projects: [{ ...project, creditWeight: "1" }] },
      "projects[0].creditWeight",
      /must be a number/,
    ],
    ["a fraction of a token", { ...good, globalTokensUsed: 0.5 }, "globalTokensUsed", /whole number/],
    [
      "a negative weight",
      { ...good, projects: [{ ...project, creditWeight: -1 }] },
      "projects[0].creditWeight",
      /from 0/,
    ],
    [
      "a count that is none",
      { ...good, projectTokenUsage: { p: "7" } },
      "projectTokenUsage.p",
      /whole number/,
    ],
    ["capitals", { ...good, agents: [{ id: "a", state: "IDLE" }] }, "agents[0].state", /lower case/],
    [
      "a weight of 0 under ours",
      { ...good, projects: [{ ...project, creditWeight: 0 }] },
      "projects[0].creditWeight",
      /above 0/,
    ],
  ])("is refused with %s", async (_, snapshot, field, sentence) => {
    const { code, stdout, stderr } = await plan(JSON.stringify(snapshot), "--json");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const { error } = JSON.parse(stderr);
    expect(error.field ?? "").toBe(field);
    expect(error.message).toMatch(sentence);
    expect(error.message).toMatch(/^standard input: /);
  });

  it.each([
    ["{", /standard input: is not JSON/],
    ["  \n", /no snapshot/],
    [`${JSON.stringify(good)}\n${JSON.stringify(good)}`, /add --lines/],
  ])("is refused when it is %j", async (stdin, sentence) => {
    const { code, stderr } = await plan(stdin);
    expect(code).toBe(2);
    expect(stderr).toMatch(sentence);
  });

  it("takes a project without concurrency for closed", async () => {
    const snapshot = { ...good, projects: [{ ...project, maxConcurrentAgents: 0 }] };
    const { code, stdout } = await plan(JSON.stringify(snapshot), "--json");
    expect({ code, actions: JSON.parse(stdout) }).toEqual({ code: 0, actions: [] });
  });

  it("names the document's division by zero", async () => {
    const snapshot = { ...good, projects: [{ ...project, creditWeight: 0 }] };
    const { code, stderr } = await plan(JSON.stringify(snapshot), "--rules", "budget");
    expect(code).toBe(2);
    expect(stderr).toMatch(/WAGGLE_INVALID_VALUE.*division by zero/);
  });

  it("counts the tokens of a project of any name", async () => {
    const counts = JSON.parse('{"__proto__":-1}');
    const { code, stderr } = await plan(
      JSON.stringify({ ...good, projectTokenUsage: counts }),
      "--rules",
      "budget",
    );
    expect(code).toBe(2);
    expect(stderr).toContain("projectTokenUsage.__proto__");
  });
});

describe("many snapshots", () => {
  it.each([["--json"], []])(
    "continue after an invalid line, with its error in place: %s",
    async (...flags) => {
      const bad = { ...good, tasks: [{ id: "t" }] };
      const stdin = [JSON.stringify(good), "{", "", JSON.stringify(bad), JSON.stringify(good)].join("\r\n");
      const { code, stdout, stderr } = await plan(stdin, "--lines", ...flags);
      expect(code).toBe(2);
      expect(linesOf(stdout)).toEqual([
        [action],
        { line: 2, error: expect.objectContaining({ code: "WAGGLE_INVALID_MESSAGE", exitCode: 2 }) },
        { line: 4, error: expect.objectContaining({ field: "tasks[0].projectId" }) },
        [action],
      ]);
      if (flags.length === 0) expect(stderr).toMatch(/standard input:2: .*\n.*standard input:4: tasks\[0\]/);
      else expect(stderr).toBe("");
    },
  );

  it("print nothing if the input is empty", async () => {
    expect(await plan("", "--lines")).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

describe("what makes no sense", () => {
  it.each([
    ["loco", /weight and age/],
    ["vapora", /success rates/],
    ["lucio", /users/],
    ["fifo", /--rules: must be waggle or budget/],
  ])("--rules %s", async (rules, sentence) => {
    const { code, stdout, stderr } = await plan(JSON.stringify(good), "--rules", rules);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(sentence);
  });

  it.each([["snapshot.json"], ["@absent.json"], ["@"]])("the source %s", async (source) => {
    const { code, stderr } = await runIn(aShell(), "plan", source);
    expect(code).toBe(2);
    expect(stderr).toMatch(/WAGGLE_USAGE/);
  });

  it("a terminal where a snapshot should be", async () => {
    const shell = aShell();
    Object.assign(shell.stdin, { isTTY: true });
    const { code, stderr } = await runIn(shell, "plan");
    expect(code).toBe(2);
    expect(stderr).toMatch(/waggle plan < snapshot.json/);
  });
});

it.each([[], ["--lines"]])("ends at Ctrl-C though its input does not: %s", async (...flags) => {
  const shell = aShell();
  const endless = Object.assign(shell, { stdin: new PassThrough() });
  const ended = runIn(endless, "plan", ...flags);
  shell.interrupt();
  expect((await ended).code).toBe(130);
});
