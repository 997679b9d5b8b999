// Holds: placed by refused attempts and by operators, probed once when their time is over, and ended by the probe.

import { describe, expect, it } from "vitest";
import type { Command, ReportedOutcome } from "../../src/core/command.ts";
import { decodeState } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { InvariantError } from "../../src/errors.ts";
import {
  type AgentId,
  agentId,
  assignmentNumber,
  attemptNumber,
  incarnation,
  instant,
  kind,
  resourceName,
  slotHandle,
  taskId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { explainWait } from "../../src/scheduling/explain.ts";
import { findHold, phaseOf } from "../../src/state/hold-rows.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";
import { join, submit, Turns } from "../support/turns.ts";

const done: ReportedOutcome = { kind: "completed", result: "" };
const broken: ReportedOutcome = { kind: "failed", error: "no luck" };

function refused(refusal: Extract<ReportedOutcome, { kind: "infrastructure" }>["refusal"]): ReportedOutcome {
  return { kind: "infrastructure", error: "quota", ...(refusal === undefined ? {} : { refusal }) };
}

/** Agents of the type `claude`, named by capacity. */
function swarmOf(capacityById: Readonly<Record<string, number>>, agentType = "claude"): Turns {
  const turns = new Turns();
  for (const [id, maxConcurrent] of Object.entries(capacityById))
    turns.turn(join(id, { maxConcurrent, agentType }));
  return turns;
}

function submitted(turns: Turns, ...ids: readonly string[]): void {
  turns.turn(...ids.map((id) => submit({ id: taskId(id) })));
}

function runningAt(turns: Turns, agent: string): string[] {
  return [...turns.agent(agent).open.values()].map(({ task }) => task);
}

/** The agent says that all its assignments arrived. */
function confirmAll(turns: Turns, agent: AgentId): Extract<Command, { type: "ReconcileAgent" }> {
  const { incarnation: session, lastNumber, open } = turns.agent(agent);
  const held = [...open.values()].map(({ project, task, attempt }) => ({ project, task, attempt }));
  return { type: "ReconcileAgent", agent, incarnation: session, held, seen: assignmentNumber(lastNumber) };
}

describe("a refusal with a time", () => {
  it("puts the agent on hold until then, counts towards no limit, and the task goes elsewhere at once", () => {
    const turns = swarmOf({ a1: 1, a2: 1 });
    submitted(turns, "t1");
    expect(runningAt(turns, "a1")).toEqual(["t1"]);
    turns.turn(turns.report("t1", refused({ forMs: 3_000 })));
    expect(turns.last("HoldPlaced")).toMatchObject({
      on: "agent",
      name: "a1",
      until: turns.at + 3_000,
      by: "agent",
      reportedBy: "a1",
      reason: "quota",
    });
    expect(turns.last("AttemptFailed").failure.class).toBe("refused");
    expect(turns.task("t1")).toMatchObject({
      refusals: 1,
      failures: 0,
      infrastructureFailures: 0,
      failedBy: [],
    });
    expect(runningAt(turns, "a2")).toEqual(["t1"]);
    expect(turns.last("TaskAssigned").receipt.ineligible).toEqual({ "on-hold": 1 });
  });

  it("never uses up the cap of infrastructure failures", () => {
    const turns = swarmOf({ a1: 1 });
    submitted(turns, "t1");
    for (let refusals = 1; refusals <= 3 * limits.infrastructureFailuresMax; refusals += 1) {
      turns.turn(turns.report("t1", refused({ forMs: 1_000 })));
      expect(turns.task("t1")).toMatchObject({ state: "queued", refusals });
      turns.passToDue();
      expect(turns.task("t1").state).toBe("assigned");
    }
  });

  it("is probed with one task when its time is over; the probe's success lets the rest run", () => {
    const turns = swarmOf({ a1: 3 });
    submitted(turns, "t1");
    turns.turn(turns.report("t1", refused({ forMs: 3_000 })));
    submitted(turns, "t2", "t3");
    expect(runningAt(turns, "a1")).toEqual([]);
    turns.passToDue();
    expect(turns.last("HoldElapsed")).toMatchObject({ on: "agent", name: "a1" });
    expect(runningAt(turns, "a1")).toEqual(["t1"]);
    expect(turns.last("TaskAssigned").receipt.decidedBy).toBe("probe");
    turns.turn(turns.report("t1", done));
    expect(turns.last("HoldEnded")).toMatchObject({ reason: "probed" });
    expect(runningAt(turns, "a1")).toEqual(["t2", "t3"]);
  });

  it("ends while the probe runs, once the probe was not refused for long enough", () => {
    const turns = swarmOf({ a1: 3, a2: 1 });
    submitted(turns, "t1");
    turns.turn(turns.report("t1", refused({ on: "type", forMs: 3_000 })));
    submitted(turns, "t2", "t3", "t4");
    turns.passToDue();
    const prober = turns.state.holds.type.get("claude")?.probe?.agent ?? agentId("none");
    expect(turns.all("HoldEnded")).toEqual([]);
    turns.pass(2_000);
    turns.turn(confirmAll(turns, prober));
    const confirmedAt = turns.at;
    expect(decodeState(encodeState(turns.state)).holds.type.get("claude")?.probe).toMatchObject({
      agent: prober,
      trustedAt: confirmedAt + limits.probeTrustedMs,
    });
    turns.passToDue();
    expect(turns.at).toBe(confirmedAt + limits.probeTrustedMs);
    expect(turns.last("HoldEnded")).toMatchObject({ on: "type", name: "claude", reason: "trusted" });
    expect([...runningAt(turns, "a1"), ...runningAt(turns, "a2")].toSorted()).toEqual([
      "t1",
      "t2",
      "t3",
      "t4",
    ]);
  });

  it("waits for the end of a probe that was prefetched, which may begin late", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 1, prefetch: 1, agentType: "claude" }));
    submitted(turns, "long");
    turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 1_000 });
    submitted(turns, "probe");
    turns.passToDue();
    turns.turn(confirmAll(turns, agentId("a1")));
    expect(findHold(turns.state, { on: "type", name: "claude" })).toMatchObject({
      timer: undefined,
      probe: { number: 2 },
    });
  });

  it("is renewed by a refused probe", () => {
    const turns = swarmOf({ a1: 2 });
    submitted(turns, "t1", "t2");
    turns.turn(turns.report("t1", refused({ forMs: 3_000 })), turns.report("t2", done));
    turns.passToDue();
    turns.turn(turns.report("t1", refused({ forMs: 7_000 })));
    expect(turns.all("HoldPlaced")).toHaveLength(2);
    expect(findHold(turns.state, { on: "agent", name: "a1" })).toMatchObject({ until: turns.at + 7_000 });
    expect(runningAt(turns, "a1")).toEqual([]);
  });

  it("ends when the probe fails for another reason, and stays when the probe is lost", () => {
    const turns = swarmOf({ a1: 2 });
    submitted(turns, "t1", "t2", "t3");
    turns.turn(turns.report("t1", refused({ forMs: 1_000 })), turns.report("t2", done));
    turns.passToDue();
    const [probe = ""] = runningAt(turns, "a1");
    turns.turn({
      type: "RevokeAttempt",
      project: turns.task(probe).spec.project,
      task: taskId(probe),
      attempt: attemptNumber(turns.task(probe).attempt),
    });
    const hold = findHold(turns.state, { on: "agent", name: "a1" });
    expect(hold && phaseOf(hold)).toBe("probing");
    const [next = ""] = runningAt(turns, "a1").filter(
      (id) => id !== probe || turns.task(id).open?.state !== "revoked",
    );
    turns.turn(turns.report(next, broken));
    expect(turns.last("HoldEnded").reason).toBe("probed");
  });

  it("takes back what the agent has prefetched", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 1, prefetch: 3, agentType: "claude" }));
    submitted(turns, "t1", "t2", "t3");
    expect(runningAt(turns, "a1")).toEqual(["t1", "t2", "t3"]);
    turns.turn(turns.report("t1", refused({ forMs: 30_000 })));
    for (const task of ["t2", "t3"])
      expect(turns.task(task)).toMatchObject({ state: "delayed", failures: 0, refusals: 1 });
    turns.turn(join("a2", { maxConcurrent: 3 }));
    turns.passToDue();
    expect(runningAt(turns, "a2").toSorted()).toEqual(["t1", "t2", "t3"]);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("takes back nothing of the refused attempt itself, wherever it stands", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 1, prefetch: 3 }));
    submitted(turns, "t1", "t2", "t3");
    turns.turn(turns.report("t3", refused({ forMs: 30_000 })));
    expect(turns.task("t2")).toMatchObject({ state: "delayed", refusals: 1 });
    expect(turns.task("t3")).toMatchObject({ state: "queued", refusals: 1 });
    expect(runningAt(turns, "a1")).toContain("t1");
    turns.turn({ type: "EndHold", on: "agent", name: "a1" });
    turns.turn({ type: "PlaceHold", on: "agent", name: "a1", forMs: 5_000 });
    expect(turns.task("t1").state).toBe("assigned");
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("is only lengthened by refusals of attempts that were under way", () => {
    const turns = swarmOf({ a1: 3 });
    submitted(turns, "t1", "t2", "t3");
    turns.turn(turns.report("t1", refused({ forMs: 3_000 })));
    turns.turn(turns.report("t2", refused({ forMs: 1_000 })), turns.report("t3", refused({ forMs: 9_000 })));
    expect(turns.all("HoldPlaced").map(({ until }) => until - turns.at)).toEqual([3_000, 9_000]);
    expect(turns.task("t2").refusals).toBe(1);
  });

  it("holds all agents of the type, and a single agent makes the single probe", () => {
    const turns = swarmOf({ a1: 2, a2: 2 });
    turns.turn(join("b1", { agentType: "gpt", kinds: [] }));
    submitted(turns, "t1", "t2", "t3", "t4");
    turns.turn(
      turns.report("t1", refused({ on: "type", forMs: 3_000 })),
      ...["t2", "t3", "t4"].map((id) => turns.report(id, done)),
    );
    submitted(turns, "t5");
    expect([...runningAt(turns, "a1"), ...runningAt(turns, "a2")]).toEqual([]);
    turns.passToDue();
    expect([...runningAt(turns, "a1"), ...runningAt(turns, "a2")]).toEqual(["t1"]);
    turns.turn(turns.report("t1", done));
    expect([...runningAt(turns, "a1"), ...runningAt(turns, "a2")]).toEqual(["t5"]);
  });

  it("falls back to the agent for an agent without a type, and for a resource that is not set", () => {
    for (const on of ["type", { resource: resourceName("gpt-4o") }] as const) {
      const turns = new Turns();
      turns.turn(join("a1"));
      submitted(turns, "t1");
      turns.turn(turns.report("t1", refused({ on, forMs: 1_000 })));
      expect(turns.last("HoldPlaced")).toMatchObject({ on: "agent", name: "a1" });
    }
  });

  it.each([0, -5, 8 * 24 * 3_600_000])("keeps holds within their bounds: %i ms", (ms) => {
    const turns = swarmOf({ a1: 1 });
    submitted(turns, "t1");
    turns.turn(turns.report("t1", refused({ until: instant(turns.at + ms) })));
    const placed = turns.all("HoldPlaced");
    expect(placed.map(({ until }) => until - turns.at)).toEqual(ms > 0 ? [limits.holdMsMax] : []);
  });

  it.each([
    { scope: "agent", on: "agent" as const },
    { scope: "resource", on: { resource: resourceName("gpt") } },
  ])(
    "takes 20 tasks with a quota of 10 per 3 s and two at a time in at most 22 attempts: $scope",
    ({ on }) => {
      const turns = SlotTurns.of({ gpt: 9 });
      turns.turn(join("a1", { maxConcurrent: 2 }));
      submitted(turns, ...Array.from({ length: 20 }, (_, n) => `t${n}`));
      let used = 0;
      let resetAt = turns.at + 3_000;
      while (turns.state.taskById.size > 0) {
        turns.pass(100);
        if (turns.at >= resetAt) {
          used = 0;
          resetAt = turns.at + 3_000;
        }
        const reports = runningAt(turns, "a1").map((id) => {
          used += 1;
          return turns.report(id, used <= 10 ? done : refused({ on, forMs: resetAt - turns.at }));
        });
        turns.turn(...reports);
      }
      expect(turns.all("TaskCompleted")).toHaveLength(20);
      expect(turns.all("TaskAssigned").length).toBeLessThanOrEqual(22);
    },
  );
});

describe("refusals without a time", () => {
  it("put an agent on hold after three in a row, for twice as long after each refused probe", () => {
    const turns = swarmOf({ a1: 1, a2: 1 });
    turns.turn({ type: "DrainAgent", agent: agentId("a2") });
    submitted(turns, "t1");
    for (const _ of [1, 2]) {
      turns.turn(turns.report("t1", refused({})));
      expect(turns.last("AttemptFailed").failure.class).toBe("infrastructure");
      turns.passToDue();
    }
    turns.turn(turns.report("t1", refused({})));
    expect(turns.last("HoldPlaced")).toMatchObject({ on: "agent", by: "refusals", step: 1 });
    expect(turns.task("t1")).toMatchObject({ infrastructureFailures: 2, refusals: 1 });
    const seen: number[] = [];
    for (let probe = 0; probe < 9; probe += 1) {
      while (turns.task("t1").open === undefined) turns.passToDue();
      turns.turn(turns.report("t1", refused({})));
      seen.push((turns.last("HoldPlaced").until - turns.at) / 1_000);
    }
    expect(seen).toEqual([10, 20, 40, 80, 160, 320, 600, 600, 600]);
    expect(turns.task("t1")).toMatchObject({ infrastructureFailures: 2, refusals: 10 });
  });

  it("put the type on hold when they came from several of its agents", () => {
    const turns = swarmOf({ a1: 1, a2: 1, a3: 1 });
    submitted(turns, "t1", "t2", "t3");
    turns.turn(...["t1", "t2", "t3"].map((id) => turns.report(id, refused({}))));
    expect(turns.last("HoldPlaced")).toMatchObject({ on: "type", name: "claude" });
  });

  it("are no longer in a row after a completed attempt", () => {
    const turns = swarmOf({ a1: 1 });
    for (const id of ["t1", "t2", "t3", "t4"]) {
      submitted(turns, id);
      turns.turn(turns.report(id, id === "t3" ? done : refused({})));
    }
    expect(turns.all("HoldPlaced")).toEqual([]);
  });

  it("let another task make the next probe", () => {
    const turns = swarmOf({ a1: 1 });
    submitted(turns, "poison", "fine");
    turns.turn({ type: "PlaceHold", on: "agent", name: "a1", forMs: 1_000 });
    turns.turn(turns.report("poison", refused({})));
    turns.passToDue();
    expect(runningAt(turns, "a1")).toEqual(["poison"]);
    turns.turn(turns.report("poison", refused({})));
    while (turns.agent("a1").open.size === 0) turns.passToDue();
    expect(runningAt(turns, "a1")).toEqual(["fine"]);
  });

  it("without any hold in the report place none", () => {
    const turns = swarmOf({ a1: 1 });
    submitted(turns, "t1");
    for (let failure = 0; failure < 5; failure += 1) {
      turns.turn(turns.report("t1", refused(undefined)));
      turns.passToDue();
    }
    expect(turns.all("HoldPlaced")).toEqual([]);
  });
});

describe("a hold on a resource", () => {
  /** An agent with two tasks, each of which acquires the resource. */
  function working(): SlotTurns {
    const turns = SlotTurns.of({ gpt: 2, other: 1 });
    turns.turn(join("a1", { maxConcurrent: 4 }), join("b1", { kinds: [] }), join("c1", { kinds: [] }));
    return turns;
  }

  it("stops new grants, blocks no other resource, and is probed by one grant", () => {
    const turns = working();
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    turns.turn(acquire("a1-x", ["gpt", "other"]), acquire("b1-x", "gpt"), acquire("b1-y", "other"));
    expect(turns.all("SlotGranted").map(({ handle }) => handle)).toEqual(["b1-y"]);
    turns.turn(release("b1-y"));
    turns.passToDue();
    expect(turns.resource("gpt").inUse).toBe(1);
    const [probe = ""] = [...turns.resource("gpt").holdings.values()].map(({ handle }) => handle);
    turns.turn(release(probe));
    expect(turns.last("HoldEnded")).toMatchObject({ on: "resource", name: "gpt", reason: "probed" });
    expect(turns.resource("gpt").waiting.size).toBe(0);
  });

  it("is judged by the attempt's end, where a handler acquired the probe", () => {
    const turns = working();
    submitted(turns, "t1", "t2");
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 900 });
    const { open } = turns.task("t2");
    turns.turn(
      acquire("a1-x", "gpt", { holder: `${open?.incarnation}.${open?.number}` }),
      acquire("b1-x", "gpt"),
    );
    turns.passToDue();
    expect(turns.resource("gpt").holdings.size).toBe(1);
    turns.turn(release("a1-x"));
    expect(turns.resource("gpt").holdings.size).toBe(0);
    turns.turn(turns.report("t2", refused({ on: { resource: resourceName("gpt") }, forMs: 2_000 })));
    expect(findHold(turns.state, { on: "resource", name: "gpt" })).toMatchObject({ until: turns.at + 2_000 });
    expect(turns.resource("gpt").holdings.size).toBe(0);
    turns.passToDue();
    expect([...turns.resource("gpt").holdings.keys()]).toEqual(["b1 b1-x"]);
  });

  it("ends while the slots of its probe are held, once the probe was not refused for long enough", () => {
    const turns = working();
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 900 });
    turns.turn(acquire("a1-x", "gpt"), acquire("b1-x", "gpt"));
    turns.passToDue();
    expect(turns.resource("gpt").holdings.size).toBe(1);
    const grantedAt = turns.at;
    turns.passToDue();
    expect(turns.at).toBe(grantedAt + limits.probeTrustedMs);
    expect(turns.last("HoldEnded")).toMatchObject({ on: "resource", name: "gpt", reason: "trusted" });
    expect(turns.resource("gpt").holdings.size).toBe(2);
  });

  it("ends when the probing attempt asks for a second slot: the attempt would wait for its own end", () => {
    const turns = working();
    submitted(turns, "t1");
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 900 });
    const { open } = turns.task("t1");
    const holder = `${open?.incarnation}.${open?.number}`;
    turns.turn(acquire("a1-x", "gpt", { holder }), acquire("b1-x", "gpt"));
    turns.passToDue();
    turns.turn(release("a1-x"));
    expect(turns.resource("gpt").holdings.size).toBe(0);
    turns.turn(acquire("a1-y", "gpt", { holder }));
    expect(turns.last("HoldEnded")).toMatchObject({ on: "resource", name: "gpt", reason: "probed" });
    expect(turns.resource("gpt").waiting.size).toBe(0);
  });

  it("ends with the release of a holder of its own within a handler", () => {
    const turns = working();
    submitted(turns, "t1");
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 900 });
    const { open } = turns.task("t1");
    turns.turn(acquire("a1-x", "gpt", { holder: `${open?.incarnation}.${open?.number}/call` }));
    turns.passToDue();
    turns.turn(release("a1-x"));
    expect(findHold(turns.state, { on: "resource", name: "gpt" })).toBeUndefined();
  });

  it("is placed with the release of a refused slot, before a waiting request gets the slot", () => {
    const turns = working();
    turns.turn(acquire("a1-x", "gpt"), acquire("a1-y", "gpt"), acquire("b1-x", "gpt"));
    turns.turn(release("a1-x", { forMs: 3_000, reason: "429" }));
    expect(turns.last("HoldPlaced")).toMatchObject({
      ...{ on: "resource", name: "gpt", until: turns.at + 3_000 },
      ...{ by: "agent", reportedBy: "a1", reason: "429" },
    });
    expect(turns.resource("gpt").inUse).toBe(1);
    turns.turn(release("a1-y", { forMs: 500 })); // a shorter time changes nothing
    expect(turns.all("HoldPlaced")).toHaveLength(1);
    expect(turns.resource("gpt").inUse).toBe(0);
    turns.passToDue();
    expect([...turns.resource("gpt").holdings.keys()]).toEqual(["b1 b1-x"]);
    turns.turn(release("b1-x", { until: instant(turns.at + 2_000) }));
    expect(findHold(turns.state, { on: "resource", name: "gpt" })).toMatchObject({ until: turns.at + 2_000 });
    expect(turns.all("HoldEnded")).toEqual([]);
  });

  it("is placed on the resource that refused, of several, and by no request that only waited", () => {
    const turns = working();
    turns.turn(acquire("a1-x", ["gpt", "other"]), acquire("b1-x", "other"));
    turns.turn(release("b1-x", { forMs: 3_000 }));
    expect(turns.all("HoldPlaced")).toEqual([]);
    turns.turn(release("a1-x", { resource: resourceName("other"), forMs: 3_000 }));
    expect(turns.all("HoldPlaced").map(({ name }) => name)).toEqual(["other"]);
    turns.turn(acquire("c1-x", ["gpt"]), acquire("c1-y", ["other"]));
    turns.turn(release("c1-x", { forMs: 3_000 }));
    expect(turns.all("HoldPlaced").map(({ name }) => name)).toEqual(["other", "gpt"]);
  });

  it("is placed on the reported resource by a refusal after the end of the slot lease", () => {
    const gpt = resourceName("gpt");
    const turns = working();
    turns.turn(acquire("a1-x", "gpt", { idleTimeoutMs: 1_000 }), acquire("b1-x", "gpt"));
    turns.turn(release("b1-x"));
    turns.passToDue();
    expect(turns.all("SlotReleased").map(({ reason }) => reason)).toContain("idle");
    turns.turn(
      release("a1-x", { forMs: 3_000 }), // of a resource that is not named
      release("a1-x", { resource: gpt }), // without a time
      release("a1-x", { resource: resourceName("none"), forMs: 3_000 }),
      release("a1-never", { resource: gpt, forMs: 3_000 }),
    );
    expect(turns.all("HoldPlaced")).toEqual([]);
    turns.turn(release("a1-x", { resource: gpt, forMs: 3_000, reason: "429" }));
    expect(turns.last("HoldPlaced")).toMatchObject({
      ...{ on: "resource", name: "gpt", until: turns.at + 3_000, handle: "a1-x" },
      ...{ by: "agent", reportedBy: "a1", reason: "429" },
    });
    turns.turn(release("b1-x", { resource: gpt, forMs: 2_000 })); // a shorter time changes nothing
    expect(turns.all("HoldPlaced")).toHaveLength(1);
    turns.turn(release("b1-x", { resource: gpt, forMs: 4_000 }));
    expect(turns.all("HoldPlaced")).toHaveLength(2);
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });

  it("without a time is renewed, for longer each time, where the refused slot is its probe", () => {
    const turns = working();
    turns.turn(acquire("a1-x", "gpt"));
    turns.turn(release("a1-x", {}));
    expect(turns.all("HoldPlaced")).toEqual([]);
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    for (const [handle, holdMs] of [
      ["b1-x", limits.holdBackoffMs],
      ["b1-y", 2 * limits.holdBackoffMs],
    ] as const) {
      turns.passToDue();
      turns.turn(acquire(handle, "gpt"));
      turns.turn(release(handle, { reason: "429" }));
      const placed = { until: turns.at + holdMs, by: "refusals", reportedBy: "b1", reason: "429" };
      expect(turns.last("HoldPlaced")).toMatchObject(placed);
    }
    turns.passToDue();
    turns.turn(acquire("c1-x", "gpt"));
    turns.turn(release("c1-x"));
    expect(turns.last("HoldEnded")).toMatchObject({ name: "gpt", reason: "probed" });
  });

  it("is probed again when the attempt that probed is lost", () => {
    const turns = working();
    submitted(turns, "t1");
    turns.turn({ type: "PlaceHold", on: "resource", name: "gpt", forMs: 1_000 });
    const { open } = turns.task("t1");
    turns.turn(acquire("a1-x", "gpt", { holder: `${open?.incarnation}.${open?.number}` }));
    turns.turn(acquire("b1-x", "gpt"));
    turns.passToDue();
    turns.turn(release("a1-x"));
    turns.turn(turns.report("t1", { kind: "revoked" }));
    expect(turns.resource("gpt").holdings.size).toBe(1);
    expect(findHold(turns.state, { on: "resource", name: "gpt" })?.probe?.handle).toBe(slotHandle("b1-x"));
  });
});

describe("an operator", () => {
  it("holds an agent, a type or a resource for a time, changes the time, and ends the hold", () => {
    const turns = swarmOf({ a1: 1 });
    const [first] = turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 60_000 });
    expect(first).toMatchObject({ kind: "set", changed: true, settings: { until: turns.at + 60_000 } });
    submitted(turns, "t1");
    expect(turns.task("t1").state).toBe("queued");
    const [again] = turns.turn({
      type: "PlaceHold",
      on: "type",
      name: "claude",
      until: instant(turns.at + 60_000),
    });
    expect(again).toMatchObject({ changed: false });
    turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 1_000 });
    expect(findHold(turns.state, { on: "type", name: "claude" })?.until).toBe(turns.at + 1_000);
    const [kept] = turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 500, lengthen: true });
    expect(kept).toMatchObject({ changed: false, settings: { until: turns.at + 1_000 } });
    turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 2_000, lengthen: true });
    expect(findHold(turns.state, { on: "type", name: "claude" })?.until).toBe(turns.at + 2_000);
    const [ended] = turns.turn({ type: "EndHold", on: "type", name: "claude" });
    expect(ended).toMatchObject({ changed: true });
    expect(turns.last("HoldEnded").reason).toBe("operator");
    expect(turns.task("t1").state).toBe("assigned");
    expect(turns.turn({ type: "EndHold", on: "type", name: "claude" })[0]).toMatchObject({ changed: false });
  });

  it.each([
    [{ on: "resource", name: "none", forMs: 1_000 }, "name"],
    [{ on: "agent", name: "a1" }, "forMs"],
    [{ on: "agent", name: "a1", forMs: limits.holdMsMax + 1 }, "forMs"],
    [{ on: "agent", name: "a1", until: instant(5) }, "until"],
  ] as const)("is refused %j, naming %s", (target, field) => {
    const turns = swarmOf({ a1: 1 });
    const [reply] = turns.turn({ type: "PlaceHold", ...target });
    expect(reply).toMatchObject({ kind: "invalid-setting", field });
    expect(turns.all("HoldPlaced")).toEqual([]);
  });

  it("is refused an agent that never joined, with the ids that resemble it", () => {
    const turns = swarmOf({ "agent-one": 1 });
    const holdAndUnhold = [
      { type: "PlaceHold", on: "agent", name: "agent-on", forMs: 1_000 },
      { type: "EndHold", on: "agent", name: "agent-on" },
    ] as const;
    const refusal = { kind: "unknown-agent", agent: "agent-on", nearMisses: ["agent-one"] };
    expect(turns.turn(...holdAndUnhold)).toEqual([refusal, refusal]);
  });

  it("of one type too many displaces the hold that ends first", () => {
    const turns = swarmOf({ a1: 1 });
    const names = Array.from({ length: limits.holdsMax }, (_, n) => `type-${n}`);
    turns.turn(
      ...names.map((name, n) => ({ type: "PlaceHold", on: "type", name, forMs: 60_000 + n }) as const),
    );
    turns.turn({ type: "PlaceHold", on: "type", name: "one-more", forMs: 90_000 });
    expect(turns.last("HoldEnded")).toMatchObject({ name: "type-0", reason: "displaced" });
    expect(turns.state.holds.type.size).toBe(limits.holdsMax);
  });
});

it("of all agents of a kind lets its tasks run as the cheaper kind, except for the probe", () => {
  const turns = new Turns();
  turns.turn(
    join("a1", { kinds: [kind("opus")], agentType: "claude" }),
    join("a2", { kinds: [kind("opus")], agentType: "claude" }),
    join("b1", { kinds: [kind("haiku")], maxConcurrent: 2 }),
  );
  turns.turn({ type: "SetKind", kind: kind("opus"), patch: { cheaper: kind("haiku") } });
  const opus = (...ids: string[]) => ids.map((id) => submit({ id: taskId(id), kind: kind("opus") }));
  turns.turn({ type: "PlaceHold", on: "agent", name: "a1", forMs: 1_000 });
  turns.turn(...opus("t1", "t2"));
  expect(runningAt(turns, "a2"), "elsewhere first").toEqual(["t1"]);
  expect(turns.task("t2").state, "a full agent is not on hold").toBe("queued");
  turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 5_000 });
  expect(turns.last("TaskAssigned")).toMatchObject({ task: "t2", agent: "b1", runsAs: "haiku" });
  turns.turn(...opus("t3", "t4"));
  expect(runningAt(turns, "b1")).toEqual(["t2", "t3"]);
  expect(explainWait(turns.state, turns.task("t4"), { at: turns.at })).toMatchObject({
    runsAs: "haiku",
    obstacles: [{ reason: "all-full", agents: 1 }],
  });
  turns.turn(turns.report("t1", done), turns.report("t2", done));
  expect(runningAt(turns, "b1")).toEqual(["t3", "t4"]);
  turns.turn(...opus("t5", "t6"));
  turns.passToDue();
  turns.passToDue(); // both holds have elapsed: the probe runs as its own kind
  expect(turns.last("TaskAssigned")).toMatchObject({ task: "t5", receipt: { decidedBy: "probe" } });
  expect(turns.last("TaskAssigned").runsAs).toBeUndefined();
  turns.turn(turns.report("t3", done));
  expect(turns.last("TaskAssigned")).toMatchObject({ task: "t6", agent: "b1", runsAs: "haiku" });
  turns.turn({ type: "LeaveAgent", agent: agentId("b1"), incarnation: incarnation("b1-1") });
  turns.turn(...opus("t7"));
  expect(explainWait(turns.state, turns.task("t7"), { at: turns.at }).runsAs).toBeUndefined();
});

it("survives a restart from a snapshot, held, due and probed", () => {
  const turns = swarmOf({ a1: 1, a2: 1 });
  submitted(turns, "t1", "t2");
  const isTheSame = () => {
    const restored = decodeState(encodeState(turns.state));
    expect(fingerprint(restored)).toBe(fingerprint(turns.state));
  };
  turns.turn(turns.report("t1", refused({ on: "type", forMs: 1_000 })), turns.report("t2", refused({})));
  isTheSame();
  turns.turn({ type: "DrainAgent", agent: agentId("a1") }, { type: "DrainAgent", agent: agentId("a2") });
  turns.passToDue();
  isTheSame();
  turns.turn({ type: "UndrainAgent", agent: agentId("a1") });
  expect(turns.agent("a1").open.size).toBe(1);
  isTheSame();
});

it("is named by the explanation of a waiting task", () => {
  const turns = swarmOf({ a1: 1 });
  turns.turn({ type: "PlaceHold", on: "type", name: "claude", forMs: 60_000 });
  submitted(turns, "t1");
  const { obstacles } = explainWait(turns.state, turns.task("t1"), { at: turns.at });
  expect(obstacles[0]).toMatchObject({
    reason: "on-hold",
    on: "type",
    name: "claude",
    until: turns.at + 60_000,
  });
});

it("stops the process when something else than the probe reaches what is on hold", () => {
  const turns = swarmOf({ a1: 2 });
  submitted(turns, "t1");
  const assigned = turns.last("TaskAssigned");
  turns.turn({ type: "PlaceHold", on: "agent", name: "a1", forMs: 60_000 });
  submitted(turns, "t2");
  expect(() =>
    turns.configure({
      ...assigned,
      task: taskId("t2"),
      number: (assigned.number + 1) as typeof assigned.number,
    }),
  ).toThrow(InvariantError);
});
