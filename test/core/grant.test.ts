// Grants bound what a group's agents may declare, be assigned, hold and charge. A changed grant also reaches agents
// that have joined: sessions beyond the grant end, and the leader takes their attempts and slots back.

import { describe, expect, it } from "vitest";
import type { Command, CommandOf } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import { Reproduction } from "../../src/core/reproduction.ts";
import { type GroupId, kind, projectId, resourceName, taskId } from "../../src/ids.ts";
import { type Batch, decodeRecord } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import type { Grant } from "../../src/state/grant.ts";
import { emptyState } from "../../src/state/state.ts";
import { acquire, SlotTurns } from "../support/slots.ts";
import { liveTask } from "../support/task-refs.ts";
import { join, submit } from "../support/turns.ts";

const gpu = "gpu" as GroupId;
const set = (grant: Grant, group = gpu): Command => ({ type: "SetGrant", group, grant });
const remove = (group = gpu): Command => ({ type: "RemoveGrant", group });
const joinGpu = (id: string, overrides: Partial<CommandOf<"JoinAgent">> = {}) =>
  join(id, { group: gpu, ...overrides });
const [acme, blue] = [projectId("acme"), projectId("blue")];

/** Types of the events that a turn of these commands journals. */
function typesOf(turns: SlotTurns, ...commands: Command[]): string[] {
  const before = turns.events.length;
  turns.turn(...commands);
  return turns.events.slice(before).map(({ type }) => type);
}

describe("a join beyond the grant of its group is refused with the field", () => {
  const grant: Grant = {
    kinds: [kind("k"), kind("l")],
    roles: ["reviewer"],
    types: ["claude"],
    labels: ["zone", "gpu=a100"],
    maxConcurrent: 2,
  };
  const fine = {
    agentType: "claude",
    role: "reviewer",
    labels: { zone: "any", gpu: "a100" },
    maxConcurrent: 2,
  };
  it.each<[string, Partial<CommandOf<"JoinAgent">>, string | undefined]>([
    ["kinds", { kinds: [kind("k"), kind("other")] }, "other"],
    ["roles", { role: "admin" }, "admin"],
    ["types", { agentType: "gpt" }, "gpt"],
    ["types", { agentType: undefined as never }, undefined],
    ["labels", { labels: { gpu: "h100" } }, "gpu=h100"],
    ["labels", { labels: { other: "x" } }, "other=x"],
    ["maxConcurrent", { maxConcurrent: 3 }, "3"],
  ])("%s", (field, overrides, value) => {
    const turns = new SlotTurns();
    turns.turn(set(grant));
    const reply = decide(turns.state, joinGpu("a1", { ...fine, ...overrides }), turns.at);
    expect(reply.events).toEqual([]);
    expect(reply.reply).toEqual({
      kind: "beyond-grant",
      group: gpu,
      field,
      ...(value === undefined ? {} : { value }),
    });
  });

  it("a join within the grant is accepted, and so is a group without a grant", () => {
    const turns = new SlotTurns();
    turns.turn(set(grant));
    turns.turn(joinGpu("a1", fine), join("a2", { kinds: [kind("other")], maxConcurrent: 9 }));
    expect([...turns.state.agentById.values()].map(({ online }) => online)).toEqual([true, true]);
  });

  it("where agents are declared, a group without a grant may not join", () => {
    const turns = new SlotTurns();
    turns.turn({ type: "SetPolicy", patch: { agents: "declared" } }, set({}));
    expect(decide(turns.state, join("a1"), turns.at).reply).toEqual({
      kind: "beyond-grant",
      group: "_",
      field: "group",
    });
    turns.turn(joinGpu("a2"), set({}, "_" as GroupId));
    turns.turn(join("a1"));
    expect([...turns.state.agentById.values()].map(({ online }) => online)).toEqual([true, true]);
  });

  it("a heartbeat cannot raise the maximum of concurrent tasks above the grant", () => {
    const turns = new SlotTurns();
    turns.turn(set({ maxConcurrent: 2 }), joinGpu("a1"));
    const heartbeat = { type: "ReconcileAgent", held: [], seen: 0 as never } as const;
    const session = { agent: "a1" as never, incarnation: "a1-1" as never };
    turns.turn({ ...heartbeat, ...session, maxConcurrent: 3 });
    expect(turns.agent("a1").maxConcurrent).toBe(1);
    turns.turn({ ...heartbeat, ...session, maxConcurrent: 2 });
    expect(turns.agent("a1").maxConcurrent).toBe(2);
  });
});

describe("assignments follow the grants' projects", () => {
  it("an agent gets no task of an excluded project, and agents with the project do", () => {
    const turns = new SlotTurns();
    turns.turn(set({ projects: [acme] }), joinGpu("a1", { maxConcurrent: 8 }));
    turns.turn(submit({ id: taskId("t1"), project: blue }), submit({ id: taskId("t2"), project: acme }));
    expect(liveTask(turns.state, "t1")?.state).toBe("queued");
    expect(liveTask(turns.state, "t2")?.open?.agent).toBe("a1");
    turns.turn(join("a2"));
    expect(liveTask(turns.state, "t1")?.open?.agent).toBe("a2");
    expect(turns.last("TaskAssigned").receipt.ineligible).toEqual({ "not-granted": 1 });
  });

  it("warns that no agent could have the task", () => {
    const turns = new SlotTurns();
    turns.turn(set({ projects: [acme] }), joinGpu("a1"));
    const warned = decide(turns.state, submit({ project: blue }), turns.at).reply;
    expect(warned).toMatchObject({ kind: "accepted", warnings: [{ code: "no-agent-serves-kind" }] });
    expect(decide(turns.state, submit({ project: acme }), turns.at).reply).toMatchObject({ warnings: [] });
  });

  it("a grant with a new project frees the project's waiting tasks", () => {
    const turns = new SlotTurns();
    turns.turn(set({ projects: [] }), joinGpu("a1"), submit({ id: taskId("t1"), project: blue }));
    expect(liveTask(turns.state, "t1")?.state).toBe("queued");
    turns.turn(set({ projects: [blue] }));
    expect(liveTask(turns.state, "t1")?.open?.agent).toBe("a1");
  });
});

describe("a changed grant reaches agents that have joined", () => {
  it("takes the attempts of an excluded project back, and asks the agent to join again", () => {
    const turns = new SlotTurns();
    turns.turn(joinGpu("a1"), submit({ id: taskId("t1"), project: blue }));
    expect(typesOf(turns, set({ projects: [acme] }))).toEqual([
      "GrantConfigured",
      "AttemptFailed",
      "AgentLeft",
    ]);
    expect(turns.last("AgentLeft").reason).toBe("forbidden");
    expect(turns.last("AttemptFailed").failure.class).toBe("lost");
    expect(liveTask(turns.state, "t1")?.state).toBe("queued");
    expect(turns.effects.at(-1)).toEqual({
      kind: "notify",
      agent: "a1",
      incarnation: "a1-1",
      what: "rejoin",
    });
  });

  it.each<[string, Grant, string | undefined]>([
    ["kinds", { kinds: [kind("l")] }, "k"],
    ["roles", { roles: [] }, "reviewer"],
    ["types", { types: ["gpt"] }, "claude"],
    ["labels", { labels: ["zone"] }, "gpu=a100"],
    ["maxConcurrent", { maxConcurrent: 1 }, "2"],
  ])("ends the session of an agent beyond %s, and tells it why", (field, grant, value) => {
    const turns = new SlotTurns();
    const profile = { agentType: "claude", role: "reviewer", labels: { gpu: "a100" }, maxConcurrent: 2 };
    turns.turn(joinGpu("a1", profile), join("a2", profile), submit({ id: taskId("t1") }));
    turns.turn(set(grant));
    expect([turns.agent("a1").online, turns.agent("a2").online]).toEqual([false, true]);
    expect(turns.effects.findLast(({ kind }) => kind === "notify")).toMatchObject({
      agent: "a1",
      what: "rejoin",
      refusal: { kind: "beyond-grant", group: gpu, field, value },
    });
    expect(liveTask(turns.state, "t1")?.open?.agent).toBe("a2");
  });

  it("ends no session that the new grant permits", () => {
    const turns = new SlotTurns();
    turns.turn(joinGpu("a1"), submit({ id: taskId("t1"), project: acme }));
    expect(typesOf(turns, set({ projects: [acme], kinds: [kind("k")] }))).toEqual(["GrantConfigured"]);
    expect(typesOf(turns, set({ kinds: [kind("k"), kind("k")], projects: [acme] }))).toEqual([]);
  });

  it("ends the session of an agent with slots of an excluded resource", () => {
    const turns = new SlotTurns();
    turns.turn({ type: "SetResource", resource: resourceName("gpt"), patch: { slots: 1 } }, joinGpu("a1"));
    turns.turn(acquire("a1-h1", "gpt"));
    expect(typesOf(turns, set({ resources: [] }))).toEqual(["GrantConfigured", "SlotReleased", "AgentLeft"]);
    turns.turn(joinGpu("a1", { incarnation: "a1-2" as never }));
    const again = acquire("a1-h2", "gpt");
    expect(decide(turns.state, { ...again, incarnation: "a1-2" as never }, turns.at).reply).toMatchObject({
      kind: "beyond-grant",
      field: "resources",
      value: "gpt",
    });
  });

  it.each<[string, Command]>([
    ["grant", set({ resources: [] })],
    ["policy", { type: "SetPolicy", patch: { agents: "declared" } }],
  ])("a %s that ends a holder and a waiter grants their slots to others alone", (_, change) => {
    const turns = new SlotTurns();
    const ungrouped = "_" as GroupId;
    turns.turn({ type: "SetResource", resource: resourceName("gpt"), patch: { slots: 1 } });
    turns.turn(set({}, ungrouped), joinGpu("a1"), joinGpu("a2"), join("a3"));
    for (const [agent, handle] of [
      ["a1", "a1-h1"],
      ["a2", "a2-h1"],
      ["a3", "a3-h1"],
    ] as const)
      turns.turn({ ...acquire(handle, "gpt"), agent: agent as never, incarnation: `${agent}-1` as never });
    expect(typesOf(turns, change).slice(1)).toEqual([
      "SlotReleased",
      "AgentLeft",
      "SlotWaitEnded",
      "AgentLeft",
      "SlotGranted",
    ]);
    expect(turns.last("SlotGranted").agent).toBe("a3");
  });

  it("a removed grant ends the sessions of the group only where agents are declared", () => {
    const turns = new SlotTurns();
    turns.turn(set({}), joinGpu("a1"));
    expect(typesOf(turns, remove())).toEqual(["GrantRemoved"]);
    turns.turn(set({}), { type: "SetPolicy", patch: { agents: "declared" } });
    expect(typesOf(turns, remove())).toEqual(["GrantRemoved", "AgentLeft"]);
  });

  it("ends many sessions over several batches, each within its bound, and replays the same", () => {
    const turns = new SlotTurns();
    const agents = 3;
    const each = Math.ceil(limits.closuresPerCommandMax * 0.6);
    turns.turn(...Array.from({ length: agents }, (_, n) => joinGpu(`a${n}`, { maxConcurrent: each })));
    for (let n = 0; n < agents * each; n += 1) turns.turn(submit({ id: taskId(`t${n}`), project: blue }));
    expect(turns.state.openAttempts).toBe(agents * each);
    const before = turns.records.length;
    turns.turn(set({ projects: [acme] }));
    for (let n = 0; n < 4; n += 1) turns.turn(set({ projects: [acme] }));
    expect(turns.state.openAttempts).toBe(0);
    expect(turns.records.length - before).toBeGreaterThan(1);
    expect([...turns.state.agentById.values()].filter(({ online }) => online)).toEqual([]);
  });
});

describe("a policy that agents must be declared reaches agents that have joined", () => {
  const declare: Command = { type: "SetPolicy", patch: { agents: "declared" } };

  it("ends the sessions of groups without a grant alone, and takes attempts and slots back", () => {
    const turns = new SlotTurns();
    turns.turn({ type: "SetResource", resource: resourceName("gpt"), patch: { slots: 1 } }, set({}));
    turns.turn(
      join("a1"),
      joinGpu("a2", { kinds: [] }),
      submit({ id: taskId("t1") }),
      acquire("a1-h1", "gpt"),
    );
    expect(liveTask(turns.state, "t1")?.open?.agent).toBe("a1");
    expect(decide(turns.state, declare, turns.at).reply).toMatchObject({
      warnings: [expect.stringContaining("1 agent of a group without a grant end: `waggle grant set _`")],
    });
    expect(typesOf(turns, declare)).toEqual(["PolicyChanged", "SlotReleased", "AttemptFailed", "AgentLeft"]);
    expect(turns.last("AgentLeft")).toMatchObject({ agent: "a1", reason: "forbidden" });
    expect(liveTask(turns.state, "t1")?.state).toBe("queued");
    expect([turns.agent("a1").online, turns.agent("a2").online]).toEqual([false, true]);
    expect(turns.effects.at(-1)).toEqual({
      kind: "notify",
      agent: "a1",
      incarnation: "a1-1",
      what: "rejoin",
      refusal: { kind: "beyond-grant", group: "_", field: "group" },
    });
    expect(typesOf(turns, declare)).toEqual([]);
    expect(typesOf(turns, { type: "SetPolicy", patch: { agents: "open" } })).toEqual(["PolicyChanged"]);
  });

  it("ends many sessions over several batches, and a replay decides the same", () => {
    const turns = new SlotTurns();
    const each = Math.ceil(limits.closuresPerCommandMax * 0.6);
    const groups = ["g1", "g2", "g1"].map((group) => group as GroupId);
    turns.turn(...groups.map((group, n) => join(`a${n}`, { group, maxConcurrent: each })));
    for (let n = 0; n < groups.length * each; n += 1) turns.turn(submit({ id: taskId(`t${n}`) }));
    const batches = turns.records.length;
    for (let n = 0; n < 4; n += 1) turns.turn(declare);
    expect(turns.state.openAttempts).toBe(0);
    expect([...turns.state.agentById.values()].filter(({ online }) => online)).toEqual([]);
    expect(turns.records.length - batches).toBeGreaterThan(1);
    const reproduction = new Reproduction(emptyState());
    for (const { bytes } of turns.records)
      expect(reproduction.take(decodeRecord(bytes) as Batch)).toMatchObject({ kind: "same" });
  });
});

describe("tokens", () => {
  it("a report of more than the grant charges what the grant permits", () => {
    const turns = new SlotTurns();
    turns.turn(set({ tokens: 500 }), joinGpu("a1"), submit({ id: taskId("t1") }));
    turns.turn(turns.report("t1", { kind: "completed", result: "", tokens: 400_000_000 }));
    expect(turns.last("TaskCompleted").tokens).toBe(500);
  });

  it("slots with more expected tokens than the grant are refused", () => {
    const turns = new SlotTurns();
    turns.turn(
      set({ tokens: 500, projects: [acme] }),
      { type: "SetResource", resource: resourceName("gpt"), patch: { slots: 1 } },
      joinGpu("a1"),
    );
    const wanted = acquire("a1-h1", "gpt");
    const fieldOf = (command: Command) => decide(turns.state, command, turns.at).reply;
    expect(fieldOf({ ...wanted, tokens: 501 })).toMatchObject({ kind: "beyond-grant", field: "tokens" });
    expect(fieldOf({ ...wanted, project: blue })).toMatchObject({ kind: "beyond-grant", field: "projects" });
    expect(fieldOf({ ...wanted, tokens: 500, project: acme })).toMatchObject({ kind: "slot-granted" });
  });
});
