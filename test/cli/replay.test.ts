// `waggle replay` and the explanations that go with it, on the journal of a real server with real agents: exactly, and
// under other rules; and every wrong request.

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplayedAssignment } from "../../src/audit/assignment-replay.ts";
import type { ExactReport, PolicyReport } from "../../src/cli/replay/view.ts";
import { connect } from "../../src/index.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import { hashOf } from "../../src/journal/records.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

const TASKS = 24;
let workplace: Workplace;
let audit: string;
/** The request for a slot that waited longest. */
let waited = { agent: "", handle: "" };

const run = (...argv: string[]) =>
  runIn(aShell({ cwd: workplace.folder, env: { NO_COLOR: "1" }, columns: 100 }), ...argv);

async function reported<Report>(
  ...argv: string[]
): Promise<{ code: number; report: Report; stderr: string }> {
  const { code, stdout, stderr } = await run("replay", "--json", ...argv);
  return { code, stderr, report: (stdout === "" ? {} : JSON.parse(stdout)) as Report };
}

/** A swarm at work: two agents, two users, a failing task, a cancellation, a change of the policy. */
async function work(): Promise<void> {
  const up = workplace.start("up");
  await up.says("leading");
  const agent = (id: string) =>
    workplace.start("agent", "--id", id, "--exec", "sleep 0.05; grep -v fail", "--kind", "k").says("joined");
  await Promise.all([agent("a1"), agent("a2")]);
  const swarm = await connect({ dataFolder: workplace.dataFolder });
  await swarm.setResource("gpu", { slots: 1 });
  await explainsSlots(swarm);
  const tasks = Array.from({ length: TASKS }, (_, n) => ({
    id: `t${n}`,
    kind: "k",
    user: n % 4 === 0 ? "bob" : "ann",
    payload: n === 5 ? "fail" : "work",
    maxAttempts: 2,
    tokens: 10,
  }));
  const results: Promise<unknown>[] = [];
  for await (const submitted of swarm.submitMany(tasks)) expect(submitted.ok).toBe(true);
  await swarm.setPolicy({ lambda: 0.5 });
  await swarm.cancel(`t${TASKS - 1}`);
  for (let n = 0; n < TASKS; n += 1)
    results.push(
      swarm
        .task(`t${n}`)
        .result()
        .catch(() => undefined),
    );
  await Promise.all(results);
  await swarm.close();
  await up.kill("SIGTERM");
}

/** One request holds the only slot, and two wait: the second of them asks who comes before it. */
async function explainsSlots(swarm: Awaited<ReturnType<typeof connect>>): Promise<void> {
  const held = await swarm.acquire("gpu");
  const waiting = [swarm.acquire("gpu", { weight: 3 }), swarm.acquire("gpu")];
  for (;;) {
    const { waiting: count } = await swarm.explainSlots("gpu");
    if (count === 2) break;
  }
  const { waiters, ...waits } = await swarm.explainSlots("gpu");
  expect(waits).toMatchObject({ resource: "gpu", slots: 1, inUse: 1, alpha: 0.25, maxQueueDepth: 4 });
  expect(waiters).toMatchObject([
    { place: 1, by: "load", load: 0.25, depthTerm: 0.25, ageTerm: 0, weight: 3 },
    { place: 2, by: "load", load: 0.25, weight: 1 },
  ]);
  const [, last] = waiters;
  const { agent = "", handle = "" } = last ?? {};
  waited = { agent, handle };
  const shown = await run("explain", "--resource", "gpu", "--agent", agent, "--handle", handle);
  expect(shown.code, shown.stderr).toBe(0);
  expect(shown.stdout.replaceAll(/\s+/g, " ")).toContain(
    `request ${handle} of ${agent} is number 2 of 2: its L is 0.25; before it: 1 with a higher L, or as high and earlier`,
  );
  expect(shown.stdout).toMatch(/→ 2/);
  await expect(swarm.explainSlots("gpuu")).rejects.toMatchObject({
    code: "WAGGLE_UNKNOWN_RESOURCE",
    message: expect.stringContaining("did you mean gpu?"),
  });
  await expect(swarm.explainSlots("gpu", { agent: "nobody" })).rejects.toMatchObject({
    code: "WAGGLE_UNKNOWN_HANDLE",
  });
  await expect(swarm.explainSlots("gpu", { handle })).rejects.toMatchObject({ code: "WAGGLE_INVALID_VALUE" });
  expect(await run("explain", "--resource", "gpu", "t1")).toMatchObject({ code: 2 });
  expect(await run("explain")).toMatchObject({ code: 2, stderr: expect.stringContaining("name a task") });
  await held.release();
  for (const slot of waiting) await (await slot).release();
}

beforeAll(async () => {
  const [server] = natsServersFor("replay");
  workplace = await Workplace.make(server?.path);
  await work();
  audit = join(workplace.folder, "audit.ndjson");
}, 120_000);
afterAll(() => workplace.clear());

describe("the journal of a real server", () => {
  it("is decided again exactly, from the server and from an export", async () => {
    const fromServer = await reported<ExactReport>();
    expect(fromServer.code, fromServer.stderr).toBe(0);
    expect(fromServer.report).toMatchObject({ exact: true, firstIdx: 1, withheld: 0 });
    expect(fromServer.report.assignments).toBeGreaterThanOrEqual(TASKS);
    expect(fromServer.report.grants).toBe(3);
    expect((await run("export", "-o", audit)).code).toBe(0);
    const { where, ...fromFile } = (await reported<ExactReport>(audit)).report;
    expect(where).toBe(`in ${audit}`);
    expect(fromFile).toEqual({ ...fromServer.report, where: undefined });
    expect((await run("replay", audit)).stdout).toMatch(/^verdict +exact: /m);
  });

  it("is replayed under other rules beside the recorded decisions", async () => {
    const { code, report, stderr } = await reported<PolicyReport>(audit, "--rules", "lucio,fifo");
    expect(code, stderr).toBe(0);
    expect(report.courses.map(({ name }) => name)).toEqual(["recorded", "replayed", "lucio", "fifo"]);
    const [recorded, replayed] = report.courses.map(({ figures }) => figures);
    expect(recorded?.tasks).toMatchObject({ submitted: TASKS, failed: 1 });
    for (const { figures } of report.courses) {
      expect(figures.tasks.completed + figures.tasks.cancelled).toBe(TASKS - 1);
      expect(figures.resources).toMatchObject([{ name: "gpu", count: 3 }]);
    }
    // Messages take some time in the record, and none in the model.
    expect(replayed?.makespanMs).toBeGreaterThan(0.7 * (recorded?.makespanMs ?? 0));
    expect(replayed?.makespanMs).toBeLessThan(1.1 * (recorded?.makespanMs ?? 0));
    const text = await run("replay", audit, "--rules", "fifo", "--agents", "+2");
    expect(text.stdout).toMatch(/^ +recorded +replayed +fifo$/m);
    expect(text.stdout).toMatch(/^changed +2 more agents/m);
  });

  it("is drawn, into a file and into a folder", async () => {
    await mkdir(join(workplace.folder, "charts"));
    const drawn = await run("replay", audit, "--rules", "fifo", "--chart", "replay.svg");
    expect(drawn.code, drawn.stderr).toBe(0);
    expect(await readFile(join(workplace.folder, "replay.svg"), "utf8")).toMatch(/^<svg .*ann/s);
    expect((await run("replay", audit, "--rules", "fifo", "--chart", "charts")).code).toBe(0);
    expect(await readdir(join(workplace.folder, "charts"))).toEqual([
      "fifo.svg",
      "recorded.svg",
      "replayed.svg",
    ]);
  });

  it("explains a past grant of a slot without a coordinator", async () => {
    const { agent, handle } = waited;
    const grant = ["explain", "--resource", "gpu", "--agent", agent, "--journal", audit];
    const { code, stdout, stderr } = await run(...grant, "--handle", handle, "--json");
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      handle,
      resource: "gpu",
      agrees: true,
      receipt: { by: "load", waiting: 1 },
      standings: [{ place: 1, agent, handle, load: 1, depthTerm: 0.25, ageTerm: 0.75, ageTicks: 2 }],
    });
    expect((await run(...grant)).stdout).toMatch(/got its slots at batch \d+.*\n.*gpu: the highest L/);
    const nobody = await run("explain", "--resource", "gpu", "--agent", "nobody", "--journal", audit);
    expect(nobody).toMatchObject({ code: 5, stderr: expect.stringContaining("no grant of gpu to nobody") });
    expect(await run("explain", "--resource", "gpu", "--journal", audit)).toMatchObject({ code: 2 });
  });

  it("explains a past assignment without a coordinator", async () => {
    const { code, stdout, stderr } = await run("explain", "t5", "--journal", audit, "--json");
    expect(code, stderr).toBe(0);
    const last = JSON.parse(stdout) as ReplayedAssignment;
    expect(last).toMatchObject({ task: "t5", attempt: 2, agrees: true });
    expect(last.agents).toHaveLength(2);
    const first = await run("explain", "t5", "--journal", audit, "--attempt", "1");
    expect(first.stdout).toMatch(/^t5 attempt 1 went to a[12] as k/);
    const none = await run("explain", "t5", "--journal", audit, "--attempt", "9");
    expect(none).toMatchObject({ code: 5, stderr: expect.stringContaining("no attempt 9 of task t5") });
  });
});

/** Copies an export with one receipt changed, and all hashes behind it made to fit. @returns the changed batch */
async function forge(from: string, to: string): Promise<number> {
  let changedIdx: number | undefined;
  let prev: string | undefined;
  const lines = (await readFile(from, "utf8")).split("\n").map((line) => {
    const { record, ...place } = line === "" ? { record: undefined } : JSON.parse(line);
    if (record?.kind !== "batch") return line;
    const assigned = record.events.find(({ type }: { type: string }) => type === "TaskAssigned");
    if (changedIdx === undefined && assigned !== undefined) {
      changedIdx = record.idx;
      assigned.receipt.feasible = 99;
    }
    if (prev !== undefined) record.prev = prev;
    prev = hashOf(Buffer.from(JSON.stringify(record)));
    return JSON.stringify({ ...place, record });
  });
  await writeFile(to, lines.join("\n"));
  return changedIdx ?? expect.fail("nothing was assigned");
}

describe("a wrong request", () => {
  it.each([
    [["--rules", "lucioo"], "did you mean lucio?"],
    [["--rules", "best"], "there are waggle, budget, loco, vapora, lucio, fifo"],
    [["--capacity", "kk=2"], "no agent of the journal serves the kind 'kk'; did you mean k?"],
    [["--capacity", "k"], "--capacity: must be KIND=N"],
    [["--agents", "2"], "--agents: must be a number of agents to add"],
    [["--alpha", "2"], "must be a number from 0 to 1"],
    [["--rules", "fifo", "--from", "99999"], "--from lies beyond the end: the journal ends at batch"],
    [["--rules", "fifo", "--from", "2100-01-01"], "--from lies beyond the end: the journal ends at batch"],
    [["--from", "3"], "--from needs a change"],
    [["--chart", "x.svg"], "--chart needs a change"],
    [["--rules", "fifo", "--chart", "/nowhere/x.svg"], "cannot write /nowhere/x.svg"],
  ])("%j ends with 2", async (flags, sentence) => {
    expect(await run("replay", audit, ...flags)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(sentence),
    });
  });

  it("names no journal, and an empty one", async () => {
    expect(await run("replay", "nowhere")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot read"),
    });
    const folder = join(workplace.folder, "empty");
    await (await openFileJournal({ folder })).close();
    expect(await run("replay", folder)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("empty one"),
    });
    expect(await run("replay", folder, "--rules", "fifo")).toMatchObject({ code: 2 });
  });

  it("names the first decision that differs, though every hash fits", async () => {
    const forged = join(workplace.folder, "forged.ndjson");
    const idx = await forge(audit, forged);
    expect((await run("verify", forged)).code).toBe(0);
    const { code, report } = await reported<ExactReport>(forged);
    expect(code).toBe(7);
    expect(report).toMatchObject({
      exact: false,
      lastIdx: idx - 1,
      difference: {
        idx,
        recorded: { type: "TaskAssigned", receipt: { feasible: 99 } },
        differences: [{ path: "receipt.feasible", was: 99 }],
      },
    });
    expect((await run("replay", forged)).stdout).toMatch(
      /^verdict +differs first at batch \d+ .*, event \d+$/m,
    );
  });

  it("says that a batch was changed, whatever is asked", async () => {
    const lines = (await readFile(audit, "utf8")).split("\n");
    const at = lines.findIndex((line) => line.includes('"TaskAssigned"'));
    lines[at] = lines[at]?.replace('"feasible":', '"feasible":1') ?? "";
    const changed = join(workplace.folder, "changed.ndjson");
    await writeFile(changed, lines.join("\n"));
    for (const flags of [[], ["--rules", "fifo"]])
      expect(await run("replay", changed, ...flags)).toMatchObject({
        code: 7,
        stdout: "",
        stderr: expect.stringMatching(/batch \d+ was changed/),
      });
    expect((await run("explain", "t5", "--journal", changed)).code).toBe(7);
  });
});
