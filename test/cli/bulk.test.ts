// `waggle tasks`, `retry`, `cancel`, `revoke` and `reschedule` on many tasks: filters, confirmation, and errors. The
// swarm is a coordinator in its own process. Only revoked tasks have agents.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

let workplace: Workplace;

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  for (const id of ["a1", "a2", "a3"]) await waggle(`submit --kind a --id ${id}`);
  await waggle("submit --kind b --id b1");
});
afterAll(() => workplace.clear());

const waggle = (line: string) => runIn(aShell({ cwd: workplace.folder }), ...line.split(" "));

/** At a terminal of 60 columns, where `typed` answers the question. */
function atTerminal(line: string, typed: string) {
  const shell = aShell({ cwd: workplace.folder, columns: 60, env: { NO_COLOR: "1" }, stdin: `${typed}\n` });
  Object.assign(shell.stdin, { isTTY: true });
  return runIn(shell, ...line.split(" "));
}

/** State and round of each task of a kind. */
async function statesOf(kind: string) {
  const { stdout } = await waggle(`tasks --kind ${kind} --json`);
  const rows = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { task: string; state: string; round: number });
  return Object.fromEntries<string>(rows.map(({ task, state, round }) => [task, `${state} ${round}`]));
}

describe("what is not clear is refused before anything is touched", () => {
  it.each([
    ["neither a task nor a filter", "cancel", "give task ids or filters"],
    ["both", "cancel a1 --state queued", "give task ids or filters, not both"],
    ["a dry run of named tasks", "cancel a1 --dry-run", "leave it out with task ids"],
    ["a state like none", "cancel --state queud", "did you mean queued?"],
    [
      "no terminal to confirm at",
      "cancel --kind a",
      "3 tasks would be touched: look with --dry-run, then add --yes",
    ],
  ])("(%s)", async (_, line, sentence) => {
    expect(await waggle(line)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(sentence),
    });
    expect(await statesOf("a")).toEqual({ a1: "queued 1", a2: "queued 1", a3: "queued 1" });
  });
});

describe("a filter", () => {
  it("shows the selected tasks with --dry-run, and changes nothing", async () => {
    expect(await waggle("cancel --kind a --dry-run")).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^task +state +kind +project .*\na1 +queued +a +default .*\na2 +queued .*\na3 +queued .*\n$/,
      ),
      stderr: "would cancel 3 tasks\n",
    });
    expect(await statesOf("a")).toEqual({ a1: "queued 1", a2: "queued 1", a3: "queued 1" });
  });

  it("is stopped by another answer than the count", async () => {
    const { code, stderr } = await atTerminal("cancel --kind a", "yes");
    expect([code, stderr]).toEqual([0, expect.stringContaining("nothing was done")]);
    expect(await statesOf("a")).toEqual({ a1: "queued 1", a2: "queued 1", a3: "queued 1" });
  });

  it("continues when the user types the count", async () => {
    const { code, stdout, stderr } = await atTerminal("cancel --kind a", "3");
    expect([code, stdout, stderr]).toEqual([
      0,
      "a1 cancelled\na2 cancelled\na3 cancelled\n",
      expect.any(String),
    ]);
    expect(stderr).toContain("cancel 3 tasks? Type 3 to continue, anything else to stop:");
    expect(await statesOf("a")).toEqual({ a1: "cancelled 1", a2: "cancelled 1", a3: "cancelled 1" });
    expect(await statesOf("b")).toEqual({ b1: "queued 1" });
  });

  it("retries with --yes, one round for each, and takes nothing the second time", async () => {
    expect(await waggle("retry --state cancelled --kind a --yes")).toMatchObject({
      code: 0,
      stdout: "a1 retried, round 2\na2 retried, round 2\na3 retried, round 2\n",
    });
    expect(await statesOf("a")).toEqual({ a1: "queued 2", a2: "queued 2", a3: "queued 2" });
    expect(await waggle("retry --state cancelled --kind a --yes")).toEqual({
      code: 0,
      stdout: "",
      stderr: "no task matches\n",
    });
  });
});

describe("named tasks", () => {
  it("each have an answer, and one that is refused gives the exit code", async () => {
    const { code, stdout, stderr } = await waggle("cancel b1 nobody");
    expect([code, stdout]).toEqual([5, "b1 cancelled\n"]);
    expect(stderr).toContain("WAGGLE_UNKNOWN_TASK");
    expect(stderr).toContain("1 of 2 tasks done, 1 refused");
  });

  it("that live are not retried", async () => {
    expect(await waggle("retry a1")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("WAGGLE_CONFLICT"),
    });
  });
});

describe("a filter that has a setting's name", () => {
  beforeAll(async () => {
    await waggle("submit --kind u --id u1 --user ann");
    await waggle("submit --kind u --id u2 --user bob --project red");
    await waggle("submit --kind u --id u3 --user eve --project red");
  });

  it.each([
    ["one user", "--user ann", ["u1"]],
    ["several users", "--user ann,bob", ["u1", "u2"]],
    ["a repeated flag", "--user ann --user eve", ["u1", "u3"]],
    ["a project", "--project red", ["u2", "u3"]],
    ["both", "--user bob --project red", ["u2"]],
  ])("filters, and sets nothing (%s)", async (_, flags, expected) => {
    const listed = await waggle(`tasks --kind u --sort submitted --json ${flags}`);
    expect(listed.stderr).toBe("");
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { task: string }).task),
    ).toEqual(expected);
    const dry = await waggle(`cancel --kind u --dry-run ${flags}`);
    expect([dry.code, dry.stderr]).toEqual([0, expect.stringContaining("would cancel")]);
    expect(await waggle(`retry --kind u --dry-run ${flags}`)).toMatchObject({
      code: 0,
      stderr: "no task matches\n",
    });
  });
});

describe("a task named by id alone", () => {
  it("is found in whatever project has it", async () => {
    await waggle("submit --kind w --id w1 --project red");
    expect((await waggle("wait w1 --timeout 100ms")).code).toBe(6);
    expect((await waggle("wait w1 w1 --timeout 100ms --project blue")).stderr).toContain(
      "task w1 is not known here",
    );
    expect((await waggle("task w1")).stdout).toContain("red");
    expect(await waggle("cancel w1")).toMatchObject({ code: 0, stdout: "w1 cancelled\n" });
    expect(await waggle("retry w1")).toMatchObject({ code: 0, stdout: "w1 retried, round 2\n" });
  });

  it("of several projects is asked for with --project, and touched in none", async () => {
    for (const project of ["red", "blue"]) await waggle(`submit --kind s --id s1 --project ${project}`);
    const asked =
      "error WAGGLE_AMBIGUOUS_TASK: 2 projects have a task s1: blue, red. Name the project (`--project blue`";
    for (const line of ["cancel s1", "retry s1", "wait s1", "task s1", "explain s1", "events --task s1"])
      expect(await waggle(line), line).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining(asked),
      });
    expect(await waggle("cancel s1 --project blue")).toMatchObject({ code: 0, stdout: "s1 cancelled\n" });
    expect((await waggle("task s1 --project red --json")).stdout).toContain('"state":"queued"');
    expect((await waggle("task s1 --project blue --json")).stdout).toContain('"state":"cancelled"');
    const events = (await waggle("events --task s1 --project red --json")).stdout;
    expect([events.includes("TaskSubmitted"), events.includes("TaskCancelled")]).toEqual([true, false]);
  });

  it("of several projects is that of WAGGLE_PROJECT, where that is set", async () => {
    const shell = () => aShell({ cwd: workplace.folder, env: { WAGGLE_PROJECT: "red" } });
    expect(await runIn(shell(), "explain", "s1")).toMatchObject({ code: 0 });
    expect(await runIn(shell(), "cancel", "s1")).toMatchObject({ code: 0, stdout: "s1 cancelled\n" });
  });
});

describe("a task that waits", () => {
  it("is rescheduled: held back, and let go", async () => {
    await waggle("submit --kind m --id m1");
    expect(await waggle("reschedule m1 --not-before +2h")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^m1 delayed until .*\d:\d\d:\d\d\.\d{3}\n$/),
    });
    expect(await statesOf("m")).toEqual({ m1: "delayed 1" });
    const { stdout } = await waggle("reschedule --kind m --not-before +0s --yes --json");
    expect(JSON.parse(stdout)).toMatchObject({ taskId: "m1", round: 1, state: "queued" });
    expect((await waggle("task m1")).stdout).toContain("not before");
  });

  it("is refused with an invalid time, a missing time, or a time past the deadline", async () => {
    await waggle("submit --kind m --id m2 --deadline +1h");
    for (const [line, code, sentence] of [
      ["reschedule m2 --not-before soon", 2, "--not-before: must be a time"],
      ["reschedule m2", 2, "--not-before"],
      ["reschedule m2 --not-before +2h", 2, "it would expire before it may start"],
      ["reschedule m9 --not-before +2h", 5, "task m9 is not known here"],
    ] as const)
      expect(await waggle(line), line).toMatchObject({ code, stderr: expect.stringContaining(sentence) });
  });

  it("has nothing to revoke", async () => {
    expect(await waggle("revoke m2")).toMatchObject({
      code: 5,
      stdout: "",
      stderr: expect.stringContaining("task m2 is queued, not running: nothing to revoke"),
    });
    expect(await waggle("revoke --kind m --yes")).toMatchObject({ code: 0, stdout: "" });
    expect((await waggle("revoke --state queued --yes")).stderr).toContain(
      "revoke takes tasks that are assigned",
    );
  });
});

describe("a task that runs", () => {
  it("is revoked, and runs at another agent", async () => {
    const slow = workplace.start("agent", "--id", "slow", "--kind", "r", "--exec", "sleep 600");
    await slow.says("joined");
    await waggle("submit --kind r --id r1");
    await expect.poll(async () => (await statesOf("r")).r1, { timeout: 10_000 }).toBe("running 1");
    const quick = workplace.start("agent", "--id", "quick", "--kind", "r", "--exec", "cat");
    await quick.says("joined");
    expect(await waggle("revoke r1")).toMatchObject({ code: 0, stdout: "r1 attempt 1 revoked; queued\n" });
    expect((await waggle("wait r1 --timeout 20s")).code).toBe(0);
    const { stdout } = await waggle("task r1");
    expect(stdout).toContain("revoked");
    expect(stdout).toContain("quick");
    expect((await waggle("events --task r1")).stdout).toContain(
      "r1#1 was revoked at slow: an operator revoked the attempt; waits for an agent again",
    );
  });
});

describe("the list", () => {
  it("says how many more there are, and gives the next page", async () => {
    const { stdout, stderr } = await atTerminal("tasks --kind a --limit 2", "");
    const shown = `${stdout}${stderr}`;
    for (const line of stdout.trimEnd().split("\n")) expect(line.length).toBeLessThanOrEqual(60);
    const [next = ""] = /--after \S+/.exec(shown) ?? [];
    expect(shown).toContain("1 more");
    expect((await waggle(`tasks --kind a --limit 2 --json ${next}`)).stdout.trim().split("\n")).toHaveLength(
      1,
    );
  });
});
