// Operators' requests through the SDK, against a real coordinator: patches in, complete settings out. Values
// that JSON would change are never sent.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { RatePatch } from "../../src/core/settings-patch.ts";
import {
  InvalidMessageError,
  InvalidValueError,
  NoLeaderError,
  OutcomeUnknownError,
} from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { defaultProjectSettings } from "../../src/state/state.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";
import { aClient, watch } from "./client-fixture.ts";

describe("against a coordinator", () => {
  let there: TestSwarm;
  let swarm: Swarm;

  beforeEach(async () => {
    there = await startTestSwarm();
    swarm = await connect({ swarm: "test", transport: there.hub.connect() });
  });
  afterEach(async () => {
    await swarm.close();
    await there.stop();
  });

  it("each verb sets its fields, reports whether anything changed, and settings() reads all", async () => {
    const budget = { tokens: 100_000, windowMs: 3_600_000 };
    expect(await swarm.setProject("acme", { creditWeight: 2, budget })).toEqual({
      settings: { ...defaultProjectSettings, creditWeight: 2, budget: { ...budget, mode: "wait" } },
      changed: true,
      term: 1,
      idx: expect.any(Number),
    });
    expect(await swarm.setProject("acme", { budget: null })).toMatchObject({ changed: true });
    expect(await swarm.setProject("acme", { creditWeight: 2 })).toMatchObject({ changed: false });
    await swarm.setKind("opus", { importance: 3, cheaper: "haiku", cheaperType: "small" });
    await swarm.setResource("gpt-4o", { slots: 8 });
    await swarm.setRate("claude", { window: "per_minute", tokensMax: 10_000, sliding: true });
    await swarm.setPolicy({ rules: "lucio", topN: 7, optimizeFor: "latency" });
    await swarm.pause("acme");
    expect(await swarm.pause()).toMatchObject({ changed: true, settings: { paused: true } });

    expect(await swarm.settings()).toMatchObject({
      paused: true,
      policy: { rules: "lucio", userTurn: "recency", topN: 7, alpha: 0 },
      projects: [{ project: "acme", paused: true, settings: { creditWeight: 2 } }],
      kinds: [{ kind: "opus", settings: { importance: 3, cheaper: "haiku", cheaperType: "small" } }],
      resources: [{ resource: "gpt-4o", settings: { slots: 8, maxWaiters: limits.waitersPerResourceMax } }],
      rates: [{ type: "claude", settings: { window: "per_minute", tokensMax: 10_000, sliding: true } }],
    });
    expect(await swarm.status()).toMatchObject({
      paused: true,
      projects: [{ project: "acme", paused: true }],
    });

    expect(await swarm.removeRate("claude")).toMatchObject({ settings: null, changed: true });
    expect(await swarm.removeRate("claude")).toMatchObject({ settings: null, changed: false });
    expect(await swarm.removeResource("gpt-4o")).toMatchObject({ settings: null, changed: true });
    expect(await swarm.removeResource("gpt-4o")).toMatchObject({ settings: null, changed: false });
    expect(await swarm.resume()).toMatchObject({ changed: true, settings: { paused: false } });
    await swarm.resume("acme");
    const one = await swarm.settings({ name: "acme" });
    expect(one).toMatchObject({ paused: false, projects: [{ paused: false }], kinds: [], rates: [] });
    expect((await swarm.status()).paused).toBeUndefined();
  });

  it("a kind set back to the defaults no longer counts as set", async () => {
    await swarm.setKind("k", { importance: 2, cheaper: "l" });
    expect(await swarm.setKind("k", { importance: 1, cheaper: null })).toMatchObject({
      settings: { importance: 1 },
      changed: true,
    });
    expect((await swarm.settings()).kinds).toEqual([]);
    expect(await swarm.setKind("k", { importance: 1 })).toMatchObject({ changed: false });
  });

  it("a project with tasks stays, and the refusal says how many and what to do", async () => {
    await swarm.setProject("acme", {});
    const { id } = await swarm.submit({ kind: "k", project: "acme" });
    await expect(swarm.removeProject("acme")).rejects.toMatchObject({
      code: "WAGGLE_CONFLICT",
      field: "project",
      message: expect.stringMatching(/acme has 1 task that has not ended.*cancel/),
    });
    await swarm.cancel(id, { project: "acme" });
    expect(await swarm.removeProject("acme")).toMatchObject({ settings: null, changed: true });
    expect(await swarm.removeProject("acme")).toMatchObject({ changed: false });
    expect((await swarm.settings()).projects).toEqual([]);
  });

  it("a resource in use stays, and the refusal says how much of it and what to do", async () => {
    await swarm.setResource("gpt-4o", { slots: 1 });
    const held = await swarm.acquire("gpt-4o");
    const waiting = swarm.acquire("gpt-4o");
    await expect.poll(async () => (await swarm.status()).resources[0]?.waiting).toBe(1);
    await expect(swarm.removeResource("gpt-4o")).rejects.toMatchObject({
      code: "WAGGLE_CONFLICT",
      field: "resource",
      message: expect.stringMatching(/gpt-4o is in use.*1 slot is held, 1 request waits.*waggle status/),
    });
    await held.release();
    await (await waiting).release();
    await swarm.removeResource("gpt-4o");
    await expect(swarm.acquire("gpt-4o")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_RESOURCE" });
  });

  it("an error that only the coordinator can find comes back as InvalidValueError with the field", async () => {
    await swarm.setPolicy({ alpha: 0.75 });
    const wrong: [Promise<unknown>, string][] = [
      [swarm.setPolicy({ autoTune: true }), "alpha"],
      [swarm.setPolicy({ alpha: 0.25, optimizeFor: "balanced" }), "alpha"],
      [swarm.setKind("k", { cheaper: "k" }), "cheaper"],
      [swarm.setRate("t", { tokensMax: 5 } as RatePatch), "window"],
      [swarm.setResource("r", { maxWaiters: 3 }), "slots"],
    ];
    for (const [asked, field] of wrong) {
      const error = await asked.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(InvalidValueError);
      expect(error).toMatchObject({ code: "WAGGLE_INVALID_VALUE", field });
    }
    await swarm.setPolicy({ projects: "declared" });
    await expect(swarm.pause("typo")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_PROJECT" });
    await expect(swarm.submit({ kind: "k", project: "typo" })).rejects.toMatchObject({
      code: "WAGGLE_UNKNOWN_PROJECT",
      field: "project",
    });
    await swarm.setProject("typo", {});
    await expect(swarm.submit({ kind: "k", project: "typo" })).resolves.toMatchObject({
      id: expect.any(String),
    });
  });
});

describe("requests that are not sent", () => {
  it.each<[string, (swarm: Swarm) => Promise<unknown>, string]>([
    [
      "NaN, which would take a limit away",
      (to) => to.setProject("p", { maxConcurrent: Number.NaN }),
      "maxConcurrent",
    ],
    ["a budget of NaN", (to) => to.setPolicy({ budget: { tokens: Number.NaN } }), "budget.tokens"],
    ["infinity", (to) => to.setProject("p", { creditWeight: Number.POSITIVE_INFINITY }), "creditWeight"],
    ["a rate of NaN", (to) => to.setRate("t", { window: "per_day", tokensMax: Number.NaN }), "tokensMax"],
    ["a project that is none", (to) => to.setProject("_", {}), "project"],
    ["a pause of a project with a dot", (to) => to.pause("a.b"), "project"],
    ["a name with a space", (to) => to.settings({ name: "a b" }), "name"],
  ])("%s", async (_, ask, field) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const error = await ask(swarm).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidMessageError);
    expect(error).toMatchObject({ field });
    expect(leader.asked).toEqual([]);
  });

  it.each([null, "slots", ["slots"]])("invalid settings, from plain JavaScript: %j", async (patch) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const none = patch as unknown as object;
    const sets = [swarm.setPolicy(none), swarm.setProject("p", none), swarm.setKind("k", none)];
    for (const set of [...sets, swarm.setResource("r", none), swarm.setRate("t", none as RatePatch)])
      await expect(set).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE" });
    expect(leader.asked).toEqual([]);
  });

  it.each<[string, (swarm: Swarm, patch: object) => Promise<unknown>, object, string, string]>([
    [
      "a project's",
      (to, patch) => to.setProject("p", patch),
      { creditWieght: 2 },
      "creditWieght",
      "creditWieght: is unknown; did you mean creditWeight?",
    ],
    [
      "a budget's",
      (to, patch) => to.setProject("p", patch),
      { budget: { limit: 5 } },
      "budget.limit",
      "budget.limit: is unknown; did you mean tokens?",
    ],
    [
      "the swarm's budget's",
      (to, patch) => to.setPolicy(patch),
      { budget: { tokens: 5, colour: "red" } },
      "budget.colour",
      "budget.colour: is unknown; there are tokens, windowMs, mode",
    ],
    [
      "a rate's",
      (to, patch) => to.setRate("t", patch as RatePatch),
      { window: "per_day", tokens: 5 },
      "tokens",
      "tokens: is unknown; did you mean tokensMax?",
    ],
    [
      "a resource's",
      (to, patch) => to.setResource("r", patch),
      { remove: true },
      "remove",
      "remove: is unknown; there are slots, maxWaiters, alpha, optimizeFor, autoTune",
    ],
  ])("an unknown field, from plain JavaScript: %s", async (_, set, patch, field, message) => {
    const { swarm, leader } = await aClient();
    leader.start();
    await expect(set(swarm, patch)).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field, message });
    expect(leader.asked).toEqual([]);
  });

  it("an empty patch", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const sets = [
      swarm.setPolicy({}),
      swarm.setPolicy({ topN: undefined }),
      swarm.setKind("k", {}),
      swarm.setResource("r", {}),
      swarm.setRate("t", {} as RatePatch),
    ];
    for (const set of sets)
      await expect(set).rejects.toMatchObject({
        code: "WAGGLE_INVALID_MESSAGE",
        message: expect.stringContaining("name at least one setting: "),
      });
    expect(leader.asked).toEqual([]);
  });

  it("a value out of range, and the refusal names the range", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    await expect(swarm.setProject("p", { creditWeight: 0 })).rejects.toThrow(
      `creditWeight: must be at least ${limits.settingWeightMin}, not 0`,
    );
    expect(leader.asked).toEqual([]);
  });
});

it("a setting whose answer was lost is unknown, and may be made again", async () => {
  const { swarm, leader, clock } = await aClient();
  leader.start();
  leader.script = () => "silence";
  const asked = watch(swarm.setPolicy({ topN: 3 }));
  await clock.advance(limits.askTimeoutMs + limits.requestTimeoutMs + limits.askBackoffMsMax);
  expect(asked.error).toBeInstanceOf(OutcomeUnknownError);
  expect(leader.of("policy").length).toBeGreaterThan(1);
  expect(leader.of("policy")[0]?.body).toEqual({ v: 1, topN: 3 });
});

it("a transfer of the lead ends in time, although no leader begins", async () => {
  const { swarm, leader, clock } = await aClient();
  const status = await (async () => {
    const there = await startTestSwarm();
    const asked = await connect({ swarm: "test", transport: there.hub.connect() });
    const reported = await asked.status();
    await asked.close();
    await there.stop();
    return reported;
  })();
  leader.script = ({ verb }) => {
    if (verb === "transfer") return { ok: true, term: 1, idx: 5 };
    if (verb !== "query.status") return undefined;
    const answer = { ...status, leader: "c1", term: 1, stale: true };
    return new Promise((resolve) => void clock.after(limits.standbyAnswerMs, () => resolve(answer)));
  };
  leader.start();
  const moved = watch(swarm.transferLead({ timeoutMs: 2_000 }));
  await clock.advance(1_999);
  expect(moved.state).toBe("pending");
  await clock.advance(limits.standbyAnswerMs);
  expect(moved.error).toBeInstanceOf(NoLeaderError);
  expect((moved.error as Error).message).toMatch(
    /^c1 gave up the lead, and no coordinator took it over within 2 s/,
  );
  expect(leader.of("transfer")).toHaveLength(1);
});

describe("an impossible answer about a removal is no answer", () => {
  const answered = { ok: true, term: 1, idx: 2, changed: true };
  const settings = { window: "per_day", tokensMax: 5, sliding: false };

  it.each<[string, object, (swarm: Swarm) => Promise<unknown>]>([
    [
      "set, and without settings",
      { ...answered, settings: null },
      (to) => to.setRate("t", { window: "per_day", tokensMax: 5 }),
    ],
    ["removed, and with settings", { ...answered, settings }, (to) => to.removeRate("t")],
    [
      "a resource removed, and with settings, as of a coordinator that cannot",
      { ...answered, settings: { slots: 1, maxWaiters: 1 } },
      (to) => to.removeResource("r"),
    ],
  ])("%s", async (_, answer, ask) => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => answer;
    const asked = watch(ask(swarm));
    await clock.advance(limits.askTimeoutMs + limits.requestTimeoutMs + limits.askBackoffMsMax);
    expect(asked.error).toBeInstanceOf(OutcomeUnknownError);
    expect((asked.error as Error).message).toMatch(/the answer is invalid/);
  });
});
