// Refusals of a resource without a time, in a row: three place a hold, and a success between them empties the row.

import { describe, expect, it } from "vitest";
import type { CommandOf, ReportedOutcome } from "../../src/core/command.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { decodeState } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { agentId, kind, resourceName, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { explainWait } from "../../src/scheduling/explain.ts";
import { findHold } from "../../src/state/hold-rows.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { acquire, lapse, release, SlotTurns } from "../support/slots.ts";
import { join, submit } from "../support/turns.ts";

const gpt = resourceName("gpt");
const done: ReportedOutcome = { kind: "completed", result: "" };

/** Agents `a1` and `b1`, the agents of the slots, and `w1` with tasks. */
function working(): SlotTurns {
  const turns = SlotTurns.of({ gpt: 4, other: 4 }, "a1", "b1");
  turns.turn(join("w1", { maxConcurrent: 4, agentType: "claude" }));
  return turns;
}

/** Acquires a slot, and releases it in a later turn. @param refusal undefined: the call succeeded */
function call(turns: SlotTurns, handle: string, refusal?: CommandOf<"ReleaseSlots">["refusal"]): void {
  turns.turn(acquire(handle, "gpt"));
  turns.turn(release(handle, refusal));
}

function refusals(turns: SlotTurns): number {
  return turns.state.refusalsInARow.resource.get("gpt")?.length ?? 0;
}

function holdsPlaced(turns: SlotTurns): string[] {
  return turns.all("HoldPlaced").map(({ on, name }) => `${on} ${name}`);
}

function holderOf(turns: SlotTurns, task: string): string {
  const { open } = turns.task(task);
  return `${open?.incarnation}.${open?.number}`;
}

const ofGpt: ReportedOutcome = { kind: "infrastructure", error: "quota", refusal: { on: { resource: gpt } } };

describe("refused slots", () => {
  it("put their resource on hold after three in a row, of any agents, before a waiting request gets the slot", () => {
    const turns = working();
    call(turns, "a1-0", {});
    call(turns, "b1-0", { reason: "429" });
    turns.setResource("gpt", { slots: 1 });
    turns.turn(acquire("a1-1", "gpt"), acquire("b1-1", "gpt"));
    expect(turns.all("HoldPlaced")).toEqual([]);
    turns.turn(release("a1-1", { reason: "429 slow down" }));
    expect(turns.last("HoldPlaced")).toMatchObject({
      ...{ on: "resource", name: "gpt", until: turns.at + limits.holdBackoffMs },
      ...{ by: "refusals", step: 1, reportedBy: "a1", reason: "429 slow down" },
    });
    expect(turns.waiters("gpt")).toEqual(["b1-1"]);
    turns.passToDue();
    expect(turns.holders("gpt"), "the probe").toEqual(["b1-1"]);
    turns.turn(release("b1-1", {}));
    expect(turns.last("HoldPlaced")).toMatchObject({ until: turns.at + 2 * limits.holdBackoffMs, step: 2 });
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("are no longer in a row after a success", () => {
    const turns = working();
    for (const handle of ["a1-0", "a1-1"]) call(turns, handle, {});
    call(turns, "b1-0");
    for (const handle of ["a1-2", "a1-3"]) call(turns, handle, {});
    expect(refusals(turns)).toBe(2);
    expect(turns.all("HoldPlaced")).toEqual([]);
    call(turns, "a1-4", {});
    expect(holdsPlaced(turns)).toEqual(["resource gpt"]);
  });

  it("stay in a row after the loss of slots, which says nothing", () => {
    const turns = working();
    for (const handle of ["a1-0", "a1-1"]) call(turns, handle, {});
    turns.turn(acquire("a1-2", "gpt", { idleTimeoutMs: 1_000 }), acquire("b1-0", "gpt"));
    turns.turn(lapse("b1"));
    turns.passToDue();
    const endings = turns.all("SlotReleased").map(({ reason }) => reason);
    expect(endings).toEqual(expect.arrayContaining(["agent-gone", "idle"]));
    expect(refusals(turns)).toBe(2);
  });

  it("stay in a row after a release without an answer, which ends no hold either", () => {
    const turns = working();
    for (const handle of ["a1-0", "a1-1"]) call(turns, handle, {});
    turns.turn(acquire("b1-0", "gpt"));
    turns.turn({ ...release("b1-0"), unanswered: true });
    expect(refusals(turns)).toBe(2);
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    turns.turn(acquire("a1-2", "gpt"), acquire("b1-1", "gpt"));
    turns.passToDue();
    const [probe = ""] = turns.holders("gpt");
    turns.turn({ ...release(probe), unanswered: true });
    expect(turns.all("HoldEnded")).toEqual([]);
    expect(turns.holders("gpt"), "the next probe").toHaveLength(1);
    expect(turns.holders("gpt")).not.toContain(probe);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("count at each resource that refused", () => {
    const turns = working();
    for (const handle of ["a1-0", "a1-1", "a1-2"]) {
      turns.turn(acquire(handle, ["gpt", "other"]));
      turns.turn(release(handle, handle === "a1-1" ? { resource: gpt } : {}));
    }
    expect(holdsPlaced(turns)).toEqual(["resource gpt"]);
    call(turns, "b1-0");
    expect(turns.state.refusalsInARow.resource.get("other")).toHaveLength(2);
  });

  it("count no longer where a hold was placed, and a removed resource starts from zero", () => {
    const turns = working();
    call(turns, "a1-0", {});
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    expect(refusals(turns)).toBe(0);
    turns.turn({ type: "EndHold", on: "resource", name: "gpt" });
    call(turns, "a1-1", {});
    turns.turn({ type: "RemoveResource", resource: gpt });
    expect(turns.state.refusalsInARow.resource.size).toBe(0);
  });

  it("that were lost before count too, once however often the report is repeated", () => {
    const turns = working();
    turns.turn(...["a1-0", "a1-1", "a1-2"].map((handle) => acquire(handle, "gpt", { idleTimeoutMs: 1_000 })));
    turns.passToDue();
    const late = (handle: string) => release(handle, { resource: gpt, reason: "429" });
    turns.turn(late("a1-0"), late("a1-0"), late("a1-1"));
    turns.turn(late("a1-0"), late("a1-1"), release("a1-2", {}), late("a1-never"));
    expect(turns.all("SlotRefused")).toHaveLength(2);
    expect(turns.all("HoldPlaced")).toEqual([]);
    turns.turn(late("a1-2"));
    expect(turns.last("HoldPlaced")).toMatchObject({ name: "gpt", by: "refusals", step: 1, handle: "a1-2" });
    turns.turn(late("a1-0"));
    expect(turns.all("SlotRefused")).toHaveLength(2);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("count once where the release is repeated", () => {
    const turns = working();
    call(turns, "a1-0", { resource: gpt });
    for (const _ of [1, 2, 3]) turns.turn(release("a1-0", { resource: gpt }));
    expect(refusals(turns)).toBe(1);
  });
});

describe("refused attempts that name a resource", () => {
  it("put the resource on hold after three in a row, and never the agent", () => {
    const turns = working();
    turns.turn(...["t1", "t2", "t3"].map((id) => submit({ id: taskId(id) })));
    turns.turn(turns.report("t1", ofGpt), turns.report("t2", ofGpt));
    expect(turns.task("t1")).toMatchObject({ state: "delayed", infrastructureFailures: 1 });
    turns.turn(turns.report("t3", ofGpt));
    expect(holdsPlaced(turns)).toEqual(["resource gpt"]);
    expect(turns.task("t3")).toMatchObject({ state: "queued", infrastructureFailures: 0, refusals: 1 });
    turns.passToDue();
    expect(turns.task("t1"), "its pause is over, and the resource refuses its kind").toMatchObject({
      state: "queued",
    });
    expect(turns.agent("w1").online && turns.state.refusalsInARow.agent.size).toBe(0);
  });

  it("probe the elapsed hold if no slot does: a refusal renews the hold, another end ends the hold", () => {
    const turns = working();
    const tasks = ["t1", "t2", "t3"];
    turns.turn(...tasks.map((id) => submit({ id: taskId(id) })));
    turns.turn(...tasks.map((id) => turns.report(id, ofGpt)));
    const hold = () => findHold(turns.state, { on: "resource", name: "gpt" });
    const passToEnd = () => {
      while (hold()?.timer !== undefined) turns.passToDue();
    };
    const probe = () => [...turns.agent("w1").open.values()].map(({ task }) => task);
    passToEnd();
    const [first = ""] = probe();
    expect(probe()).toEqual([first]);
    turns.turn(turns.report(first, ofGpt));
    expect(turns.last("HoldPlaced")).toMatchObject({ step: 2 });
    expect(turns.last("AttemptFailed").retryAt).toBe((hold()?.until ?? 0) + limits.retryBackoffMs);
    passToEnd();
    const restored = decodeState(encodeState(turns.state));
    expect(fingerprint(restored)).toBe(fingerprint(turns.state));
    const [second = ""] = probe();
    expect(probe(), "another task makes the next probe").toEqual([second]);
    expect(second).not.toBe(first);
    turns.turn(turns.report(second, done));
    expect(turns.last("HoldEnded")).toMatchObject({ on: "resource", name: "gpt", reason: "probed" });
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("keep their tasks from the agent while a slot probes the hold", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }));
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 }, acquire("a1-0", "gpt"));
    turns.passToDue();
    expect(turns.holders("gpt")).toEqual(["a1-0"]);
    turns.turn(turns.report("t1", ofGpt));
    expect(turns.task("t1")).toMatchObject({ state: "queued", refusals: 1, infrastructureFailures: 0 });
    turns.turn(release("a1-0"));
    expect(turns.task("t1").state).toBe("assigned");
  });

  it("count once together with the held slots", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    for (const task of ["t1", "t2"]) {
      const holder = `${holderOf(turns, task)}/call`;
      turns.turn(acquire(`w1-${task}`, "gpt", { holder }));
    }
    turns.turn(release("w1-t1", {}), release("w1-t2", {}));
    turns.turn(turns.report("t1", ofGpt), turns.report("t2", ofGpt));
    expect(refusals(turns)).toBe(2);
    expect(turns.all("HoldPlaced")).toEqual([]);
    call(turns, "a1-0", {});
    expect(holdsPlaced(turns)).toEqual(["resource gpt"]);
  });

  it("are no longer in a row after a completed attempt of the agent", () => {
    const turns = working();
    turns.turn(...["t1", "t2", "t3"].map((id) => submit({ id: taskId(id) })));
    turns.turn(turns.report("t1", ofGpt));
    expect(refusals(turns)).toBe(1);
    turns.turn(turns.report("t2", done));
    expect(refusals(turns)).toBe(0);
  });
});

describe("tasks of a kind that a resource on hold refused", () => {
  const quota: ReportedOutcome = {
    ...({ kind: "infrastructure", error: "quota" } as const),
    refusal: { on: { resource: gpt }, forMs: 60_000 },
  };

  /** The agent's attempt of the task was refused for a minute. */
  function refused(): SlotTurns {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }));
    turns.turn(turns.report("t1", quota));
    return turns;
  }

  it("wait for the hold, which explains the wait, and start with a single probe", () => {
    const turns = refused();
    turns.turn(submit({ id: taskId("t2") }));
    const on = { on: "resource", name: "gpt", by: "agent", hold: "quota" };
    const until = turns.at + 60_000;
    for (const task of ["t1", "t2"]) {
      const { obstacles } = explainWait(turns.state, turns.task(task), { at: turns.at });
      expect(obstacles).toEqual([{ reason: "on-hold", ...on, agents: 1, until }]);
    }
    turns.passToDue();
    expect(turns.all("TaskAssigned").slice(1)).toMatchObject([
      { task: "t1", receipt: { decidedBy: "probe" } },
    ]);
    turns.turn(turns.report("t1", done));
    expect(turns.last("HoldEnded")).toMatchObject({ name: "gpt", reason: "probed" });
    expect(turns.task("t2").state).toBe("assigned");
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("wait while a slot is the probe, however long the hold has elapsed", () => {
    const turns = refused();
    const { spec } = turns.task("t1");
    turns.turn({ type: "CancelTask", project: spec.project, task: spec.id, round: 1 });
    turns.passToDue();
    turns.turn(acquire("a1-0", "gpt"));
    turns.turn(submit({ id: taskId("t2") }));
    expect(turns.task("t2").state).toBe("queued");
    turns.turn(release("a1-0"));
    expect(turns.task("t2").state).toBe("assigned");
  });

  it("leave the resource to a slot while their probe has none: the slot is the probe then", () => {
    const turns = refused();
    turns.passToDue();
    expect(turns.task("t1").state).toBe("assigned");
    turns.turn(acquire("a1-0", "gpt"), acquire("w1-0", "gpt", { holder: `${holderOf(turns, "t1")}/call` }));
    expect(turns.holders("gpt")).toEqual(["a1-0"]);
    turns.turn(release("a1-0"));
    expect(turns.last("HoldEnded")).toMatchObject({ name: "gpt", reason: "probed" });
    expect(turns.holders("gpt")).toEqual(["w1-0"]);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("start at once where an operator ends the hold, or another agent serves the kind", () => {
    const turns = refused();
    turns.turn(submit({ id: taskId("t2") }), join("w2", { maxConcurrent: 1 }));
    expect(turns.task("t1").open?.agent).toBe("w2");
    turns.turn({ type: "EndHold", on: "resource", name: "gpt" });
    expect(turns.task("t2").open?.agent).toBe("w1");
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("run as the cheaper kind, which the resource did not refuse", () => {
    const turns = working();
    turns.turn({ type: "SetKind", kind: kind("k"), patch: { cheaper: kind("cheap"), cheaperType: null } });
    turns.turn(join("w3", { kinds: [kind("cheap")] }), submit({ id: taskId("t1") }));
    turns.turn(turns.report("t1", quota));
    expect(turns.task("t1").open).toMatchObject({ agent: "w3", kind: "cheap" });
  });

  it("leave other kinds of the agent alone", () => {
    const turns = working();
    turns.turn(join("w4", { kinds: [kind("k2"), kind("k3")] }));
    turns.turn(submit({ id: taskId("t1"), kind: kind("k2") }));
    turns.turn(turns.report("t1", quota));
    turns.turn(submit({ id: taskId("t2"), kind: kind("k3") }));
    expect(turns.task("t1").state).toBe("queued");
    expect(turns.task("t2").open?.agent).toBe("w4");
  });

  it("wait for their own hold alone, where two end at one instant", () => {
    const turns = refused();
    turns.turn({ type: "PlaceHold", on: "resource", name: "other", forMs: 60_000 });
    turns.turn({ type: "EndHold", on: "resource", name: "other" });
    expect(turns.task("t1").state).toBe("queued");
  });

  it("follow the hold where an agent lengthens it", () => {
    const turns = working();
    turns.turn(acquire("a1-0", "gpt"), submit({ id: taskId("t1") }));
    turns.turn(turns.report("t1", quota), release("a1-0", { resource: gpt, forMs: 90_000 }));
    turns.pass(60_000);
    turns.turn();
    expect(turns.task("t1").state).toBe("queued");
    turns.pass(30_000);
    turns.turn();
    expect(turns.task("t1").state).toBe("assigned");
  });

  it("are free once the agent is forgotten", () => {
    const turns = refused();
    const { incarnation } = turns.agent("w1");
    turns.turn({ type: "LeaveAgent", agent: agentId("w1"), incarnation });
    while (turns.state.agentById.has(agentId("w1"))) turns.passToDue();
    expect(turns.state.holds.byUser.size).toBe(0);
    turns.turn(join("w1"));
    expect(turns.task("t1").state).toBe("assigned");
  });

  it("are refused, and not timed out, where they wait for the resource until their time is over", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1"), timeoutMs: 3_000, maxAttempts: 1 }));
    const holder = `${holderOf(turns, "t1")}/call`;
    turns.turn(acquire("w1-other", "other", { holder }));
    turns.turn(release("w1-other"), { type: "PlaceHold", on: "resource", name: "gpt", forMs: 2_000 });
    turns.turn(acquire("a1-0", "gpt"), acquire("w1-0", "gpt", { holder }));
    turns.passToDue();
    expect(turns.holders("gpt")).toEqual(["a1-0"]);
    turns.passToDue();
    expect(turns.last("AttemptFailed")).toMatchObject({
      ...{ revoked: true, failure: { class: "refused" } },
      refusal: { on: { resource: "gpt" } },
    });
    expect(turns.task("t1")).toMatchObject({ state: "delayed", failures: 0, refusals: 1 });
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });
});

describe("a request that a hold outlasts", () => {
  it("waits a second where its attempt has held no slot yet, and else as long as it may", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    const [young, old] = ["t1", "t2"].map((task) => `${holderOf(turns, task)}/call`);
    turns.turn(acquire("w1-other", "other", { holder: old ?? "" }));
    turns.turn(release("w1-other"), { type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    const restored = decodeState(encodeState(turns.state));
    expect(fingerprint(restored)).toBe(fingerprint(turns.state));
    const replies = turns.turn(
      acquire("w1-0", "gpt", { holder: young ?? "" }),
      acquire("w1-1", "gpt", { holder: old ?? "" }),
    );
    expect(replies).toMatchObject([{ kind: "slot-on-hold" }, { kind: "slot-awaited" }]);
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 999 });
    expect(turns.turn(acquire("w1-2", "gpt", { holder: young ?? "" }))).toMatchObject([
      { kind: "slot-awaited" },
    ]);
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 5_000 });
    expect(turns.all("SlotWaitEnded")).toMatchObject([{ handles: ["w1-2"], reason: "on-hold" }]);
  });

  it("is answered at once, inside an attempt and outside", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1"), timeoutMs: 3_000 }));
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 20_000 });
    const until = turns.at + 20_000;
    const onHold = { kind: "slot-on-hold", resource: "gpt", until };
    const replies = turns.turn(
      acquire("w1-0", ["gpt", "other"], { holder: holderOf(turns, "t1") }),
      acquire("a1-0", "gpt", { timeoutMs: 19_999 }),
      acquire("a1-1", "gpt", { timeoutMs: 20_001 }),
      acquire("a1-2", "gpt"),
    );
    expect(replies).toMatchObject([onHold, onHold, { kind: "slot-awaited" }, { kind: "slot-awaited" }]);
  });

  it("ends where the hold comes later", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1"), timeoutMs: 3_000 }));
    const slots = Array.from({ length: turns.resource("gpt").settings.slots }, (_, nth) => `a1-${nth}`);
    turns.turn(...slots.map((handle) => acquire(handle, "gpt")));
    turns.turn(
      acquire("w1-0", "gpt", { holder: `${holderOf(turns, "t1")}/call` }),
      acquire("a1-later", "gpt"),
    );
    turns.turn(release("a1-0", { resource: gpt, forMs: 20_000 }));
    expect(turns.all("SlotWaitEnded")).toMatchObject([{ agent: "w1", handles: ["w1-0"], reason: "on-hold" }]);
    expect([...turns.resource("gpt").waiting.values()].map(({ handle }) => handle)).toEqual(["a1-later"]);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });
});

describe("slots of a handler", () => {
  it("are a success when the attempt completes, and no success before", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    for (const task of ["t1", "t2"])
      turns.turn(acquire(`w1-${task}`, "gpt", { holder: holderOf(turns, task) }));
    call(turns, "a1-0", {});
    turns.turn(release("w1-t1"), release("w1-t2"));
    expect(refusals(turns)).toBe(1);
    turns.turn(turns.report("t1", { kind: "failed", error: "no luck" }));
    expect(refusals(turns)).toBe(1);
    const restored = decodeState(encodeState(turns.state));
    expect(fingerprint(restored)).toBe(fingerprint(turns.state));
    turns.turn(turns.report("t2", done));
    expect(refusals(turns)).toBe(0);
  });

  it("that refused stay refused when the handler goes on without them", () => {
    const turns = working();
    turns.turn(...["t1", "t2", "t3"].map((id) => submit({ id: taskId(id) })));
    for (const task of ["t1", "t2", "t3"]) {
      turns.turn(acquire(`w1-${task}`, "gpt", { holder: holderOf(turns, task) }));
      turns.turn(release(`w1-${task}`, {}));
      turns.turn(turns.report(task, done));
    }
    expect(holdsPlaced(turns)).toEqual(["resource gpt"]);
  });

  it("renew the hold that they probe at their release, whatever becomes of the attempt", () => {
    const turns = working();
    turns.turn(submit({ id: taskId("t1") }));
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 900 });
    turns.turn(acquire("w1-x", "gpt", { holder: holderOf(turns, "t1") }));
    turns.passToDue();
    turns.turn(release("w1-x", {}));
    expect(turns.last("HoldPlaced")).toMatchObject({
      by: "refusals",
      until: turns.at + limits.holdBackoffMs,
    });
    turns.turn(turns.report("t1", done));
    expect(findHold(turns.state, { on: "resource", name: "gpt" })).toBeDefined();
  });
});

it("rows survive a restart from a snapshot, and the restored state places the same hold", () => {
  const turns = working();
  turns.turn(submit({ id: taskId("t1") }));
  turns.turn(turns.report("t1", { kind: "infrastructure", error: "quota", refusal: {} }));
  for (const handle of ["a1-0", "b1-0"]) call(turns, handle, {});
  const restored = decodeState(encodeState(turns.state));
  expect(fingerprint(restored)).toBe(fingerprint(turns.state));
  expect(restored.refusalsInARow.resource.get("gpt")).toHaveLength(2);
});

describe("the invariant of refusals in a row", () => {
  const one = { agent: agentId("a1") };
  it.each([
    ["a hold in force", "resource", "gpt", [one]],
    ["an unknown resource", "resource", "none", [one]],
    ["an unknown agent", "agent", "nobody", [one]],
    ["too many refusals", "type", "claude", [one, one, one]],
    ["an empty row", "agent", "a1", []],
  ] as const)("sees %s", (_, on, name, row) => {
    const turns = working();
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    expect(checkInvariants(turns.state)).toEqual([]);
    turns.state.refusalsInARow[on].set(name, row);
    expect(checkInvariants(turns.state)).toMatchObject([{ number: 52 }]);
  });
});
