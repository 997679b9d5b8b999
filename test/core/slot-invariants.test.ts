// Each invariant of slots is broken on purpose, to prove that its checker sees; and a busy state has no violations. The
// numbers are those of docs/invariants.md.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { SlotSuccession } from "../../src/core/slot-invariants.ts";
import { agentId, resourceName, slotHandle } from "../../src/ids.ts";
import { defaultPolicy } from "../../src/state/policy.ts";
import type { SwarmState } from "../../src/state/state.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";

/** Slots held, alone and as a set, and waited for, with and without a time-out; one slot that was released. */
function aBusySwarm(): SlotTurns {
  const turns = SlotTurns.of({ a: 2, b: 1, idle: 1 }, "a1", "a2", "a3");
  turns.turn(acquire("a1-set", ["a", "b"]), acquire("a2-x", "a"), acquire("a3-gone", "idle"));
  turns.turn(release("a3-gone"), acquire("a2-b", "b", { timeoutMs: 5_000 }), acquire("a3-a", "a"));
  return turns;
}

// biome-ignore lint/suspicious/noExplicitAny: what is broken here is what the types forbid
type Mutable = any;
const resource = (state: SwarmState, name: string): Mutable => state.resourceByName.get(resourceName(name));
const slot = (state: SwarmState, handle: string): Mutable =>
  state.slotsByAgent.get(agentId(handle.slice(0, 2)))?.get(slotHandle(handle));

const breaks: readonly (readonly [number, what: string, doIt: (state: SwarmState) => void])[] = [
  [
    28,
    "more slots are in use than are held",
    (state) => {
      resource(state, "a").inUse += 1;
    },
  ],
  [
    50,
    "α has moved where nothing lets it",
    (state) => {
      resource(state, "a").tunedAlpha = 0.2;
    },
  ],
  [
    50,
    "α has moved beyond its range",
    (state) => {
      resource(state, "a").settings = { slots: 2, maxWaiters: 100, ownAlpha: { value: 0.5, autoTune: true } };
      resource(state, "a").tunedAlpha = 0.51;
    },
  ],
  [
    28,
    "a weight is counted that waits no more",
    (state) => {
      resource(state, "a").waitingWeightThousandths = 1;
    },
  ],
  [28, "a contended resource is not listed", (state) => void state.contendedByName.delete(resourceName("a"))],
  [
    28,
    "an unknown resource has waiters",
    (state) => void state.contendedByName.set(resourceName("gone"), resource(state, "a")),
  ],
  [
    28,
    "a resource lists a stranger",
    (state) => resource(state, "idle").holdings.set("a9 x", slot(state, "a2-x")),
  ],
  [
    29,
    "a set is held in part",
    (state) => {
      resource(state, "b").holdings.clear();
      resource(state, "b").inUse = 0;
    },
  ],
  [
    29,
    "a waiter is granted nowhere",
    (state) => {
      slot(state, "a3-a").state = "held";
    },
  ],
  [29, "a handle is held and has ended", (state) => void state.endedSlotByKey.set("a2 a2-x", "released")],
  [
    29,
    "a wait with a deadline has no timer",
    (state) => {
      slot(state, "a2-b").timeoutTimer = undefined;
    },
  ],
  [29, "an agent is listed without slots", (state) => void state.slotsByAgent.set(agentId("a9"), new Map())],
  [
    30,
    "an ended session holds a slot",
    (state) => {
      (state.agentById.get(agentId("a1")) as Mutable).incarnation = "a1-2";
    },
  ],
  [
    30,
    "an agent that is gone waits for a slot",
    (state) => {
      (state.agentById.get(agentId("a3")) as Mutable).online = false;
    },
  ],
  [
    42,
    "somebody waits for more slots than there are",
    (state) => {
      slot(state, "a3-a").needs = new Map([["a", 3]]);
    },
  ],
  [
    31,
    "a slot is free and somebody waits for it",
    (state) => {
      resource(state, "a").settings = { slots: 3, maxWaiters: 100 };
    },
  ],
  [
    31,
    "a slot is free where nobody is known to wait, and somebody waits for it",
    (state) => {
      resource(state, "a").settings = { slots: 3, maxWaiters: 100 };
      state.contendedByName.clear();
    },
  ],
  [
    31,
    "a slot is free that whoever waits past the starvation limit does not keep",
    (state) => {
      resource(state, "a").settings = { slots: 3, maxWaiters: 100 };
      resource(state, "b").tick = 1_000;
    },
  ],
];

const steps: readonly (readonly [number, what: string, doIt: (state: SwarmState) => void])[] = [
  [
    32,
    "more is granted than there is",
    (state) => {
      resource(state, "b").inUse = 2;
    },
  ],
  [
    32,
    "one more waits than may",
    (state) => {
      resource(state, "a").settings.maxWaiters = 1;
      resource(state, "a").waiting.set("x", slot(state, "a3-a"));
    },
  ],
  [
    32,
    "the clock of a resource goes back",
    (state) => {
      resource(state, "idle").tick = 0;
    },
  ],
];

const numbersOf = (violations: readonly { readonly number: number }[]) =>
  violations.map(({ number }) => number);

describe("the checkers of slots", () => {
  it("find nothing in a sound swarm, however busy", () => {
    const { state } = aBusySwarm();
    expect(resource(state, "a")).toMatchObject({ inUse: 2, tick: 0 });
    expect([...resource(state, "b").waiting.keys()]).toEqual(["a2 a2-b"]);
    expect(checkAfterTurn(state)).toEqual([]);
  });

  it.each(breaks)("see that %i is broken: %s", (number, _, doIt) => {
    const { state } = aBusySwarm();
    doIt(state);
    const violations = number === 31 || number === 42 ? checkAfterTurn(state) : checkInvariants(state);
    expect(numbersOf(violations)).toContain(number);
    for (const { name, sentence } of violations) expect(`${name}: ${sentence}`).not.toContain("undefined");
  });

  it.each(steps)("see a violation of %i between two batches: %s", (number, _, doIt) => {
    const { state } = aBusySwarm();
    const succession = new SlotSuccession();
    succession.check(state);
    doIt(state);
    expect(numbersOf(succession.check(state))).toContain(number);
  });

  it("allow a slot to stay free only for a waiter past the starvation limit", () => {
    const turns = SlotTurns.of({ a: 1, b: 1 }, "a1", "a2", "a3");
    turns.turn(acquire("a1-b", "b"), acquire("a2-a", "a"), acquire("a3-set", ["a", "b"]));
    turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, starvationLimit: 1 } });
    for (let round = 1; round <= 4; round += 1) {
      turns.turn(release(`a2-a${round === 1 ? "" : round - 1}`));
      turns.turn(acquire(`a2-a${round}`, "a"));
    }
    expect(turns.resource("a").inUse).toBe(0);
    expect(turns.waiters("a")).toEqual(["a3-set", "a2-a4"]);
    expect(checkAfterTurn(turns.state)).toEqual([]);
    slot(turns.state, "a3-set").requestedTicks = new Map();
    expect(numbersOf(checkAfterTurn(turns.state))).toContain(31);
  });

  it("allow a resource with lowered slots to have more in use, until they are released", () => {
    const turns = aBusySwarm();
    turns.setResource("a", { slots: 1, maxWaiters: 1 });
    turns.turn(release("a2-x"));
    expect(turns.resource("a").inUse).toBe(1);
  });

  it("allow one batch to grant slots and then lower their number", () => {
    const turns = SlotTurns.of({ a: 2 }, "a1", "a2");
    const patch = { slots: 1, maxWaiters: 0 };
    const lower: Command = { type: "SetResource", resource: resourceName("a"), patch };
    turns.turn(acquire("a1-x", ["a", "a"]), acquire("a2-x", "a"), lower);
    expect(turns.resource("a")).toMatchObject({ inUse: 2, settings: { slots: 1, maxWaiters: 0 } });
    expect(turns.waiters("a")).toEqual(["a2-x"]);
  });

  it("allow one batch to remove a resource and set it again", () => {
    const turns = SlotTurns.of({ a: 1 }, "a1");
    turns.turn(acquire("a1-x", "a"), release("a1-x"));
    const named = { resource: resourceName("a") };
    turns.turn({ type: "RemoveResource", ...named }, { type: "SetResource", ...named, patch: { slots: 1 } });
    expect(turns.resource("a").tick).toBe(0);
  });

  it("stand in docs/invariants.md with their numbers", () => {
    const page = readFileSync(fileURLToPath(new URL("../../docs/invariants.md", import.meta.url)), "utf8");
    const numbers = new Set([...breaks, ...steps].map(([number]) => number));
    expect([...numbers].sort()).toEqual([28, 29, 30, 31, 32, 42, 50]);
    for (const number of numbers) expect(page).toMatch(new RegExp(`^\\| ${number} \\|`, "m"));
  });
});
