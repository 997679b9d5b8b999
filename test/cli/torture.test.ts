// `waggle torture` from the user's side: output for passed and failed seeds, the state file, and refusals of bad
// input.

import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { planOf } from "../../src/sim/fault/run-seed.ts";
import { aShell, runIn } from "./shell.ts";

const aFolder = () => mkdtempSync(join(tmpdir(), "waggle-torture-"));
const torture = (cwd: string, ...argv: readonly string[]) => runIn(aShell({ cwd }), "torture", ...argv);
const records = (stdout: string) =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const aFinding = { check: "invariant 13", sentence: "a queue waits", atMs: 1_500 };

/** A seed with a broken client program: the thrown error must be found. */
function aFailingSeed(folder: string): string {
  const request = { seed: 3, forMs: 5_000, without: [] };
  const { schedule, workload } = planOf(request);
  const broken = { atMs: 2_000, client: "k1", does: "submit" };
  const file = join(folder, "broken.json");
  writeFileSync(
    file,
    JSON.stringify({ version: "0.0.1", ...request, schedule, operations: [...workload.operations, broken] }),
  );
  return file;
}

describe("passed seeds", () => {
  it("are summed up with the states reached", async () => {
    const { code, stdout } = await torture(aFolder(), "--seeds", "0..1", "--for", "5s", "--threads", "1");
    expect(code).toBe(0);
    expect(stdout).toContain("2 seeds, none failed");
    expect(stdout).toMatch(/of virtual time, \d+ × real time per core: \d+ tasks/);
  });

  it("print the logs of their nodes with --log-level", async () => {
    const quiet = await torture(aFolder(), "--seed", "1", "--for", "5s");
    expect(quiet.stderr).not.toContain("leading");
    const { stderr } = await torture(aFolder(), "--seed", "1", "--for", "5s", "--log-level", "info");
    expect(stderr).toMatch(/"node":"c\d".*"atMs":\d+.*"leading"/);
  });

  it("print a record each with --json, and a record of the run", async () => {
    const { stdout } = await torture(aFolder(), "--seed", "4", "--for", "5s", "--json");
    const [seed, run] = records(stdout);
    expect(seed).toMatchObject({ seed: 4, findings: [], trace: expect.stringMatching(/^[0-9a-f]{16}$/) });
    expect(run).toMatchObject({ seeds: 1, failed: [], neverReached: [] });
  });

  it("take the same course on threads", async () => {
    const argv = ["--seeds", "2..5", "--for", "4s", "--json"];
    const tracesOf = ({ stdout }: { stdout: string }) =>
      records(stdout)
        .filter((record) => "seed" in record)
        .sort((a, b) => Number(a["seed"]) - Number(b["seed"]))
        .map(({ trace }) => trace);
    const here = await torture(aFolder(), ...argv, "--threads", "1");
    const there = await torture(aFolder(), ...argv, "--threads", "2");
    expect(tracesOf(there)).toEqual(tracesOf(here));
  });

  it("are not run again if the state file holds them", async () => {
    const folder = aFolder();
    const argv = ["--for", "4s", "--state", "state.ndjson", "--threads", "1"];
    await torture(folder, "--seeds", "0..1", ...argv);
    const { stdout, stderr } = await torture(folder, "--seeds", "0..2", ...argv);
    expect(stderr).toContain("2 seeds of state.ndjson are not run again");
    expect(stdout).toContain("3 seeds, none failed");
    expect(records(readFileSync(join(folder, "state.ndjson"), "utf8")).map(({ seed }) => seed)).toEqual([
      0, 1, 2,
    ]);
    const other = await torture(folder, "--seeds", "0..2", "--for", "5s", "--state", "state.ndjson");
    const differs = "holds seeds of 4 s with all faults, but this run has 5 s with all faults;";
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining(differs) });
    const fewer = await torture(folder, "--seeds", "0..2", ...argv, "--without", "pause,loss");
    expect(fewer.stderr).toContain("4 s with all faults, but this run has 4 s without loss,pause;");
    const none = await torture(folder, "--seeds", "0..2", ...argv, "--without", "all");
    expect(none.stderr).toContain("but this run has 4 s without faults;");
  });
});

describe("seeds of a different version of the code, in the state file", () => {
  it("are run again and do not count, with a note", async () => {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    const argv = ["--for", "4s", "--state", "state.ndjson", "--threads", "1"];
    await torture(folder, "--seeds", "0..2", ...argv);
    const [first, second, third] = records(readFileSync(path, "utf8"));
    const older = { version: "0.0.1+0" };
    const lines = [
      first,
      { ...second, ...older, findings: [aFinding] },
      { ...third, ...older, forMs: 9_000 },
    ];
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { code, stdout, stderr } = await torture(folder, "--seeds", "0..2", ...argv);
    expect(code).toBe(0);
    expect(stderr).toContain("1 seed of state.ndjson is not run again");
    expect(stderr).toContain(
      "2 seeds of state.ndjson ran on a different version of the code and do not count",
    );
    expect(stdout).toContain("3 seeds, none failed");
    expect(records(readFileSync(path, "utf8")).map(({ seed }) => seed)).toEqual([0, 1, 2, 1, 2]);
  });
});

describe("a state file", () => {
  const argv = ["--for", "4s", "--state", "state.ndjson", "--threads", "1"];

  it("cut off by a crash loses only the last seed, run again", async () => {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    await torture(folder, "--seeds", "0..1", ...argv);
    writeFileSync(path, readFileSync(path, "utf8").slice(0, -40));
    const { code, stderr } = await torture(folder, "--seeds", "0..1", ...argv);
    expect(code).toBe(0);
    expect(stderr).toContain("1 seed of state.ndjson is not run again");
    expect(records(readFileSync(path, "utf8")).map(({ seed }) => seed)).toEqual([0, 1]);
  });

  it("with invalid UTF-8 is refused by file and line", async () => {
    const folder = aFolder();
    writeFileSync(join(folder, "state.ndjson"), Buffer.from('{"version":"caf\xe9"}\n', "latin1"));
    const { code, stderr } = await torture(folder, "--seed", "1", ...argv);
    expect([code, stderr]).toEqual([2, expect.stringContaining("state.ndjson:1: not UTF-8")]);
  });

  it("without write access is refused before the first seed", async () => {
    const folder = aFolder();
    const { code, stdout, stderr } = await torture(
      folder,
      "--seed",
      "1",
      "--for",
      "4s",
      "--state",
      "nowhere/x",
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error WAGGLE_USAGE: cannot write nowhere\/x: its folder does not exist/m);
    expect(stdout).toBe("");
  });

  /** Seeds 0 to 2; the last two failed. */
  async function aFileWithFailures() {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    await torture(folder, "--seeds", "0..2", ...argv);
    const lines = records(readFileSync(path, "utf8")).map((line) =>
      line["seed"] === 0 ? line : { ...line, findings: [aFinding] },
    );
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return folder;
  }

  it("shows earlier failures again", async () => {
    const folder = await aFileWithFailures();
    const { code, stdout } = await torture(folder, "--seeds", "0..2", ...argv);
    expect(code).toBe(1);
    for (const seed of [1, 2]) expect(stdout).toContain(`seed ${seed} failed after`);
    expect(stdout).not.toContain("seed 0 failed");
    expect(stdout).toContain("invariant 13: a queue waits");
    expect(stdout).toContain("again    waggle torture --seed 2 --for 4s");
    expect(stdout).toContain("3 seeds, 2 failed: 1, 2");
    const json = records((await torture(folder, "--seeds", "0..2", ...argv, "--json")).stdout);
    expect(json.map(({ seed, findings }) => [seed, findings])).toEqual([
      [0, []],
      [1, [aFinding]],
      [2, [aFinding]],
      [undefined, undefined],
    ]);
    expect(json[0]).not.toHaveProperty("version");
    expect(json[0]).not.toHaveProperty("command");
    expect(json[2]).toMatchObject({
      schedule: planOf({ seed: 2, forMs: 4_000, without: [] }).schedule,
      command: "waggle torture --seed 2 --for 4s",
    });
  });

  it("counts only the requested seeds", async () => {
    const folder = await aFileWithFailures();
    const { code, stdout, stderr } = await torture(folder, "--seeds", "3..3", ...argv);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining("not run again")]);
    expect(stdout).toContain("1 seed, none failed");
    const one = await torture(folder, "--seed", "2", ...argv);
    expect(one.stderr).toContain("1 seed of state.ndjson");
    expect(one.stdout).toContain("1 seed, 1 failed: 2");
  });

  it.each([
    ["null\n", 1],
    ['{"name":"waggledance"}', 1],
    ['{\n "name": "waggledance"\n}\n', 1],
  ])("with unknown content, %j, is refused and left unchanged", async (text, line) => {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    writeFileSync(path, text);
    const { code, stderr } = await torture(folder, "--seeds", "0..1", ...argv);
    expect(code).toBe(2);
    expect(stderr).toContain(`line ${line} of state.ndjson is not a seed`);
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("a state file with an invalid line", () => {
  const argv = ["--for", "4s", "--state", "state.ndjson", "--threads", "1"];

  it.each([
    ["events", "lots"],
    ["tasks", -1],
    ["seed", 1.5],
    ["realMs", null],
    ["findings", [{ ...aFinding, atMs: "late" }]],
    ["occurrences", { "agent-lost": "often" }],
    ["occurrences", { nosuch: 1 }],
    ["faults", undefined],
  ])("is refused for its %s, %j", async (field, value) => {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    await torture(folder, "--seed", "0", ...argv);
    const [line] = records(readFileSync(path, "utf8"));
    const text = `${JSON.stringify({ ...line, [field]: value })}\n`;
    writeFileSync(path, text);
    const { code, stdout, stderr } = await torture(folder, "--seed", "0", ...argv);
    expect(code).toBe(2);
    expect(stderr).toContain(`line 1 of state.ndjson is not a seed`);
    expect(stderr).toContain(`(see its ${field}`);
    expect(stdout).toBe("");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("is left out if a different version of the code recorded different fields", async () => {
    const folder = aFolder();
    const path = join(folder, "state.ndjson");
    await torture(folder, "--seed", "0", ...argv);
    const [line] = records(readFileSync(path, "utf8"));
    const { faults: _, ...older } = { ...line, version: "0.0.1+0", occurrences: { nosuch: 1 } } as Record<
      string,
      unknown
    >;
    writeFileSync(path, `${JSON.stringify(older)}\n`);
    const { code, stderr } = await torture(folder, "--seed", "0", ...argv);
    expect(code).toBe(0);
    expect(stderr).toContain(
      "1 seed of state.ndjson ran on a different version of the code and does not count",
    );
  });
});

describe("a state file in use by a different run", () => {
  it("is refused, naming the process, and free after the end of the process", async () => {
    const cwd = aFolder();
    const argv = ["--for", "4s", "--state", "state.ndjson", "--threads", "1"];
    const shell = aShell({ cwd });
    const first = runIn(shell, "torture", "--seeds", "0..500", ...argv);
    await expect.poll(() => existsSync(join(cwd, "state.ndjson.lock", "lock.json"))).toBe(true);
    const second = await torture(cwd, "--seeds", "0..500", ...argv);
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(
      new RegExp(`^error WAGGLE_USAGE: process ${process.pid} uses the state file state.ndjson, `, "m"),
    );
    expect(second.stdout).toBe("");
    symlinkSync(join(cwd, "state.ndjson"), join(cwd, "other-name.ndjson"));
    const named = await torture(cwd, "--seed", "501", "--state", "other-name.ndjson");
    expect(named.stderr).toContain("uses the state file other-name.ndjson");
    shell.interrupt();
    expect((await first).code).toBe(130);
    const third = await torture(cwd, "--seed", "501", ...argv);
    expect(third.code).toBe(0);
    expect(readdirSync(cwd).sort()).toEqual(["other-name.ndjson", "state.ndjson"]);
  });
});

describe("a schedule", () => {
  it("with invalid UTF-8 is refused by file and line", async () => {
    const folder = aFolder();
    writeFileSync(join(folder, "s.json"), Buffer.from('{\n"version":"caf\xe9"}', "latin1"));
    const { code, stderr } = await torture(folder, "--schedule", "s.json");
    expect([code, stderr]).toEqual([2, expect.stringContaining("s.json:2: not UTF-8")]);
  });

  const whole = { version: "0.1.0", seed: 1, forMs: 4_000, without: [], schedule: [], operations: [] };
  const fault = { kind: "pause", atMs: 1, forMs: 1 };

  it.each([
    [
      { schedule: [{ ...fault, kind: "nosuch" }] },
      "schedule.0.kind: no fault of this version (there are delay,",
    ],
    [{ schedule: [{ ...fault, atMs: "soon" }] }, "schedule.0.atMs"],
    [{ schedule: [{ ...fault, of: "c9" }] }, "seed 1 has no node c9"],
    [
      { operations: [{ atMs: 1, client: "k1", does: "dance" }] },
      "operations.0.does: no operation of this version",
    ],
    [{ operations: [{ atMs: 1, client: "k9", does: "submit" }] }, "seed 1 has no client k9"],
    [{ version: undefined }, "version"],
  ])("with %j is refused", async (change, sentence) => {
    const folder = aFolder();
    writeFileSync(join(folder, "s.json"), JSON.stringify({ ...whole, ...change }));
    const { code, stderr } = await torture(folder, "--schedule", "s.json");
    expect(code).toBe(2);
    expect(stderr).toContain("cannot use s.json");
    expect(stderr).toContain(sentence);
  });
});

describe("an interrupted run", () => {
  async function interrupted(...argv: readonly string[]) {
    const cwd = aFolder();
    const shell = aShell({ cwd });
    const state = join(cwd, "state.ndjson");
    const running = runIn(
      shell,
      "torture",
      "--seeds",
      "0..500",
      "--for",
      "4s",
      "--state",
      "state.ndjson",
      ...argv,
    );
    const hasNoted = () => existsSync(state) && statSync(state).size > 0;
    await expect.poll(hasNoted, { timeout: 20_000 }).toBe(true);
    shell.interrupt();
    return { ...(await running), ran: records(readFileSync(state, "utf8")).length };
  }

  it("reports progress, failures, and the command to continue", async () => {
    const { code, stdout, stderr, ran } = await interrupted("--threads", "1");
    expect(code).toBe(130);
    expect(stderr).toContain("interrupted");
    expect(stdout).toContain(`interrupted: ${ran} of 501 seeds run`);
    expect(stdout).toMatch(new RegExp(`^${ran} seeds?, none failed$`, "m"));
    expect(stdout).toContain(
      "run the same command to continue: finished seeds in state.ndjson are not run again",
    );
  });

  it("is a record with --json", async () => {
    const { stdout, ran } = await interrupted("--threads", "1", "--json");
    expect(records(stdout).at(-1)).toMatchObject({ seeds: ran, failed: [], interrupted: true });
  });
});

describe("a failed seed", () => {
  it("prints the findings, the faults, and the command to repeat the seed", async () => {
    const folder = aFolder();
    const { code, stdout, stderr } = await torture(folder, "--schedule", aFailingSeed(folder));
    expect(code).toBe(1);
    expect(stdout).toContain("seed 3 failed after");
    expect(stdout).toContain("nothing-escapes: k1 submit");
    expect(stdout).toMatch(/ {4}at \d+\.\d{3} s for \d+\.\d{3} s: /);
    expect(stdout).toContain("  operations\n    at 0.");
    expect(stdout).toContain("    at 2.000 s: k1 submit\n");
    expect(stdout).toContain("again    waggle torture --schedule");
    expect(stderr).toContain("written by a different version of the code");
  });
});

describe("a shrunk seed", () => {
  it.each([
    ["to people", []],
    ["beside records", ["--json"]],
  ])("is none where no seed fails, which is said %s", async (_, more) => {
    const { code, stdout, stderr } = await torture(
      aFolder(),
      "--seed",
      "3",
      "--for",
      "4s",
      "--shrink",
      ...more,
    );
    expect(code).toBe(0);
    expect(stderr).toContain("nothing was shrunk: no seed failed\n");
    expect(stdout).not.toContain("shrunk");
  });

  it("prints the remaining operation", async () => {
    const folder = aFolder();
    const { stdout } = await torture(folder, "--schedule", aFailingSeed(folder), "--shrink");
    const [, shrunk = ""] = stdout.split("shrunk to 0 faults and 1 operation\n");
    expect(shrunk).toMatch(/^seed 3 failed .*\n {2}nothing-escapes: k1 submit/);
    expect(shrunk).toMatch(/\n {2}operations\n {4}at 2\.000 s: k1 submit\n {2}again /);
    expect(shrunk).not.toContain("  faults");
  });
});

describe("invalid usage", () => {
  it.each([
    [["--seeds", "5..2"], "must be a number of seeds (20), or a range from low to high (5..24)"],
    [["--seeds", "9".repeat(20)], "must be at most 10000 seeds"],
    [["--seeds", `${"9".repeat(20)}..${"9".repeat(20)}`], "must end at seed 1000000000 or lower"],
    [["--seed", "1000000001"], "a whole number from 0 to 1000000000"],
    [["--seed", "1", "--seeds", "5"], "--seeds names the seeds"],
    [["--minutes", "1", "--seeds", "5"], "--seeds names the seeds"],
    [["--schedule", "x.json", "--seed", "1"], "--schedule includes its seed"],
    [["--schedule", "missing.json"], "cannot use missing.json"],
    [["--without", "rain"], "there is no fault 'rain'"],
    [["--without", "all,crash"], "must be all alone, or names of faults"],
    [["--for", "long"], "--for: must be a duration with a unit"],
    [["--for", "0s"], "a duration from 1 s to 1 h"],
    [["--for", "100h"], "a duration from 1 s to 1 h"],
    [["--minutes", "0"], "a number from 0.1 to 10080"],
  ])("%j is refused", async (argv, sentence) => {
    const { code, stderr } = await torture(aFolder(), ...argv);
    expect(code).toBe(2);
    expect(stderr).toContain(sentence);
  });
});
