// Slots, decision by decision: immediate grants, waits, the order of grants, refusals; and all ways in which a slot
// becomes free.

import { describe, expect, it } from "vitest";
import { decideSettings } from "../../src/core/decide-settings.ts";
import { agentId, assignmentNumber, incarnation, instant, resourceName, slotHandle } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { backlogOf } from "../../src/scheduling/backlog.ts";
import { alphaAt } from "../../src/scheduling/slot-planner.ts";
import { agentOf } from "../../src/state/agent-rows.ts";
import { defaultPolicy, type Policy, ruleSets } from "../../src/state/policy.ts";
import { utilisationOf } from "../../src/state/slot-rows.ts";
import { describeState, fingerprint } from "../support/fingerprint.ts";
import { acquire, lapse, release, SlotTurns } from "../support/slots.ts";
import { join } from "../support/turns.ts";

const agents = ["a1", "a2", "a3", "a4"];
const kindsOf = (replies: readonly { readonly kind: string }[]) => replies.map(({ kind }) => kind);

describe("acquiring", () => {
  it("is granted at once while slots are free, and waits after that", () => {
    const turns = SlotTurns.of({ gpu: 2 }, ...agents);
    const replies = turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu"), acquire("a3-x", "gpu"));
    expect(kindsOf(replies)).toEqual(["slot-granted", "slot-granted", "slot-awaited"]);
    expect(turns.holders("gpu")).toEqual(["a1-x", "a2-x"]);
    expect(turns.all("SlotGranted").map(({ receipt }) => receipt.by)).toEqual(["free", "free"]);
  });

  it("repeated takes effect once, and is answered with the present state", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu"));
    expect(kindsOf(turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu")))).toEqual([
      "slot-granted",
      "slot-awaited",
    ]);
    turns.turn(release("a1-x"));
    expect(turns.turn(acquire("a1-x", "gpu"))).toEqual([
      { kind: "slot-ended", handle: "a1-x", reason: "released" },
    ]);
    expect(kindsOf(turns.turn(acquire("a2-x", "gpu", { weightThousandths: 2_000 })))).toEqual([
      "handle-in-use",
    ]);
    expect(turns.resource("gpu").inUse).toBe(1);
  });

  it.each([
    ["an unknown resource, naming what may be meant", acquire("a1-x", "gpuu"), "unknown-resource"],
    ["more slots than there are", acquire("a1-x", ["gpu", "gpu", "gpu"]), "above-capacity"],
    ["of an ended session", acquire("a1-x", "gpu", { incarnation: incarnation("old") }), "session-over"],
    ["of an agent that never joined", acquire("a9-x", "gpu"), "session-over"],
  ])("refuses %s, and changes nothing", (_, command, kind) => {
    const turns = SlotTurns.of({ gpu: 2 }, ...agents);
    const before = describeState(turns.state);
    expect(kindsOf(turns.turn(command))).toEqual([kind]);
    expect(describeState(turns.state)).toEqual(before);
  });

  it("refuses waiter number 101, and accepts the waiter once an earlier waiter is gone", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-held", "gpu"));
    for (let n = 1; n <= 100; n += 1) turns.turn(acquire(`a2-${n}`, "gpu"));
    expect(turns.turn(acquire("a3-x", "gpu"))).toEqual([
      { kind: "too-many-waiters", resource: "gpu", maxWaiters: 100, retryAfterMs: limits.retryAfterMs },
    ]);
    turns.turn(release("a1-held"));
    expect(kindsOf(turns.turn(acquire("a3-x", "gpu")))).toEqual(["slot-awaited"]);
  });

  it("refuses an agent with more slot leases than the maximum", () => {
    const turns = SlotTurns.of({ gpu: 5_000 }, ...agents);
    for (let n = 1; n <= limits.slotLeasesPerAgentMax; n += 1) turns.turn(acquire(`a1-${n}`, "gpu"));
    expect(kindsOf(turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu")))).toEqual([
      "too-many-slot-leases",
      "slot-granted",
    ]);
  });
});

describe("acquiring while holding", () => {
  const turnsOf = () => {
    const turns = SlotTurns.of({ a: 2, b: 2, c: 2 }, ...agents);
    turns.turn(acquire("a1-b", "b"));
    return turns;
  };

  it.each([
    ["earlier", "a", "out-of-order"],
    ["later", "c", "slot-granted"],
    ["the same, for an agent that names no line of work", "b", "slot-granted"],
  ])("in name order, %s: %s is %s", (_, resource, kind) => {
    expect(kindsOf(turnsOf().turn(acquire("a1-next", resource)))).toEqual([kind]);
  });

  it("a line of work must not wait for a held resource, nor against the name order of awaited resources", () => {
    const turns = SlotTurns.of({ a: 2, b: 1 }, ...agents);
    const line = { holder: "t1#1" };
    turns.turn(acquire("a1-a", "a", line), acquire("a2-b", "b"), acquire("a1-b", "b", line));
    expect(turns.turn(acquire("a1-aa", "a", line))).toEqual([
      { kind: "out-of-order", resource: "a", held: "a" },
    ]);
    expect(kindsOf(turns.turn(acquire("a1-other", "a", { holder: "t2#1" })))).toEqual(["slot-granted"]);
  });

  it("does not depend on slots of other agents", () => {
    expect(kindsOf(turnsOf().turn(acquire("a2-a", "a")))).toEqual(["slot-granted"]);
  });
});

describe("a release", () => {
  it("is a tick, and grants the highest L: the larger backlog, where all came at once", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"));
    turns.turn(
      acquire("a2-light", "gpu"),
      acquire("a3-heavy", "gpu", { weightThousandths: 5_000 }),
      release("a1-x"),
    );
    expect(turns.holders("gpu")).toEqual(["a3-heavy"]);
    expect(turns.last("SlotGranted").receipt).toEqual({
      by: "load",
      resource: "gpu",
      tick: 1,
      waiting: 2,
      waitedMs: 0,
      load: 1,
      alpha: 0.25,
      runnerUp: { agent: "a2", load: 0.8 },
    });
  });

  it("is applied singly: between two releases in a turn the first slot is granted", () => {
    const turns = SlotTurns.of({ gpu: 2 }, ...agents);
    turns.turn(
      acquire("a1-x", "gpu"),
      acquire("a2-x", "gpu"),
      acquire("a3-x", "gpu"),
      acquire("a4-x", "gpu"),
    );
    turns.turn(release("a1-x"), release("a2-x"));
    const types = turns.events.map(({ type }) => type).slice(-4);
    expect(types).toEqual(["SlotReleased", "SlotGranted", "SlotReleased", "SlotGranted"]);
    expect(turns.resource("gpu").tick).toBe(2);
  });

  it("twice takes effect once; an unknown handle has another reply", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"));
    expect(turns.turn(release("a1-x"), release("a1-x"), release("a1-never"))).toEqual([
      { kind: "slot-released", handle: "a1-x", was: "held" },
      { kind: "slot-ended", handle: "a1-x", reason: "released" },
      { kind: "unknown-handle", handle: "a1-never" },
    ]);
    expect(turns.resource("gpu")).toMatchObject({ inUse: 0, tick: 1 });
  });

  it("of another agent's handle is of an unknown handle", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"));
    const theft = { ...release("a1-x"), agent: agentId("a2"), incarnation: incarnation("a2-1") };
    expect(kindsOf(turns.turn(theft))).toEqual(["unknown-handle"]);
    expect(turns.holders("gpu")).toEqual(["a1-x"]);
  });
});

describe("an agent that came for slots alone and is forgotten", () => {
  it("gets the same replies about its past slots, and must join before it acquires", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"));
    turns.turn(lapse("a1"));
    turns.pass(limits.slotAgentForgottenMs);
    turns.turn();
    expect(turns.state.agentById.has(agentId("a1"))).toBe(false);
    const before = fingerprint(turns.state);
    expect(turns.turn(release("a1-x"), acquire("a1-x", "gpu"), acquire("a1-y", "gpu"), lapse("a1"))).toEqual([
      { kind: "slot-ended", handle: "a1-x", reason: "agent-gone" },
      { kind: "session-over", agent: "a1" },
      { kind: "session-over", agent: "a1" },
      { kind: "none" },
    ]);
    expect(fingerprint(turns.state)).toBe(before);
  });

  it("has none of its slots when it joins again with the ended session, and the reply says so", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"));
    turns.turn(lapse("a1"));
    turns.pass(limits.slotAgentForgottenMs);
    turns.turn(acquire("a2-x", "gpu"));
    const slots = { held: [slotHandle("a1-x")], waiting: [] };
    const session = { agent: agentId("a1"), incarnation: incarnation("a1-1") };
    const heartbeat = {
      type: "ReconcileAgent",
      ...session,
      held: [],
      seen: assignmentNumber(0),
      slots,
    } as const;
    expect(turns.turn(join("a1", { kinds: [] }), heartbeat, acquire("a1-x", "gpu"))).toMatchObject([
      { kind: "joined", resumed: false },
      { kind: "reconciled", slots: { revoked: ["a1-x"] } },
      { kind: "slot-ended", handle: "a1-x", reason: "agent-gone" },
    ]);
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
  });
});

describe("a slot becomes free", () => {
  const contended = () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu", { timeoutMs: 1_000 }), acquire("a3-x", "gpu"));
    return turns;
  };

  it("from a waiter that gives up, without a tick", () => {
    const turns = contended();
    expect(turns.turn(release("a2-x"))).toEqual([{ kind: "slot-released", handle: "a2-x", was: "waiting" }]);
    expect(turns.resource("gpu").tick).toBe(0);
    turns.turn(release("a1-x"));
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
  });

  it("from a waiter at its time-out", () => {
    const turns = contended();
    turns.passToDue();
    expect(turns.last("SlotWaitEnded")).toMatchObject({ handles: ["a2-x"], reason: "timed-out" });
    expect(turns.effects.at(-1)).toMatchObject({ kind: "slot-waits-ended", handles: ["a2-x"] });
    turns.turn(release("a1-x"));
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
    expect(turns.turn(acquire("a2-x", "gpu", { timeoutMs: 1_000 }))).toEqual([
      { kind: "slot-ended", handle: "a2-x", reason: "timed-out" },
    ]);
  });

  it("in one turn with a time-out that is due: the grant is first in the journal, and the time-out has no effect", () => {
    const turns = contended();
    turns.pass(1_000);
    turns.turn(release("a1-x"));
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
    expect(turns.all("SlotWaitEnded")).toEqual([]);
    turns.pass(5_000);
    turns.turn();
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
  });

  it("in the turn after a time-out: the time-out is first, and the next one is granted", () => {
    const turns = contended();
    turns.passToDue();
    turns.turn(release("a1-x"), release("a2-x"));
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
  });

  it.each([
    ["a dead holder", lapse("a1"), ["a2-x"], ["a3-x"]],
    ["a dead waiter", lapse("a2"), ["a1-x"], ["a3-x"]],
    ["a holder that left", { ...lapse("a1"), type: "LeaveAgent" as const }, ["a2-x"], ["a3-x"]],
    [
      "a holder that restarted",
      join("a1", { kinds: [], incarnation: incarnation("a1-2") }),
      ["a2-x"],
      ["a3-x"],
    ],
  ])("from %s", (_, command, held, waiting) => {
    const turns = contended();
    turns.turn(command);
    expect(turns.holders("gpu")).toEqual(held);
    expect(turns.waiters("gpu")).toEqual(waiting);
    expect(turns.resource("gpu").inUse).toBe(1);
  });

  it("but is not granted to an unresponsive agent until it responds", () => {
    const turns = contended();
    const session = { agent: agentId("a2"), incarnation: incarnation("a2-1") };
    turns.turn({ type: "MarkUnresponsive", ...session }, release("a1-x"));
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
    turns.turn(release("a3-x"));
    expect(turns.holders("gpu")).toEqual([]);
    const slots = { held: [], waiting: [slotHandle("a2-x")] };
    turns.turn({ type: "ReconcileAgent", ...session, held: [], seen: assignmentNumber(0), slots });
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
  });

  it("from a lost agent to another, never to the lost agent's own waits", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(acquire("a1-x", "gpu"), acquire("a1-y", "gpu", { weightThousandths: 9_000 }));
    turns.turn(acquire("a2-x", "gpu"), lapse("a1"));
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
    expect(turns.waiters("gpu")).toEqual([]);
  });

  it("from an agent with too many slots for one batch, over several", () => {
    const turns = SlotTurns.of({ gpu: 1_000 }, ...agents);
    for (let n = 0; n < 600; n += 1) turns.turn(acquire(`a1-${n}`, "gpu"));
    let rounds = 0;
    while (turns.turn(lapse("a1"))[0]?.kind === "again") rounds += 1;
    expect(rounds).toBe(2);
    expect(turns.resource("gpu")).toMatchObject({ inUse: 0, tick: 600 });
  });

  it("from an agent that no longer lists it, and unlisted waits end", () => {
    const turns = contended();
    const heartbeat = (agent: string, held: string[], waiting: string[]) =>
      ({
        type: "ReconcileAgent",
        agent: agentId(agent),
        incarnation: incarnation(`${agent}-1`),
        held: [],
        seen: assignmentNumber(0),
        slots: { held: held.map(slotHandle), waiting: waiting.map(slotHandle) },
      }) as const;
    turns.turn(heartbeat("a1", [], []), heartbeat("a2", [], []));
    expect(turns.all("SlotReleased"), "a request may overtake a heartbeat of another thread").toEqual([]);
    turns.pass(limits.slotUnlistedMs);
    turns.turn(heartbeat("a2", [], []));
    expect(turns.last("SlotWaitEnded")).toMatchObject({ handles: ["a2-x"], reason: "lost" });
    turns.turn(heartbeat("a1", [], []));
    expect(turns.last("SlotReleased").reason).toBe("lost");
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
    expect(turns.turn(heartbeat("a3", [], ["a3-x"]))).toMatchObject([{ slots: { granted: ["a3-x"] } }]);
    expect(turns.turn(heartbeat("a1", ["a1-x", "a1-never"], ["a1-y"]))).toMatchObject([
      {
        slots: { revoked: ["a1-x", "a1-never"], ended: [{ handle: "a1-y", reason: "unknown" }] },
      },
    ]);
    expect(turns.turn(heartbeat("a3", ["a3-x"], []))).toEqual([{ kind: "reconciled", unknown: [] }]);
  });
});

describe("the number of slots", () => {
  it("when raised, is granted as far as it goes", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.turn(...agents.map((agent) => acquire(`${agent}-x`, "gpu")));
    turns.setResource("gpu", { slots: 3 });
    expect(turns.holders("gpu")).toHaveLength(3);
  });

  it("when lowered below the held slots, takes nothing away, and grants nothing until it fits", () => {
    const turns = SlotTurns.of({ gpu: 3 }, ...agents);
    turns.turn(...agents.map((agent) => acquire(`${agent}-x`, "gpu")));
    turns.setResource("gpu", { slots: 1 });
    expect(turns.resource("gpu").inUse).toBe(3);
    turns.turn(release("a1-x"), release("a2-x"));
    expect(turns.holders("gpu")).toEqual(["a3-x"]);
    turns.turn(release("a3-x"));
    expect(turns.holders("gpu")).toEqual(["a4-x"]);
  });

  it("and time give the utilisation", () => {
    const turns = SlotTurns.of({ gpu: 2 }, ...agents);
    turns.pass(1_000);
    turns.turn(acquire("a1-x", "gpu"));
    turns.pass(1_000);
    turns.turn(release("a1-x"));
    expect(utilisationOf(turns.resource("gpu"), turns.at)).toBe(0.25);
    expect(utilisationOf(turns.resource("gpu"), instant(turns.at + 2_000))).toBe(0.125);
  });
});

describe("a set of resources", () => {
  it("is granted whole or not at all", () => {
    const turns = SlotTurns.of({ a: 1, b: 1 }, ...agents);
    turns.turn(acquire("a1-b", "b"), acquire("a2-ab", ["b", "a"]));
    expect(turns.holders("a")).toEqual([]);
    expect(kindsOf(turns.turn(acquire("a3-a", "a")))).toEqual(["slot-granted"]);
    turns.turn(release("a1-b"));
    expect(turns.holders("b")).toEqual([]);
    turns.turn(release("a3-a"));
    expect([turns.holders("a"), turns.holders("b")]).toEqual([["a2-ab"], ["a2-ab"]]);
    turns.turn(release("a2-ab"));
    expect([turns.resource("a").tick, turns.resource("b").tick]).toEqual([2, 2]);
  });

  it("with a name twice takes two slots", () => {
    const turns = SlotTurns.of({ gpu: 3 }, ...agents);
    turns.turn(acquire("a1-x", ["gpu", "gpu"]));
    expect(turns.resource("gpu").inUse).toBe(2);
    expect(kindsOf(turns.turn(acquire("a2-x", ["gpu", "gpu"])))).toEqual(["slot-awaited"]);
    expect(kindsOf(turns.turn(acquire("a3-x", "gpu")))).toEqual(["slot-granted"]);
  });

  /** Two users of `a` and two of `b` hand their slots over so that both are never free at once. */
  function starve(turns: SlotTurns, rounds: number): void {
    for (let round = 0; round < rounds; round += 1) {
      turns.turn(acquire(`a1-a${round}`, "a"), acquire(`a2-b${round}`, "b"));
      if (round > 0) turns.turn(release(`a1-a${round - 1}`), release(`a2-b${round - 1}`));
    }
  }

  it("past the starvation limit reserves free slots until it is complete", () => {
    const turns = SlotTurns.of({ a: 1, b: 1 }, ...agents);
    turns.turn(acquire("a1-first", "a"), acquire("a2-first", "b"), acquire("a3-set", ["a", "b"]));
    turns.turn(acquire("a1-a0", "a"), acquire("a2-b0", "b"), release("a1-first"), release("a2-first"));
    expect(turns.waiters("a")).toContain("a3-set");
    for (let round = 1; turns.waiters("a").includes("a3-set") && round < 200; round += 1) {
      turns.turn(acquire(`a1-a${round}`, "a"), acquire(`a2-b${round}`, "b"));
      for (const holder of [...turns.holders("a"), ...turns.holders("b")])
        if (holder !== "a3-set") turns.turn(release(holder));
    }
    expect(turns.last("SlotGranted")).toMatchObject({
      handle: "a3-set",
      receipt: { by: "starvation-limit" },
    });
    const { tick } = turns.last("SlotGranted").receipt;
    // 20 ticks for each of the two waiters, and one more release of each resource.
    expect(tick).toBeGreaterThan(defaultPolicy.starvationLimit * 2);
    expect(tick).toBeLessThanOrEqual(defaultPolicy.starvationLimit * 2 + 2);
  });

  it("that waits for more slots than an operator leaves stops waiting, and is refused when asked again", () => {
    const turns = SlotTurns.of({ a: 3, b: 1 }, ...agents);
    turns.turn(acquire("a1-x", ["a", "a"]), acquire("a2-set", ["a", "a", "b"]), acquire("a3-x", ["a", "a"]));
    turns.turn(acquire("a4-x", ["a", "b"]), acquire("a4-y", "a"));
    expect(turns.waiters("a")).toEqual(["a2-set", "a3-x"]);
    const lower = { type: "SetResource", resource: resourceName("a"), patch: { slots: 1 } } as const;
    expect(turns.turn(lower)).toMatchObject([{ kind: "set", settings: { slots: 1 }, changed: true }]);
    expect(turns.all("SlotWaitEnded")).toMatchObject([
      { agent: "a2", handles: ["a2-set"], reason: "above-capacity" },
      { agent: "a3", handles: ["a3-x"], reason: "above-capacity" },
    ]);
    expect(turns.effects.slice(-2)).toMatchObject([
      { kind: "slot-waits-ended", agent: "a2", handles: ["a2-set"], reason: "above-capacity" },
      { kind: "slot-waits-ended", agent: "a3", handles: ["a3-x"], reason: "above-capacity" },
    ]);
    expect(turns.turn(acquire("a2-again", ["a", "a", "b"]), acquire("a3-x", ["a", "a"]))).toEqual([
      { kind: "above-capacity", resource: "a", wanted: 2, slots: 1 },
      { kind: "slot-ended", handle: "a3-x", reason: "above-capacity" },
    ]);
    expect(turns.turn(lower)).toMatchObject([{ kind: "set", changed: false }]);
  });

  it("keeps waiting where enough slots are left, however many are held", () => {
    const turns = SlotTurns.of({ a: 3 }, ...agents);
    turns.turn(acquire("a1-x", ["a", "a", "a"]), acquire("a2-x", ["a", "a"]), acquire("a3-x", "a"));
    turns.turn({ type: "SetResource", resource: resourceName("a"), patch: { slots: 2 } });
    expect(turns.waiters("a")).toEqual(["a2-x", "a3-x"]);
    turns.turn(release("a1-x"));
    expect(turns.holders("a")).toEqual(["a2-x"]);
  });

  it("with too many waits for one batch end over several, and none is granted meanwhile", () => {
    const count = 2 * limits.closuresPerCommandMax + 10;
    const turns = new SlotTurns();
    turns.setResource("a", { slots: 2, maxWaiters: count });
    turns.turn(join("a1", { kinds: [] }), join("a2", { kinds: [] }));
    turns.turn(acquire("a1-x", "a"));
    turns.turn(...Array.from({ length: count }, (_, n) => acquire(`a2-${n}`, ["a", "a"])));
    const lower = { type: "SetResource", resource: resourceName("a"), patch: { slots: 1 } } as const;
    const replies = [turns.turn(lower), turns.turn(release("a1-x"), lower), turns.turn(lower)].flat();
    expect(kindsOf(replies)).toEqual(["again", "slot-released", "again", "set"]);
    expect(replies.at(-1)).toMatchObject({ settings: { slots: 1 }, changed: true });
    expect(turns.all("SlotWaitEnded")).toHaveLength(count);
    expect(turns.all("ResourceConfigured")).toHaveLength(2);
    expect(turns.resource("a")).toMatchObject({ inUse: 0, grants: 1 });
  });

  it("reserves in name order: nothing of b is reserved while a is missing", () => {
    const turns = SlotTurns.of({ a: 1, b: 1 }, ...agents);
    turns.turn(acquire("a1-a", "a"), acquire("a2-b", "b"), acquire("a3-set", ["a", "b"]));
    // b's clock alone takes the set past the starvation limit; a stays in use.
    turns.turn(release("a2-b"));
    for (let round = 0; round < 50; round += 1)
      turns.turn(acquire(`a4-${round}`, "b"), release(`a4-${round}`));
    expect(turns.waiters("b")).toEqual(["a3-set"]);
    expect(kindsOf(turns.turn(acquire("a4-x", "b")))).toEqual(["slot-granted"]);
    turns.turn(release("a1-a"));
    expect(kindsOf(turns.turn(acquire("a1-again", "a")))).toEqual(["slot-awaited"]);
    turns.turn(release("a4-x"));
    expect(turns.holders("a")).toEqual(["a3-set"]);
  });

  it("starves under no policy: sets have a starvation limit even where it is off, and no lower limit", () => {
    const turns = SlotTurns.of({ a: 1, b: 1 }, ...agents);
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, starvationLimit: 0 } });
    starve(turns, 1);
    turns.turn(acquire("a3-set", ["a", "b"]));
    for (let round = 1; round < 90 && turns.waiters("a").includes("a3-set"); round += 1) {
      turns.turn(acquire(`a1-a${round}`, "a"), acquire(`a2-b${round}`, "b"));
      for (const holder of [...turns.holders("a"), ...turns.holders("b")])
        if (holder !== "a3-set") turns.turn(release(holder));
    }
    const granted = turns.all("SlotGranted").find(({ handle }) => handle === "a3-set");
    expect(granted?.receipt).toMatchObject({ by: "starvation-limit" });
    expect(granted?.receipt.tick).toBeGreaterThan(2 * limits.setStarvationLimitTicksPerWaiting);
  });
});

describe("the starvation limit", () => {
  /** A heavy agent comes again and again; α = 1 counts only the backlog. */
  function ticksUntilLight(policy: Partial<Policy>): number | undefined {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, alpha: 1, ...policy } });
    turns.turn(acquire("a1-0", "gpu"), acquire("a2-light", "gpu"));
    for (let round = 1; round < 200; round += 1) {
      turns.turn(acquire(`a1-${round}`, "gpu", { weightThousandths: 9_000 }));
      turns.turn(release(turns.holders("gpu")[0] ?? ""));
      if (turns.holders("gpu")[0] === "a2-light") return turns.resource("gpu").tick;
    }
    return undefined;
  }

  it("bounds a wait that L alone would not, by 20 ticks per waiter", () => {
    expect(ticksUntilLight({})).toBe(41);
  });

  it("passed by several, grants in order of asking, and their receipts give the waits", () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, alpha: 1, starvationLimit: 1 } });
    turns.turn(acquire("a2-held", "gpu"), acquire("a1-first", "gpu"), acquire("a3-next", "gpu"));
    const heavy = ["a4-1", "a4-2", "a4-3", "a4-4"];
    turns.turn(...heavy.map((handle) => acquire(handle, "gpu", { weightThousandths: 9_000 })));
    turns.pass(700);
    const granted: string[] = [];
    for (let holders = turns.holders("gpu"); holders.length > 0; holders = turns.holders("gpu")) {
      granted.push(...holders);
      turns.turn(...holders.map((handle) => release(handle)));
    }
    expect(granted).toEqual(["a2-held", "a4-1", "a4-2", "a4-3", "a1-first", "a3-next", "a4-4"]);
    const waits = turns.all("SlotGranted").map(({ receipt: { by, waitedMs } }) => [by, waitedMs]);
    expect(waits.slice(-4)).toEqual([
      ["load", 700],
      ["starvation-limit", 700],
      ["starvation-limit", 700],
      ["starvation-limit", 700],
    ]);
  });

  it.each<[string, Partial<Policy>]>([
    ["our rules", { starvationLimit: 0 }],
    ["the published rules, which have none", { rules: "loco", ...ruleSets.loco }],
  ])("is off at 0, under %s", (_, policy) => {
    expect(ticksUntilLight(policy)).toBeUndefined();
  });

  it("holds under the published rules where one is set", () => {
    expect(ticksUntilLight({ rules: "loco", ...ruleSets.loco, starvationLimit: 20 })).toBe(41);
  });
});

describe("α", () => {
  const tuned = () => {
    const turns = SlotTurns.of({ gpu: 1 }, ...agents);
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, autoTune: true, alpha: 0.5 } });
    turns.turn(acquire("a1-0", "gpu"), acquire("a2-old", "gpu"));
    // The heavy agent goes first while the light agent's wait grows.
    for (let round = 1; round < 6; round += 1) {
      turns.turn(acquire(`a1-${round}`, "gpu", { weightThousandths: 9_000 }));
      turns.turn(release(`a1-${round - 1}`));
    }
    return turns;
  };

  it("is tuned where the policy allows, each time with its reason", () => {
    const turns = tuned();
    const moves = turns.all("AlphaTuned");
    expect(moves.length).toBeGreaterThan(0);
    expect(moves[0]).toMatchObject({ resource: "gpu", from: 0.5, to: 0.49, reason: "uneven-waits" });
    expect(turns.resource("gpu").tunedAlpha).toBe(moves.at(-1)?.to);
  });

  it("restarts when an operator sets another", () => {
    const turns = tuned();
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, autoTune: true, alpha: 0.3 } });
    expect(turns.resource("gpu").tunedAlpha).toBeUndefined();
  });

  it.each([{ optimizeFor: "throughput" }, { alpha: 0.5 }] as const)("is reset by naming it: %o", (patch) => {
    const turns = tuned();
    const other = decideSettings(
      turns.state,
      { type: "SetPolicy", patch: { autoTune: true } },
      turns.state.at,
    );
    expect(other.events).toEqual([]);
    const { events, reply } = decideSettings(turns.state, { type: "SetPolicy", patch }, turns.state.at);
    expect(reply).toMatchObject({ changed: true, settings: { alpha: 0.5, autoTune: true } });
    for (const event of events) turns.configure(event);
    expect(turns.resource("gpu").tunedAlpha).toBeUndefined();
    expect(decideSettings(turns.state, { type: "SetPolicy", patch }, turns.state.at).events).toEqual([]);
  });
});

describe("α of one resource", () => {
  /** A light request with a longer wait, and a later heavy request: the agent granted on each resource. */
  function winners(turns: SlotTurns, ...resources: string[]): string[] {
    return resources.map((name) => {
      turns.turn(acquire(`a1-${name}`, name), acquire(`a3-${name}`, name), acquire(`a2-${name}`, name));
      turns.turn(release(`a1-${name}`));
      turns.turn(acquire(`a4-${name}`, name, { weightThousandths: 9_000 }), release(`a3-${name}`));
      return turns.holders(name)[0]?.slice(0, 2) ?? "";
    });
  }

  it("decides the grants of that resource only", () => {
    const turns = SlotTurns.of({ latency: 1, throughput: 1 }, ...agents);
    turns.setResource("latency", { ownAlpha: { value: 0, autoTune: false } });
    turns.setResource("throughput", { ownAlpha: { value: 1, autoTune: false } });
    expect(winners(turns, "latency", "throughput")).toEqual(["a2", "a4"]);
    const receipts = turns
      .all("SlotGranted")
      .flatMap(({ receipt }) => (receipt.by === "load" ? [receipt] : []));
    expect(receipts.map(({ resource, alpha }) => [resource, alpha])).toEqual([
      ["latency", 0],
      ["latency", 0],
      ["throughput", 1],
      ["throughput", 1],
    ]);
  });

  it("stays when the policy sets another, and follows it again once reset to the policy's", () => {
    const turns = SlotTurns.of({ own: 1, other: 1 }, ...agents);
    turns.setResource("own", { ownAlpha: { value: 0, autoTune: false } });
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, alpha: 1 } });
    expect(winners(turns, "own", "other")).toEqual(["a2", "a4"]);
    const patch = { alpha: null };
    const { events } = decideSettings(
      turns.state,
      {
        type: "SetResource",
        resource: resourceName("own"),
        patch,
      },
      turns.state.at,
    );
    for (const event of events) turns.configure(event);
    expect(alphaAt(turns.state, turns.resource("own"))).toBe(1);
  });

  const tuned = () => {
    const turns = SlotTurns.of({ gpu: 1, tpu: 1 }, ...agents);
    turns.setResource("gpu", { ownAlpha: { value: 0.5, autoTune: true } });
    for (const name of ["gpu", "tpu"]) {
      turns.turn(acquire(`a1-${name}0`, name), acquire(`a2-${name}`, name));
      for (let round = 1; round < 6; round += 1) {
        turns.turn(acquire(`a1-${name}${round}`, name, { weightThousandths: 9_000 }));
        turns.turn(release(turns.holders(name)[0] ?? ""));
      }
    }
    return turns;
  };

  it("is tuned there, and at no resource that follows a policy without auto-tune", () => {
    const turns = tuned();
    const moves = turns.all("AlphaTuned");
    expect(moves[0]).toMatchObject({ resource: "gpu", from: 0.5 });
    expect(new Set(moves.map(({ resource }) => resource))).toEqual(new Set(["gpu"]));
    expect(alphaAt(turns.state, turns.resource("gpu"))).toBe(moves.at(-1)?.to);
    expect(alphaAt(turns.state, turns.resource("tpu"))).toBe(0.25);
  });

  it("keeps a tuned value through changes of the policy and of other settings", () => {
    const turns = tuned();
    const moved = turns.resource("gpu").tunedAlpha;
    expect(moved).toBeDefined();
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, alpha: 0.1 } });
    turns.setResource("gpu", { maxWaiters: 7 });
    expect(turns.resource("gpu").tunedAlpha).toBe(moved);
  });

  it.each([{ alpha: 0.5 }, { alpha: 0.2 }, { autoTune: false }, { alpha: null }] as const)(
    "loses a tuned value when set: %o",
    (patch) => {
      const turns = tuned();
      const command = { type: "SetResource", resource: resourceName("gpu"), patch } as const;
      const { events, reply } = decideSettings(turns.state, command, turns.state.at);
      expect(reply).toMatchObject({ changed: true });
      for (const event of events) turns.configure(event);
      expect(turns.resource("gpu").tunedAlpha).toBeUndefined();
      expect(decideSettings(turns.state, command, turns.state.at).events).toEqual([]);
    },
  );

  it("replays to the same state", () => {
    const turns = tuned();
    turns.setResource("gpu", { ownAlpha: { value: 0.1, autoTune: true } });
    expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
  });
});

it("an agent's waits count as its backlog at once", () => {
  const turns = SlotTurns.of({ gpu: 1, tpu: 1 }, ...agents);
  const backlog = (id: string) => backlogOf(turns.state, agentOf(turns.state, agentId(id)));
  turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu", { weightThousandths: 2_500 }));
  turns.turn(acquire("a3-y", "tpu"), acquire("a2-y", "tpu"), release("a3-y"), acquire("a4-y", "tpu"));
  expect(backlog("a2")).toEqual({ queueDepth: 2.5, oldestAge: 0 });
  expect(backlog("a1")).toEqual({ queueDepth: 0, oldestAge: 0 });
  turns.turn(acquire("a3-z", "tpu"), release("a2-y"));
  expect(backlog("a3")).toEqual({ queueDepth: 1, oldestAge: 1 });
  expect(turns.resource("tpu").waiting.size).toBe(1);
  expect([...turns.state.contendedByName.keys()]).toEqual([resourceName("gpu"), resourceName("tpu")]);
});

it("a history of slots replays to the same state", () => {
  const turns = SlotTurns.of({ a: 1, b: 2 }, ...agents);
  turns.turn(acquire("a1-x", ["a", "b"]), acquire("a2-x", "a", { timeoutMs: 50, holder: "h" }));
  turns.pass(20);
  turns.turn(acquire("a3-x", ["b", "a"]), release("a1-x"));
  turns.pass(100);
  turns.turn(lapse("a2"));
  expect(describeState(turns.replayed().state)).toEqual(describeState(turns.state));
});
