// Texts for a person when the leader does not answer, or only a standby does. A killed coordinator leaves its broker
// running; a scripted leader answers instead.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findBroker } from "../../src/broker/find-broker.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { FakeLeader } from "../client/fake-leader.ts";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, type FakeShell, runIn } from "./shell.ts";

let workplace: Workplace;
let transport: NatsTransport;
let leader: FakeLeader;

beforeAll(async () => {
  workplace = await Workplace.make();
  const up = workplace.start("up");
  await up.says("leading");
  await up.kill("SIGKILL");
  const dataFolder = `${workplace.folder}/.waggle`;
  const { address } = await findBroker({ mode: "find-only", dataFolder, env: {} });
  transport = await connectNats({ ...address, name: "fake" });
});
afterEach(() => leader.stop());
afterAll(async () => {
  await transport.close();
  await workplace.clear();
});

type Script = FakeLeader["script"];

/** Runs a command line while the leader follows `script`. */
async function waggle(line: string, script: Script, shell: FakeShell = aShell({ cwd: workplace.folder })) {
  leader = new FakeLeader({ connect: () => transport }, "default");
  leader.script = script;
  leader.start();
  return await runIn(shell, ...line.split(" "));
}

/** Presses Ctrl-C when the verb asks for the n-th time. */
function interruptedAt(n: number, verb: string, script: Script = () => "silence") {
  const shell = aShell({ cwd: workplace.folder });
  let asked = 0;
  const interrupting: Script = (question) => {
    if (question.verb === verb) asked += 1;
    if (question.verb === verb && asked === n) setTimeout(() => shell.interrupt(), 50);
    return script(question);
  };
  return { shell, script: interrupting };
}

const listed = (task: string, kind = "a") => ({
  task,
  kind,
  project: "default",
  user: "ann",
  state: "queued",
  round: 1,
  attempts: 0,
  since: 1_000,
  ageMs: 5_000,
  submittedIdx: 2,
});
const page = (tasks: readonly string[], stale = false) => ({
  term: 1,
  idx: 9,
  at: 6_000,
  ...(stale ? { stale: true } : {}),
  tasks: tasks.map((task) => listed(task)),
  total: tasks.length,
  more: 0,
});
const cancelled = (tasks: readonly { readonly task: string }[]) => ({
  term: 1,
  idx: 10,
  answers: tasks.map(({ task }) => ({ ok: true, task, state: "cancelled" })),
});

describe("Ctrl-C while a submission has no answer", () => {
  it("says that the task may have been accepted, and the command to check", async () => {
    const { shell, script } = interruptedAt(1, "submit");
    const { code, stdout, stderr } = await waggle("submit --kind a --id t1 --swarm default", script, shell);
    expect([code, stdout]).toEqual([130, ""]);
    expect(stderr).toBe(
      "no answer for task t1: accepted or not, unknown. Check with `waggle task t1 --swarm default`. " +
        "A repeated submit with --id t1 does not run the task twice\ninterrupted\n",
    );
  });

  it("names the id that the task was given", async () => {
    const { shell, script } = interruptedAt(1, "submit");
    const { stderr } = await waggle("submit --kind a --text x --wait", script, shell);
    const [id] = leader.of("submit").map(({ body }) => body.tasks[0].id);
    expect(stderr).toContain(`Check with \`waggle task ${id}\`.`);
  });

  it("gives programs the ids and the command", async () => {
    const { shell, script } = interruptedAt(1, "submit");
    const { code, stderr } = await waggle("submit --kind a --id t1 --json", script, shell);
    const records = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records).toEqual([
      { type: "unanswered", taskIds: ["t1"], check: "waggle task t1" },
      { error: { code: "INTERRUPTED", message: "interrupted", exitCode: 130 } },
    ]);
    expect(code).toBe(130);
  });

  it("counts tasks without an answer apart from rejected ones", async () => {
    const lines = ["t1", "t2", "t3"].map((id) => JSON.stringify({ id, kind: "a", payload: 1 }));
    const shell = aShell({ cwd: workplace.folder, stdin: `${lines.join("\n")}\n` });
    const script: Script = () => {
      setTimeout(() => shell.interrupt(), 50);
      return "silence";
    };
    const { code, stderr } = await waggle("submit -", script, shell);
    expect(code).toBe(130);
    expect(stderr).not.toContain("rejected");
    expect(stderr).toContain("0 accepted · 3 without an answer");
    expect(stderr).toContain("no answer for 3 tasks");
    expect(stderr).toContain("Check with `waggle task ID`.");
    expect(stderr).toContain("Ids: t1, t2, t3\n");
  });
});

describe("held back tasks", () => {
  const script: Script = () => ({
    ok: false,
    code: "WAGGLE_BACKPRESSURE",
    message: "the queue of project default is full",
    retryAfterMs: 200,
  });

  it.each([
    ["redrawn at a terminal", 80],
    ["line by line in a pipe", undefined],
  ])("are told with their number, since when and why, %s", async (_, columns) => {
    const lines = ["t1", "t2", "t3"].map((id) => JSON.stringify({ id, kind: "a", payload: 1 }));
    const shell = aShell({
      cwd: workplace.folder,
      stdin: `${lines.join("\n")}\n`,
      ...(columns === undefined ? {} : { columns }),
    });
    const looking = setInterval(() => {
      if (shell.stderr.text.includes("held back")) shell.interrupt();
    }, 20);
    const { stderr } = await waggle("submit -", script, shell).finally(() => clearInterval(looking));
    expect(stderr).toMatch(
      /0 accepted · 3 held back for [\d.]+ (ms|s), next try in about \d+ ms: the queue of project default is full/,
    );
  });
});

describe("a filter of retry and cancel", () => {
  it("takes the leader's list, never a standby's", async () => {
    const pages = [page(["old"], true), page(["old"], true), page(["new"])];
    const { code, stdout } = await waggle("cancel --kind a --yes", ({ verb, body }) =>
      verb === "cancel" ? cancelled(body.tasks) : pages.shift(),
    );
    expect([code, stdout]).toEqual([0, "new cancelled\n"]);
    expect(leader.of("cancel").map(({ body }) => body.tasks)).toEqual([[{ task: "new", round: 1 }]]);
  });

  it("touches nothing where a standby alone answers", async () => {
    const { shell, script } = interruptedAt(3, "query.tasks", () => page(["old"], true));
    const { code, stdout } = await waggle("cancel --kind a --yes", script, shell);
    expect([code, stdout]).toEqual([130, ""]);
    expect(leader.of("cancel")).toEqual([]);
  });

  const many = Array.from({ length: 600 }, (_, at) => `t${at}`);

  it("reports progress after each 256 tasks", async () => {
    const { code, stdout, stderr } = await waggle("cancel --kind a --yes", ({ verb, body }) =>
      verb === "cancel" ? cancelled(body.tasks) : page(many),
    );
    expect([code, stdout.trim().split("\n").length]).toEqual([0, 600]);
    expect(stderr).toBe("256 of 600 tasks …\n512 of 600 tasks …\n");
  });

  it("says where Ctrl-C ended it, and what is in doubt", async () => {
    const { shell, script } = interruptedAt(2, "cancel", ({ verb, body }) => {
      if (verb !== "cancel") return page(many);
      return leader.of("cancel").length === 1 ? cancelled(body.tasks) : "silence";
    });
    const { code, stderr } = await waggle("cancel --kind a --yes", script, shell);
    expect(code).toBe(130);
    expect(stderr).toBe(
      "256 of 600 tasks …\n256 of 600 tasks done; no answer for the next 256: each may be done or not. " +
        "Run the command again for the remaining tasks\ninterrupted\n",
    );
  });

  it("refuses a state that the verb does not take", async () => {
    const none: Script = () => "silence";
    expect(await waggle("retry --state queued --yes", none)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "retry takes tasks that are failed, cancelled, expired, dead-lettered; not queued",
      ),
    });
    expect(await waggle("cancel --state running,completed --yes", none)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("; not completed"),
    });
    expect(leader.asked).toEqual([]);
  });
});
