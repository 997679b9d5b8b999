// `waggle up --metrics` as a user runs it: the metrics of a leader and of a standby, and addresses that are refused.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { sampleOf } from "../metrics/metrics-text.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const [server] = natsServersFor("metrics of a standby");
let workplace: Workplace;
afterEach(() => workplace.clear());

async function urlOf(running: RunningWaggle): Promise<string> {
  await running.says(/metrics +http:\S+\/metrics\n/);
  return /http:\S+\/metrics/.exec(running.said)?.[0] ?? "";
}

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url);
  expect(answer.status).toBe(200);
  return await answer.text();
}

describe("a coordinator on the development broker", () => {
  let leader: RunningWaggle;

  beforeEach(async () => {
    workplace = await Workplace.make();
    leader = workplace.start("up", "--metrics", "127.0.0.1:0");
    await leader.says("leading");
  });

  it("counts the work of an agent, and ends its server with itself", async () => {
    const url = await urlOf(leader);
    workplace.start("agent", "--kind", "count", "--exec", "wc -w");
    const { stdout } = await workplace.run("submit", "--kind", "count", "--text", "a b c", "--wait");
    expect(stdout).toContain("3");
    const text = await textOf(url);
    expect(sampleOf(text, "waggle_tasks_ended_total", { outcome: "completed" })).toBe(1);
    expect(sampleOf(text, "waggle_task_run_seconds_count", { kind: "count" })).toBe(1);
    expect(sampleOf(text, "waggle_coordinator_role", { role: "leading" })).toBe(1);
    expect(sampleOf(text, "waggle_journal_append_seconds_count")).toBeGreaterThan(1);
    expect((await leader.kill("SIGTERM")).code).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });

  it("is refused a port of a running coordinator, before any start", async () => {
    const address = new URL(await urlOf(leader)).host;
    const { code, stderr, stdout } = await workplace.run("up", "--metrics", address);
    expect(stderr).toMatch(
      new RegExp(
        `^error WAGGLE_INVALID_CONFIG: metrics: ${address} is in use by another process; give --metrics`,
      ),
    );
    expect([code, stdout]).toEqual([2, ""]);
  });
});

describe("a wrong command line", () => {
  it.each([
    [["--metrics", "9464"], /--metrics: must be HOST:PORT, .* like 127\.0\.0\.1:9464 .*, not "9464"/],
    [["--metrics", "127.0.0.1:70000"], /--metrics: must be HOST:PORT, .*, not "127\.0\.0\.1:70000"/],
    [["--metrics", "192.0.2.1:9464"], /192\.0\.2\.1:9464 is no address of this machine/],
    [["--metrics-by-agent"], /--metrics-by-agent needs --metrics HOST:PORT/],
  ])("%j is refused", async (flags, sentence) => {
    workplace = await Workplace.make();
    const { code, stderr } = await workplace.run("up", ...flags);
    expect(stderr).toMatch(sentence);
    expect(code).toBe(2);
  });
});

it("an address of all interfaces is served, with a warning", async () => {
  workplace = await Workplace.make();
  const leader = workplace.start("up", "--metrics", "0.0.0.0:0");
  await leader.says("the metrics can be read from other machines");
});

describe.skipIf(server === undefined)("a standby", () => {
  it("shows role, term and lag, and the swarm once it leads", async () => {
    workplace = await Workplace.make(server?.path);
    const leader = workplace.start("up", "--leader-timeout", "1s");
    await leader.says("leading");
    const standby = workplace.start("up", "--leader-timeout", "1s", "--metrics", "127.0.0.1:0");
    await standby.says("standing by");
    const url = await urlOf(standby);
    const swarm = await connect({ dataFolder: workplace.dataFolder });
    await swarm.submit({ kind: "nobody" });
    await expect.poll(async () => sampleOf(await textOf(url), "waggle_journal_lag_batches")).toBe(0);
    const before = await textOf(url);
    expect(sampleOf(before, "waggle_coordinator_role", { role: "standing-by" })).toBe(1);
    expect(sampleOf(before, "waggle_coordinator_term")).toBe(1);
    expect(sampleOf(before, "waggle_tasks", { state: "queued" })).toBeUndefined();
    await leader.kill("SIGKILL");
    await standby.says("leading");
    await expect
      .poll(async () => sampleOf(await textOf(url), "waggle_tasks", { state: "queued" }), { timeout: 10_000 })
      .toBe(1);
    expect(sampleOf(await textOf(url), "waggle_coordinator_term")).toBe(2);
    await swarm.close();
  });
});
