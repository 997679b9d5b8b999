// The verbs with a running swarm, on the development broker, which needs no installation. Verbs that run on, and some
// short ones, have a process of their own, as a user runs them. The other short ones run within the test's process.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asHinted, type Finished, type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const records = ({ stdout }: Finished): Record<string, unknown>[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

describe("a swarm on the development broker", () => {
  let workplace: Workplace;
  let up: RunningWaggle;
  let counter: RunningWaggle;

  beforeAll(async () => {
    workplace = await Workplace.make();
    up = workplace.start("up");
    await up.says("leading");
    counter = workplace.start(
      "agent",
      "--kind",
      "count",
      "--exec",
      "wc -w",
      "--id",
      "counter",
      "--max-concurrent",
      "4",
    );
    const mixed = workplace.start("agent", "--kind", "fail,invalid,nap", "--id", "mixed", "--exec", verdicts);
    await Promise.all([counter.says("joined"), mixed.says("joined")]);
  });
  afterAll(() => workplace.clear());

  /** Ends as its kind says. */
  const verdicts =
    'case "$WAGGLE_KIND" in fail) echo broken >&2; exit 1;; invalid) exit 65;; nap) sleep 30;; esac';

  it("prints broker and durability, and each joining agent", async () => {
    expect(up.said).toMatch(
      /^broker +the development broker at 127\.0\.0\.1:\d+, started for this data folder/m,
    );
    expect(up.said).toMatch(
      /^durability +on the coordinator's disk before each answer; details: \S.* doctor$/m,
    );
    expect(up.said).toMatch(/^coordinator \S+ of the swarm default$/m);
    await up.says("counter joined: count; max concurrent 4");
  });

  it("submit --wait prints the result and nothing else on stdout", async () => {
    const done = await workplace.run("submit", "--kind", "count", "--text", "how many words", "--wait");
    expect(done).toMatchObject({ code: 0, stdout: "3\n" });
    expect(done.stderr).toMatch(/^\S+ accepted\n$/);
  });

  it("submit alone prints the id; --json where the journal stood", async () => {
    const plain = await workplace.runVerb("submit", "--kind", "count", "--id", "given");
    expect(plain).toMatchObject({ code: 0, stdout: "given\n", stderr: "" });
    const again = await workplace.run("submit", "--kind", "count", "--id", "given", "--json");
    expect(records(again)).toEqual([
      { type: "accepted", taskId: "given", term: 1, idx: expect.any(Number), duplicate: true, warnings: [] },
    ]);
    const other = await workplace.runVerb("submit", "--kind", "count", "--id", "given", "--text", "x");
    expect(other).toMatchObject({ code: 5, stdout: "", stderr: expect.stringContaining("WAGGLE_CONFLICT") });
  });

  it("submit --watch prints the task's events as they happen", async () => {
    const watched = await workplace.runVerb(
      "submit",
      "--kind",
      "count",
      "--text",
      "a b",
      "--watch",
      "--json",
    );
    expect(watched.code).toBe(0);
    const output = records(watched);
    expect(output.filter(({ type }) => type === "update").map(({ update }) => update)).toEqual(
      expect.arrayContaining(["submitted", "assigned"]),
    );
    const [first] = output.filter(({ type }) => type === "update");
    expect(first).toMatchObject({ update: "submitted" });
    expect(output.at(-1)).toMatchObject({
      type: "outcome",
      state: "completed",
      result: "2\n",
      agent: "counter",
    });
  });

  it("many tasks: prints each outcome, and exits with the worst code", async () => {
    const lines = ['{"kind":"count","payload":"a"}', "nonsense", '{"kind":"invalid","id":"bad-input"}'];
    await writeFile(join(workplace.folder, "tasks.ndjson"), lines.join("\n"));
    const many = await workplace.run("submit", "@tasks.ndjson", "--wait", "--json");
    expect(many.code).toBe(2);
    expect(records(many)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "outcome", state: "completed", result: "1\n" }),
        expect.objectContaining({
          type: "outcome",
          taskId: "bad-input",
          state: "failed",
          failureClass: "invalid",
        }),
        {
          type: "rejected",
          error: expect.objectContaining({ message: expect.stringContaining("tasks.ndjson:2:") }),
        },
      ]),
    );
    expect(many.stderr).toMatch(/2 accepted · 1 rejected · 1 completed · 1 did not complete\n$/);
  });

  it("a failing task ends with 4 and the error on stderr", async () => {
    const failed = await workplace.run("submit", "--kind", "fail", "--max-attempts", "1", "--wait");
    expect(failed).toMatchObject({ code: 4, stdout: "" });
    expect(failed.stderr).toMatch(
      /^error WAGGLE_TASK_FAILED: Task \S+ has no attempt left after 1 attempt: .*broken.*\n$/m,
    );
  });

  it("a kind without agents gets a warning with near misses, and the task is queued", async () => {
    const queued = await workplace.runVerb("submit", "--kind", "cuont", "--id", "misspelt");
    expect(queued).toMatchObject({ code: 0, stdout: "misspelt\n" });
    expect(queued.stderr).toMatch(/^warning: no agent serves the kind cuont\. Did you mean count\? /);
    const refused = await workplace.runVerb("submit", "--kind", "cuont", "--fail-fast");
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining("WAGGLE_NO_CAPABLE_AGENT") });
  });

  it("a wait that times out exits with 6, and the task continues until cancelled", async () => {
    const late = await workplace.runVerb(
      "submit",
      "--kind",
      "nap",
      "--id",
      "napping",
      "--wait-timeout",
      "200ms",
    );
    expect(late).toMatchObject({ code: 6, stderr: expect.stringContaining("it continues") });
    expect(await workplace.runVerb("cancel", "napping")).toMatchObject({
      code: 0,
      stdout: "napping cancelled\n",
    });
    const outcome = await workplace.runVerb("submit", "--kind", "nap", "--id", "napping", "--wait");
    expect(outcome).toMatchObject({ code: 4, stderr: expect.stringContaining("WAGGLE_TASK_CANCELLED") });
  });

  it("Ctrl-C ends a wait with 130, and prints that the task continues and how to wait again", async () => {
    const waiting = workplace.start(
      "submit",
      "--kind",
      "later",
      "--id",
      "later",
      "--not-before",
      "+1h",
      "--wait",
    );
    await waiting.says("accepted");
    const ended = { code: 130, stdout: "" };
    const again = /task later continues\. To wait again: node \S*waggle\.js wait later.*\ninterrupted\n$/;
    expect(await waiting.kill("SIGINT")).toMatchObject({ ...ended, stderr: expect.stringMatching(again) });
    const two = workplace.start("wait", "later", "nosuch");
    await two.says("task nosuch is not known here");
    expect(await two.kill("SIGINT")).toMatchObject({
      ...ended,
      stderr: expect.stringMatching(/task later continues\. To wait again: node \S*waggle\.js wait later\n/),
    });
  });

  it("wait prints the result of one task, and a line for each of several as they end", async () => {
    await workplace.runVerb("submit", "--kind", "count", "--id", "w1", "--text", "a b c");
    await workplace.runVerb("submit", "--kind", "fail", "--id", "w2", "--max-attempts", "1");
    expect(await workplace.runVerb("wait", "w1")).toMatchObject({ code: 0, stdout: "3\n", stderr: "" });
    expect(await workplace.runVerb("wait", "w2")).toMatchObject({ code: 4, stdout: "" });
    const both = await workplace.runVerb("wait", "w1", "w2", "w1");
    expect(both.code).toBe(4);
    expect(both.stdout.split("\n").sort()).toEqual([
      "",
      "w1 completed 3",
      expect.stringMatching(/^w2 dead-lettered /),
    ]);
    const json = await workplace.runVerb("wait", "w1", "nosuch", "--json");
    expect(json.code).toBe(5);
    expect(records(json)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "outcome", taskId: "w1", state: "completed" }),
        expect.objectContaining({ type: "error", taskId: "nosuch" }),
      ]),
    );
    const late = await workplace.runVerb("wait", "misspelt", "--timeout", "300ms");
    expect(late).toMatchObject({ code: 6, stdout: "" });
    expect(late.stderr).toMatch(/task misspelt continues\. To wait again: /);
  });

  it("results of several files name their files", async () => {
    await writeFile(join(workplace.folder, "one.txt"), "one");
    await writeFile(join(workplace.folder, "two.txt"), "one two");
    const many = await workplace.runVerb("submit", "--kind", "count", "@one.txt", "@two.txt", "--wait");
    expect(many.code).toBe(0);
    expect(many.stdout).toMatch(/^one\.txt: \S+ completed 1$/m);
    expect(many.stdout).toMatch(/^two\.txt: \S+ completed 2$/m);
  });

  it("events prints the last 50 without flags, the last n with --tail, and new events with --follow", async () => {
    const all = (await workplace.runVerb("events", "--from", "start")).stdout.trimEnd().split("\n");
    const last = await workplace.runVerb("events");
    const lines = last.stdout.trimEnd().split("\n");
    expect(lines).toEqual(all.slice(-50));
    expect(last.stderr).toMatch(
      /all events: `node \S*waggle\.js events --from start`; new events: `.*events --follow`/,
    );
    const three = await workplace.runVerb("events", "--tail", "3", "--type", "TaskCompleted");
    expect(three.stdout.trimEnd().split("\n")).toHaveLength(3);
    const following = workplace.start("events", "--tail", "1", "--follow", "--type", "TaskCompleted");
    await following.says("completed");
    await workplace.runVerb("submit", "--kind", "count", "--id", "seen-live", "--wait");
    await following.says("seen-live");
    await following.kill("SIGINT");
    const both = await workplace.runVerb("events", "--tail", "3", "--from", "start");
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("--tail and --from") });
  });

  it("status for people holds nothing that --json does not", async () => {
    const [plain, json] = [await workplace.run("status"), await workplace.runVerb("status", "--json")];
    const [status] = records(json) as [
      { swarm: string; leader: string; agents: { id: string; status: string }[] },
    ];
    expect(status.agents.map(({ id }) => id).sort()).toEqual(["counter", "mixed"]);
    for (const word of [status.swarm, status.leader, "counter", "mixed", "queues", "projects and users"]) {
      expect(plain.stdout).toContain(word);
    }
  });

  it("status --watch is a record a time, until its reader goes away", async () => {
    const watching = workplace.start("status", "--watch", "--interval", "20ms", "--json");
    await watching.says(/\n.*\n/);
    watching.child.stdout?.destroy();
    expect(await watching.finished).toMatchObject({ code: 0, stderr: "" });
  });

  it("events replays what happened, filtered", async () => {
    await workplace.runVerb("submit", "--kind", "count", "--id", "traced", "--wait");
    const events = records(await workplace.runVerb("events", "--task", "traced", "--json")) as {
      idx: number;
      event: { type: string };
    }[];
    expect(events.map(({ event }) => event.type)).toEqual(["TaskSubmitted", "TaskAssigned", "TaskCompleted"]);
    const last = events.at(-1)?.idx ?? 0;
    const later = records(
      await workplace.runVerb("events", "--from", `${last}`, "--type", "TaskCompleted", "--json"),
    );
    expect(later[0]).toMatchObject({ idx: last, event: { type: "TaskCompleted", task: "traced" } });
    const agents = await workplace.runVerb("events", "--type", "AgentJoined");
    expect(agents.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} +\d+ {2}counter joined: count; max concurrent 4$/m);
  });

  it("events that finds nothing says so, and not where data go", async () => {
    const none = await workplace.runVerb("events", "--task", "nosuch");
    expect(none).toMatchObject({ code: 0, stdout: "" });
    expect(none.stderr).toMatch(/^no event of task nosuch; the journal ends at batch [\d,]+\n$/);
  });

  it("events --follow prints new events", async () => {
    const following = workplace.start("events", "--follow", "--from", "start", "--type", "TaskSubmitted");
    await following.says("submitted by");
    await workplace.runVerb("submit", "--kind", "count", "--id", "followed");
    await following.says("followed submitted by default/");
    expect(await following.kill("SIGINT")).toMatchObject({ code: 130 });
  });

  it("task shows why a task got its agent, and why a task waits", async () => {
    await workplace.runVerb("submit", "--kind", "count", "--id", "told", "--wait");
    const output = await workplace.runVerb("task", "told");
    expect(output.stdout).toMatch(/^told {2}completed after .*, 1 attempt$/m);
    expect(output.stdout).toMatch(/^attempt 1 at counter, .*: completed after /m);
    expect(output.stdout).toMatch(/^result {2}2 characters\n {2}0$/m);
    expect(output.stdout).toMatch(/^ +only eligible agent \(1 of 2; 1 wrong-kind\); waited /m);
    const [story] = records(await workplace.runVerb("task", "told", "--json"));
    expect(story).toMatchObject({
      taskId: "told",
      attempts: [{ agent: "counter", receipt: { decidedBy: "only" } }],
    });

    await workplace.runVerb("submit", "--kind", "nobody", "--id", "waiting");
    const waiting = await workplace.runVerb("task", "waiting");
    expect(waiting.stdout).toMatch(/^queued since .*\nNo agent serves nobody: start an agent/m);
    await workplace.runVerb("submit", "--kind", "coutn", "--id", "typo");
    expect((await workplace.runVerb("task", "typo")).stdout).toContain(
      "No agent serves coutn: start an agent with --kind coutn — did you mean count?",
    );
    expect(await workplace.runVerb("task", "nope")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("WAGGLE_UNKNOWN_TASK"),
    });
  });

  it("drain keeps new tasks from an agent until undrain", async () => {
    expect(await workplace.runVerb("drain", "counter")).toMatchObject({
      code: 0,
      stdout: "counter drains: no new tasks\n",
    });
    await workplace.runVerb("submit", "--kind", "count", "--id", "held-back");
    expect((await workplace.runVerb("task", "held-back")).stdout).toContain(
      `is draining: ${asHinted("undrain counter")}`,
    );
    expect((await workplace.runVerb("explain", "held-back")).stdout).toMatch(/^ +counter +draining/m);
    expect(await workplace.runVerb("undrain", "counter", "--json")).toMatchObject({
      stdout: '{"agent":"counter","draining":false}\n',
    });
    expect(await workplace.runVerb("submit", "--kind", "count", "--id", "held-back", "--wait")).toMatchObject(
      {
        code: 0,
      },
    );
    expect(await workplace.runVerb("drain", "nobody")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("WAGGLE_UNKNOWN_AGENT"),
    });
  });

  it("doctor finds nothing wrong, the audit included once the leader has begun to verify it", async () => {
    const names = [
      "runtime",
      "data folder",
      "broker",
      "journal",
      "connection",
      "server",
      "JetStream",
      "max payload",
      "security",
      "leader",
      "clock",
      "durability",
      "base",
      "audit",
    ];
    const found = async () => {
      const healthy = await workplace.runVerb("doctor", "--json");
      expect(healthy.code).toBe(0);
      return records(healthy).map(({ name, status }) => `${name} ${status}`);
    };
    await expect.poll(found, { timeout: 60_000, interval: 1_000 }).toEqual(names.map((name) => `${name} ok`));
  });

  it("a second up on a journal in a file refuses and says why", async () => {
    const second = await workplace.run("up");
    expect(second.code).toBe(5);
    expect(second.stderr).toMatch(/^error WAGGLE_JOURNAL_LOCKED: .*a file journal has one coordinator/m);
  });

  it("an agent drains at the first Ctrl-C, and leaves with 0", async () => {
    const untilReleased = "until [ -e go ]; do sleep 0.05; done; echo done";
    const leaving = workplace.start("agent", "--kind", "once", "--exec", untilReleased, "--id", "leaving");
    await leaving.says("joined");
    const waiting = workplace.start("submit", "--kind", "once", "--watch");
    await waiting.says("→ leaving");
    leaving.child.kill("SIGINT");
    await leaving.says("draining");
    await writeFile(join(workplace.folder, "go"), "");
    expect(await leaving.finished).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("1 attempt completed"),
    });
    expect(await waiting.finished).toMatchObject({ code: 0, stdout: expect.stringMatching(/\ndone\n$/) });
  });

  it("an agent ends at once at the second Ctrl-C", async () => {
    const killed = workplace.start("agent", "--kind", "long", "--exec", "sleep 30", "--id", "killed");
    await killed.says("joined");
    await workplace.start("submit", "--kind", "long", "--watch").says("→ killed");
    killed.child.kill("SIGINT");
    await killed.says("draining");
    expect(await killed.kill("SIGINT")).toMatchObject({ code: 130 });
  });

  it("submit --stream prints the result as the agent produces it, and marks what a failed attempt left", async () => {
    const handler =
      'printf "$WAGGLE_ATTEMPT a "; sleep 0.3; [ "$WAGGLE_ATTEMPT" = 1 ] && exit 1; printf "$WAGGLE_ATTEMPT b"';
    const writer = workplace.start("agent", "--kind", "write", "--id", "writer", "--exec", handler);
    await writer.says("joined");
    const streamed = await workplace.runVerb("submit", "--kind", "write", "--text", "x", "--stream");
    expect(streamed).toMatchObject({ code: 0, stdout: "1 a \n2 a 2 b\n" });
    expect(streamed.stderr).toMatch(/^\S+ accepted\nattempt 2 begins; the output of attempt 1 is void\n$/);
    const output = records(
      await workplace.runVerb("submit", "--kind", "count", "--text", "a b", "--stream", "--json"),
    );
    expect(output.map(({ type }) => type)).toEqual(["accepted", "chunk", "outcome"]);
    expect(output[1]).toMatchObject({ attempt: 1, agent: "counter", index: 0, data: "2\n" });
    await writer.kill("SIGTERM");
  });
});
