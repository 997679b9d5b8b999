// Help, and errors about invalid command lines. Without a swarm.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openFileJournal } from "../../src/journal/file.ts";
import { aShell, runIn } from "./shell.ts";

const verbs = [
  "demo",
  "up",
  "agent",
  "submit",
  "status",
  "events",
  "task",
  "cancel",
  "drain",
  "undrain",
  "plan",
  "policy",
  "project",
  "kind",
  "resource",
  "rate",
  "pause",
  "resume",
  "down",
  "doctor",
  "simulate",
];

const emptyFolder = () => mkdtempSync(join(tmpdir(), "waggle-usage-"));

describe("help", () => {
  it.each(verbs)("of %s has flags and examples", async (verb) => {
    const { code, stdout, stderr } = await runIn(aShell(), verb, "--help");
    expect(code).toBe(0);
    expect(stderr).toBe("");
    expect(stdout).toMatch(new RegExp(`^Usage: waggle ${verb}`));
    expect(stdout).toContain("--json");
    expect(stdout).toMatch(new RegExp(`Examples:\\n( {2}\\$ .*\\n)* {2}\\$ .*waggle ${verb}`));
  });

  it.each([
    ["policy", "set"],
    ["policy", "show"],
    ["project", "set"],
    ["project", "list"],
    ["project", "show"],
    ["kind", "set"],
    ["resource", "set"],
    ["rate", "set"],
    ["rate", "remove"],
  ])("of %s %s has flags and examples", async (verb, part) => {
    const { code, stdout } = await runIn(aShell(), verb, part, "--help");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: waggle ${verb} ${part}`));
    expect(stdout).toContain("--json");
    expect(stdout).toMatch(new RegExp(`Examples:\\n( {2}\\$ .*\\n)* {2}\\$ .*waggle ${verb} ${part}`));
  });

  it("of the whole names every verb and every exit code", async () => {
    const { code, stdout } = await runIn(aShell(), "--help");
    expect(code).toBe(0);
    for (const verb of verbs) expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, "m"));
    for (const exit of [0, 1, 2, 3, 4, 5, 6, 7, 130]) expect(stdout).toMatch(new RegExp(`^ +${exit}  `, "m"));
    const unbroken = stdout.replaceAll(/\s+/g, " ");
    expect(unbroken).toMatch(
      / 5 rejected: .*journal in use, no standby, id taken by a later agent, not permitted, credentials revoked or expired 6 /,
    );
  });

  it("fits the terminal", async () => {
    const { stdout } = await runIn(aShell({ columns: 80 }), "submit", "--help");
    const flags = stdout.split("\n").filter((line) => line.startsWith("  -"));
    expect(flags.every((line) => line.length <= 80)).toBe(true);
  });

  it("is as wide as without a terminal where the width of one was never set", async () => {
    const unset = await runIn(aShell({ columns: 0 }), "submit", "--help");
    expect(unset.stdout).toBe((await runIn(aShell(), "submit", "--help")).stdout);
    const bare = await runIn(aShell({ columns: 0 }));
    expect(bare.stderr).toBe((await runIn(aShell())).stderr);
  });

  it("is what a bare command gets, as a usage error", async () => {
    const { code, stdout, stderr } = await runIn(aShell());
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^Usage: waggle/);
  });
});

it.each(["--version", "-V"])("%s is the package's", async (flag) => {
  const { code, stdout } = await runIn(aShell(), flag);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
});

describe("a command line that makes no sense", () => {
  it.each([
    ["an unknown verb", ["stauts"], "did you mean status?"],
    ["an unknown flag", ["submit", "--kidn", "x"], "did you mean --kind?"],
    ["a flag without its value", ["submit", "--kind"], "argument missing"],
    ["too many arguments", ["down", "now"], "too many arguments"],
    ["a coordinator without its flag", ["leader", "transfer", "c2"], "waggle leader transfer --to c2"],
    ["two ages to keep", ["up", "--retain", "7d", "--retain", "8d"], "one duration, one size, or both"],
    [
      "a word in place of a number",
      ["submit", "--kind", "k", "--priority", "high"],
      `--priority: must be a whole number from -1000000 to 1000000, not "high" (see waggle submit --help)`,
    ],
    [
      "a wrong argument",
      ["hold", "agents", "a1", "--for", "1m"],
      `scope: must be agent, type or resource, not "agents" (see waggle hold --help)`,
    ],
    [
      "a wrong value of a global flag",
      ["status", "--log-level", "loud"],
      `--log-level: must be silent, error, warn, info or debug, not "loud" (see waggle status --help)`,
    ],
    [
      "a label without a value that is needed",
      ["submit", "--kind", "k", "--need", "gpu="],
      "--need: must not have an empty value; name one, like gpu=a100 (see waggle submit --help)",
    ],
    ["a long wrong value", ["pause", "x".repeat(100)], `not "${"x".repeat(40)}…"`],
    ["two projects", ["pause", "acme", "--project", "other"], "give one project"],
    ["a missing argument", ["task"], "missing required argument 'id'"],
    [
      "a number out of bounds",
      ["submit", "--kind", "k", "--max-attempts", "0"],
      "a whole number from 1 to 100",
    ],
    [
      "a duration without a unit",
      ["submit", "--kind", "k", "--timeout", "30"],
      "--timeout: must be a duration with a unit",
    ],
    [
      "a time that is none",
      ["submit", "--kind", "k", "--deadline", "tomorrow"],
      '+5m from now), not "tomorrow"',
    ],
    [
      "a deadline that has passed",
      ["submit", "--kind", "k", "--deadline", "2020-01-01T00:00:00Z"],
      "--deadline is in the past (2020-01-01T00:00:00.000Z)",
    ],
    [
      "a deadline before the beginning",
      ["submit", "--kind", "k", "--deadline", "+1h", "--not-before", "+2h"],
      "must be later than --not-before",
    ],
    ["tasks in no file", ["submit", "@nofile"], "cannot read nofile"],
    ["payloads of which one is in no file", ["submit", "--kind", "k", "@.", "@nofile"], "cannot read ."],
    ["an agent's kind with a space", ["agent", "--kind", "a b", "--exec", "cat"], 'not "a b"'],
    ["nothing to submit", ["submit"], "nothing to submit: give"],
    ["two payloads", ["submit", "--kind", "k", "--text", "a", "--payload", "1"], "exclude each other"],
    ["a payload that is not JSON", ["submit", "--kind", "k", "--payload", "{"], "--payload is not JSON"],
    ["words in place of a file", ["submit", "--kind", "k", "hello"], "--text 'hello'"],
    ["an id for many", ["submit", "@tasks.ndjson", "--id", "x"], "--id requires a single task"],
    ["--watch for many", ["submit", "-", "--watch"], "--watch requires a single task"],
    [
      "a variable that is not set",
      ["agent", "--kind", "k", "--exec", "cat", "--env", "NOT_SET"],
      "--env NOT_SET: the environment has no NOT_SET",
    ],
    [
      "a variable with a value",
      ["agent", "--kind", "k", "--exec", "cat", "--env", "A=b"],
      "--env: must be the name of an environ",
    ],
    [
      "variables of no command",
      ["agent", "--kind", "k", "--http", "http://x", "--env", "PATH"],
      "needs --exec",
    ],
    [
      "headers of no URL",
      ["agent", "--kind", "k", "--exec", "cat", "--http-header-file", "h"],
      "needs --http",
    ],
    [
      "a URL file that is absent",
      ["agent", "--kind", "k", "--http-url-file", "absent"],
      "cannot read absent",
    ],
    ["an agent without a kind", ["agent", "--exec", "cat"], "--kind KIND"],
    ["an agent that does nothing", ["agent", "--kind", "k"], "--mcp COMMAND or --a2a URL"],
    ["an MCP server without a tool", ["agent", "--kind", "k", "--mcp", "x"], "--mcp COMMAND and --tool NAME"],
    ["a service without a subject", ["serve", "nats", "--kind", "k"], "--kind KIND and --subject SUBJECT"],
    [
      "an agent that does both",
      ["agent", "--kind", "k", "--exec", "cat", "--http", "http://x"],
      "exclude each other",
    ],
    ["an agent's id with a dot", ["agent", "--kind", "k", "--exec", "cat", "--id", "a.b"], "A–Z a–z 0–9 _ -"],
    [
      "a label without a value",
      ["agent", "--kind", "k", "--exec", "cat", "--label", "zone"],
      '--label: must be name=value, not "zone"',
    ],
    ["an unknown type of event", ["events", "--type", "TaskAsigned"], "did you mean TaskAssigned?"],
    ["a place in the journal that is none", ["events", "--from", "yesterday"], "--from: must be start"],
    ["a folder that is none", ["demo", "nowhere"], "is no folder"],
    ["a credit weight of 0", ["project", "set", "p", "--credit-weight", "0"], "a number from 0.001 to"],
    [
      "max concurrent 0",
      ["project", "set", "p", "--max-concurrent", "0"],
      "must be none, or a whole number from 1 to 100000000",
    ],
    ["a budget of 0", ["project", "set", "p", "--budget", "0"], "must be none, or"],
    [
      "a budget both taken away and described",
      ["project", "set", "p", "--budget", "none", "--budget-mode", "alert"],
      "--budget none removes the budget",
    ],
    ["a window too short", ["policy", "set", "--budget-window", "1ms"], "from 1s to 366d"],
    ["a mode unknown", ["policy", "set", "--budget-mode", "beg"], "must be wait, reject, alert or downgrade"],
    ["nothing to set", ["policy", "set"], "no setting given"],
    ["nothing to set for a kind", ["kind", "set", "k"], "waggle kind set --help"],
    [
      "deficits of users",
      ["policy", "set", "--user-turn", "deficit"],
      "must be clock, recency, load or fifo",
    ],
    [
      "α with a preset",
      ["policy", "set", "--alpha", "0.2", "--optimize-for", "latency"],
      "cannot be used with option",
    ],
    ["no slots", ["resource", "set", "r", "--slots", "0"], "a whole number from 1"],
    [
      "a rate of no type",
      ["rate", "set", "--window", "per_hour", "--tokens", "5"],
      "missing required argument 'type'",
    ],
    ["a rate window unknown", ["rate", "set", "--type", "t", "--window", "per_year"], "per_minute, per_hour"],
    ["a hold of nothing, whose scope is a verb too", ["hold", "agent"], "see waggle hold --help"],
    ["a hold with an unknown flag", ["hold", "resource", "gpu", "--bogus"], "see waggle hold --help"],
    ["an unknown part of a verb", ["project", "sett", "p"], "did you mean set?"],
    ["a pause of a project with a dot", ["pause", "a.b"], "A–Z a–z 0–9 _ -"],
    ["a bad setting", ["status", "--swarm", "a.b"], "--swarm: must be"],
    [
      "no server's URL",
      ["up", "--nats", ""],
      "--nats: must be the URL of a NATS server, or several separated by commas, like nats://",
    ],
    ["no server's URL to look at", ["doctor", "--nats", ""], "--nats: must be the URL of a NATS server"],
    ["a coordinator's name with a dot", ["up", "--name", "a.b"], "--name: must be 1–64 characters of"],
  ])("%s ends with 2 and says what to do", async (_, argv, sentence) => {
    const { code, stdout, stderr } = await runIn(aShell({ cwd: emptyFolder() }), ...argv);
    expect(stderr).toContain(sentence);
    expect(stderr).toMatch(/^(?:demo {2}[^\n]+\n)?error WAGGLE_(USAGE|INVALID_CONFIG): [^\n]+\n$/);
    expect(stdout).toBe("");
    expect(code).toBe(2);
  });

  it.each([
    ["a wrong value", ["submit", "--kind", "k", "--priority", "high", "--json"], "--priority"],
    ["a wrong argument", ["hold", "agents", "a1", "--for", "1m", "--json"], "scope"],
    ["a wrong kind", ["auth", "add", "agent", "--group", "g", "--kinds", "a b", "--json"], "--kinds"],
  ])("names the field of %s for programs", async (_, argv, field) => {
    const { stderr } = await runIn(aShell({ cwd: emptyFolder() }), ...argv);
    expect(JSON.parse(stderr).error).toMatchObject({ code: "WAGGLE_USAGE", field });
  });

  it("is refused in the form that programs read with --json", async () => {
    const { code, stdout, stderr } = await runIn(aShell(), "submit", "--kidn", "x", "--json");
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "WAGGLE_USAGE", message: expect.stringContaining("--kind"), exitCode: 2 },
    });
    expect(stdout).toBe("");
    expect(code).toBe(2);
  });
});

describe("without a broker", () => {
  it.each([
    ["status"],
    ["events"],
    ["task", "t1"],
    ["cancel", "t1"],
    ["drain", "a1"],
    ["submit", "--kind", "k"],
    ["agent", "--kind", "k", "--exec", "cat"],
  ])("%s ends with 3 and says how to start one", async (...argv) => {
    const { code, stdout, stderr } = await runIn(aShell({ cwd: emptyFolder() }), ...argv);
    expect(stderr).toMatch(/^error WAGGLE_UNREACHABLE: .*`waggle up`.*\n$/);
    expect(stdout).toBe("");
    expect(code).toBe(3);
  });

  it("an unreachable server is shown without its password", async () => {
    const shell = aShell({ cwd: emptyFolder(), env: { NATS_URL: "nats://ann:secret@127.0.0.1:1" } });
    const { code, stderr } = await runIn(shell, "status");
    expect(code).toBe(3);
    expect(stderr).toContain("127.0.0.1:1");
    expect(stderr).not.toContain("secret");
  });

  it.each([[["up"]], [["agent", "--kind", "k", "--exec", "cat"]]])(
    "%j ends with 3 before the server is up, so a supervisor restarts the command",
    async (argv) => {
      const shell = aShell({ cwd: emptyFolder(), env: { NATS_URL: "nats://127.0.0.1:1" } });
      const { code, stderr } = await runIn(shell, ...argv);
      expect(stderr).toMatch(
        /^error WAGGLE_UNREACHABLE: Nothing listens at 127\.0\.0\.1:1: start a NATS server/m,
      );
      expect(code).toBe(3);
    },
  );

  it("down with nothing to stop is no failure", async () => {
    const { code, stdout } = await runIn(aShell({ cwd: emptyFolder() }), "down", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ wasRunning: false });
  });

  it("doctor says so, and fails", async () => {
    const { code, stdout } = await runIn(aShell({ cwd: emptyFolder() }), "doctor", "--json");
    const checks = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      "runtime ok",
      "data folder ok",
      "broker fail",
    ]);
    expect(code).toBe(3);
  });

  it("doctor reads the journal through, and ends with 7 when it is damaged", async () => {
    const cwd = emptyFolder();
    const folder = join(cwd, ".waggle", "journals", "default");
    const path = join(folder, "segments", "1", "records.log");
    const journal = await openFileJournal({ folder });
    await journal.create(1);
    for (const at of [0, 1, 2]) await journal.segment(1).append(Buffer.from(`record ${at}`), at);
    await journal.close();
    const healthy = await runIn(aShell({ cwd }), "doctor");
    expect(healthy.stdout).toMatch(/^ok +journal .*3 records in 1 segment; no batch yet$/m);
    expect(healthy.code).toBe(3);

    const bytes = readFileSync(path);
    const at = bytes.indexOf("record 1");
    bytes[at] = 0x52;
    writeFileSync(path, bytes);
    const damaged = await runIn(aShell({ cwd }), "doctor");
    expect(damaged.stdout).toMatch(
      /^fail +journal .*record 2 of segment 1 cannot be read: .* damaged at byte \d+/m,
    );
    expect(damaged.code).toBe(7);
    expect(readFileSync(path)).toEqual(bytes);
  });

  it("--verbose shows where an error comes from, and only then", async () => {
    const quiet = await runIn(aShell({ cwd: emptyFolder() }), "status");
    const verbose = await runIn(aShell({ cwd: emptyFolder() }), "status", "--verbose");
    expect(quiet.stderr).not.toMatch(/^ +at /m);
    expect(verbose.stderr).toMatch(/^ +at /m);
  });
});

describe("colours", () => {
  const colored = (shell: ReturnType<typeof aShell>) =>
    runIn(shell, "status").then(({ stderr }) => stderr.includes("\u001b["));

  it("are for terminals", async () => {
    expect(await colored(aShell({ cwd: emptyFolder(), columns: 80 }))).toBe(true);
    expect(await colored(aShell({ cwd: emptyFolder() }))).toBe(false);
  });

  it("obey NO_COLOR, FORCE_COLOR and a dumb terminal", async () => {
    const cwd = emptyFolder();
    expect(await colored(aShell({ cwd, columns: 80, env: { NO_COLOR: "1" } }))).toBe(false);
    expect(await colored(aShell({ cwd, columns: 80, env: { TERM: "dumb" } }))).toBe(false);
    expect(await colored(aShell({ cwd, env: { FORCE_COLOR: "1" } }))).toBe(true);
  });
});

it("refuses a task that breaks the wire's rules before it looks for a swarm", async () => {
  const { code, stderr } = await runIn(aShell({ cwd: emptyFolder() }), "submit", "--kind", "two words");
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error WAGGLE_INVALID_MESSAGE: --kind: must be .*without spaces\n$/);
});
