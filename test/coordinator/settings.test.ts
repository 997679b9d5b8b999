// Operators' settings, over the wire: answered with the complete settings after the commit, journaled once, readable
// from leader and standby, and obeyed at submission.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { defaultPolicy } from "../../src/state/policy.ts";
import { defaultKindSettings, defaultProjectSettings } from "../../src/state/state.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

type Verb = Parameters<typeof subjects.operator>[0];

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
});
afterEach(() => swarm.stop());

const set = (verb: Verb, message: object = {}) => swarm.client.ask(subjects.operator(verb), message);
const settings = (query: object = {}) => swarm.client.ask(subjects.query("_", "settings"), query);
const hour = 3_600_000;

/** Events of the journal about settings. */
async function journaled(): Promise<unknown[]> {
  const { batches } = await swarm.client.ask(subjects.query("_", "journal"), {});
  return batches
    .flatMap(({ events }: { events: { type: string }[] }) => events)
    .filter(({ type }: { type: string }) => !/^(Term|Task|Agent)/.test(type));
}

describe("one setting a request", () => {
  it("is answered with the complete settings and where the journal stands", async () => {
    expect(await set("project", { project: "acme", creditWeight: 2 })).toEqual({
      ok: true,
      term: 1,
      idx: expect.any(Number),
      changed: true,
      settings: { ...defaultProjectSettings, creditWeight: 2 },
    });
    expect(await set("project", { project: "acme", maxConcurrent: 4, unknown: "ignored" })).toMatchObject({
      settings: { creditWeight: 2, maxConcurrent: 4 },
    });
    const again = await set("project", { v: 1, project: "acme", creditWeight: 2 });
    expect(again).toMatchObject({
      ok: true,
      changed: false,
      settings: { creditWeight: 2, maxConcurrent: 4 },
    });
    expect(await set("kind", { kind: "opus", importance: 2, cheaper: "haiku" })).toMatchObject({
      changed: true,
      settings: { importance: 2, cheaper: "haiku" },
    });
    expect(await set("resource", { resource: "gpt-4o", slots: 3 })).toMatchObject({
      settings: { slots: 3, maxWaiters: limits.waitersPerResourceMax },
    });
    expect(await set("rate", { type: "claude", window: "per_minute", tokensMax: 10_000 })).toMatchObject({
      settings: { window: "per_minute", tokensMax: 10_000, sliding: false },
    });
    expect(await set("rate", { type: "claude", remove: true })).toMatchObject({
      changed: true,
      settings: null,
    });
    expect(await set("project", { project: "acme", remove: true })).toMatchObject({
      changed: true,
      settings: null,
    });
    expect(await set("resource", { resource: "gpt-4o", remove: true })).toMatchObject({
      changed: true,
      settings: null,
    });
    expect(await set("resource", { resource: "gpt-4o", remove: true })).toMatchObject({ changed: false });
    expect(await set("policy", { rules: "loco", lambda: 0.5 })).toMatchObject({
      settings: { rules: "loco", projectTurn: "none", userTurn: "load", lambda: 0.5 },
    });
    expect(await set("pause", { project: "acme" })).toMatchObject({
      settings: { project: "acme", paused: true },
    });
    expect(await set("pause")).toMatchObject({ changed: true, settings: { paused: true } });
    expect(await set("resume")).toMatchObject({ changed: true, settings: { paused: false } });
    expect((await journaled()).map((event) => (event as { type: string }).type)).toEqual([
      "ProjectConfigured",
      "ProjectConfigured",
      "KindConfigured",
      "ResourceConfigured",
      "RateConfigured",
      "RateRemoved",
      "ProjectRemoved",
      "ResourceRemoved",
      "PolicyChanged",
      "ProjectPaused",
      "SwarmPaused",
      "SwarmResumed",
    ]);
  });
});

describe("settings", () => {
  it("are absent at first, and the defaults are shown", async () => {
    expect(await settings()).toEqual({
      term: 1,
      idx: expect.any(Number),
      at: expect.any(Number),
      paused: false,
      policy: defaultPolicy,
      projects: [],
      kinds: [],
      resources: [],
      rates: [],
      grants: [],
      defaults: { project: defaultProjectSettings, kind: defaultKindSettings },
    });
  });

  it("are listed whole, or by name; a project with tasks alone is listed only by name", async () => {
    await set("project", { project: "acme", budget: { tokens: 9, windowMs: hour } });
    await set("pause", { project: "paused" });
    await set("kind", { kind: "acme", importance: 3 });
    await set("resource", { resource: "gpt", slots: 1 });
    await set("rate", { type: "claude", window: "per_day", tokensMax: 5 });
    await swarm.client.submit([{ kind: "count" }], {}, "busy");
    expect(await settings()).toMatchObject({
      projects: [
        {
          project: "acme",
          paused: false,
          declared: true,
          settings: { budget: { tokens: 9, windowMs: hour, mode: "wait" } },
        },
        { project: "paused", paused: true, declared: false, settings: defaultProjectSettings },
      ],
      kinds: [{ kind: "acme", settings: { importance: 3 } }],
      resources: [{ resource: "gpt", settings: { slots: 1 } }],
      rates: [{ type: "claude", settings: { window: "per_day", tokensMax: 5, sliding: false } }],
    });
    const named = await settings({ name: "acme" });
    expect([named.projects.length, named.kinds.length, named.resources, named.rates]).toEqual([1, 1, [], []]);
    expect((await settings({ name: "busy" })).projects).toMatchObject([
      { project: "busy", paused: false, declared: false },
    ]);
  });

  it("is answered by leader and standby alike", async () => {
    await set("policy", { rules: "vapora", topN: 7 });
    await set("project", { project: "acme", creditWeight: 3 });
    await swarm.startAnother("c2");
    await clock.advance(limits.journalPollMs);
    const answers = swarm.client.listen<{ stale?: true; idx: number }>("_INBOX.all");
    swarm.client.transport.publish(subjects.query("_", "settings"), Buffer.from("{}"), "_INBOX.all");
    await clock.advance(limits.standbyAnswerMs);
    const [first, second] = answers.all;
    expect(second).toEqual({ ...first, stale: true });
    expect(first).toMatchObject({ policy: { rules: "vapora", topN: 7 }, projects: [{ project: "acme" }] });
  });

  it("are cut to fit a message, with counts of omitted rows", async () => {
    await swarm.stop();
    swarm = await startTestSwarm({ clock, hub: new MemoryHub({ clock, maxPayloadBytes: 64 * 1024 }) });
    for (let n = 0; n < 200; n += 1) await set("project", { project: `p${n}`, creditWeight: 2 });
    const answer = await settings();
    expect(answer.projects.length).toBeGreaterThan(50);
    expect(answer.omitted).toEqual({
      projects: 200 - answer.projects.length,
      kinds: 0,
      resources: 0,
      rates: 0,
      grants: 0,
    });
    expect((await settings({ name: "p199" })).projects).toHaveLength(1);
  });
});

describe("at the door", () => {
  it("an undeclared project, and an estimate above a budget, are refused by name", async () => {
    await set("policy", { projects: "declared" });
    const [unknown] = (await swarm.client.submit([{ kind: "count" }], {}, "typo")).answers;
    expect(unknown).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_PROJECT", field: "project" });
    expect(unknown.message).toContain("waggle project set typo");
    expect(await set("pause", { project: "typo" })).toMatchObject({
      code: "WAGGLE_UNKNOWN_PROJECT",
      field: "project",
    });
    await set("project", { project: "typo", budget: { tokens: 50, windowMs: hour } });
    const { answers } = await swarm.client.submit(
      [
        { kind: "count", tokens: 51 },
        { kind: "count", tokens: 50 },
      ],
      {},
      "typo",
    );
    expect(answers).toMatchObject([{ ok: false, code: "WAGGLE_OVER_BUDGET", field: "tokens" }, { ok: true }]);
    expect(answers[0].message).toContain("the estimate is 51 tokens, and the project's budget holds 50");
  });

  it("a user who would crowd out others is told when to try again, and the record sums refusals up", async () => {
    await set("project", { project: "default", queueMax: 6 });
    await swarm.client.submit([{ kind: "count", user: "bob" }]);
    const tasks = Array.from({ length: 4 }, () => ({ kind: "count", user: "ann" }));
    const { answers } = await swarm.client.submit(tasks);
    const refused = {
      ok: false,
      code: "WAGGLE_BACKPRESSURE",
      message: expect.stringContaining("user ann of project default has 2 tasks waiting"),
      retryAfterMs: limits.retryAfterMs,
    };
    expect(answers).toMatchObject([{ ok: true }, { ok: true }, refused, refused]);
    await clock.advance(limits.refusalSummaryMs + limits.pulseMs);
    const { batches } = await swarm.client.ask(subjects.query("_", "journal"), {});
    const events = batches.flatMap((batch: { events: { type: string }[] }) => batch.events);
    expect(events.filter(({ type }: { type: string }) => type === "TasksRefused")).toEqual([
      { type: "TasksRefused", project: "default", reason: "user-queue-full", count: 2 },
    ]);
  });
});
