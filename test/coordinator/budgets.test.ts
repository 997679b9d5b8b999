// Budgets over the wire: reported tokens are charged for every outcome, status shows them, and tasks that could never
// run are refused at submission.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
});
afterEach(() => swarm.stop());

const budget = (tokens: number, mode = "alert") => ({ tokens, windowMs: 60_000, mode });
const setProject = (settings: object) =>
  swarm.client.ask(subjects.operator("project"), { project: "default", ...settings });

/** A sixtieth of the window. */
const budgetStepMs = 1_000;

async function shownBudget(): Promise<unknown> {
  const { projects } = await swarm.client.status();
  return projects.find(({ project }: { project: string }) => project === "default")?.budget;
}

describe("a budget", () => {
  it("is charged with agents' reports, for every outcome", async () => {
    await setProject({ budget: budget(1_000) });
    const agent = await swarm.agent("a1", { kinds: ["k"], maxConcurrent: 4 });
    const outcomes = ["completed", "failed", "infrastructure", "invalid"];
    await swarm.client.submit(outcomes.map((id) => ({ id, kind: "k", maxAttempts: 1 })));
    for (const _ of outcomes) {
      const assignment = await agent.assignment();
      await agent.report(assignment, assignment.task, { tokens: 100, result: "", error: "" });
    }
    expect(await shownBudget()).toMatchObject({ spent: 400, tokens: 1_000, windowMs: 60_000, mode: "alert" });
  });

  it("is charged with the last report of a cancelled attempt, and with the late report of a lost attempt", async () => {
    await setProject({ budget: budget(1_000) });
    const agent = await swarm.agent("a1", { kinds: ["k"], maxConcurrent: 2 });
    await swarm.client.submit([
      { id: "cancelled", kind: "k" },
      { id: "lost", kind: "k" },
    ]);
    const [cancelled, lost] = [await agent.assignment(), await agent.assignment()];
    await swarm.client.ask(subjects.project("default", "cancel"), {
      tasks: [{ task: "cancelled", round: 1 }],
    });
    await agent.report(cancelled, "revoked", { tokens: 30 });
    await swarm.agent("a1", { kinds: ["k"], incarnation: "another" });
    for (let n = 0; n < 2; n += 1) {
      const { answers } = await agent.report(lost, "completed", { result: "", tokens: 70 });
      expect(answers).toEqual([{ ok: true, status: "stale" }]);
    }
    expect(await shownBudget()).toMatchObject({ spent: 100 });
  });

  it("falls in status as time passes", async () => {
    await setProject({ budget: budget(1_000) });
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    await swarm.client.submit([{ kind: "k" }]);
    await agent.report(await agent.assignment(), "completed", { result: "", tokens: 5 });
    expect(await shownBudget()).toMatchObject({ spent: 5 });
    await clock.advance(61_000);
    expect(await shownBudget()).toMatchObject({ spent: 0 });
  });

  it("of mode wait refuses at submission tasks that could never fit", async () => {
    await setProject({ budget: budget(1_000, "wait") });
    const { answers } = await swarm.client.submit([
      { kind: "k", tokens: 1_001 },
      { kind: "k", tokens: 1_000 },
    ]);
    expect(answers).toMatchObject([{ ok: false, code: "WAGGLE_OVER_BUDGET", field: "tokens" }, { ok: true }]);
    expect(answers[0].message).toMatch(/1,001 tokens, .* 1,000 .*could never run/);
  });
});

describe("a budget in mode reject", () => {
  it("refuses a submission while it is used up, says when it fits, and counts the refusals", async () => {
    await setProject({ budget: budget(1_000, "reject") });
    const agent = await swarm.agent("a1", { kinds: ["k"], maxConcurrent: 2 });
    await swarm.client.submit([{ id: "one", kind: "k", tokens: 1_000 }]);
    const one = await agent.assignment();
    const held = await swarm.client.submit([{ id: "early", kind: "k", tokens: 1 }]);
    expect(held.answers).toEqual([
      {
        ok: false,
        code: "WAGGLE_BUDGET_EXCEEDED",
        message: expect.stringContaining("Only the end of running attempts makes room"),
        retryAfterMs: limits.budgetRetryMs,
        budget: { project: "default", tokens: 1_000, windowMs: 60_000, spent: 0, reserved: 1_000, needed: 1 },
      },
    ]);
    await agent.report(one, "completed", { result: "", tokens: 900 });
    const { answers } = await swarm.client.submit([
      { id: "two", kind: "k", tokens: 100 },
      { id: "three", kind: "k", tokens: 101 },
      { kind: "k" },
      { id: "one", kind: "k", tokens: 1_000 },
    ]);
    expect(answers).toMatchObject([
      { ok: true },
      { ok: false, code: "WAGGLE_BUDGET_EXCEEDED", budget: { spent: 900, reserved: 0, needed: 101 } },
      { ok: false, code: "WAGGLE_BUDGET_EXCEEDED", budget: { needed: 900 } },
      { ok: true, duplicate: true },
    ]);
    expect(answers[1].message).toMatch(
      /^the budget of project default is used up: of 1,000 tokens in 1 min, 900 are spent and 0 reserved/,
    );
    expect(answers[2].message).toContain("900 tokens, the mean of its kind so far");
    const { retryAfterMs } = answers[1];
    await clock.advance(retryAfterMs - 1);
    const retry = async () => (await swarm.client.submit([{ id: "three", kind: "k", tokens: 101 }])).answers;
    expect(await retry()).toMatchObject([{ ok: false, retryAfterMs: 1 }]);
    await clock.advance(1);
    expect(await retry()).toMatchObject([{ ok: true }]);
    const { batches } = await swarm.client.ask(subjects.query("_", "journal"), {});
    const events = batches.flatMap((batch: { events: { type: string }[] }) => batch.events);
    const refusals = events.filter(({ type }: { type: string }) => type === "TasksRefused");
    expect(refusals.map(({ reason }: { reason: string }) => reason)).toContain("project-budget-used-up");
    expect(refusals.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).toBe(4);
  });

  it("makes accepted tasks wait, and fits no task above it", async () => {
    await swarm.client.submit([
      { id: "one", kind: "k", tokens: 600 },
      { id: "two", kind: "k", tokens: 600 },
    ]);
    await setProject({ budget: budget(1_000, "reject") });
    const agent = await swarm.agent("a1", { kinds: ["k"], maxConcurrent: 2 });
    expect((await agent.assignment()).task).toBe("one");
    expect((await swarm.client.explain("two")).waiting.obstacles).toMatchObject([
      { reason: "project-budget" },
    ]);
    const { answers } = await swarm.client.submit([{ kind: "k", tokens: 1_001 }]);
    expect(answers).toMatchObject([{ code: "WAGGLE_OVER_BUDGET" }]);
  });

  it("of the swarm refuses tasks of every project", async () => {
    await swarm.client.ask(subjects.operator("policy"), { budget: budget(999, "wait") });
    const waits = await swarm.client.submit([{ kind: "k" }]);
    expect(waits.answers[0].message).toContain("1,000 tokens, the default of a task that gives none");
    await swarm.client.ask(subjects.operator("policy"), { budget: budget(1_000, "reject") });
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    await swarm.client.submit([{ kind: "k" }]);
    await agent.assignment();
    const { answers } = await swarm.client.submit([{ kind: "k", tokens: 1 }]);
    expect(answers[0].message).toMatch(/^the swarm's budget is used up/);
    expect(answers[0].budget).not.toHaveProperty("project");
  });
});

it("status shows the swarm's budget, and the use of rates", async () => {
  expect(await swarm.client.status()).not.toHaveProperty("budget");
  await swarm.client.ask(subjects.operator("policy"), { budget: budget(9_000) });
  await swarm.client.ask(subjects.operator("rate"), { type: "claude", window: "per_minute", tokensMax: 100 });
  const { budget: global, rates } = await swarm.client.status();
  expect(global).toEqual({ spent: 0, reserved: 0, ...budget(9_000) });
  expect(rates).toEqual([
    { type: "claude", window: "per_minute", tokensMax: 100, sliding: false, used: 0, reserved: 0 },
  ]);
});

it("status says when spent tokens leave the windows of a budget and of a rate", async () => {
  await swarm.client.ask(subjects.operator("policy"), { budget: budget(9_000) });
  await swarm.client.ask(subjects.operator("rate"), { type: "claude", window: "per_minute", tokensMax: 100 });
  const agent = await swarm.agent("a1", { kinds: ["k"], type: "claude" });
  await swarm.client.submit([{ kind: "k" }]);
  await agent.report(await agent.assignment(), "completed", { result: "", tokens: 30 });
  const { at, budget: global, rates } = await swarm.client.status();
  expect(global.spent).toBe(30);
  expect(global.freesAt).toBeGreaterThan(at);
  expect(global.emptyAt).toBe(global.freesAt);
  expect(rates[0]).toMatchObject({ used: 30, freesAt: rates[0].emptyAt });
  expect(rates[0].freesAt - at).toBeGreaterThan(55_000);
  expect(rates[0].freesAt - at).toBeLessThanOrEqual(60_001);
});

describe("the planner", () => {
  it("has reserved the estimate also where no budget was set yet", async () => {
    const agent = await swarm.agent("a1", { kinds: ["k"] });
    await swarm.client.submit([{ kind: "k" }, { kind: "k", tokens: 30 }]);
    const [one, two] = [await agent.assignment(), await agent.assignment()];
    await setProject({ budget: budget(2_000, "wait") });
    expect(await shownBudget()).toMatchObject({ spent: 0, reserved: limits.tokensPerAttemptDefault + 30 });
    await agent.complete(one);
    await agent.complete(two);
    expect(await shownBudget()).toMatchObject({ spent: limits.tokensPerAttemptDefault + 30, reserved: 0 });
  });

  it("reserves estimates, makes tasks wait that do not fit, and wakes when the window has rolled", async () => {
    await setProject({ budget: budget(1_000, "wait") });
    const agent = await swarm.agent("a1", { kinds: ["k"], maxConcurrent: 4 });
    await swarm.client.submit([
      { id: "one", kind: "k", tokens: 600 },
      { id: "two", kind: "k", tokens: 600 },
    ]);
    const one = await agent.assignment();
    expect(await shownBudget()).toMatchObject({ spent: 0, reserved: 600 });
    await agent.report(one, "completed", { result: "", tokens: 500 });
    expect(await shownBudget()).toMatchObject({ spent: 500, reserved: 0 });
    const passMs = 60_000 + budgetStepMs;
    for (let passed = 0; passed < passMs; passed += budgetStepMs) {
      expect((await swarm.client.task("two")).state).toBe("queued");
      await clock.advance(budgetStepMs);
      await agent.heartbeat([], 1);
    }
    expect((await agent.assignment()).task).toBe("two");
    expect(await shownBudget()).toMatchObject({ spent: 0, reserved: 600 });
  });
});
