// Accepted and refused submissions: declared projects, budgets that a task can never fit, and the bounds of a project
// and its users.

import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import type { PolicyPatch, ProjectPatch } from "../../src/core/settings-patch.ts";
import { instant, projectId, taskId, userId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { TaskSpec } from "../../src/state/event.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { join, submit, Turns } from "../support/turns.ts";

const policy = (patch: PolicyPatch): Command => ({ type: "SetPolicy", patch });
const project = (patch: ProjectPatch): Command => ({ type: "SetProject", project: projectId("p"), patch });
const hour = 3_600_000;

let made = 0;
/** A task with a fresh id. */
function one(user: string, overrides: Partial<TaskSpec> = {}): Command {
  made += 1;
  return submit({ id: taskId(`t${made}`), user: userId(user), ...overrides });
}
const several = (user: string, count: number) => Array.from({ length: count }, () => one(user));

function refusal(turns: Turns, command: Command) {
  const before = fingerprint(turns.state);
  const { events, reply } = decide(turns.state, command, turns.at);
  expect(events).toEqual([]);
  expect(fingerprint(turns.state)).toBe(before);
  return reply;
}
const isTaken = (turns: Turns, command: Command) =>
  decide(turns.state, command, turns.at).reply.kind === "accepted";

/** @param has the count under the bound, and the maximum */
const full = (reason: string, user: string, has: number, max: number) => ({
  kind: "refused",
  reason,
  project: "p",
  user,
  has,
  max,
  retryAfterMs: limits.retryAfterMs,
});

describe("a project's bound", () => {
  it("is the configured value; a known task is still a duplicate", () => {
    const turns = new Turns();
    const first = one("ann");
    turns.turn(project({ queueMax: 2 }), first, one("ann", { notBefore: instant(turns.at + hour) }));
    expect(refusal(turns, one("ann"))).toEqual(full("project-queue-full", "ann", 2, 2));
    expect(refusal(turns, first)).toMatchObject({ kind: "accepted", duplicate: true });
    expect(isTaken(turns, one("ann", { project: projectId("other") }))).toBe(true);
    turns.turn(project({ queueMax: 3 }));
    expect(isTaken(turns, one("ann"))).toBe(true);
  });

  it("set below the number of waiting tasks drops nothing and accepts nothing until the tasks fit", () => {
    const turns = new Turns();
    turns.turn(...several("ann", 4));
    turns.turn(project({ queueMax: 2 }));
    expect(turns.state.counts.queued).toBe(4);
    expect(refusal(turns, one("ann"))).toEqual(full("project-queue-full", "ann", 4, 2));
    turns.turn(join("a1", { maxConcurrent: 3 }));
    expect(isTaken(turns, one("ann"))).toBe(true);
  });

  it("holds a failed task until its retry, and refuses no retry", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 2 }), project({ queueMax: 1 }));
    turns.turn(one("ann"));
    const failing = turns.last("TaskAssigned").task;
    turns.turn(turns.report(failing, { kind: "failed", error: "no" }));
    expect(turns.state.counts).toMatchObject({ delayed: 1, queued: 0 });
    expect(refusal(turns, one("ann"))).toEqual(full("project-queue-full", "ann", 1, 1));
    turns.turn(project({ queueMax: 2 }));
    turns.turn(one("bob"));
    const other = turns.last("TaskAssigned").task;
    turns.turn(project({ queueMax: 1 }));
    turns.turn(turns.report(other, { kind: "failed", error: "no" }));
    expect(turns.state.counts.delayed).toBe(2);
    expect(refusal(turns, one("ann"))).toMatchObject({ has: 2, max: 1 });
  });

  it("does not count running tasks", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 5 }), project({ queueMax: 1 }));
    for (let n = 0; n < 5; n += 1) expect(turns.turn(one("ann"))).toMatchObject([{ kind: "accepted" }]);
    expect(turns.state.counts.assigned).toBe(5);
  });
});

describe("a user's share of it", () => {
  it("is the whole queue for the only waiting user", () => {
    const turns = new Turns();
    turns.turn(project({ queueMax: 10 }));
    for (let n = 0; n < 10; n += 1) expect(turns.turn(one("ann"))).toMatchObject([{ kind: "accepted" }]);
    expect(refusal(turns, one("ann"))).toEqual(full("project-queue-full", "ann", 10, 10));
  });

  it("beyond half of the queue is one more than the mean of the other waiting users", () => {
    const turns = new Turns();
    turns.turn(project({ queueMax: 10 }), ...several("ann", 3), ...several("bob", 2));
    // The other users of cid hold 2.5 in the mean.
    for (let n = 0; n < 3; n += 1) expect(turns.turn(one("cid"))).toMatchObject([{ kind: "accepted" }]);
    expect(refusal(turns, one("cid"))).toEqual(full("user-queue-full", "cid", 3, 3));
    expect(refusal(turns, one("ann"))).toEqual(full("user-queue-full", "ann", 3, 3));
    expect(isTaken(turns, one("bob"))).toBe(true);
    expect(isTaken(turns, one("dee"))).toBe(true);
  });

  it("is the same for equal users, up to the bound", () => {
    for (const [users, queueMax] of [
      [2, 7],
      [3, 10],
      [50, 1_000],
    ] as const) {
      const turns = new Turns();
      turns.turn(project({ queueMax }));
      for (let n = 0; n < queueMax; n += 1)
        expect(turns.turn(one(`u${n % users}`))).toMatchObject([{ kind: "accepted" }]);
      expect(refusal(turns, one("u0"))).toMatchObject({ reason: "project-queue-full", has: queueMax });
    }
  });

  it("ends a heavy user's submissions at half, and leaves the rest to lighter users", () => {
    const turns = new Turns();
    turns.turn(project({ queueMax: 100 }), one("bob"));
    let taken = 0;
    while (isTaken(turns, one("ann"))) {
      turns.turn(one("ann"));
      taken += 1;
    }
    expect(taken).toBe(49);
    expect(refusal(turns, one("ann"))).toEqual(full("user-queue-full", "ann", 49, 2));
    for (let n = 0; n < 47; n += 1) expect(turns.turn(one("bob"))).toMatchObject([{ kind: "accepted" }]);
    expect(refusal(turns, one("ann"))).toMatchObject({ reason: "user-queue-full", has: 49, max: 49 });
  });

  it("counts waiting tasks only: ended and running tasks free the share", () => {
    const turns = new Turns();
    turns.turn(project({ queueMax: 4 }), one("bob"), ...several("ann", 2));
    expect(refusal(turns, one("ann"))).toEqual(full("user-queue-full", "ann", 2, 2));
    const waiting = () => turns.state.projectById.get(projectId("p"))?.usersWaiting;
    expect(waiting()).toBe(2);
    turns.turn(join("a1", { maxConcurrent: 1 })); // bob's runs; ann waits alone
    expect(waiting()).toBe(1);
    expect(isTaken(turns, one("ann"))).toBe(true);
  });

  it("costs the same for any number of waiting users: ten thousand users are not read", () => {
    const turns = new Turns();
    turns.turn(
      project({ queueMax: 3_000 }),
      ...Array.from({ length: 2_000 }, (_, n) => one(`u${n}`)),
      one("u1"),
    );
    const row = turns.state.projectById.get(projectId("p"));
    if (row === undefined) throw new Error("no project p");
    let looked = 0;
    const userByName = new Proxy(row.userByName, {
      get(target, name) {
        looked += 1;
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const watched = { ...turns.state, projectById: new Map([[row.project, { ...row, userByName }]]) };
    expect(decide(watched, one("u1"), turns.at).reply).toEqual(full("user-queue-full", "u1", 2, 2));
    expect(looked).toBeLessThanOrEqual(2);
  });
});

describe("a hard budget", () => {
  it.each([
    ["project-budget", project({ budget: { tokens: 100, windowMs: hour } })],
    ["project-budget", project({ budget: { tokens: 100, windowMs: hour, mode: "reject" } })],
    ["global-budget", policy({ budget: { tokens: 100, windowMs: hour, mode: "wait" } })],
    ["global-budget", policy({ budget: { tokens: 100, windowMs: hour, mode: "reject" } })],
  ] as const)("(%s) refuses a task that could never fit", (reason, set) => {
    const turns = new Turns();
    turns.turn(set, policy({ tokensDefault: 90 }));
    expect(refusal(turns, one("ann", { tokens: 101 }))).toEqual({
      kind: "over-budget",
      reason,
      tokens: 101,
      source: "said",
      tokensMax: 100,
    });
    expect(isTaken(turns, one("ann", { tokens: 100 }))).toBe(true);
    expect(isTaken(turns, one("ann"))).toBe(true);
  });

  it("refuses alone: tasks pass in the other modes", () => {
    const turns = new Turns();
    for (const mode of ["alert", "downgrade"] as const) {
      turns.turn(project({ budget: { tokens: 100, windowMs: hour, mode } }));
      expect(isTaken(turns, one("ann", { tokens: 101 }))).toBe(true);
    }
  });
});

describe("a budget in mode reject", () => {
  const use = (turns: Turns, tokens: number) => {
    turns.turn(one("ann", { tokens }));
    turns.turn(turns.report(turns.last("TaskAssigned").task, { kind: "completed", result: "", tokens }));
  };

  it("names the budget that opens last where the project's and the swarm's are used up", () => {
    const turns = new Turns();
    turns.turn(
      join("a1", { maxConcurrent: 2 }),
      project({ budget: { tokens: 100, windowMs: 60_000, mode: "reject" } }),
      policy({ budget: { tokens: 100, windowMs: hour, mode: "reject" } }),
    );
    use(turns, 100);
    expect(refusal(turns, one("ann", { tokens: 1 }))).toMatchObject({
      kind: "budget-exceeded",
      reason: "swarm-budget-used-up",
      spent: 100,
      reserved: 0,
      isHeld: false,
    });
    turns.turn(policy({ budget: { mode: "wait" } }));
    expect(refusal(turns, one("ann", { tokens: 1 }))).toMatchObject({ reason: "project-budget-used-up" });
    turns.turn(project({ budget: { mode: "wait" } }));
    expect(isTaken(turns, one("ann", { tokens: 1 }))).toBe(true);
  });

  it("accepts a task without tokens, once nothing is exceeded", () => {
    const turns = new Turns();
    turns.turn(join("a1"), project({ budget: { tokens: 100, windowMs: hour, mode: "reject" } }));
    use(turns, 100);
    expect(isTaken(turns, one("ann", { tokens: 0 }))).toBe(true);
    turns.turn(project({ budget: { tokens: 99 } }));
    expect(refusal(turns, one("ann", { tokens: 0 }))).toMatchObject({ kind: "budget-exceeded", spent: 100 });
  });
});

describe("where projects are declared", () => {
  it("tasks of an unknown project are refused, and waiting tasks continue", () => {
    const turns = new Turns();
    turns.turn(one("ann"));
    turns.turn(policy({ projects: "declared" }));
    expect(refusal(turns, one("ann"))).toEqual({ kind: "unknown-project", project: "p" });
    turns.turn(join("a1"));
    expect(turns.state.counts.assigned).toBe(1);
    turns.turn(project({}));
    expect(isTaken(turns, one("ann"))).toBe(true);
    expect(refusal(turns, one("ann", { project: projectId("typo") }))).toEqual({
      kind: "unknown-project",
      project: "typo",
    });
  });
});
