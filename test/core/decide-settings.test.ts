// Operators' settings: a patch changes only its fields, the complete result is journaled once, and an invalid value is
// answered with the field and changes nothing.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command, SettingsCommand } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import type {
  KindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "../../src/core/settings-patch.ts";
import { kind, projectId, resourceName, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { defaultPolicy, ruleSets } from "../../src/state/policy.ts";
import { defaultProjectSettings } from "../../src/state/state.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";
import { join, submit, Turns } from "../support/turns.ts";

const policy = (patch: PolicyPatch): Command => ({ type: "SetPolicy", patch });
const project = (patch: ProjectPatch, name = "p"): Command => ({
  type: "SetProject",
  project: projectId(name),
  patch,
});
const { tokensPerAttemptMax: attemptMax } = limits;
const ofKind = (patch: KindPatch, name = "k"): Command => ({ type: "SetKind", kind: kind(name), patch });
const resource = (patch: ResourcePatch, name = "gpt"): Command => ({
  type: "SetResource",
  resource: resourceName(name),
  patch,
});
const rate = (patch: RatePatch): Command => ({ type: "SetRate", agentType: "claude", patch });
const pause = (name?: string): SettingsCommand => ({
  type: "Pause",
  ...(name === undefined ? {} : { project: projectId(name) }),
});
const resume = (name?: string): SettingsCommand => ({ ...pause(name), type: "Resume" });

const hour = 3_600_000;

/** The reply to a command that must change nothing. */
function refusal(turns: Turns, command: Command) {
  const before = fingerprint(turns.state);
  const { events, reply } = decide(turns.state, command, turns.at);
  expect(events).toEqual([]);
  expect(fingerprint(turns.state)).toBe(before);
  return reply;
}

/** The number of events that a turn of these commands journals. */
function journaled(turns: Turns, ...commands: Command[]): number {
  const before = turns.events.length;
  turns.turn(...commands);
  return turns.events.length - before;
}

describe("a patch", () => {
  it("changes its fields, journals the complete settings, and is answered with the settings", () => {
    const turns = new Turns();
    const [first] = turns.turn(project({ creditWeight: 2, maxConcurrent: 4 }));
    const [second] = turns.turn(project({ budget: { tokens: 1_000, windowMs: hour }, maxConcurrent: null }));
    expect(first).toEqual({
      kind: "set",
      changed: true,
      settings: { ...defaultProjectSettings, creditWeight: 2, maxConcurrent: 4 },
    });
    const settings = {
      creditWeight: 2,
      budget: { tokens: 1_000, windowMs: hour, mode: "wait" },
      queueMax: limits.queuedTasksPerProjectMax,
    };
    expect(second).toEqual({ kind: "set", changed: true, settings });
    expect(turns.last("ProjectConfigured")).toEqual({ type: "ProjectConfigured", project: "p", settings });
    expect(turns.state.projectById.get(projectId("p"))?.settings).toEqual(settings);

    turns.turn(project({ budget: { mode: "alert" }, queueMax: 7 }));
    expect(turns.last("ProjectConfigured").settings).toEqual({
      ...settings,
      budget: { ...settings.budget, mode: "alert" },
      queueMax: 7,
    });
    turns.turn(project({ budget: null, queueMax: null }));
    expect(turns.last("ProjectConfigured").settings).toEqual({
      creditWeight: 2,
      queueMax: limits.queuedTasksPerProjectMax,
    });
  });

  it("sets what the journal keeps of results, and `whole` is the default again", () => {
    const turns = new Turns();
    turns.turn(project({ results: "hash" }));
    expect(turns.last("ProjectConfigured").settings).toEqual({ ...defaultProjectSettings, results: "hash" });
    turns.turn(project({ creditWeight: 3 }));
    expect(turns.last("ProjectConfigured").settings).toMatchObject({ creditWeight: 3, results: "hash" });
    turns.turn(project({ results: "whole" }));
    expect(turns.last("ProjectConfigured").settings).toEqual({ ...defaultProjectSettings, creditWeight: 3 });
    expect(turns.turn(project({ results: "whole" }))).toMatchObject([{ changed: false }]);
  });

  it("that changes nothing is not journaled, and the reply says so", () => {
    const turns = new Turns();
    turns.turn(
      project({ budget: { tokens: 5, windowMs: hour } }),
      ofKind({ importance: 3 }),
      resource({ slots: 2 }),
      rate({ window: "per_hour", tokensMax: 9 }),
      policy({ topN: 3 }),
      pause(),
      pause("q"),
    );
    const same = [
      project({}),
      project({ creditWeight: 1, budget: { tokens: 5, windowMs: hour, mode: "wait" } }),
      ofKind({ importance: 3 }),
      ofKind({}, "untouched"),
      resource({ maxWaiters: limits.waitersPerResourceMax }),
      rate({ window: "per_hour", sliding: false }),
      policy({}),
      policy({ rules: "waggle", topN: 3, optimizeFor: "balanced" }),
      pause(),
      pause("q"),
      resume("never-paused"),
      { type: "RemoveRate", agentType: "other" } as const,
      { type: "RemoveProject", project: projectId("other") } as const,
      { type: "RemoveResource", resource: resourceName("other") } as const,
    ];
    expect(journaled(turns, ...same)).toBe(0);
    for (const command of same)
      expect(refusal(turns, command)).toMatchObject({ kind: "set", changed: false });
  });

  it("for an unknown project makes the project exist, even with the defaults", () => {
    const turns = new Turns();
    expect(journaled(turns, project({}))).toBe(1);
    expect(turns.last("ProjectConfigured").settings).toEqual(defaultProjectSettings);
  });

  it("of a rate, a resource and a kind keeps the values of earlier patches", () => {
    const turns = new Turns();
    turns.turn(
      rate({ window: "per_minute", tokensMax: 10 }),
      resource({ slots: 3 }),
      ofKind({ cheaper: kind("l") }),
    );
    expect(turns.last("RateConfigured").settings).toEqual({
      window: "per_minute",
      tokensMax: 10,
      sliding: false,
    });
    expect(turns.last("ResourceConfigured").settings).toEqual({
      slots: 3,
      maxWaiters: limits.waitersPerResourceMax,
    });
    expect(turns.last("KindConfigured").settings).toEqual({ importance: 1, cheaper: "l" });
    turns.turn(ofKind({ cheaperType: "haiku" }));
    const both = { importance: 1, cheaper: "l", cheaperType: "haiku" };
    expect(turns.last("KindConfigured").settings).toEqual(both);
    turns.turn(
      rate({ window: "per_minute", sliding: true }),
      ofKind({ importance: 2, cheaper: null, cheaperType: null }),
    );
    expect(turns.last("RateConfigured").settings).toMatchObject({ tokensMax: 10, sliding: true });
    expect(turns.last("KindConfigured").settings).toEqual({ importance: 2 });
    expect(turns.turn({ type: "RemoveRate", agentType: "claude" })).toEqual([
      { kind: "set", settings: null, changed: true },
    ]);
    expect(turns.state.ratesByType.size).toBe(0);
  });

  it("of a rate sets a single window of a type, and other windows stay; removes a single window, or all", () => {
    const turns = new Turns();
    const windows = () => turns.state.ratesByType.get("claude")?.map(({ settings }) => settings.window);
    turns.turn(
      rate({ window: "per_day", tokensMax: 100 }),
      rate({ window: "per_minute", tokensMax: 10 }),
      rate({ window: "per_hour", tokensMax: 50 }),
    );
    expect(windows()).toEqual(["per_minute", "per_hour", "per_day"]);
    turns.turn(rate({ window: "per_hour", tokensMax: 60 }));
    expect(turns.state.ratesByType.get("claude")?.map(({ settings }) => settings.tokensMax)).toEqual([
      10, 60, 100,
    ]);
    const remove = (window?: "per_hour"): Command => ({
      type: "RemoveRate",
      agentType: "claude",
      ...(window === undefined ? {} : { window }),
    });
    expect(journaled(turns, remove("per_hour"), remove("per_hour"))).toBe(1);
    expect(windows()).toEqual(["per_minute", "per_day"]);
    expect(journaled(turns, remove(), remove())).toBe(2);
    expect(windows()).toBeUndefined();
  });
});

describe("a project that is removed", () => {
  const remove: Command = { type: "RemoveProject", project: projectId("p") };

  it("has no settings any more, and is unknown where projects must be declared", () => {
    const turns = new Turns();
    turns.turn(policy({ projects: "declared" }), project({ budget: { tokens: 5, windowMs: hour } }));
    expect(turns.turn(remove)).toEqual([{ kind: "set", settings: null, changed: true }]);
    expect(turns.last("ProjectRemoved")).toEqual({ type: "ProjectRemoved", project: "p" });
    expect(turns.state.projectById.get(projectId("p"))?.settings).toBeUndefined();
    expect(turns.state.budgetedProjects.size).toBe(0);
    expect(refusal(turns, submit())).toEqual({ kind: "unknown-project", project: "p" });
    turns.turn(project({}));
    expect(turns.turn(submit())).toMatchObject([{ kind: "accepted" }]);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("stays while it has tasks in any state, and keeps its pause", () => {
    const turns = new Turns();
    const t1 = submit({ id: taskId("t1") });
    turns.turn(project({ maxConcurrent: 1 }), t1, submit({ id: taskId("t2") }), join("a1"));
    expect(refusal(turns, remove)).toEqual({ kind: "project-in-use", project: "p", live: 2 });
    for (const task of ["t1", "t2"])
      turns.turn({ type: "CancelTask", project: projectId("p"), task: taskId(task), round: 1 });
    expect(turns.turn(pause("p"), remove)).toMatchObject([{ changed: true }, { changed: true }]);
    expect(turns.state.projectById.get(projectId("p"))).toMatchObject({ isPaused: true });
  });
});

describe("α of a resource", () => {
  const own = (turns: SlotTurns) => turns.resource("gpt").settings.ownAlpha;

  it("is the policy's until set, and keeps values that later patches leave out", () => {
    const turns = new SlotTurns();
    turns.turn(resource({ slots: 1 }));
    expect(own(turns)).toBeUndefined();
    for (const [patch, value, autoTune] of [
      [{ optimizeFor: "latency" }, 0, false],
      [{ slots: 3 }, 0, false],
      [{ autoTune: true }, 0, true],
      [{ alpha: 0.3 }, 0.3, true],
      [{ autoTune: false, alpha: 0.9 }, 0.9, false],
      [{ maxWaiters: 5 }, 0.9, false],
    ] as const satisfies readonly (readonly [ResourcePatch, number, boolean])[]) {
      turns.turn(resource(patch));
      expect(own(turns)).toEqual({ value, autoTune });
    }
    turns.turn(resource({ alpha: null }));
    expect(turns.resource("gpt").settings).toEqual({ slots: 3, maxWaiters: 5 });
    expect(journaled(turns, resource({ alpha: null }))).toBe(0);
  });

  it("takes open values of its first patch from the policy, and does not follow the policy from then on", () => {
    const turns = new SlotTurns();
    turns.turn(policy({ alpha: 0.4 }), resource({ slots: 1, autoTune: true }));
    turns.turn(policy({ alpha: 0.1, autoTune: true }));
    expect(own(turns)).toEqual({ value: 0.4, autoTune: true });
    turns.turn(resource({ slots: 1, alpha: 0.2 }, "other"));
    expect(turns.resource("other").settings.ownAlpha).toEqual({ value: 0.2, autoTune: true });
  });
});

describe("a resource that is removed", () => {
  const remove: Command = { type: "RemoveResource", resource: resourceName("gpt") };

  it("is unknown from then on, and starts from zero when set again", () => {
    const turns = SlotTurns.of({ gpt: 1 }, "a1");
    turns.turn(acquire("a1-x", "gpt"), release("a1-x"));
    expect(turns.resource("gpt")).toMatchObject({ tick: 1, grants: 1 });
    const [removed, asked] = turns.turn(remove, acquire("a1-y", "gpt"));
    expect(removed).toEqual({ kind: "set", settings: null, changed: true });
    expect(asked).toMatchObject({ kind: "unknown-resource", resource: "gpt" });
    expect(turns.last("ResourceRemoved")).toEqual({ type: "ResourceRemoved", resource: "gpt" });
    expect(refusal(turns, resource({ maxWaiters: 3 }))).toMatchObject({ field: "slots" });
    turns.turn(resource({ slots: 2 }));
    expect(turns.resource("gpt")).toMatchObject({ tick: 0, grants: 0, settings: { slots: 2 } });
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("stays while slots of it are held, or waited for as part of a set", () => {
    const turns = SlotTurns.of({ gpt: 3, other: 1 }, "a1", "a2");
    turns.turn(acquire("a1-x", ["gpt", "gpt"]), acquire("a1-y", "other"), acquire("a2-z", ["gpt", "other"]));
    expect(refusal(turns, remove)).toEqual({
      kind: "resource-in-use",
      resource: "gpt",
      inUse: 2,
      waiting: 1,
    });
    turns.turn(release("a1-x"));
    expect(refusal(turns, remove)).toMatchObject({ kind: "resource-in-use", inUse: 0, waiting: 1 });
    turns.turn(release("a2-z"));
    expect(turns.turn(remove)).toMatchObject([{ kind: "set", changed: true }]);
  });
});

describe("the policy", () => {
  it.each(["waggle", "budget", "loco", "vapora", "lucio"] as const)(
    "%s expands to its rule set, and single settings beside it win",
    (rules) => {
      const turns = new Turns();
      turns.turn(policy({ lambda: 2, topN: 9, alpha: 0.4 }));
      turns.turn(policy({ rules }));
      const { topN, alpha, ...rest } = turns.state.policy;
      expect(rest).toMatchObject({ ...ruleSets[rules], rules });
      expect([topN, alpha]).toEqual([9, 0.4]);
      turns.turn(policy({ rules, lambda: 0.5, userTurn: "recency" }));
      expect(turns.state.policy).toMatchObject({
        ...ruleSets[rules],
        rules,
        lambda: 0.5,
        userTurn: "recency",
      });
    },
  );

  it("warns that the policy's α does not reach resources with their own α", () => {
    const turns = new Turns();
    const warningsOf = (patch: PolicyPatch) =>
      (turns.turn(policy(patch))[0] as { warnings?: readonly string[] }).warnings;
    turns.turn(resource({ slots: 1 }), resource({ slots: 1 }, "other"));
    expect(warningsOf({ alpha: 0.1 })).toBeUndefined();
    turns.turn(resource({ alpha: 0 }));
    expect(warningsOf({ alpha: 0.2 })).toEqual([expect.stringMatching(/an α of their own keep it \(gpt\)/)]);
    turns.turn(resource({ alpha: 0 }, "other"));
    expect(warningsOf({ autoTune: true })).toEqual([expect.stringMatching(/\(gpt and 1 more\)/)]);
    expect(warningsOf({ lambda: 1 })).toBeUndefined();
  });

  it("takes α as a preset or as a number, and tunes α only when asked", () => {
    const turns = new Turns();
    for (const [patch, alpha] of [
      [{ optimizeFor: "throughput" }, 0.5],
      [{ autoTune: true }, 0.5],
      [{ rules: "loco" }, 0.5],
      [{ optimizeFor: "latency", autoTune: false }, 0],
      [{ alpha: 1 }, 1],
    ] as const satisfies readonly (readonly [PolicyPatch, number])[]) {
      turns.turn(policy(patch));
      expect(turns.state.policy.alpha).toBe(alpha);
    }
    expect(refusal(turns, policy({ autoTune: true }))).toMatchObject({ field: "alpha" });
  });

  it("loses its limits with null", () => {
    const turns = new Turns();
    turns.turn(policy({ topN: 3, budget: { tokens: 5, windowMs: hour, mode: "alert" } }));
    turns.turn(policy({ topN: null, budget: null }));
    expect(turns.state.policy).toEqual(defaultPolicy);
  });
});

describe("an invalid setting", () => {
  const nan = Number.NaN;
  const budget = (tokens: number) => ({ tokens, windowMs: hour });
  it.each<[what: string, command: Command, field: string]>([
    ["a credit weight of 0", project({ creditWeight: 0 }), "creditWeight"],
    ["a negative credit weight", project({ creditWeight: -1 }), "creditWeight"],
    ["a credit weight that is none", project({ creditWeight: nan }), "creditWeight"],
    ["a credit weight without end", project({ creditWeight: Number.POSITIVE_INFINITY }), "creditWeight"],
    ["max concurrent 0", project({ maxConcurrent: 0 }), "maxConcurrent"],
    ["half an attempt", project({ maxConcurrent: 1.5 }), "maxConcurrent"],
    ["max concurrent that is none", project({ maxConcurrent: nan }), "maxConcurrent"],
    ["no queue", project({ queueMax: 0 }), "queueMax"],
    ["results kept in a way unknown", project({ results: "none" as "hash" }), "results"],
    ["a queue too long", project({ queueMax: limits.queuedTasksPerProjectMax + 1 }), "queueMax"],
    ["a budget of 0", project({ budget: budget(0) }), "budget.tokens"],
    ["a negative budget", project({ budget: budget(-5) }), "budget.tokens"],
    ["a budget that is none", project({ budget: budget(nan) }), "budget.tokens"],
    ["a budget beyond counting", project({ budget: budget(limits.tokensMax + 1) }), "budget.tokens"],
    ["a budget without tokens", project({ budget: { windowMs: hour } }), "budget.tokens"],
    ["a budget without a window", project({ budget: { tokens: 5 } }), "budget.windowMs"],
    ["a budget of an instant", project({ budget: { tokens: 5, windowMs: 1 } }), "budget.windowMs"],
    [
      "a budget in a mode unknown",
      project({ budget: { ...budget(5), mode: "beg" as "alert" } }),
      "budget.mode",
    ],
    ["an importance of 0", ofKind({ importance: 0 }), "importance"],
    ["an importance that is none", ofKind({ importance: nan }), "importance"],
    ["a kind cheaper than itself", ofKind({ cheaper: kind("k") }), "cheaper"],
    ["no slots", resource({ slots: 0 }), "slots"],
    ["a resource without slots", resource({ maxWaiters: 3 }), "slots"],
    ["slots that are none", resource({ slots: nan }), "slots"],
    ["fewer waiters than none", resource({ slots: 1, maxWaiters: -1 }), "maxWaiters"],
    ["a rate window of an unknown type", rate({ window: "per_year" as "per_day", tokensMax: 1 }), "window"],
    ["a rate without a window", rate({ tokensMax: 1 } as RatePatch), "window"],
    ["a rate without tokens", rate({ window: "per_day" }), "tokensMax"],
    ["a rate of 0", rate({ window: "per_day", tokensMax: 0 }), "tokensMax"],
    ["a rule set unknown", policy({ rules: "constructor" as "loco" }), "rules"],
    ["deficits of users", policy({ userTurn: "deficit" as "fifo" }), "userTurn"],
    ["clocks of users without turns of projects", policy({ projectTurn: "none" }), "projectTurn"],
    ["the same, beside a rule set", policy({ rules: "loco", userTurn: "clock" }), "userTurn"],
    ["no users' turn", policy({ userTurn: "none" as "fifo" }), "userTurn"],
    ["a projects' turn unknown", policy({ projectTurn: "luck" as "fifo" }), "projectTurn"],
    ["an agents' rule unknown", policy({ agentRule: "luck" as "score" }), "agentRule"],
    ["a negative λ", policy({ lambda: -0.1 }), "lambda"],
    ["a λ that is none", policy({ lambda: nan }), "lambda"],
    ["an exponent without a root", policy({ speedExponent: 0.3 }), "speedExponent"],
    ["α of a resource below 0", resource({ slots: 1, alpha: -0.01 }), "alpha"],
    ["α of a resource above 1", resource({ slots: 1, alpha: 1.01 }), "alpha"],
    ["α of a resource that is none", resource({ slots: 1, alpha: nan }), "alpha"],
    ["α of a resource with a preset", resource({ slots: 1, alpha: 0, optimizeFor: "latency" }), "alpha"],
    ["a resource's unknown preset", resource({ slots: 1, optimizeFor: "speed" as "latency" }), "optimizeFor"],
    ["a resource's auto-tune above its range", resource({ slots: 1, alpha: 0.51, autoTune: true }), "alpha"],
    ["auto-tune beside the policy's α", resource({ slots: 1, alpha: null, autoTune: true }), "autoTune"],
    [
      "a preset beside the policy's α",
      resource({ slots: 1, alpha: null, optimizeFor: "latency" }),
      "optimizeFor",
    ],
    ["α below 0", policy({ alpha: -0.01 }), "alpha"],
    ["α above 1", policy({ alpha: 1.01 }), "alpha"],
    ["α that is none", policy({ alpha: nan }), "alpha"],
    ["α with a preset", policy({ alpha: 0.25, optimizeFor: "balanced" }), "alpha"],
    ["a preset unknown", policy({ optimizeFor: "speed" as "latency" }), "optimizeFor"],
    ["auto-tune above its range", policy({ alpha: 0.6, autoTune: true }), "alpha"],
    ["a starvation limit below 0", policy({ starvationLimit: -1 }), "starvationLimit"],
    ["half a starvation limit", policy({ starvationLimit: 0.5 }), "starvationLimit"],
    ["a guarantee at once", policy({ guaranteeMs: 0 }), "guaranteeMs"],
    ["a top of 0", policy({ topN: 0 }), "topN"],
    ["a swarm's budget of 0", policy({ budget: budget(0) }), "budget.tokens"],
    ["tasks that use nothing", policy({ tokensDefault: 0 }), "tokensDefault"],
    ["more than one attempt may take", policy({ tokensDefault: attemptMax + 1 }), "tokensDefault"],
    ["projects that are neither", policy({ projects: "closed" as "open" }), "projects"],
  ])("%s is refused with its field, and changes nothing", (_, command, field) => {
    const turns = new Turns();
    expect(refusal(turns, command)).toMatchObject({ kind: "invalid-setting", field });
    turns.turn(
      project({ maxConcurrent: 2 }),
      project({ maxConcurrent: 2 }, "other"),
      ofKind({ importance: 2 }),
    );
    expect(refusal(turns, command)).toMatchObject({ kind: "invalid-setting", field });
  });

  it("no name is a kind before it is checked", () => {
    // @ts-expect-error: a plain string
    const patch: KindPatch = { cheaper: "l" };
    expect(patch).toEqual({ cheaper: kind("l") });
  });

  it("a circle of cheaper kinds names the circle", () => {
    const turns = new Turns();
    turns.turn(ofKind({ cheaper: kind("b") }, "a"), ofKind({ cheaper: kind("c") }, "b"));
    expect(refusal(turns, ofKind({ cheaper: kind("a") }, "c"))).toEqual({
      kind: "invalid-setting",
      field: "cheaper",
      sentence: "cheaper: a kind must not lead back to itself: c → a → b → c",
    });
    turns.turn(ofKind({ cheaper: null }, "b"), ofKind({ cheaper: kind("a") }, "c"));
    expect(turns.last("KindConfigured")).toMatchObject({ kind: "c", settings: { cheaper: "a" } });
  });

  it("one row above the maximum is refused", () => {
    const turns = new Turns();
    turns.turn(
      ...Array.from(
        { length: limits.ratesMax },
        (_, n): Command => ({
          type: "SetRate",
          agentType: `t${n}`,
          patch: { window: "per_day", tokensMax: 1 },
        }),
      ),
    );
    turns.turn(...Array.from({ length: limits.resourcesMax }, (_, n) => resource({ slots: 1 }, `r${n}`)));
    expect(refusal(turns, rate({ window: "per_day", tokensMax: 1 }))).toMatchObject({ field: "type" });
    expect(refusal(turns, resource({ slots: 1 }))).toMatchObject({ field: "resource" });
    expect(journaled(turns, resource({ slots: 2 }, "r0"))).toBe(1);
  });

  it("a project above the maximum is refused, set or paused, while no project can be evicted", () => {
    const turns = new Turns();
    for (let n = 0; n < limits.projectsMax; n += 2_500)
      turns.turn(...Array.from({ length: 2_500 }, (_, m) => project({}, `p${n + m}`)));
    expect(refusal(turns, project({}, "one-more"))).toMatchObject({ field: "project" });
    expect(refusal(turns, pause("one-more"))).toMatchObject({ field: "project" });
    expect(journaled(turns, pause("p0"), project({ creditWeight: 2 }, "p1"))).toBe(2);
  });
});

describe("pausing", () => {
  it("holds for one project or the swarm, until resumed", () => {
    const turns = new Turns();
    turns.turn(project({}));
    expect(turns.turn(pause("p"), pause())).toEqual([
      { kind: "set", settings: { project: "p", paused: true }, changed: true },
      { kind: "set", settings: { paused: true }, changed: true },
    ]);
    expect(turns.state.isPaused).toBe(true);
    expect(turns.state.projectById.get(projectId("p"))?.isPaused).toBe(true);
    expect(journaled(turns, resume("p"), resume())).toBe(2);
    expect(turns.state.isPaused).toBe(false);
    expect(turns.state.projectById.get(projectId("p"))?.isPaused).toBe(false);
  });

  it("an unknown project where projects are declared is refused; one with tasks is known", () => {
    const turns = new Turns();
    turns.turn(submit({ project: projectId("with-tasks") }), project({}, "declared"));
    turns.turn(policy({ projects: "declared" }));
    for (const command of [pause("typo"), resume("typo")])
      expect(refusal(turns, command)).toEqual({ kind: "unknown-project", project: "typo" });
    expect(journaled(turns, pause("declared"), pause("with-tasks"))).toBe(2);
  });
});

describe("a setting below the present use", () => {
  it("is accepted, and takes nothing away", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 4 }), resource({ slots: 4 }));
    turns.turn(...[1, 2, 3].map((n) => submit({ id: taskId(`t${n}`) })));
    const open = turns.agent("a1").open.size;
    expect(open).toBe(3);
    const replies = turns.turn(
      project({ maxConcurrent: 1, budget: { tokens: 1, windowMs: hour }, queueMax: 1 }),
      policy({ topN: 1, budget: { tokens: 1, windowMs: hour } }),
      resource({ slots: 1 }),
      pause(),
    );
    expect(replies.every((reply) => reply.kind === "set" && reply.changed)).toBe(true);
    expect(turns.agent("a1").open.size).toBe(open);
    for (const n of [1, 2, 3]) turns.turn(turns.report(`t${n}`, { kind: "completed", result: "" }));
    expect(turns.state.counts.completed).toBe(3);
  });
});

it("any settings in any order: repeating one changes nothing, and a replay gives the same state", () => {
  const number = fc.oneof(
    fc.constantFrom(0, 1, 2, 0.25, 0.5, -1, Number.NaN, 1_000, 1e13),
    fc.integer({ min: 1, max: 10_000 }),
  );
  const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
  const limit = fc.option(optional(number), { nil: null });
  const budget = fc.option(
    fc.record({
      tokens: optional(number),
      windowMs: optional(number),
      mode: optional(fc.constant("alert" as const)),
    }),
    { nil: null },
  );
  const names = fc.constantFrom("a", "b", "c");
  const word: fc.Arbitrary<Command> = fc.oneof(
    fc
      .tuple(
        fc.record({ creditWeight: optional(number), maxConcurrent: limit, budget, queueMax: limit }),
        names,
      )
      .map(([patch, name]) => project(patch, name)),
    fc
      .tuple(
        fc.record({
          importance: optional(number),
          cheaper: fc.option(names.map(kind)),
          cheaperType: fc.option(names),
        }),
        names,
      )
      .map(([patch, name]) => ofKind(patch, name)),
    fc
      .tuple(
        fc.record({
          slots: optional(number),
          alpha: optional(fc.option(number)),
          autoTune: optional(fc.boolean()),
        }),
        names,
      )
      .map(([patch, name]) => resource(patch, name)),
    fc
      .record({
        rules: optional(fc.constantFrom("waggle", "budget", "loco", "lucio")),
        alpha: optional(number),
        autoTune: optional(fc.boolean()),
        lambda: optional(number),
        topN: limit,
        budget,
      })
      .map((patch) => policy(patch)),
    names.map((name) => pause(name)),
    names.map((name) => resume(name)),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), (words) => {
      const turns = new Turns();
      for (const each of words) {
        turns.turn(each);
        expect(journaled(turns, each)).toBe(0);
      }
      expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
    }),
    { numRuns: 300 },
  );
});

describe("warnings beside a setting", () => {
  const warningsOf = (turns: Turns, command: Command) => {
    const { reply } = decide(turns.state, command, turns.at);
    return reply.kind === "set" ? (reply.warnings ?? []) : [reply.kind];
  };
  const budget = { tokens: 5, windowMs: hour, mode: "downgrade" } as const;

  it("warns that downgrade limits nothing while no kind has a cheaper kind", () => {
    const turns = new Turns();
    for (const command of [project({ budget }), policy({ budget })])
      expect(warningsOf(turns, command)).toEqual([expect.stringContaining("without a cheaper kind or type")]);
    expect(warningsOf(turns, project({ budget: { ...budget, mode: "wait" } }))).toEqual([]);
    turns.turn(ofKind({ cheaper: kind("less") }));
    expect(warningsOf(turns, project({ budget }))).toEqual([]);
    turns.turn(ofKind({ cheaper: null, cheaperType: "haiku" }));
    expect(warningsOf(turns, project({ budget }))).toEqual([]);
    turns.turn(ofKind({ cheaperType: null }));
    expect(warningsOf(turns, project({ budget }))).toHaveLength(1);
  });

  it("warns of a cheaper type without an online agent for the kind", () => {
    const turns = new Turns();
    const cheaperType = "haiku";
    const none = "no agent of type haiku that serves k is online";
    expect(warningsOf(turns, ofKind({ cheaperType }))).toEqual([expect.stringContaining(none)]);
    turns.turn(
      join("a1", { agentType: "haiko" }),
      join("a2", { agentType: cheaperType, kinds: [kind("l")] }),
    );
    expect(warningsOf(turns, ofKind({ cheaperType }))).toEqual([expect.not.stringContaining("did you mean")]);
    expect(warningsOf(turns, ofKind({ cheaperType: "haika" }))).toEqual([
      expect.stringMatching(/did you mean haik[ou] or haik[ou]\?$/),
    ]);
    expect(warningsOf(turns, ofKind({ cheaper: kind("l"), cheaperType }))).toEqual([]);
    turns.turn(ofKind({ cheaper: kind("l") }));
    expect(warningsOf(turns, ofKind({ cheaperType }))).toEqual([]);
    expect(warningsOf(turns, ofKind({ cheaper: null, cheaperType }))).toHaveLength(1);
    turns.turn(join("a3", { agentType: cheaperType }));
    expect(warningsOf(turns, ofKind({ cheaper: null, cheaperType }))).toEqual([]);
    for (const patch of [{ cheaperType: null }, { importance: 2 }])
      expect(warningsOf(turns, ofKind(patch))).toEqual([]);
  });

  it("warns that lucio's rules have no TopN by themselves", () => {
    const turns = new Turns();
    expect(warningsOf(turns, policy({ rules: "lucio" }))).toEqual([expect.stringContaining("--top-n")]);
    expect(warningsOf(turns, policy({ rules: "lucio", topN: 4 }))).toEqual([]);
    expect(warningsOf(turns, policy({ rules: "loco" }))).toEqual([]);
  });

  it("warns that strict security answers nobody where no inbox user is named", () => {
    const turns = new Turns();
    const strict = policy({ security: "strict" });
    expect(warningsOf(turns, strict)).toEqual([
      expect.stringMatching(/for any project: .* set PROJECT --inbox/),
    ]);
    expect(warningsOf(turns, policy({ lambda: 1 }))).toEqual([]);
    turns.turn(project({}, "acme"), project({}, "blue"), project({ inboxUsers: ["ann"] }, "red"));
    expect(warningsOf(turns, strict)).toEqual([
      expect.stringMatching(/project acme and 1 more: .* set acme /),
    ]);
    turns.turn(project({ inboxUsers: ["ann"] }, "acme"), project({ inboxUsers: ["bob"] }, "blue"));
    expect(warningsOf(turns, strict)).toEqual([]);
    expect(warningsOf(turns, policy({ security: "open" }))).toEqual([]);
  });

  it("warns of unknown names, and suggests known names", () => {
    const turns = new Turns();
    turns.turn(project({}, "acme"), join("a1", { kinds: [kind("review")], agentType: "claude" }));
    expect(warningsOf(turns, pause("acmee"))).toEqual([expect.stringContaining("did you mean acme?")]);
    expect(warningsOf(turns, resume("zzzzzz"))).toEqual([expect.not.stringContaining("did you mean")]);
    expect(warningsOf(turns, ofKind({ importance: 2 }, "reveiw"))).toEqual([
      expect.stringContaining("review?"),
    ]);
    expect(warningsOf(turns, ofKind({ importance: 2 }, "translate"))).toEqual([]);
    const set = { type: "SetRate", patch: { window: "per_day", tokensMax: 5 } } as const;
    expect(warningsOf(turns, { ...set, agentType: "claud" })).toEqual([expect.stringContaining("claude?")]);
    const hold = { type: "PlaceHold", on: "type", forMs: 5_000 } as const;
    expect(warningsOf(turns, { ...hold, name: "claud" })).toEqual([expect.stringContaining("claude?")]);
    expect(warningsOf(turns, { ...hold, name: "typo-claud" })).toEqual([
      expect.stringMatching(/^no agent of type typo-claud joined so far/),
    ]);
    for (const command of [
      pause("acme"),
      { ...hold, name: "claude" },
      pause(),
      ofKind({ importance: 2 }, "review"),
      { ...set, agentType: "claude" },
    ])
      expect(warningsOf(turns, command)).toEqual([]);
  });
});
